//! A host of a fleet: one guest hypervisor with one guest, whose load is the same everywhere.

use super::nested;
use super::steps::{self, BLOCK};
use crate::host::Host;
use crate::kernel::{Generation, Vendor};
use crate::random::Random;
use crate::reason::vmx;
use crate::story::Story;
use crate::vcpu::{Exit, Loss, Task};

/// What is worse on this host, and what its hardware and kernel make of the work on exits.
#[derive(Debug, Clone, Copy)]
pub struct OfFleet {
    /// VMCS shadowing works; else every VMREAD and VMWRITE exits.
    pub shadowing: bool,
    /// Another task takes the vCPU's CPU again and again.
    pub hog: bool,
    /// How long KVM works on an exit, in percent of what it usually does.
    pub(crate) handling_percent: u64,
    pub kernel: Generation,
}

/// L2 exits of a recording, about.
const ROUNDS: u64 = 24;
const HOG: Task = Task { comm: "backup", tid: 4_711 };
const KSOFTIRQD: Task = Task { comm: "ksoftirqd/0", tid: 14 };

pub(crate) fn of_fleet(of: OfFleet, seed: u64) -> Story {
    let random = &mut Random::new(seed);
    let mut host = Host::new(Vendor::Vmx, of.kernel, 3);
    let vcpu = steps::begin(&mut host);
    vcpu.handling_percent = of.handling_percent;
    steps::launch(vcpu, random, BLOCK);
    let recipe = if of.shadowing { nested::with_shadowing() } else { nested::reads_and_writes() };
    let reasons = [vmx::CPUID, vmx::MSR_WRITE, vmx::EPT_VIOLATION];
    for round in 0..ROUNDS + random.between(0, 4) {
        steps::run_guest(vcpu, random);
        let reason = reasons[(round % 3) as usize];
        steps::chain(vcpu, random, Exit::of(reason), reason, &recipe, BLOCK);
        steps::run_guest(vcpu, random);
        steps::page_fault(vcpu, random, 2);
        // Every host has a little of this.
        let lost = match (of.hog, round % 8) {
            (true, 0..=5) => Some((HOG, random.between(20_000, 40_000))),
            (_, 7) => Some((KSOFTIRQD, random.between(1_000, 2_000))),
            _ => None,
        };
        if let Some((task, ns)) = lost {
            steps::run_guest(vcpu, random);
            vcpu.interrupted_and(random.between(500, 1_000), |vcpu| vcpu.preempt(Loss::Forced, task, None, ns, 0));
            vcpu.pass(random.between(50, 300));
            vcpu.enter(2);
        }
    }
    steps::leave_open(vcpu, random, vmx::CPUID, BLOCK);
    host.finish()
}
