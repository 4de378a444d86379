//! Which hypervisor runs inside the guest: the one for the extension that KVM offers there.

use super::test::At;
use super::{svm, vmx};
use kvm_bindings::{CpuId, kvm_sregs};
use lab::Error;
use lab::guest::memory::Memory;

/// A virtualization extension that the guest has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extension {
    /// AMD's.
    Svm,
    Vmx,
}

/// The bit of leaf 0x80000001's ecx that offers SVM, and that of leaf 1's that offers VMX.
const SVM: u32 = 1 << 2;
const VMX: u32 = 1 << 5;
/// The bit of EFER that switches SVM on.
const EFER_SVME: u64 = 1 << 12;

/// What a test at `at` needs of what `cpuid` offers; nothing, if the guest is no hypervisor.
///
/// # Errors
/// If that is not offered; the sentence says what it takes.
pub(super) fn needed(at: At, cpuid: &CpuId) -> Result<Option<Extension>, Error> {
    let offers = |function: u32, bit: u32| {
        cpuid.as_slice().iter().any(|entry| entry.function == function && entry.ecx & bit != 0)
    };
    let (svm, vmx) = (offers(0x8000_0001, SVM), offers(1, VMX));
    let lacks = |what: &str, takes: &str| Err(Error::Absent(format!("KVM offers its guests no {what}, which {takes}")));
    const AMD: &str = "needs an AMD processor and kvm_amd with nested=1";
    const INTEL: &str = "needs an Intel processor and kvm_intel with nested=1";
    match at {
        At::Guest => Ok(None),
        At::Svm | At::Nested if svm => Ok(Some(Extension::Svm)),
        At::Vmx | At::Nested if vmx => Ok(Some(Extension::Vmx)),
        At::Svm => lacks("SVM here", AMD),
        At::Vmx => lacks("VMX here", INTEL),
        At::Nested => lacks("SVM or VMX here", "needs kvm_amd or kvm_intel with nested=1"),
    }
}

impl Extension {
    /// Writes L1 and its guests for a vCPU with `registers`, and changes those that L1 wants.
    ///
    /// # Errors
    /// If they do not fit.
    pub(super) fn fill(self, memory: &mut Memory, registers: &mut kvm_sregs) -> Result<(), Error> {
        match self {
            Self::Svm => {
                registers.efer |= EFER_SVME;
                svm::fill(memory, registers)
            }
            Self::Vmx => vmx::fill(memory, registers),
        }
    }

    /// MSRs that L1 finds set.
    pub(super) fn registers(self) -> [(u32, u64); 1] {
        match self {
            Self::Svm => svm::registers(),
            Self::Vmx => vmx::registers(),
        }
    }

    /// Where L1 begins before a test at `at` can run, if it has to.
    pub(super) fn begin(self, at: At) -> Option<u64> {
        match (self, at) {
            (Self::Svm, At::Nested) => Some(svm::begin()),
            (Self::Vmx, At::Nested) => Some(vmx::begin()),
            (Self::Vmx, At::Vmx) => Some(vmx::begin_leaving()),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kvm_bindings::kvm_cpuid_entry2;

    #[test]
    fn a_test_takes_the_extension_that_is_offered_or_says_what_is_missing() {
        let cpuid =
            |function, ecx| CpuId::from_entries(&[kvm_cpuid_entry2 { function, ecx, ..Default::default() }]).unwrap();
        let (intel, amd, none) = (cpuid(1, VMX), cpuid(0x8000_0001, SVM), cpuid(0x8000_0001, VMX));
        assert_eq!(needed(At::Nested, &intel).unwrap(), Some(Extension::Vmx));
        assert_eq!(needed(At::Nested, &amd).unwrap(), Some(Extension::Svm));
        assert_eq!(needed(At::Guest, &none).unwrap(), None);
        for (at, cpuid, module) in
            [(At::Svm, &intel, "kvm_amd"), (At::Vmx, &amd, "kvm_intel"), (At::Nested, &none, "or")]
        {
            let why = needed(at, cpuid).unwrap_err().to_string();
            assert!(why.contains(module) && why.contains("nested=1"), "{why}");
        }
    }
}
