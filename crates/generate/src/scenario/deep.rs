//! Guests three deep, and one that changes its place.

use super::steps;
use crate::host::Host;
use crate::kernel::Vendor;
use crate::random::Random;
use crate::reason::{svm, vmx};
use crate::vcpu::{Exit, Sleep, Vcpu, Waker};

/// Control block of L2, itself a hypervisor.
const HYPERVISOR: u64 = 0x1_0a40_a000;
/// Control block of L3, as L1 merged it.
const INNER: u64 = 0x1_0b50_b000;

/// ```text
/// L3 leaves -> L1 (chain 1) -> enters L2 with the exit -> L2 does VMREAD -> L1 (chain 2) -> L2
///                                                      -> L2 does VMRESUME -> L1 (chain 3) -> L3
/// ```
pub(super) fn act(host: &mut Host, random: &mut Random) {
    let vcpu = steps::begin(host);
    let (inner_work, own_entry) = match vcpu.vendor() {
        Vendor::Vmx => (vmx::VMREAD, vmx::VMRESUME),
        Vendor::Svm => (svm::VMLOAD, svm::VMRUN),
    };
    let cpuid = vcpu.vendor().cpuid();
    let work = [Exit::of(inner_work), Exit::of(cpuid)];
    steps::launch(vcpu, random, HYPERVISOR);
    // L2 enters L3 for the first time.
    reflected(vcpu, random, own_entry, &work, INNER, 3);
    for _ in 0..15 {
        reflected(vcpu, random, cpuid, &work, HYPERVISOR, 2);
        reflected(vcpu, random, inner_work, &work[..1], HYPERVISOR, 2);
        reflected(vcpu, random, own_entry, &work, INNER, 3);
        steps::run_guest(vcpu, random);
        steps::page_fault(vcpu, random, 3);
    }
    let left = vcpu.vendor().interrupt();
    steps::leave_open(vcpu, random, left, INNER);
}

/// The guest that runs leaves, L1 gets the exit, and enters the guest of `block` at `level`.
fn reflected(vcpu: &mut Vcpu, random: &mut Random, reason: u32, work: &[Exit], block: u64, level: u8) {
    steps::run_guest(vcpu, random);
    let left = if vcpu.guest_level() > 2 { INNER } else { HYPERVISOR };
    steps::open_chain(vcpu, random, Exit::of(reason), reason, left);
    steps::hypervisor(vcpu, random, work);
    vcpu.pass(random.between(60, 300));
    let instruction = vcpu.vendor().nested_entry();
    vcpu.request(block, instruction, level, random.between(500, 1_500));
    vcpu.enter_nested(level);
}

/// One L2 vCPU on two threads in turn. While it runs on one, the chain that its exit opened on the other is still open:
/// L1 never entered it there again, but will, later, with another history.
pub(super) fn moves(host: &mut Host, random: &mut Random) {
    let first = host.add(steps::VM, 0, 170, 0);
    let second = host.add(steps::VM, 1, 171, 1);
    let cpuid = host.kernel.vendor.cpuid();
    let hlt = host.kernel.vendor.hlt();
    for at in [first, second] {
        host.vcpus[at].pass(900);
        host.vcpus[at].enter(1);
    }
    let mut started = [false; 2];
    for round in 0..8 {
        let (here, there) = if round % 2 == 0 { (first, second) } else { (second, first) };
        // The other thread halts until this one has run the guest for a while.
        let begin = host.vcpus[here].now.max(host.vcpus[there].now);
        let vcpu = &mut host.vcpus[here];
        let waits = begin - vcpu.now;
        vcpu.pass(waits + 500);
        if started[here] {
            steps::close_chain(vcpu, random, HYPERVISOR);
        } else {
            steps::launch(vcpu, random, HYPERVISOR);
        }
        started[here] = true;
        for _ in 0..4 {
            steps::run_guest(vcpu, random);
            steps::chain(vcpu, random, Exit::of(cpuid), cpuid, &[Exit::of(cpuid)], HYPERVISOR);
        }
        steps::run_guest(vcpu, random);
        steps::open_chain(vcpu, random, Exit::of(cpuid), cpuid, HYPERVISOR);
        // L1 has nothing to do on this vCPU until the guest comes back.
        vcpu.pass(300);
        vcpu.exit(Exit::of(hlt));
        vcpu.pass(200);
        let cpu = vcpu.cpu;
        vcpu.halt(400, Some(Sleep { ns: 20_000, delay_ns: 700, waker: Waker::Interrupt, cpu }));
        vcpu.pass(100);
        vcpu.enter(1);
        host.vcpus[there].overtaken(HYPERVISOR);
    }
    for at in [first, second] {
        steps::settle(&mut host.vcpus[at], random);
    }
}
