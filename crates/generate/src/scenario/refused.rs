//! Nested entries that do not happen.

use super::steps::{self, BLOCK};
use crate::host::Host;
use crate::random::Random;
use crate::reason::{svm as svm_code, vmx as vmx_code};
use crate::vcpu::{Exit, Vcpu};

/// VM-Fail, on kernels that tell of it: without that event nothing shows that the guest which was entered never ran.
fn refuse_in_hardware(vcpu: &mut Vcpu) {
    if vcpu.kernel().generation.tells_refusals() {
        vcpu.refuse_in_hardware(BLOCK);
    }
}

pub(super) fn vmx(host: &mut Host, random: &mut Random) {
    let vcpu = steps::begin(host);
    let recipe = [Exit::of(vmx_code::VMREAD), Exit::of(vmx_code::VMWRITE)];
    for _ in 0..4 {
        steps::run_guest(vcpu, random);
        vcpu.refuse_early(vmx_code::VMLAUNCH, "invalid control field");
        steps::run_guest(vcpu, random);
        refuse_in_hardware(vcpu);
    }
    steps::run_guest(vcpu, random);
    vcpu.fail_entry(BLOCK);
    steps::launch(vcpu, random, BLOCK);
    for _ in 0..5 {
        // Refusals inside a chain: it goes on, one exit longer each.
        steps::run_guest(vcpu, random);
        steps::open_chain(vcpu, random, Exit::of(vmx_code::CPUID), vmx_code::CPUID, BLOCK);
        steps::hypervisor(vcpu, random, &recipe);
        vcpu.pass(200);
        vcpu.refuse_early(vmx_code::VMRESUME, "invalid host state");
        vcpu.pass(200);
        vcpu.refuse_guest_state(BLOCK);
        vcpu.pass(200);
        refuse_in_hardware(vcpu);
        steps::close_chain(vcpu, random, BLOCK);
        // An entry that fails in the processor closes a chain and opens the next.
        steps::run_guest(vcpu, random);
        steps::open_chain(vcpu, random, Exit::of(vmx_code::EPT_VIOLATION), vmx_code::EPT_VIOLATION, BLOCK);
        vcpu.pass(200);
        vcpu.fail_entry(BLOCK);
        steps::hypervisor(vcpu, random, &recipe);
        steps::close_chain(vcpu, random, BLOCK);
    }
    steps::leave_open(vcpu, random, vmx_code::EXTERNAL_INTERRUPT, BLOCK);
}

pub(super) fn svm(host: &mut Host, random: &mut Random) {
    let vcpu = steps::begin(host);
    let recipe = super::nested::svm_recipe();
    steps::run_guest(vcpu, random);
    vcpu.refuse_early(svm_code::VMRUN, "");
    steps::run_guest(vcpu, random);
    vcpu.refuse_block(BLOCK);
    steps::hypervisor(vcpu, random, &recipe[..2]);
    steps::launch(vcpu, random, BLOCK);
    for _ in 0..8 {
        steps::run_guest(vcpu, random);
        steps::open_chain(vcpu, random, Exit::of(svm_code::CPUID), svm_code::CPUID, BLOCK);
        steps::hypervisor(vcpu, random, &recipe);
        vcpu.pass(200);
        vcpu.refuse_early(svm_code::VMRUN, "");
        steps::close_chain(vcpu, random, BLOCK);
    }
    steps::leave_open(vcpu, random, svm_code::INTR, BLOCK);
}
