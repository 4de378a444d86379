//! What L0 does for a guest that has guests.

use super::{CODE, ENTRY_INSTRUCTION_BYTES, Exit, OpenChain, Vcpu};
use crate::kernel::Vendor;
use crate::reason::{svm, vmx};
use crate::truth::ClosedChain;

impl Vcpu {
    /// L0 hands the exit just taken to L1, as `reason`: a chain begins.
    ///
    /// `block` is the control block of the guest that left.
    pub fn inject(&mut self, reason: u32, block: u64) {
        if self.vendor() == Vendor::Svm && reason == svm::INTR {
            self.event("kvm_nested_intr_vmexit", &[("rip", self.rip.into())]);
            self.pass(10);
        }
        let isa = self.vendor().isa();
        self.event("kvm_nested_vmexit_inject", &[("exit_code", u64::from(reason).into()), ("isa", isa.into())]);
        let (at, off_cpu_ns) = self.open.as_ref().map_or((self.now, 0), |exit| (exit.at, exit.off_cpu_ns));
        self.chains_of(reason).count += 1;
        if let Some(cut) = self.chain.take() {
            self.chains_of(cut.reason).censored += 1;
        }
        self.chain = Some(OpenChain { reason, at, off_cpu_ns, exits: 0, halted: false, block, overtaken: false });
    }

    /// The guest with this control block ran on another thread: the open chain of it is marked.
    pub fn overtaken(&mut self, block: u64) {
        if let Some(chain) = self.chain.as_mut().filter(|chain| chain.block == block) {
            chain.overtaken = true;
        }
    }

    /// L1 asks to enter the guest with control block `block`: the exit of its VMRESUME or VMRUN, and KVM's word that it
    /// will. [`Vcpu::enter_nested`] follows, or a refusal.
    pub fn request(&mut self, block: u64, instruction: u32, level: u8, handling_ns: u64) {
        self.exit(Exit::of(instruction));
        self.pass(handling_ns / 2);
        self.announce(block, level);
        self.pass(handling_ns / 2);
    }

    /// KVM's event of a nested entry, as far as this kernel has one.
    pub fn announce(&mut self, block: u64, level: u8) {
        let vendor = self.vendor();
        let rip = if vendor == Vendor::Vmx { self.rip } else { self.rip + ENTRY_INSTRUCTION_BYTES };
        let nested_rip = CODE[usize::from(level).min(3)];
        let given = [
            ("rip", rip.into()),
            ("vmcb", block.into()),
            ("nested_rip", nested_rip.into()),
            ("tdp_enabled", 1.into()),
            ("npt", 1.into()),
            ("guest_pgd", (block + 0x1000).into()),
            ("isa", vendor.isa().into()),
        ];
        let name = if self.kernel.generation.has_vmenter() { "kvm_nested_vmenter" } else { "kvm_nested_vmrun" };
        self.event(name, &given);
        if vendor == Vendor::Svm {
            self.pass(5);
            self.event("kvm_nested_intercepts", &[("intercept1", 0x1234.into()), ("intercept", 0x1234.into())]);
        }
        if let Some(chain) = self.chain.as_mut().filter(|chain| chain.block != block) {
            chain.overtaken = true;
        }
    }

    /// The nested guest at `level` runs.
    pub(crate) fn enter_nested(&mut self, level: u8) {
        self.enter_at(level, CODE[usize::from(level).min(3)]);
    }

    /// L1 runs on behind the exit that was handed to it.
    pub(crate) fn enter_hypervisor(&mut self) {
        self.enter_at(1, CODE[1] + 0x546);
    }

    /// The request just made is refused before `kvm_nested_vmenter`: L1 goes on behind the instruction.
    ///
    /// VMX writes why; SVM writes nothing.
    pub(crate) fn refuse_early(&mut self, instruction: u32, message: &str) {
        self.exit(Exit::of(instruction));
        self.pass(200);
        if self.vendor() == Vendor::Vmx {
            self.event("kvm_nested_vmenter_failed", &[("msg", message.into()), ("err", 7.into())]);
            self.pass(100);
        }
        self.truth.refused += 1;
        self.enter_at(1, self.rip + ENTRY_INSTRUCTION_BYTES);
    }

    /// VMX refuses the guest's state behind `kvm_nested_vmenter`: L1 gets an exit, without an inject event.
    pub(crate) fn refuse_guest_state(&mut self, block: u64) {
        self.request(block, vmx::VMRESUME, 2, 300);
        self.event("kvm_nested_vmenter_failed", &[("msg", "guest CR0 is invalid".into()), ("err", 0.into())]);
        self.pass(80);
        self.truth.refused += 1;
        self.enter_hypervisor();
    }

    /// SVM refuses the control block late: an injection of reason -1 without a nested exit.
    pub(crate) fn refuse_block(&mut self, block: u64) {
        self.request(block, svm::VMRUN, 2, 300);
        self.inject(svm::INVALID, block);
        self.pass(80);
        self.truth.refused += 1;
        self.enter_hypervisor();
    }

    /// The processor refuses a VMX entry with VM-Fail: `kvm_entry` was written, yet no guest ran.
    pub(crate) fn refuse_in_hardware(&mut self, block: u64) {
        self.request(block, vmx::VMRESUME, 2, 300);
        let after = self.rip + ENTRY_INSTRUCTION_BYTES;
        self.entry_event(CODE[2]);
        self.close_exit();
        self.pass(40);
        self.event("kvm_nested_vmenter_failed", &[("msg", "hardware VM-instruction error".into()), ("err", 7.into())]);
        self.pass(60);
        self.truth.refused += 1;
        self.enter_at(1, after);
    }

    /// The processor starts the entry and fails on the guest's state: an exit of L2 with bit 31, handed to L1.
    pub(crate) fn fail_entry(&mut self, block: u64) {
        self.request(block, self.vendor().nested_entry(), 2, 300);
        self.enter_nested(2);
        self.pass(30);
        let exit = self.failed_entry();
        self.exit(exit);
        self.pass(150);
        self.inject(exit.reason, block);
        self.pass(80);
        self.enter_hypervisor();
    }

    pub(super) fn close_chain(&mut self) {
        if let Some(chain) = self.chain.take() {
            let cost_ns = self.now - chain.at - chain.off_cpu_ns;
            let closed = ClosedChain { exits: chain.exits, cost_ns, halted: chain.halted, moved: chain.overtaken };
            self.chains_of(chain.reason).closed.push(closed);
        }
    }
}
