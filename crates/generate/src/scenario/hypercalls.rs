//! Hypercalls of a nested guest, which L0 hands to L1, and those of L1, which L0 answers as it does L2's MSRs.
//!
//! L0 writes `kvm_hypercall` for those that it answers itself only (`____kvm_emulate_hypercall` in arch/x86/kvm/x86.c, Linux
//! 6.12), so its trace has no number of those that it hands up.

use super::nested;
use super::steps::{self, BLOCK};
use crate::host::Host;
use crate::kernel::Vendor;
use crate::random::Random;
use crate::reason::vmx;
use crate::vcpu::Exit;

/// Hypercalls of L2 in each of these stories.
const ROUNDS: u64 = 160;
/// KVM_HC_SEND_IPI in include/uapi/linux/kvm_para.h.
const SEND_IPI: u64 = 10;

/// A register of L2's that L0 serves.
const SPEC_CTRL: u32 = 0x48;

/// L2 calls from one of so many places.
fn calls(host: &mut Host, random: &mut Random, places: u64) {
    let vcpu = steps::begin(host);
    let reason = vcpu.vendor().hypercall();
    let recipe = match vcpu.vendor() {
        Vendor::Vmx => vec![Exit::of(vmx::CPUID), Exit::of(vmx::VMWRITE)],
        Vendor::Svm => nested::svm_recipe(),
    };
    steps::launch(vcpu, random, BLOCK);
    for round in 0..ROUNDS {
        steps::run_guest(vcpu, random);
        if round % 7 == 6 {
            steps::msr(vcpu, random, 2, SPEC_CTRL);
            steps::run_guest(vcpu, random);
        }
        vcpu.move_rip(0x40 * random.between(0, places));
        steps::open_chain(vcpu, random, Exit::of(reason), reason, BLOCK);
        steps::hypervisor(vcpu, random, &recipe);
        if round % 5 == 4 {
            vcpu.pass(random.between(60, 400));
            steps::hypercall(vcpu, random, SEND_IPI);
        }
        steps::close_chain(vcpu, random, BLOCK);
    }
    steps::leave_open(vcpu, random, vcpu.vendor().cpuid(), BLOCK);
}

pub(super) fn act(host: &mut Host, random: &mut Random) {
    calls(host, random, 5);
}

pub(super) fn act_in_a_loop(host: &mut Host, random: &mut Random) {
    calls(host, random, 1);
}
