//! Which register, port, address or instruction was an exit about?
//!
//! A detail is kept as a kind and a number while the trace is read, and becomes text once, at the end.
//! Sources: Intel SDM vol. 3, tables of exit qualifications (I/O 28-5, APIC access 28-6) and 11.4.1 (APIC registers);
//! AMD APM vol. 2, 15.10.2 (EXITINFO1 for IOIO) and 15.29.9 (AVIC).

use super::names;
use super::reasons::{Isa, Reason};
use super::roles::{self, Role};
use crate::faults::exception;
use crate::keyed::Key;
use std::hash::{Hash, Hasher};
use trace::Event;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Detail {
    /// Nothing in the trace says it.
    None,
    /// An MSR, and whether it was written.
    Msr(u32, bool),
    /// A port, and whether it was written.
    Port(u16, bool),
    /// A page of guest-physical memory that a device answers, the offset in it, and whether it was written.
    Mmio(u64, bool),
    /// A local-APIC register by offset, and whether it was written.
    Apic(u16, bool),
    /// End of interrupt for a vector.
    Eoi(u8),
    /// An inter-processor interrupt with this lower half of ICR.
    Ipi(u32),
    /// The guest instruction at this address.
    Rip(u64),
    /// A non-maskable interrupt of the host.
    Nmi,
    /// An exception of the guest, by its vector.
    Exception(u8),
    /// An instruction that KVM emulated, of which nothing else is told.
    Emulated,
}

impl Hash for Detail {
    /// One word instead of a field at a time: nearly every exit looks its detail up.
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.word());
    }
}

impl Key for Detail {
    #[inline]
    fn word(&self) -> u64 {
        let (kind, number, write) = match *self {
            Detail::None => (0, 0, false),
            Detail::Nmi => (0, 1, false),
            Detail::Emulated => (0, 2, false),
            Detail::Msr(msr, write) => (1, u64::from(msr), write),
            Detail::Port(port, write) => (2, u64::from(port), write),
            Detail::Mmio(gpa, write) => (3, gpa, write),
            Detail::Apic(offset, write) => (4, u64::from(offset), write),
            Detail::Eoi(vector) => (5, u64::from(vector), false),
            Detail::Ipi(icr) => (6, u64::from(icr), false),
            Detail::Rip(rip) => (7, rip, false),
            Detail::Exception(vector) => (8, u64::from(vector), false),
        };
        number.rotate_left(4) ^ (kind << 1 | u64::from(write))
    }
}

/// The local APIC's default page.
const APIC_PAGE: u64 = 0xfee0_0000;

/// The interrupt command register and its upper half.
const ICR: u16 = 0x300;
const ICR2: u16 = 0x310;

/// The MSRs of an x2APIC (Intel SDM vol. 3, 11.12.1.2).
const X2APIC_FIRST: u32 = 0x800;
const X2APIC_LAST: u32 = 0x8ff;

/// Bits of the VM-exit interruption information (Intel SDM vol. 3, table 25-18): it is valid, and its type.
const VALID: u64 = 1 << 31;
const TYPE: u64 = 7 << 8;
const TYPE_NMI: u64 = 2 << 8;
const TYPE_EXCEPTION: u64 = 3 << 8;
const TYPE_SOFTWARE_EXCEPTION: u64 = 6 << 8;

/// KVM_TRACE_MMIO_WRITE (include/trace/events/kvm.h, Linux 6.12).
const MMIO_WRITE: u64 = 2;

impl Detail {
    /// What the exit's own fields tell: nothing where they are not in the trace.
    #[inline]
    pub(crate) fn of_exit(reason: Reason, rip: Option<u64>, info1: Option<u64>) -> Self {
        if let (Isa::Vmx, 19..=27) | (Isa::Svm, 0x80 | 0x82..=0x85) = (reason.isa, reason.code) {
            return rip.map_or(Detail::None, Detail::Rip);
        }
        let Some(info1) = info1 else { return Detail::None };
        match (reason.isa, reason.code) {
            (Isa::Vmx, 30) => Detail::Port((info1 >> 16) as u16, info1 & 8 == 0),
            (Isa::Svm, 0x7b) => Detail::Port((info1 >> 16) as u16, info1 & 1 == 0),
            (Isa::Vmx, 44) => Detail::Apic((info1 & 0xfff) as u16, info1 >> 12 & 0xf == 1),
            (Isa::Vmx, 45) => Detail::Eoi(info1 as u8),
            (Isa::Vmx, 56) => Detail::Apic((info1 & 0xff0) as u16, true),
            (Isa::Svm, 0x401) => Detail::Ipi(info1 as u32),
            (Isa::Svm, 0x402) => Detail::Apic((info1 & 0xff0) as u16, info1 >> 32 & 1 == 1),
            _ => Detail::None,
        }
    }

    /// What an exception of VMX was: an NMI of the host, or an exception of the guest.
    #[cold]
    pub(crate) fn of_exception(interruption: Option<u64>) -> Self {
        match interruption {
            Some(info) if info & VALID == 0 => Detail::None,
            Some(info) if info & TYPE == TYPE_NMI => Detail::Nmi,
            Some(info) if matches!(info & TYPE, TYPE_EXCEPTION | TYPE_SOFTWARE_EXCEPTION) => {
                Detail::Exception(info as u8)
            }
            _ => Detail::None,
        }
    }

    /// What an event behind the exit adds: nothing where the field that matters is not in the trace.
    #[inline]
    pub fn of_event(role: Role, event: &Event<'_>) -> Self {
        let (about, how) = (event.get(0), event.get(1));
        match (role, about, how) {
            (Role::Msr, Some(number), Some(write)) => Detail::Msr(number as u32, write != 0),
            (Role::Pio, Some(port), Some(write)) => Detail::Port(port as u16, write != 0),
            (Role::Mmio, Some(gpa), Some(kind)) => Self::of_mmio(gpa, kind == MMIO_WRITE),
            (Role::FastMmio, Some(gpa), _) => Self::of_mmio(gpa, true),
            (Role::Apic, Some(offset), Some(write)) => Detail::Apic(offset as u16, write != 0),
            (Role::Apic, None, Some(write)) => {
                let name = event.content(roles::apic::REGISTER_NAME).and_then(|name| std::str::from_utf8(name).ok());
                name.and_then(printed_register).map_or(Detail::None, |offset| Detail::Apic(offset, write != 0))
            }
            _ => Detail::None,
        }
    }

    /// What an exit for `reason` was about, as far as known before, once an event behind it tells `next`. An access to an
    /// x2APIC register is traced first as what KVM does for it, and then, where `kvm_msr` is recorded, as the MSR it is.
    #[inline]
    #[must_use]
    pub fn then(self, next: Detail, reason: Reason) -> Self {
        match (self, next) {
            (Detail::None, Detail::Apic(offset, write)) if reason.is_msr_access() => {
                Detail::Msr(x2apic_msr(offset), write)
            }
            // What it was about says more than how.
            (Detail::None | Detail::Emulated, Detail::None) => self,
            (Detail::None | Detail::Emulated, _) => next,
            (Detail::Msr(X2APIC_FIRST..=X2APIC_LAST, _), Detail::Msr(..)) => next,
            _ => self,
        }
    }

    #[inline]
    fn of_mmio(gpa: u64, write: bool) -> Self {
        if gpa & !0xfff == APIC_PAGE { Detail::Apic((gpa & 0xff0) as u16, write) } else { Detail::Mmio(gpa, write) }
    }

    /// For people: `WRMSR TSC_DEADLINE (0x6e0)`, `out 0x70`, `APIC TMICT write`.
    pub fn text(self) -> String {
        let rw = |write| if write { "write" } else { "read" };
        match self {
            Detail::None => String::new(),
            Detail::Nmi => "NMI".into(),
            Detail::Exception(vector) => exception(vector),
            Detail::Emulated => "instruction emulated".into(),
            Detail::Msr(msr, write) => {
                let instruction = if write { "WRMSR" } else { "RDMSR" };
                match msr_name(msr) {
                    Some(name) => format!("{instruction} {name} ({msr:#x})"),
                    None => format!("{instruction} {msr:#x}"),
                }
            }
            Detail::Port(port, true) => format!("out {port:#x}"),
            Detail::Port(port, false) => format!("in {port:#x}"),
            Detail::Mmio(gpa, write) => format!("MMIO {gpa:#x} {}", rw(write)),
            Detail::Apic(offset, write) => match apic_register(offset) {
                Some(name) => format!("APIC {name} ({offset:#x}) {}", rw(write)),
                None => format!("APIC {offset:#x} {}", rw(write)),
            },
            Detail::Eoi(vector) => format!("EOI of vector {vector}"),
            Detail::Ipi(icr) => format!("IPI, ICR {icr:#x}"),
            Detail::Rip(rip) => format!("rip {rip:#x}"),
        }
    }

    /// The local-APIC register it is about, be it by memory or by x2APIC MSR.
    pub fn apic_offset(self) -> Option<u16> {
        match self {
            Detail::Apic(offset, _) => Some(offset),
            Detail::Msr(msr @ X2APIC_FIRST..=X2APIC_LAST, _) => Some(((msr - X2APIC_FIRST) << 4) as u16),
            _ => None,
        }
    }
}

/// The MSR of a local-APIC register. It has no ICR2: KVM writes that first for a write of the one ICR.
fn x2apic_msr(offset: u16) -> u32 {
    let offset = if offset == ICR2 { ICR } else { offset };
    X2APIC_FIRST + u32::from(offset >> 4)
}

/// Name of a local-APIC register.
pub fn apic_register(offset: u16) -> Option<&'static str> {
    let name = match offset & 0xff0 {
        0x20 => "ID",
        0x30 => "VERSION",
        0x80 => "TPR",
        0xa0 => "PPR",
        0xb0 => "EOI",
        0xd0 => "LDR",
        0xe0 => "DFR",
        0xf0 => "SVR",
        0x100..=0x170 => "ISR",
        0x180..=0x1f0 => "TMR",
        0x200..=0x270 => "IRR",
        0x280 => "ESR",
        0x2f0 => "LVTCMCI",
        0x300 => "ICR",
        0x310 => "ICR2",
        0x320 => "LVTT",
        0x330 => "LVTTHMR",
        0x340 => "LVTPC",
        0x350 => "LVT0",
        0x360 => "LVT1",
        0x370 => "LVTERR",
        0x380 => "TMICT",
        0x390 => "TMCCT",
        0x3e0 => "TDCR",
        0x3f0 => "SELF_IPI",
        _ => return None,
    };
    Some(name)
}

/// Offset of the register that the kernel prints so: by name, or in hexadecimal where it has none.
fn printed_register(text: &str) -> Option<u16> {
    let named = names::APIC.iter().find(|(_, name)| *name == text).map(|(offset, _)| *offset as u16);
    named.or_else(|| u16::from_str_radix(text.strip_prefix("0x")?, 16).ok())
}

/// Name of an MSR, where a guest commonly exits on it.
pub(crate) fn msr_name(msr: u32) -> Option<String> {
    if let X2APIC_FIRST..=X2APIC_LAST = msr {
        return apic_register(((msr - X2APIC_FIRST) << 4) as u16).map(|name| format!("X2APIC_{name}"));
    }
    names::find(&names::MSRS, msr).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exits_tell_their_port_and_apic_register_themselves() {
        let vmx = |code, info1| Detail::of_exit(Reason { isa: Isa::Vmx, code }, None, Some(info1)).text();
        assert_eq!(vmx(30, 0x0011_0000), "out 0x11");
        assert_eq!(vmx(30, 0x0070_0008), "in 0x70");
        assert_eq!(vmx(56, 0x380), "APIC TMICT (0x380) write");
        assert_eq!(vmx(44, 0x10b0), "APIC EOI (0xb0) write");
        let svm = |code, info1| Detail::of_exit(Reason { isa: Isa::Svm, code }, None, Some(info1)).text();
        assert_eq!(svm(0x7b, 0x0070_0211), "in 0x70");
        assert_eq!(svm(0x402, 1 << 32 | 0x80), "APIC TPR (0x80) write");
    }

    #[test]
    fn an_exception_that_is_an_nmi_is_named_by_its_interruption_information() {
        assert_eq!(Detail::of_exception(Some(0x8000_0202)), Detail::Nmi);
        for other in [None, Some(0), Some(0x202), Some(0x8000_0004)] {
            assert_eq!(Detail::of_exception(other), Detail::None, "{other:?}");
        }
        assert_eq!(Detail::of_exception(Some(0x8000_0b0e)).text(), "#PF");
        assert_eq!(Detail::of_exception(Some(0x8000_0306)).text(), "#UD");
    }

    #[test]
    fn what_the_trace_does_not_hold_is_no_detail() {
        for (isa, code) in [(Isa::Vmx, 30), (Isa::Vmx, 44), (Isa::Vmx, 45), (Isa::Vmx, 56), (Isa::Vmx, 23)] {
            assert_eq!(Detail::of_exit(Reason { isa, code }, None, None), Detail::None, "{code}");
        }
        assert_eq!(printed_register("APIC_SPIV"), Some(0xf0));
        assert_eq!(printed_register("0x110"), Some(0x110));
        assert_eq!(printed_register("APIC_OF_TOMORROW"), None);
    }

    #[test]
    fn an_x2apic_write_of_icr_is_named_by_its_msr() {
        let (vmx, svm) = (Reason { isa: Isa::Vmx, code: 32 }, Reason { isa: Isa::Svm, code: 0x7c });
        let told = |reason: Reason, details: &[Detail]| {
            details.iter().fold(Detail::None, |told, next| told.then(*next, reason))
        };
        let (icr2, icr, msr) = (Detail::Apic(ICR2, true), Detail::Apic(ICR, true), Detail::Msr(0x830, true));
        assert_eq!(told(vmx, &[icr2, icr, msr]).text(), "WRMSR X2APIC_ICR (0x830)");
        assert_eq!(told(svm, &[icr2, icr]), msr, "kvm_msr was not recorded");
        assert_eq!(told(vmx, &[Detail::Apic(0x380, true)]).text(), "WRMSR X2APIC_TMICT (0x838)");
        // Hyper-V's MSR for ICR goes the same way through KVM.
        let of_hyperv = Detail::Msr(0x4000_0071, true);
        assert_eq!(told(vmx, &[icr2, icr, of_hyperv]), of_hyperv);
        let violation = Reason { isa: Isa::Vmx, code: 48 };
        assert_eq!(told(violation, &[icr2, icr]), icr2, "by memory ICR2 is written by an exit of its own");
    }

    #[test]
    fn msrs_have_names_and_x2apic_ones_that_of_their_register() {
        assert_eq!(Detail::Msr(0x6e0, true).text(), "WRMSR TSC_DEADLINE (0x6e0)");
        assert_eq!(Detail::Msr(0x838, true).text(), "WRMSR X2APIC_TMICT (0x838)");
        assert_eq!(Detail::Msr(0x1234, false).text(), "RDMSR 0x1234");
        assert_eq!(Detail::Msr(0x80b, true).apic_offset(), Some(0xb0));
    }

    #[test]
    fn a_device_page_that_is_the_local_apic_is_called_so() {
        assert_eq!(Detail::of_mmio(0xfee0_0380, true), Detail::Apic(0x380, true));
        assert_eq!(Detail::of_mmio(0xfed0_00f0, false).text(), "MMIO 0xfed000f0 read");
    }
}
