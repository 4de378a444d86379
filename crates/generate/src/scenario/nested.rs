//! A guest with guests, as it should be and as it too often is.

use super::steps::{self, BLOCK};
use crate::host::Host;
use crate::random::Random;
use crate::reason::{svm as svm_code, vmx};
use crate::truth::Detail;
use crate::vcpu::{Exit, Vcpu};

/// Exits of L1 per exit of L2 without VMCS shadowing, the closing VMRESUME included: the middle of the 40 to 50 that
/// Ciena counted.
pub const CIENA_CHAIN: u64 = 45;
/// The same for KVM on SVM without vls and vgif: VMSAVE VMLOAD STGI MSR CLGI VMLOAD VMRUN.
pub const SVM_CHAIN: u64 = 7;
/// L2 exits of each of these stories.
const ROUNDS: u64 = 40;
/// Timer's initial count in the local APIC.
const TMICT: u16 = 0x380;

/// L2 runs and leaves `ROUNDS` times; each time L1 does what `recipe` says.
fn rounds(vcpu: &mut Vcpu, random: &mut Random, reasons: &[u32], recipe: &[Exit]) {
    steps::launch(vcpu, random, BLOCK);
    for round in 0..ROUNDS {
        steps::run_guest(vcpu, random);
        if round % 5 == 4 {
            steps::page_fault(vcpu, random, 2);
            steps::run_guest(vcpu, random);
        }
        if round % 7 == 6 {
            steps::port(vcpu, random, 2, 0x11);
            steps::run_guest(vcpu, random);
        }
        let reason = random.pick(reasons);
        steps::chain(vcpu, random, Exit::of(reason), reason, recipe, BLOCK);
    }
    let reason = random.pick(reasons);
    steps::leave_open(vcpu, random, reason, BLOCK);
}

const VMX_REASONS: [u32; 4] = [vmx::CPUID, vmx::MSR_WRITE, vmx::EPT_VIOLATION, vmx::EXTERNAL_INTERRUPT];

/// 28 VMREAD, 13 VMWRITE, INVEPT, INVVPID, one MSR: 44, and VMRESUME.
pub(super) fn reads_and_writes() -> Vec<Exit> {
    let mut exits = vec![Exit::of(vmx::VMREAD); 28];
    exits.extend(vec![Exit::of(vmx::VMWRITE); 13]);
    exits.extend([Exit::of(vmx::INVEPT), Exit::of(vmx::INVVPID)]);
    exits.push(Exit { detail: Some(Detail::Msr(0x6e0)), ..Exit::of(vmx::MSR_WRITE) });
    exits
}

pub(super) fn no_shadowing(host: &mut Host, random: &mut Random) {
    rounds(steps::begin(host), random, &VMX_REASONS, &reads_and_writes());
}

/// What L1 still exits for with shadowing.
pub(super) fn with_shadowing() -> Vec<Exit> {
    vec![Exit::of(vmx::CPUID), Exit::of(vmx::VMWRITE)]
}

pub(super) fn shadowing(host: &mut Host, random: &mut Random) {
    rounds(steps::begin(host), random, &VMX_REASONS, &with_shadowing());
}

pub(super) fn apic_timer(host: &mut Host, random: &mut Random) {
    let timer = Exit { detail: Some(Detail::ApicRegister(TMICT)), ..Exit::info(vmx::APIC_WRITE, u64::from(TMICT)) };
    let mut recipe = vec![timer; 30];
    recipe.extend([Exit::of(vmx::VMREAD); 8]);
    recipe.extend([Exit::of(vmx::VMWRITE); 4]);
    rounds(steps::begin(host), random, &VMX_REASONS, &recipe);
}

/// What KVM as L1 does on SVM without vls and vgif, its VMRUN left out.
pub(super) fn svm_recipe() -> Vec<Exit> {
    let msr = Exit { detail: Some(Detail::Msr(0xc001_0117)), ..Exit::info(svm_code::MSR, 1) };
    vec![
        Exit::of(svm_code::VMSAVE),
        Exit::of(svm_code::VMLOAD),
        Exit::of(svm_code::STGI),
        msr,
        Exit::of(svm_code::CLGI),
        Exit::of(svm_code::VMLOAD),
    ]
}

pub(super) fn svm(host: &mut Host, random: &mut Random) {
    let reasons = [svm_code::CPUID, svm_code::MSR, svm_code::NPF, svm_code::INTR];
    rounds(steps::begin(host), random, &reasons, &svm_recipe());
}
