//! A vCPU that has to share its CPU, and several that share a host.

use super::{halts, plain, steps};
use crate::host::{BEGIN_NS, Host};
use crate::random::Random;
use crate::vcpu::{Exit, Loss, Task, Vcpu, Waker};

const HOGS: [Task; 3] = [
    Task { comm: "stress-ng-cpu", tid: 901 },
    Task { comm: "ksoftirqd/0", tid: 14 },
    Task { comm: "kworker/0:2", tid: 233 },
];

/// The vCPU loses its CPU to one of the hogs, or to two in turn.
pub(super) fn lose_cpu(vcpu: &mut Vcpu, random: &mut Random, cpus: &[u32]) {
    let how = random.pick(&[Loss::Yielded, Loss::Forced]);
    let by = random.between(0, HOGS.len() as u64) as usize;
    // Nobody runs on two CPUs at once: each vCPU has hogs of its own.
    let hog = |at: usize| Task { tid: HOGS[at].tid + 1_000 * vcpu.truth.tid, ..HOGS[at] };
    let (by, second) = (hog(by), random.one_in(4).then(|| hog((by + 1) % HOGS.len())));
    let cpu = random.pick(cpus);
    vcpu.preempt(how, by, second, random.between(2_000, 90_000), cpu);
}

/// One round: the guest runs, a host interrupt ends it, and a hog has the CPU before the next entry.
pub(super) fn hogged(vcpu: &mut Vcpu, random: &mut Random, kind: u64, cpus: &[u32]) {
    steps::run_guest(vcpu, random);
    match kind {
        0 => {
            let ns = random.between(500, 2_000);
            vcpu.interrupted_and(ns, |vcpu| lose_cpu(vcpu, random, cpus));
        }
        1 => {
            vcpu.exit(Exit::of(vcpu.vendor().io()));
            vcpu.pass(random.between(50, 300));
            vcpu.userspace(2, 0, random.between(500, 4_000));
            lose_cpu(vcpu, random, cpus);
            vcpu.pass(random.between(500, 4_000));
        }
        _ => {
            vcpu.exit(Exit::info(vcpu.vendor().page_fault(), 0x182));
            vcpu.pass(random.between(50, 300));
            let cpu = random.pick(cpus);
            vcpu.block(random.between(20_000, 90_000), random.between(900, 9_000), Waker::Interrupt, cpu);
        }
    }
    vcpu.pass(random.between(50, 300));
    vcpu.enter(1);
}

pub(super) fn hogs(host: &mut Host, random: &mut Random) {
    let vcpu = steps::begin(host);
    for round in 0..45 {
        hogged(vcpu, random, round % 3, &[0, 1, 2]);
    }
    steps::settle(vcpu, random);
}

pub(super) fn two_vms(host: &mut Host, random: &mut Random) {
    // Both vCPU threads of a VM have its name, as older QEMU leaves it.
    for (vm, vcpu, tid, cpu) in [("web", 0, 2_001, 0), ("web", 1, 2_002, 1), ("db", 0, 3_001, 2), ("db", 1, 3_002, 3)] {
        host.add(vm, vcpu, tid, cpu);
    }
    for at in 0..4 {
        let vcpu = &mut host.vcpus[at];
        let home = vcpu.cpu;
        vcpu.pass(900);
        vcpu.enter(1);
        for round in 0..25 {
            steps::run_guest(vcpu, random);
            match round % 3 {
                0 => steps::anything(vcpu, random, 1),
                1 => plain::disturbed(vcpu, random, round % 4),
                _ => {
                    let sleep = halts::sleep(random, Waker::Interrupt, &[home]);
                    halts::halt(vcpu, random, 1, Some(sleep));
                }
            }
        }
        steps::settle(vcpu, random);
    }
    for (comm, tid, cpu) in [("vhost-2000", 2_010, 5), ("vhost-3000", 3_010, 6)] {
        let mut at = BEGIN_NS + 7_000;
        for _ in 0..30 {
            let ns = random.between(3_000, 60_000);
            host.burst(Task { comm, tid }, cpu, at, ns);
            at += ns + random.between(5_000, 90_000);
        }
    }
}
