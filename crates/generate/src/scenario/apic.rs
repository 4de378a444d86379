//! The local APIC, register by register, and the fast path.

use super::steps;
use crate::host::Host;
use crate::kernel::Vendor;
use crate::random::Random;
use crate::reason::{svm, vmx};
use crate::truth::Detail;
use crate::vcpu::Exit;

/// An exit about the APIC register at `offset`.
fn register(reason: u32, info1: u64, offset: u16) -> Exit {
    Exit { detail: Some(Detail::ApicRegister(offset)), ..Exit::info(reason, info1) }
}

fn choices(vendor: Vendor) -> Vec<Exit> {
    let msr = |number| Exit { detail: Some(Detail::Msr(number)), ..Exit::info(vendor.msr_write(), 1) };
    let mut choices = vec![msr(0x838), msr(0x80b), msr(0x830), msr(0x6e0)];
    match vendor {
        Vendor::Vmx => {
            const WRITE: u64 = 1 << 12;
            choices.extend([0x380u16, 0x300, 0x320].map(|offset| register(vmx::APIC_WRITE, offset.into(), offset)));
            choices.push(register(vmx::APIC_ACCESS, WRITE | 0xb0, 0xb0));
            choices.push(register(vmx::APIC_ACCESS, 0x390, 0x390));
            choices.push(Exit { detail: Some(Detail::Vector(0x31)), ..Exit::info(vmx::EOI_INDUCED, 0x31) });
            choices.push(Exit::of(vmx::INTERRUPT_WINDOW));
        }
        Vendor::Svm => {
            const WRITE: u64 = 1 << 32;
            choices
                .extend([0x380u16, 0x320].map(|offset| register(svm::AVIC_NOACCEL, WRITE | u64::from(offset), offset)));
            choices.push(Exit::of(svm::VINTR));
        }
    }
    choices
}

pub(super) fn act(host: &mut Host, random: &mut Random) {
    let vcpu = steps::begin(host);
    let choices = choices(vcpu.vendor());
    for round in 0..80 {
        steps::run_guest(vcpu, random);
        let exit = choices[round % choices.len()];
        steps::kept(vcpu, random, 1, exit);
    }
    steps::settle(vcpu, random);
}

pub(super) fn fastpath(host: &mut Host, random: &mut Random) {
    let vcpu = steps::begin(host);
    let write = Exit::info(vcpu.vendor().msr_write(), 1);
    for _ in 0..40 {
        steps::run_guest(vcpu, random);
        for _ in 0..random.between(1, 4) {
            vcpu.fastpath(write, random.between(100, 300), random.between(500, 2_000));
        }
        steps::cpuid(vcpu, random, 1);
        vcpu.wait_for_timer();
    }
    steps::settle(vcpu, random);
}
