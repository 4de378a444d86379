//! What does an exit code mean?
//!
//! Tables keyed by (instruction set, code). A code that no table knows prints its number and never fails: new CPUs and
//! kvm_pvm bring their own. Names are those of Intel's and AMD's manuals as the kernel abbreviates them (`names.tsv`).

mod printed;

use super::names::{self, ARM64, SVM, SVM_ALIASES, VMX, VMX_ALIASES};
use crate::keyed::Key;
use crate::state::TracedLevel;
use printed::Printed;
use std::hash::{Hash, Hasher};

/// The virtualization instruction set that an event's `isa` field names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Isa {
    /// Intel VMX, `isa` 1 (KVM_ISA_VMX in arch/x86/kvm/trace.h).
    Vmx,
    /// AMD SVM, `isa` 2 (KVM_ISA_SVM).
    Svm,
    /// 64-bit Arm, whose `kvm_exit` has the exception class of ESR_EL2 and no `isa`.
    Arm64,
    /// Anything else, with its number; kvm_pvm uses numbers of its own.
    Other(u8),
    /// Not known, nor is the reason: a text printed it so.
    Printed(Printed),
}

impl Isa {
    /// The instruction set that a trace calls `number`.
    #[inline]
    pub fn of(number: u64) -> Self {
        match number {
            1 => Isa::Vmx,
            2 => Isa::Svm,
            other => Isa::Other(other as u8),
        }
    }
}

impl Isa {
    /// The instruction set that alone prints a reason as `name`.
    ///
    /// The kernel prints SVM's reasons in lower case and trace-cmd's plug-in with `EXIT_`; VMX has neither.
    pub(crate) fn betrayed_by(name: &str) -> Option<Self> {
        let known = [Isa::Vmx, Isa::Svm, Isa::Arm64].map(|isa| isa.code_of(name).is_some());
        match known {
            [true, false, false] => Some(Isa::Vmx),
            [false, true, false] => Some(Isa::Svm),
            [false, false, true] => Some(Isa::Arm64),
            [true, true, _] if name.starts_with("EXIT_") || name.contains(char::is_lowercase) => Some(Isa::Svm),
            _ => None,
        }
    }

    /// The instruction set that alone has a reason of this number: VMX's end at 85, most of SVM's lie above.
    pub(crate) fn betrayed_by_number(number: u64) -> Option<Self> {
        let known = |isa| Reason::of(isa, number).known_name().is_some();
        match (known(Isa::Vmx), known(Isa::Svm)) {
            (true, false) => Some(Isa::Vmx),
            (false, true) => Some(Isa::Svm),
            _ => None,
        }
    }

    /// The code that prints as `name`, be it followed by flags (`INVALID_STATE FAILED_VMENTRY`, or with `|` between them)
    /// or not.
    fn code_of(self, name: &str) -> Option<u32> {
        let (table, aliases) = match self {
            Isa::Vmx => (&VMX, VMX_ALIASES.as_slice()),
            Isa::Svm => (&SVM, SVM_ALIASES.as_slice()),
            Isa::Arm64 => (&ARM64, &[][..]),
            Isa::Other(_) | Isa::Printed(_) => return None,
        };
        let find = |name: &str| {
            let same = |known: &str| {
                // `UD excp` is UD_EXCP.
                let letter = |byte: u8| if byte == b' ' { b'_' } else { byte.to_ascii_uppercase() };
                known.len() == name.len() && known.bytes().zip(name.bytes()).all(|(a, b)| a == letter(b))
            };
            table.iter().chain(aliases).find(|(_, known)| same(known)).map(|(code, _)| *code)
        };
        let name = name.strip_prefix("EXIT_").unwrap_or(name);
        // trace-cmd's plug-in says EXCP_UD where the kernel says UD_EXCP.
        let turned = || find(&format!("{}_EXCP", name.strip_prefix("EXCP_")?));
        find(name).or_else(turned).or_else(|| find(name.split_once([' ', '|'])?.0))
    }
}

/// `ARM_EXCEPTION_TRAP` (arch/arm64/include/asm/kvm_asm.h, Linux 6.12).
const ARM64_TRAP: u64 = 2;

/// What was no trap, above all exception classes, which have six bits.
const ARM64_NO_TRAP: u32 = 0x100;

/// Why a guest was left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reason {
    /// Whose code it is.
    pub isa: Isa,
    /// The code: VMX's basic reason (16 bits), SVM's whole code.
    pub code: u32,
}

/// What a reason tells beside its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// The guest has nothing to do: HLT, MWAIT, WFI.
    Halt,
    /// A guest hypervisor asks to enter its own guest.
    EntryRequest,
    /// Another instruction that only a hypervisor executes.
    Virtualization,
    /// Reads or writes a field of a guest hypervisor's VMCS.
    VmcsAccess,
    Plain,
}

impl Class {
    /// True if only a hypervisor inside the guest causes such exits.
    pub fn is_nested_sign(self) -> bool {
        matches!(self, Class::EntryRequest | Class::Virtualization | Class::VmcsAccess)
    }
}

impl Hash for Reason {
    /// One word instead of a field at a time: every exit looks its reason up.
    fn hash<H: Hasher>(&self, state: &mut H) {
        let isa = match self.isa {
            Isa::Vmx => 1,
            Isa::Svm => 2,
            Isa::Arm64 | Isa::Printed(_) => 3,
            Isa::Other(number) => 4 + u64::from(number),
        };
        state.write_u64(isa << 32 | u64::from(self.code));
    }
}

impl Key for Reason {
    #[inline]
    fn word(&self) -> u64 {
        u64::from(self.code)
    }
}

impl Key for (TracedLevel, Reason) {
    #[inline]
    fn word(&self) -> u64 {
        u64::from(self.1.code) << 3 | self.0.index() as u64
    }
}

impl Reason {
    /// The reason in a trace's `exit_reason` or `exit_code` field.
    pub fn of(isa: Isa, field: u64) -> Self {
        match isa {
            // Bits 16 to 31 are flags: 31 failed entry, 27 enclave, 26 bus lock (Intel SDM vol. 3, 25.9.1).
            Isa::Vmx => Self { isa, code: (field & 0xffff) as u32 },
            _ => Self { isa, code: field as u32 },
        }
    }

    /// The reason of an arm64 guest: of what went to the hypervisor the exception class; of the rest what it was
    /// (`trace_kvm_exit` in arch/arm64/kvm/arm.c, Linux 6.12).
    pub fn of_arm64(class: u64, kind: Option<u64>) -> Self {
        let code = match kind {
            None | Some(ARM64_TRAP) => class as u32,
            Some(kind) => ARM64_NO_TRAP.saturating_add(kind as u32),
        };
        Self { isa: Isa::Arm64, code }
    }

    /// The reason called `name` in text output of the kernel, trace-cmd or kvmscope; `isa` decides between codes that
    /// share a name. A name that no table has stays as it was printed.
    pub fn named(name: &str, isa: Isa) -> Self {
        let known = [isa, Isa::Vmx, Isa::Svm, Isa::Arm64].into_iter();
        known.filter_map(|isa| Some(Self { isa, code: isa.code_of(name)? })).next().unwrap_or_else(|| {
            let name = Printed::new(name);
            Self { isa: Isa::Printed(name), code: name.number() }
        })
    }

    /// All names that the tables of VMX and SVM have.
    pub fn names() -> impl Iterator<Item = &'static str> {
        VMX.iter().chain(SVM.iter()).map(|(_, name)| *name)
    }

    /// Its name in upper case, or its number.
    pub fn name(self) -> String {
        match (self.known_name(), self.isa) {
            (Some(name), _) => name.to_owned(),
            (None, Isa::Svm | Isa::Arm64) => format!("{:#X}", self.code),
            (None, Isa::Printed(name)) => name.text().to_owned(),
            (None, _) => self.code.to_string(),
        }
    }

    /// Its name, if a table has it.
    pub fn known_name(self) -> Option<&'static str> {
        let table = match self.isa {
            Isa::Vmx => &VMX,
            Isa::Svm => &SVM,
            Isa::Arm64 => &ARM64,
            Isa::Other(_) | Isa::Printed(_) => return None,
        };
        names::find(table, self.code)
    }

    /// What it tells beside its name.
    #[inline]
    pub fn class(self) -> Class {
        match (self.isa, self.code) {
            (Isa::Vmx, 12 | 36) | (Isa::Svm, 0x78 | 0x8b | 0x8c | 0xa6) | (Isa::Arm64, 0x01) => Class::Halt,
            (Isa::Vmx, 20 | 24) | (Isa::Svm, 0x80) => Class::EntryRequest,
            (Isa::Vmx, 23 | 25) => Class::VmcsAccess,
            (Isa::Vmx, 19 | 21 | 22 | 26 | 27 | 50 | 53) | (Isa::Svm, 0x82..=0x85) => Class::Virtualization,
            _ => Class::Plain,
        }
    }

    /// True for an exit by RDMSR or WRMSR.
    #[inline]
    pub fn is_msr_access(self) -> bool {
        matches!((self.isa, self.code), (Isa::Vmx, 31 | 32) | (Isa::Svm, 0x7c))
    }

    /// True for an exit by PAUSE in a spin loop.
    #[inline]
    pub fn is_pause(self) -> bool {
        matches!((self.isa, self.code), (Isa::Vmx, 40) | (Isa::Svm, 0x77))
    }

    /// True for an exit by which KVM asked to be told when the guest takes interrupts again.
    pub(crate) fn is_interrupt_window(self) -> bool {
        matches!((self.isa, self.code), (Isa::Vmx, 7) | (Isa::Svm, 0x64))
    }

    /// True for an exit by VMX's pre-emption timer, with which KVM keeps its guest's own.
    pub(crate) fn is_preemption_timer(self) -> bool {
        (self.isa, self.code) == (Isa::Vmx, 52)
    }

    /// True for an exit that may be re-entered before anybody says that it came from a nested guest: VMX's
    /// PREEMPTION_TIMER in the fastpath (`handle_fastpath_preemption_timer`, Linux 6.9 and 6.1.192).
    #[inline]
    pub(crate) fn hides_its_level(self) -> bool {
        self.is_preemption_timer()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_that_no_table_knows_prints_its_number() {
        assert_eq!(Reason::of(Isa::Vmx, 500).name(), "500");
        assert_eq!(Reason::of(Isa::Svm, 0x404).name(), "0x404");
        assert_eq!(Reason::of(Isa::Other(3), 131_072).name(), "131072");
    }

    #[test]
    fn flags_above_vmx_reasons_do_not_hide_them() {
        assert_eq!(Reason::of(Isa::Vmx, 0x8000_0021).name(), "INVALID_STATE");
    }

    #[test]
    fn names_are_found_as_the_kernel_and_trace_cmd_print_them() {
        let found = |name, isa| {
            let reason = Reason::named(name, isa);
            reason.known_name().map(|_| (reason.isa, reason.code))
        };
        assert_eq!(found("INVALID_STATE FAILED_VMENTRY", Isa::Vmx), Some((Isa::Vmx, 33)));
        assert_eq!(found("UD excp", Isa::Vmx), Some((Isa::Svm, 0x46)));
        assert_eq!(found("EXIT_NPF", Isa::Svm), Some((Isa::Svm, 0x400)));
        assert_eq!(found("hypercall", Isa::Svm), Some((Isa::Svm, 0x81)));
        assert_eq!(found("HLT", Isa::Vmx), Some((Isa::Vmx, 12)));
        assert_eq!(found("HLT", Isa::Svm), Some((Isa::Svm, 0x78)));
        assert_eq!(found("EXIT_EXCP_UD", Isa::Svm), Some((Isa::Svm, 0x46)));
        assert_eq!(found("EPT_VIOLATION|FAILED_VMENTRY", Isa::Vmx), Some((Isa::Vmx, 48)));
        assert_eq!(found("MSR_READ_IMM", Isa::Vmx), Some((Isa::Vmx, 84)));
        assert_eq!(found("SYS64", Isa::Vmx), Some((Isa::Arm64, 0x18)));
        assert_eq!(found("UNKNOWN (500)", Isa::Vmx), None);
    }

    #[test]
    fn a_name_that_no_table_has_stays_itself() {
        let (one, other) = (Reason::named("LEFT_TURN", Isa::Vmx), Reason::named("RIGHT_TURN", Isa::Vmx));
        assert_eq!((one.name(), other.name()), ("LEFT_TURN".to_owned(), "RIGHT_TURN".to_owned()));
        assert_ne!(one, other);
        assert_eq!(Reason::named("", Isa::Vmx).name(), "UNKNOWN");
    }

    #[test]
    fn arm64_exits_are_traps_by_class_or_what_else_they_were() {
        assert_eq!(Reason::of_arm64(0x24, Some(ARM64_TRAP)).name(), "DABT_LOW");
        assert_eq!(Reason::of_arm64(0, Some(0)).name(), "IRQ");
        assert_eq!(Reason::of_arm64(0x01, None).class(), Class::Halt);
        assert_eq!(Reason::of_arm64(0x3f, None).name(), "0x3F");
    }

    #[test]
    fn a_vocabulary_betrays_its_vendor_unless_both_have_the_word() {
        assert_eq!(Isa::betrayed_by("EPT_VIOLATION"), Some(Isa::Vmx));
        assert_eq!(Isa::betrayed_by("npf"), Some(Isa::Svm));
        assert_eq!(Isa::betrayed_by("hlt"), Some(Isa::Svm));
        assert_eq!(Isa::betrayed_by("EXIT_MSR"), Some(Isa::Svm));
        assert_eq!(Isa::betrayed_by("SYS64"), Some(Isa::Arm64));
        assert_eq!(Isa::betrayed_by("UNKNOWN (77)"), None);
        assert_eq!(Isa::betrayed_by("CPUID"), None);
        assert_eq!(Isa::betrayed_by_number(0x7b), Some(Isa::Svm));
        assert_eq!(Isa::betrayed_by_number(1), Some(Isa::Vmx));
        assert_eq!(Isa::betrayed_by_number(48), None, "EPT_VIOLATION, and a write of DR0");
        assert_eq!(Isa::betrayed_by_number(28), Some(Isa::Vmx));
    }
}
