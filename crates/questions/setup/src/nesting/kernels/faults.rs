//! Faults that hosts of guest hypervisors run into, and the releases with the fix.
//!
//! Releases are those of the records of the kernel's CVE team (cve.org, "versions", read in November 2026): which release
//! brought the fault, which stable ones have the fix. A fault of one stable release alone is told by who met it.

use super::{Change, runs_hypervisors, runs_hypervisors_on};
use base::figure::Standing;
use host::processor::Vendor;

/// All of them, the oldest fix first.
pub const FAULTS: &[Change] = &[
    Change {
        commit: "eff3a54aae68",
        since: (4, 20, 0),
        backports: &[(4, 19, 79)],
        needed_since: Some((4, 19, 78)),
        does: "VMs with nested guests hang: a backport is broken",
        cost: None,
        concerns: runs_hypervisors,
        source: "github.com/NixOS/nixpkgs issue 76839",
    },
    Change {
        commit: "f5c7e8425f18",
        since: (5, 13, 0),
        backports: &[(5, 10, 38), (5, 11, 22), (5, 12, 5)],
        needed_since: Some((5, 10, 13)),
        does: "after a migration KVM may lose the enlightened VMCS of a Hyper-V guest",
        cost: None,
        concerns: |machine| runs_hypervisors_on(machine, Vendor::Intel),
        source: "CVE-2021-46978",
    },
    Change {
        commit: "127ccae2c185",
        since: (7, 0, 0),
        backports: &[(5, 15, 202), (6, 1, 165), (6, 6, 128), (6, 12, 75), (6, 18, 16), (6, 19, 6)],
        needed_since: Some((5, 13, 0)),
        does: "VMLOAD and VMSAVE of a nested guest use the wrong control block",
        cost: None,
        concerns: |machine| runs_hypervisors_on(machine, Vendor::Amd),
        source: "CVE-2026-43133",
    },
    Change {
        commit: "81ccda30b4e8",
        since: (7, 2, 0),
        backports: &[(5, 15, 222), (6, 1, 177), (6, 6, 144), (6, 12, 95), (6, 18, 38), (7, 1, 3)],
        needed_since: Some((2, 6, 36)),
        does: "shadow page tables, which every nested guest has, are used after they were freed",
        cost: None,
        concerns: runs_hypervisors,
        source: "CVE-2026-53359",
    },
    Change {
        commit: "622ebfac01ba",
        since: (7, 2, 0),
        backports: &[(5, 10, 265), (5, 15, 216), (6, 1, 183), (6, 6, 148), (6, 12, 101), (6, 18, 42), (7, 1, 6)],
        needed_since: Some((4, 9, 0)),
        does: "a shadow VMCS is used after it was freed",
        cost: None,
        concerns: |machine| {
            runs_hypervisors_on(machine, Vendor::Intel) && machine.state("vmcs_shadowing") == Standing::On
        },
        source: "CVE-2026-64562",
    },
    Change {
        commit: "7d3aae206663",
        since: (7, 2, 0),
        backports: &[(6, 6, 151), (6, 12, 103), (6, 18, 44), (7, 1, 8)],
        needed_since: Some((6, 0, 0)),
        does: "with AVIC, a guest hypervisor may keep access to the host's own x2APIC",
        cost: None,
        concerns: |machine| runs_hypervisors_on(machine, Vendor::Amd) && machine.state("avic") == Standing::On,
        source: "CVE-2026-74516",
    },
    Change {
        commit: "f0772389413d",
        since: (7, 3, 0),
        backports: &[(5, 15, 221), (6, 1, 188), (6, 6, 157), (6, 12, 110), (6, 18, 51), (7, 2, 5)],
        needed_since: None,
        does: "a guest hypervisor that restarts may use stale translations of another guest",
        cost: None,
        concerns: |machine| runs_hypervisors_on(machine, Vendor::Intel) && machine.state("vpid") == Standing::On,
        source: "CVE-2026-89932",
    },
];
