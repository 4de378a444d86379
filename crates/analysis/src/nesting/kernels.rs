//! Kernel versions that changed what nesting costs.
//!
//! A row per change: the commit, the first release with it, the stable releases that took it over, and what its own
//! message measured. Commits and releases were read in the kernel's tags and stable lists: 1201f226c863 came with 6.13-rc3
//! and stands in 6.12.7, 6.6.68 and 6.1.122; 93da6af3ae56 and ceef7d10dfb6 in the pull requests of 6.15 and 5.11;
//! ca2967de5a5b in that of 6.18. Distributions take changes over without a new number, which no version can show.

use super::model::{Machine, State};
use host::processor::Vendor;
use host::release::Release;

/// One change of the kernel.
pub struct Change {
    /// Its commit.
    pub commit: &'static str,
    /// First release that has it.
    pub since: (u32, u32, u32),
    /// First stable releases of older series that have it.
    pub backports: &'static [(u32, u32, u32)],
    /// What it does, to follow "which".
    pub does: &'static str,
    /// What was published: amount between two numbers, and its unit.
    pub cost: Option<(f64, f64, &'static str)>,
    /// Machines that it matters to.
    pub concerns: fn(&Machine) -> bool,
}

/// All of them.
pub const CHANGES: &[Change] = &[
    Change {
        commit: "1201f226c863",
        since: (6, 13, 0),
        backports: &[(6, 12, 7), (6, 6, 68), (6, 1, 122)],
        does: "keeps the sizes of extended state instead of asking CPUID at each switch of a nested guest",
        // Skylake-SP 11,650 -> 6,850; Emerald Rapids 28,850 -> 7,900 for a CPUID of L2.
        cost: Some((4_800.0, 20_950.0, "cycles for each exit of a nested guest")),
        concerns: runs_hypervisors,
    },
    Change {
        commit: "93da6af3ae56",
        since: (6, 15, 0),
        backports: &[],
        does: "puts off updates of CPUID until a guest asks for it, also at switches of a nested guest",
        cost: None,
        concerns: runs_hypervisors,
    },
    Change {
        commit: "ceef7d10dfb6",
        since: (5, 11, 0),
        backports: &[],
        does: "tells Hyper-V which MSR bitmaps changed, so that nested guests access MSRs without exits",
        cost: Some((1_180.0, 1_180.0, "cycles for each access of a nested guest to an MSR that could pass")),
        concerns: |machine| {
            machine.facts.below.is_hyperv() && vendor(machine) == Some(Vendor::Intel) && runs_hypervisors(machine)
        },
    },
    Change {
        commit: "ca2967de5a5b",
        since: (6, 18, 0),
        backports: &[],
        does: "switches AVIC on by itself on Zen 4 and later",
        cost: None,
        concerns: |machine| machine.state("avic") == State::Off,
    },
];

impl Change {
    /// Whether a release has it by its number.
    pub fn is_in(&self, release: &Release) -> bool {
        release.numbers >= self.since
            || self.backports.iter().any(|first| release.is_of((first.0, first.1)) && release.numbers >= *first)
    }

    /// The first release of its series with it, or the first of all.
    pub fn first_for(&self, release: &Release) -> String {
        let own = self.backports.iter().find(|first| release.is_of((first.0, first.1)));
        match own {
            Some((major, minor, stable)) => format!("{major}.{minor}.{stable}"),
            None => format!("{}.{}", self.since.0, self.since.1),
        }
    }
}

/// Releases of enterprise kernels say little: their numbers stay while changes are taken over.
pub fn number_is_frozen(release: &Release) -> bool {
    [".el7", ".el8", ".el9", ".el10", "-azure", "-aws", "-gcp", ".amzn"].iter().any(|mark| release.text.contains(mark))
}

fn runs_hypervisors(machine: &Machine) -> bool {
    machine.state("nested") == State::On && machine.state("virtualization") == State::On
}

fn vendor(machine: &Machine) -> Option<Vendor> {
    machine.facts.processor.as_ref().map(|cpu| cpu.vendor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backport_counts_in_its_own_series_only() {
        let cached = &CHANGES[0];
        let has = |text: &str| cached.is_in(&Release::from_text(text).unwrap());
        assert!(has("6.12.7") && has("6.13.0") && has("6.1.122-21-amd64") && has("7.0"));
        assert!(!has("6.12.6") && !has("6.1.121") && !has("6.11.11") && !has("5.15.200"));
        let first = |text: &str| cached.first_for(&Release::from_text(text).unwrap());
        assert_eq!((first("6.6.1"), first("6.11.0")), ("6.6.68".to_owned(), "6.13".to_owned()));
    }
}
