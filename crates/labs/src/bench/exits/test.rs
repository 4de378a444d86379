//! What a test is, and the kinds of which most are.

use super::layout::VECTOR;
use super::{payload, privileged};

/// Who runs a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum At {
    Guest,
    /// The guest, as a hypervisor that uses SVM.
    Svm,
    /// The same, with VMX.
    Vmx,
    /// The guest's guest, by whichever of them there is.
    Nested,
}

#[derive(Debug, Clone, Copy)]
pub struct Test {
    pub name: &'static str,
    pub does: &'static str,
    pub ring: u8,
    pub body: fn() -> u64,
    /// What the body finds in r15: a port or an address.
    pub(crate) r15: u64,
    pub rbx: u64,
    /// Fewest and most exits of an operation on VMX and SVM.
    pub exits: (u32, u32),
    pub at: At,
    /// What a second vCPU runs meanwhile.
    pub(crate) partner: Option<fn() -> u64>,
    /// Whether each operation takes one interrupt, which is then counted.
    pub interrupts: bool,
    /// Why it is not run, unless it is one that [`disturbs`](Self::disturbs) and such were asked for.
    pub why_not: Option<&'static str>,
    /// Whether other programs of the host feel it.
    pub disturbs: bool,
    /// Whether it needs the AVX registers.
    pub(crate) avx: bool,
    /// New memory that an operation takes; what there is of it limits how often.
    pub(crate) takes_bytes: u64,
}

pub(super) const RING_3: Test = Test {
    name: "",
    does: "",
    ring: 3,
    body: payload::empty,
    r15: 0,
    rbx: 0,
    exits: (0, 0),
    at: At::Guest,
    interrupts: false,
    partner: None,
    why_not: None,
    disturbs: false,
    avx: false,
    takes_bytes: 0,
};

/// A guest of ring 0.
pub(crate) const RING_0: Test = Test { ring: 0, ..RING_3 };

/// Without VMCS shadowing its accesses are exits.
pub(super) const L1_VMX: Test = Test { at: At::Vmx, exits: (0, 1), ..RING_0 };

pub(super) const L2: Test = Test { at: At::Nested, ..RING_0 };

/// Where KVM lets WBINVD through, every core waits for its caches meanwhile (Intel SDM volume 2, WBINVD).
pub(super) const DISTURBING: Test = Test {
    exits: (1, 1),
    why_not: Some("it may flush the caches of the whole host; --disturb runs it anyway"),
    disturbs: true,
    ..RING_0
};

pub(super) const IPI: Test =
    Test { body: privileged::ipi_other, rbx: VECTOR, exits: (1, 4), interrupts: true, ..RING_0 };

/// The interrupt command register of the x2APIC, and the register that interrupts the CPU itself.
pub(super) const ICR: u64 = 0x830;
pub(super) const SELF_IPI: u64 = 0x83f;

pub(super) const fn msr(
    name: &'static str,
    does: &'static str,
    body: fn() -> u64,
    index: u64,
    value: u64,
    exits: (u32, u32),
) -> Test {
    Test { name, does, body, r15: index, rbx: value, exits, ..RING_0 }
}

pub(super) const fn timer(
    name: &'static str,
    does: &'static str,
    body: fn() -> u64,
    ticks: u64,
    exits: (u32, u32),
) -> Test {
    Test { name, does, body, rbx: ticks, exits, interrupts: true, ..RING_0 }
}

pub(super) const fn ipi(name: &'static str, does: &'static str, body: fn() -> u64, register: u64) -> Test {
    const TO_ITSELF: u64 = 1 << 18;
    let rbx = if register == ICR { TO_ITSELF | VECTOR } else { VECTOR };
    Test { name, does, body, r15: register, rbx, exits: (0, 4), interrupts: true, ..RING_0 }
}
