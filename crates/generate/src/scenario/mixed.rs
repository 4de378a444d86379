//! Everything at once, as a seed wants it.

use super::{halts, nested, plain, sharing, steps};
use crate::host::Host;
use crate::kernel::{Generation, Vendor};
use crate::random::Random;
use crate::reason::vmx;
use crate::story::Story;
use crate::vcpu::{Exit, Vcpu, Waker};

/// Control block of the L2 vCPU of L1's vCPU `vcpu`.
fn block(vcpu: &Vcpu) -> u64 {
    0x1_0a40_a000 + 0x10_0000 * u64::from(vcpu.truth.vcpu)
}

/// A story whose vendor, kernel, threads and acts all follow from `seed`.
///
/// It has no losses, and no entry that the hardware refuses, which old kernels cannot tell from one that was made.
pub fn random(seed: u64) -> Story {
    let mut random = Random::new(seed);
    let vendor = random.pick(&[Vendor::Vmx, Vendor::Svm]);
    let generation = random.pick(&Generation::ALL);
    let threads = random.between(1, 4) as u32;
    let mut host = host(vendor, generation, threads);
    for at in 0..threads {
        host.add("guest", at, 500 + at as i32, 2 * at);
    }
    act(host, &mut random)
}

/// The vCPUs of each VM of a wide host.
const OF_EACH: u32 = 4;

/// The same on a host of many VMs: pictures and tables of `vcpus` vCPUs are what it is for.
pub fn wide(vcpus: u32, seed: u64) -> Story {
    let mut random = Random::new(seed);
    let mut host = host(Vendor::Vmx, Generation::V6_12, vcpus);
    for at in 0..vcpus {
        host.add(&format!("vm-{}", at / OF_EACH), at % OF_EACH, 500 + at as i32, 2 * at);
    }
    act(host, &mut random)
}

/// Each thread has a home and a spare CPU; the last CPU is the quiet one.
fn host(vendor: Vendor, generation: Generation, threads: u32) -> Host {
    Host::new(vendor, generation, 2 * threads + 1)
}

fn act(mut host: Host, random: &mut Random) -> Story {
    for vcpu in &mut host.vcpus {
        vcpu.pass(random.between(500, 5_000));
        vcpu.enter(1);
        if random.one_in(2) {
            with_guests(vcpu, random);
        } else {
            without_guests(vcpu, random);
        }
    }
    host.finish()
}

fn without_guests(vcpu: &mut Vcpu, random: &mut Random) {
    let cpus = [vcpu.cpu, vcpu.cpu + 1];
    for _ in 0..random.between(10, 60) {
        steps::run_guest(vcpu, random);
        match random.between(0, 6) {
            0 | 1 => steps::anything(vcpu, random, 1),
            5 => {
                let write = Exit::info(vcpu.vendor().msr_write(), 1);
                vcpu.fastpath(write, random.between(100, 300), random.between(500, 2_000));
                steps::cpuid(vcpu, random, 1);
            }
            2 => plain::disturbed(vcpu, random, random.clone().between(0, 4)),
            3 => sharing::hogged(vcpu, random, random.clone().between(0, 3), &cpus),
            _ => {
                let sleep = (!random.one_in(3)).then(|| halts::sleep(random, Waker::Interrupt, &cpus));
                halts::halt(vcpu, random, 1, sleep);
            }
        }
    }
    steps::settle(vcpu, random);
}

fn with_guests(vcpu: &mut Vcpu, random: &mut Random) {
    let cpus = [vcpu.cpu, vcpu.cpu + 1];
    let block = block(vcpu);
    let vendor = vcpu.vendor();
    steps::launch(vcpu, random, block);
    for _ in 0..random.between(5, 40) {
        steps::run_guest(vcpu, random);
        match random.between(0, 4) {
            0 => steps::anything(vcpu, random, 2),
            1 => {
                let ns = random.between(500, 2_000);
                vcpu.interrupted_and(ns, |vcpu| sharing::lose_cpu(vcpu, random, &cpus));
                vcpu.pass(100);
                vcpu.enter(2);
            }
            _ => reflected(vcpu, random, &cpus, block),
        }
    }
    steps::leave_open(vcpu, random, vendor.interrupt(), block);
}

/// An exit of L2 that L1 gets, in which anything may happen.
fn reflected(vcpu: &mut Vcpu, random: &mut Random, cpus: &[u32], block: u64) {
    let vendor = vcpu.vendor();
    let reason = random.pick(&[vendor.cpuid(), vendor.msr_write(), vendor.page_fault(), vendor.interrupt()]);
    steps::open_chain(vcpu, random, Exit::of(reason), reason, block);
    match vendor {
        Vendor::Vmx => {
            let work = vec![Exit::of(vmx::VMREAD); random.between(0, 30) as usize];
            steps::hypervisor(vcpu, random, &work);
        }
        Vendor::Svm => steps::hypervisor(vcpu, random, &nested::svm_recipe()),
    }
    if random.one_in(6) {
        steps::run_guest(vcpu, random);
        let sleep = halts::sleep(random, Waker::Interrupt, cpus);
        halts::halt(vcpu, random, 1, Some(sleep));
    }
    if random.one_in(6) {
        steps::run_guest(vcpu, random);
        steps::anything(vcpu, random, 1);
    }
    if random.one_in(5) {
        sharing::hogged(vcpu, random, 0, cpus);
    }
    if random.one_in(5) {
        steps::run_guest(vcpu, random);
        vcpu.refuse_early(vendor.nested_entry(), "invalid control field");
    }
    if vendor == Vendor::Vmx && random.one_in(5) {
        steps::run_guest(vcpu, random);
        vcpu.refuse_guest_state(block);
    }
    steps::close_chain(vcpu, random, block);
}
