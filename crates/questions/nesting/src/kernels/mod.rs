//! Kernel versions that changed what nesting costs, or whether it works.
//!
//! ```text
//! cheaper.toml   changes whose own messages measured what they save, or that switch something on
//! faults.toml    what guest hypervisors ran into, the releases that had it, and the fix
//! ```
//! A row per change: the commit, the first release with it, the stable releases that took it over, and who says so.
//! Distributions take changes over without a new number, which no version can show.

use super::model::Machine;
use base::figure::Standing;
use facts::rows::rows;
use host::processor::Vendor;
use host::release::Release;
use serde::Deserialize;
use std::sync::LazyLock;

pub static CHEAPER: LazyLock<Vec<Change>> = LazyLock::new(|| rows(include_str!("cheaper.toml")));
pub static FAULTS: LazyLock<Vec<Change>> = LazyLock::new(|| rows(include_str!("faults.toml")));

/// Three numbers of a release.
pub type Numbers = (u32, u32, u32);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Change {
    pub commit: &'static str,
    /// First release that has it.
    pub since: Numbers,
    /// First stable releases of older series that have it.
    #[serde(default)]
    pub backports: Vec<Numbers>,
    /// First release that needs it; `None`: all did.
    pub(crate) needed_since: Option<Numbers>,
    /// What it does, to follow "which"; of a fault, what happens without it.
    pub does: &'static str,
    /// What was published: amount between two numbers, and its unit.
    pub cost: Option<(f64, f64, &'static str)>,
    concerns: Concerned,
    pub source: &'static str,
}

/// The machines that a change concerns: those of which all of it is true.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Concerned {
    /// Features of table `features`. The guests of a machine may be hypervisors where `nested` and `virtualization` are on.
    on: Vec<&'static str>,
    off: Vec<&'static str>,
    vendor: Option<Vendor>,
    /// A flag of `/proc/cpuinfo`.
    flag: Option<&'static str>,
    on_hyperv: bool,
}

impl Change {
    pub(crate) fn concerns(&self, machine: &Machine) -> bool {
        let Concerned { on, off, vendor, flag, on_hyperv } = &self.concerns;
        let all = |features: &[&str], state| features.iter().all(|feature| machine.state(feature) == state);
        let processor = machine.facts.processor.as_ref();
        all(on, Standing::On)
            && all(off, Standing::Off)
            && vendor.is_none_or(|vendor| processor.is_some_and(|cpu| cpu.vendor == vendor))
            && flag.is_none_or(|flag| processor.is_some_and(|cpu| cpu.has(flag)))
            && (!on_hyperv || machine.facts.below.is_hyperv())
    }

    /// Whether a release has it by its number.
    pub fn is_in(&self, release: &Release) -> bool {
        release.numbers >= self.since
            || self.backports.iter().any(|first| release.is_of((first.0, first.1)) && release.numbers >= *first)
    }

    /// Whether a release lacks it by its number, and needs it.
    pub(crate) fn is_missing_in(&self, release: &Release) -> bool {
        self.needed_since.is_none_or(|first| release.numbers >= first) && !self.is_in(release)
    }

    /// The first release of its series with it, or the first of all.
    pub(crate) fn first_for(&self, release: &Release) -> String {
        let own = self.backports.iter().find(|first| release.is_of((first.0, first.1)));
        match own {
            Some((major, minor, stable)) => format!("{major}.{minor}.{stable}"),
            None => format!("{}.{}", self.since.0, self.since.1),
        }
    }
}

/// Releases of enterprise kernels say little: their numbers stay while changes are taken over.
pub(crate) fn number_is_frozen(release: &Release) -> bool {
    FROZEN.iter().any(|(mark, _)| release.text.contains(mark))
}

/// What tells whether a kernel of that kind has a change, or where a newer one is. Sources: rpm(8), apt(8), Ubuntu's kernel lifecycle, Proxmox VE's
/// package repositories.
const FROZEN: &[(&str, &str)] = &[
    (
        ".el",
        "rpm -q --changelog kernel-core-$(uname -r) | grep -iE 'nested|kvm'   # this distribution takes changes over, its number stays",
    ),
    (
        ".amzn",
        "rpm -q --changelog kernel-$(uname -r) | grep -iE 'nested|kvm'   # this distribution takes changes over, its number stays",
    ),
    ("-pve", "apt search --names-only '^proxmox-kernel-[0-9.]+$'   # the newest of these; apt install it, and boot it"),
    (
        "-generic",
        "apt changelog linux-image-$(uname -r) | grep -iE 'nested|kvm'   # what it took over; newer: apt install linux-generic-hwe-$(lsb_release -rs)",
    ),
    ("-azure", "apt changelog linux-image-$(uname -r) | grep -iE 'nested|kvm'   # what it took over"),
    ("-aws", "apt changelog linux-image-$(uname -r) | grep -iE 'nested|kvm'   # what it took over"),
    ("-gcp", "apt changelog linux-image-$(uname -r) | grep -iE 'nested|kvm'   # what it took over"),
];

/// The command that brings a kernel of `first` or later, or says whether this one has its changes already.
pub(crate) fn upgrade(release: &Release, first: &str) -> String {
    let own = FROZEN.iter().find(|(mark, _)| release.text.contains(mark));
    own.map_or_else(
        || format!("# install Linux {first} or later from your distribution, and boot it"),
        |(_, command)| (*command).to_owned(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backport_counts_in_its_own_series_only() {
        let cached = &CHEAPER[0];
        let has = |text: &str| cached.is_in(&Release::from_text(text).unwrap());
        assert!(has("6.12.7") && has("6.13.0") && has("6.1.122-21-amd64") && has("7.0"));
        assert!(!has("6.12.6") && !has("6.1.121") && !has("6.11.11") && !has("5.15.200"));
        let first = |text: &str| cached.first_for(&Release::from_text(text).unwrap());
        assert_eq!((first("6.6.1"), first("6.11.0")), ("6.6.68".to_owned(), "6.13".to_owned()));
    }

    #[test]
    fn a_fault_is_missed_from_the_release_that_brought_it_to_the_one_that_took_it_back() {
        let hang = FAULTS.iter().find(|fault| fault.commit == "eff3a54aae68").unwrap();
        let missing = |text: &str| hang.is_missing_in(&Release::from_text(text).unwrap());
        assert!(missing("4.19.78") && missing("4.19.78-1-default"));
        assert!(!missing("4.19.77") && !missing("4.19.79") && !missing("4.14.300") && !missing("5.4.1"));
    }

    #[test]
    fn releases_of_a_row_are_in_order_and_a_backport_is_older_than_the_first_release() {
        for change in CHEAPER.iter().chain(FAULTS.iter()) {
            let mut series = change.backports.clone();
            series.sort_unstable();
            series.dedup_by_key(|first| (first.0, first.1));
            assert_eq!(series, change.backports, "{}", change.commit);
            assert!(change.backports.iter().all(|first| *first < change.since), "{}", change.commit);
            assert!(change.needed_since.is_none_or(|first| first < change.since), "{}", change.commit);
            assert_eq!((change.commit.len(), change.source.is_empty()), (12, false), "{}", change.commit);
        }
    }
}
