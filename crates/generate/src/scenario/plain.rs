//! A guest without guests of its own.

use super::steps;
use crate::host::Host;
use crate::random::Random;
use crate::vcpu::Vcpu;

pub(super) fn act(host: &mut Host, random: &mut Random) {
    let vcpu = steps::begin(host);
    for _ in 0..60 {
        steps::run_guest(vcpu, random);
        steps::anything(vcpu, random, 1);
    }
    steps::settle(vcpu, random);
}

pub(super) fn interrupts(host: &mut Host, random: &mut Random) {
    let vcpu = steps::begin(host);
    for round in 0..40 {
        steps::run_guest(vcpu, random);
        disturbed(vcpu, random, round % 4);
    }
    steps::settle(vcpu, random);
}

/// A host interrupt in the guest, in handling, with a softirq behind it, or in the VMM.
pub(super) fn disturbed(vcpu: &mut Vcpu, random: &mut Random, kind: u64) {
    let level = 1;
    vcpu.interrupted(random.between(500, 3_000));
    vcpu.pass(random.between(50, 300));
    match kind {
        0 => {}
        1 => vcpu.timer_interrupt(random.between(400, 2_000)),
        2 => {
            vcpu.device_interrupt(random.between(400, 2_000));
            vcpu.pass(30);
            vcpu.softirq(random.between(500, 5_000));
        }
        _ => {
            vcpu.userspace(2, -4, random.between(300, 900));
            vcpu.device_interrupt(random.between(400, 2_000));
            vcpu.pass(random.between(300, 900));
        }
    }
    vcpu.pass(random.between(50, 300));
    vcpu.enter(level);
}
