//! The knobs: where each is set, what real time wants there, and by what its effect is seen. One file a group: its rows, then
//! what is looked at for one of them alone.
//!
//! Sources: tuned 2.28, profiles realtime, realtime-virtual-host, cpu-partitioning and network-latency; OPNFV KVM4NFV, ci/envs;
//! Documentation/admin-guide/kernel-parameters.txt, Linux 6.12.

mod clock;
mod firmware;
mod guests;
mod interrupts;
mod isolation;
mod kvm;
mod memory;
mod noise;
mod power;
mod scheduler;

use super::checks::Told;
use super::effects::Seen;
use super::host::Host;

pub(super) type Rule = facts::rule::Rule<Knob>;

#[derive(Clone, Copy)]
pub(super) struct Knob {
    pub name: &'static str,
    pub group: Group,
    pub place: Place,
    pub effect: Option<Effect>,
}

base::named! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(super) enum Group {
        Isolation = "isolation",
        Clock = "clock",
        Power = "power",
        Firmware = "firmware",
        Scheduler = "scheduler",
        Noise = "noise",
        Memory = "memory",
        Kvm = "KVM",
    }
}

/// Where a knob is set, and what is wanted there.
#[derive(Clone, Copy)]
pub(super) enum Place {
    File(&'static str, Want),
    /// A file of each CPU that real time is for, below `sys/devices/system/cpu/cpuN`.
    EachCpu(&'static str, Want),
    /// The kernel's command line: any of these words. The first is what is typed.
    Boot(&'static [&'static str]),
    /// A list of CPUs that has to hold all that real time is for, the word that sets it at boot, and what is typed, with `CPUS` in it.
    Holds {
        file: &'static str,
        word: &'static str,
        typed: &'static str,
    },
    /// A mask of CPUs that must hold none of them, and the word that sets it at boot, if there is one, with `REST` in it.
    Spares {
        file: &'static str,
        typed: Option<&'static str>,
    },
    /// Several of these, or none.
    Told(fn(&Host<'_>) -> Option<Told>),
}

#[derive(Clone, Copy)]
pub(super) enum Want {
    /// Any of these; the first is what is typed.
    Is(&'static [&'static str]),
    AtLeast(u64),
    AtMost(u64),
}

/// By what the effect of a knob is seen between two samples.
#[derive(Clone, Copy)]
pub(super) struct Effect {
    pub metric: &'static str,
    /// What shows more of it, with `CPUS` in it.
    pub look: &'static str,
    pub seen: fn(&Host<'_>) -> Option<Seen>,
    /// Whether it is enough, because there is another way to it.
    pub(crate) suffices: bool,
}

/// All, in the order of the table.
pub(super) fn all() -> impl Iterator<Item = &'static Rule> {
    let groups = [
        isolation::KNOBS,
        clock::KNOBS,
        power::KNOBS,
        firmware::KNOBS,
        scheduler::KNOBS,
        noise::KNOBS,
        interrupts::KNOBS,
        memory::KNOBS,
        kvm::KNOBS,
        guests::KNOBS,
    ];
    groups.into_iter().flatten()
}

/// The base of a knob's rule: what it is called, and where it is set.
const fn knob(name: &'static str, group: Group, place: Place) -> Rule {
    Rule { per: "machine", ..Rule::checked_by(Knob { name, group, place, effect: None }) }
}

/// The same with what verifies its effect.
const fn verified(rule: Rule, effect: Effect) -> Rule {
    Rule { check: Knob { effect: Some(effect), ..rule.check }, ..rule }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_knob_says_what_being_wrong_about_it_costs() {
        let ids: BTreeSet<&str> = all().map(|rule| rule.id).collect();
        assert_eq!(ids.len(), all().count(), "each has a name of its own");
        for rule in all() {
            let (_, wrong) = rule.why.split_once(" Caveat: ").unwrap_or_else(|| panic!("{}: {}", rule.id, rule.why));
            assert!(wrong.ends_with('.') && wrong.len() > 20, "{}: {wrong}", rule.id);
            assert!(rule.id.starts_with("LAT-") && !rule.source.is_empty() && !rule.looks_at.is_empty(), "{}", rule.id);
        }
    }
}
