//! HLT, in a guest and in the middle of a chain.

use super::steps::{self, BLOCK};
use crate::host::Host;
use crate::random::Random;
use crate::vcpu::{Exit, Sleep, Task, Vcpu, Waker};

const VHOST: Task = Task { comm: "vhost-4211", tid: 4_230 };

/// The guest halts; KVM polls, and perhaps sleeps, until something comes.
pub(super) fn halt(vcpu: &mut Vcpu, random: &mut Random, level: u8, sleep: Option<Sleep>) {
    vcpu.exit(Exit::of(vcpu.vendor().hlt()));
    vcpu.pass(random.between(100, 400));
    vcpu.halt(random.between(500, 20_000), sleep);
    vcpu.pass(random.between(100, 400));
    vcpu.inject_interrupt();
    vcpu.pass(random.between(20, 90));
    vcpu.enter(level);
}

/// A sleep of random length with one of the wakers, back on one of `cpus`.
pub(super) fn sleep(random: &mut Random, waker: Waker, cpus: &[u32]) -> Sleep {
    Sleep { ns: random.between(20_000, 400_000), delay_ns: random.between(900, 30_000), waker, cpu: random.pick(cpus) }
}

pub(super) fn act(host: &mut Host, random: &mut Random) {
    let vcpu = steps::begin(host);
    for round in 0..40 {
        steps::run_guest(vcpu, random);
        let sleep = match round % 4 {
            0 => None,
            1 | 2 => Some(sleep(random, Waker::Interrupt, &[0, 1])),
            _ => Some(sleep(random, Waker::Thread { task: VHOST, cpu: 2 }, &[0, 1])),
        };
        halt(vcpu, random, 1, sleep);
        steps::run_guest(vcpu, random);
        steps::anything(vcpu, random, 1);
    }
    steps::settle(vcpu, random);
}

pub(super) fn in_chains(host: &mut Host, random: &mut Random) {
    let vcpu = steps::begin(host);
    let cpuid = vcpu.vendor().cpuid();
    steps::launch(vcpu, random, BLOCK);
    for round in 0..20 {
        steps::run_guest(vcpu, random);
        steps::open_chain(vcpu, random, Exit::of(cpuid), cpuid, BLOCK);
        if round % 4 == 1 {
            vcpu.pass(200);
            let sleep = sleep(random, Waker::Interrupt, &[0, 1]);
            halt(vcpu, random, 1, Some(sleep));
        }
        steps::hypervisor(vcpu, random, &[Exit::of(cpuid)]);
        steps::close_chain(vcpu, random, BLOCK);
    }
    steps::leave_open(vcpu, random, cpuid, BLOCK);
}
