//! Exit reasons by their numbers, for both vendors.
//!
//! VMX: Intel SDM volume 3, appendix C. SVM: AMD APM volume 2, appendix C. The truth keys exits by (vendor, number), so
//! that a table of names can be tested against it and is not shared with it.

use crate::kernel::Vendor;

/// VMX basic exit reasons.
pub mod vmx {
    /// Interrupt of the host.
    pub const EXTERNAL_INTERRUPT: u32 = 1;
    /// The guest can take an interrupt now.
    pub const INTERRUPT_WINDOW: u32 = 7;
    /// Time set by KVM is over.
    pub const PREEMPTION_TIMER: u32 = 52;
    /// CPUID.
    pub const CPUID: u32 = 10;
    /// HLT.
    pub const HLT: u32 = 12;
    /// VMCALL.
    pub const VMCALL: u32 = 18;
    /// VMLAUNCH.
    pub const VMLAUNCH: u32 = 20;
    /// VMPTRLD.
    pub const VMPTRLD: u32 = 21;
    /// VMREAD.
    pub const VMREAD: u32 = 23;
    /// VMRESUME.
    pub const VMRESUME: u32 = 24;
    /// VMWRITE.
    pub const VMWRITE: u32 = 25;
    pub const CR_ACCESS: u32 = 28;
    pub const IO_INSTRUCTION: u32 = 30;
    /// RDMSR.
    pub const MSR_READ: u32 = 31;
    /// WRMSR.
    pub const MSR_WRITE: u32 = 32;
    /// Guest state refused by the processor; comes with bit 31.
    pub const INVALID_STATE: u32 = 33;
    /// APIC page, without virtualised registers.
    pub const APIC_ACCESS: u32 = 44;
    /// End of an interrupt that KVM wants to hear of.
    pub const EOI_INDUCED: u32 = 45;
    /// Page missing in EPT.
    pub const EPT_VIOLATION: u32 = 48;
    /// Page marked as MMIO in EPT.
    pub const EPT_MISCONFIG: u32 = 49;
    /// INVEPT.
    pub const INVEPT: u32 = 50;
    /// INVVPID.
    pub const INVVPID: u32 = 53;
    /// APIC register that is virtualised and needs KVM all the same.
    pub const APIC_WRITE: u32 = 56;
    /// Set in the reason of an entry that failed.
    pub(crate) const FAILED_ENTRY: u32 = 1 << 31;
}

/// SVM exit codes.
pub(crate) mod svm {
    /// Interrupt of the host.
    pub(crate) const INTR: u32 = 0x60;
    /// The guest can take an interrupt now.
    pub(crate) const VINTR: u32 = 0x64;
    /// CPUID.
    pub(crate) const CPUID: u32 = 0x72;
    /// HLT.
    pub(crate) const HLT: u32 = 0x78;
    pub(crate) const IOIO: u32 = 0x7b;
    /// RDMSR, WRMSR.
    pub(crate) const MSR: u32 = 0x7c;
    /// VMRUN.
    pub(crate) const VMRUN: u32 = 0x80;
    /// VMMCALL.
    pub(crate) const VMMCALL: u32 = 0x81;
    /// VMLOAD.
    pub(crate) const VMLOAD: u32 = 0x82;
    /// VMSAVE.
    pub(crate) const VMSAVE: u32 = 0x83;
    /// STGI.
    pub(crate) const STGI: u32 = 0x84;
    /// CLGI.
    pub(crate) const CLGI: u32 = 0x85;
    pub(crate) const NPF: u32 = 0x400;
    /// APIC access that AVIC does not accelerate.
    pub(crate) const AVIC_NOACCEL: u32 = 0x402;
    /// The control block was refused.
    pub(crate) const INVALID: u32 = 0xffff_ffff;
}

impl Vendor {
    /// A host interrupt took the CPU from the guest.
    pub fn interrupt(self) -> u32 {
        match self {
            Vendor::Vmx => vmx::EXTERNAL_INTERRUPT,
            Vendor::Svm => svm::INTR,
        }
    }

    /// HLT.
    pub fn hlt(self) -> u32 {
        match self {
            Vendor::Vmx => vmx::HLT,
            Vendor::Svm => svm::HLT,
        }
    }

    /// CPUID.
    pub fn cpuid(self) -> u32 {
        match self {
            Vendor::Vmx => vmx::CPUID,
            Vendor::Svm => svm::CPUID,
        }
    }

    /// An instruction on a port.
    pub fn io(self) -> u32 {
        match self {
            Vendor::Vmx => vmx::IO_INSTRUCTION,
            Vendor::Svm => svm::IOIO,
        }
    }

    /// Reading a model-specific register.
    pub fn msr_read(self) -> u32 {
        match self {
            Vendor::Vmx => vmx::MSR_READ,
            Vendor::Svm => svm::MSR,
        }
    }

    /// The instruction that calls the hypervisor.
    pub fn hypercall(self) -> u32 {
        match self {
            Vendor::Vmx => vmx::VMCALL,
            Vendor::Svm => svm::VMMCALL,
        }
    }

    /// Writing a model-specific register.
    pub(crate) fn msr_write(self) -> u32 {
        match self {
            Vendor::Vmx => vmx::MSR_WRITE,
            Vendor::Svm => svm::MSR,
        }
    }

    /// A page that is missing in the second-level tables.
    pub(crate) fn page_fault(self) -> u32 {
        match self {
            Vendor::Vmx => vmx::EPT_VIOLATION,
            Vendor::Svm => svm::NPF,
        }
    }

    /// A page that KVM marked as MMIO.
    pub fn mmio(self) -> u32 {
        match self {
            Vendor::Vmx => vmx::EPT_MISCONFIG,
            Vendor::Svm => svm::NPF,
        }
    }

    /// The instruction that enters a nested guest again.
    pub fn nested_entry(self) -> u32 {
        match self {
            Vendor::Vmx => vmx::VMRESUME,
            Vendor::Svm => svm::VMRUN,
        }
    }
}
