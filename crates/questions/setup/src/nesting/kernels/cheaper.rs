//! Changes that make nesting cheaper.
//!
//! 1201f226c863 came with 6.13-rc3 and stands in 6.12.7, 6.6.68 and 6.1.122; 93da6af3ae56 in the pull request of 6.15,
//! ca2967de5a5b in that of 6.18: read in the kernel's tags and stable lists. ceef7d10dfb6 was committed to KVM's tree on
//! 2018-05-14, when 4.17 was at -rc5, for 4.18 (it changes `arch/x86/kvm/vmx.c`, which 5.0 moved); 773e8a0425c9 on 2018-03-28,
//! for 4.17; c5d167b27e00 on 2018-01-16 on top of `kvm-s390-next-4.16-1`, for 4.16.

use super::{Change, runs_hypervisors, runs_hypervisors_on};
use base::figure::Standing;
use host::processor::Vendor;

pub const CHEAPER: &[Change] = &[
    Change {
        commit: "1201f226c863",
        since: (6, 13, 0),
        backports: &[(6, 1, 122), (6, 6, 68), (6, 12, 7)],
        needed_since: None,
        does: "caches the sizes of extended state instead of executing CPUID at each switch of a nested guest",
        // Skylake-SP 11,650 -> 6,850; Emerald Rapids 28,850 -> 7,900 for a CPUID of L2.
        cost: Some((4_800.0, 20_950.0, "cycles per exit of a nested guest")),
        concerns: runs_hypervisors,
        source: "commit message",
    },
    Change {
        commit: "93da6af3ae56",
        since: (6, 15, 0),
        backports: &[],
        needed_since: None,
        does: "defers CPUID updates until a guest reads CPUID, also at switches of a nested guest",
        cost: None,
        concerns: runs_hypervisors,
        source: "commit message",
    },
    Change {
        commit: "773e8a0425c9",
        since: (4, 17, 0),
        backports: &[],
        needed_since: None,
        does: "shares the VMCS with Hyper-V as plain memory (the enlightened VMCS)",
        // 18,890 -> 8,304 in its message, 20,700 -> 8,900 in the talk.
        cost: Some((10_586.0, 11_800.0, "cycles per exit of a nested guest")),
        concerns: |machine| machine.facts.below.is_hyperv() && runs_hypervisors_on(machine, Vendor::Intel),
        source: "commit message; V. Kuznetsov, FOSDEM 2018",
    },
    Change {
        commit: "c5d167b27e00",
        since: (4, 16, 0),
        backports: &[],
        needed_since: None,
        does: "shadows three more fields of the VMCS that KVM in a guest touches at each exit",
        cost: Some((1_000.0, 3_000.0, "cycles per exit of a nested guest")),
        concerns: |machine| {
            runs_hypervisors_on(machine, Vendor::Intel) && machine.state("vmcs_shadowing") == Standing::On
        },
        source: "commit message: about 1,000 cycles per field that the processor has",
    },
    Change {
        commit: "ceef7d10dfb6",
        since: (4, 18, 0),
        backports: &[],
        needed_since: None,
        does: "tells Hyper-V which MSR bitmaps changed, so that nested guests access MSRs without exits",
        cost: Some((1_180.0, 1_180.0, "cycles per access of a nested guest to an MSR that needs no exit")),
        concerns: |machine| machine.facts.below.is_hyperv() && runs_hypervisors_on(machine, Vendor::Intel),
        source: "commit message",
    },
    Change {
        commit: "ca2967de5a5b",
        since: (6, 18, 0),
        backports: &[],
        needed_since: None,
        does: "enables AVIC by default on Zen 4 and later",
        cost: None,
        concerns: |machine| {
            let is_zen_4 = machine.facts.processor.as_ref().is_some_and(|cpu| cpu.has("x2avic"));
            machine.state("avic") == Standing::Off && is_zen_4
        },
        source: "commit message",
    },
];
