//! A guest and its model-specific registers.

use super::steps;
use crate::host::Host;
use crate::random::Random;
use crate::vcpu::Vcpu;

/// What the guest's counter shows when the story begins.
const COUNTER: u64 = 5_000_000_000;

/// Deadlines rise and never come twice; SPEC_CTRL is 0 or 1; the x2APIC's end of interrupt is always 0.
fn work(vcpu: &mut Vcpu, random: &mut Random) {
    const TSC_DEADLINE: u32 = 0x6e0;
    const SPEC_CTRL: u32 = 0x48;
    const EOI: u32 = 0x80b;
    const APERF: u32 = 0xe8;
    vcpu.pass(900);
    vcpu.enter(1);
    let begin = vcpu.now;
    for _ in 0..120 {
        steps::run_guest(vcpu, random);
        let counter = COUNTER + (vcpu.now - begin);
        match random.between(0, 8) {
            0 => steps::cpuid(vcpu, random, 1),
            1 => steps::access(vcpu, random, APERF, false, counter / 3),
            2 | 3 => {
                let value = random.between(0, 2);
                steps::access(vcpu, random, SPEC_CTRL, true, value);
            }
            4 => steps::access(vcpu, random, EOI, true, 0),
            _ => {
                let until = random.between(10_000, 4_000_000);
                steps::access(vcpu, random, TSC_DEADLINE, true, counter + until);
            }
        }
    }
    steps::settle(vcpu, random);
}

pub(super) fn act(host: &mut Host, random: &mut Random) {
    let at = host.add(steps::VM, 0, 170, 0);
    work(&mut host.vcpus[at], random);
}

pub(super) fn act_in_two_vms(host: &mut Host, random: &mut Random) {
    for (vm, vcpu, tid, cpu) in [("web", 0, 2_001, 0), ("web", 1, 2_002, 1), ("db", 0, 3_001, 2), ("db", 1, 3_002, 3)] {
        let at = host.add(vm, vcpu, tid, cpu);
        work(&mut host.vcpus[at], random);
    }
}
