//! Which facts rules require, and where each comes from: rules that could not be judged are counted, never passed over.

use crate::Unknown;
use crate::number::counted;
use serde::{Serialize, Serializer};
use std::collections::{BTreeMap, BTreeSet};

crate::named! {
    /// A kind of fact, in the words of a person who lacks it.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    #[expect(missing_docs, reason = "the words of each are its documentation")]
    pub enum FactKind {
        Cpus = "which CPUs there are",
        Cores = "which CPUs share a core",
        Caches = "which CPUs share a cache",
        Nodes = "the node of each CPU",
        Isolated = "which CPUs are isolated",
        TopClocks = "the highest clock of each CPU",
        Definitions = "how VMs are defined",
        Masks = "where threads may run",
        Seen = "where threads ran",
        Ran = "how much threads ran",
        Waited = "how long threads waited",
        Usage = "how each CPU was used",
        Groups = "cgroups of threads",
        Quotas = "CPU quotas",
        GuestMemory = "the node of VMs' memory",
        Interrupts = "interrupts of each CPU",
        Cards = "network cards",
        CardCounters = "counters of network cards",
        Switch = "the software switch",
        Paging = "swapping",
        Pressure = "what tasks wait for",
        Disks = "how busy disks are",
        PagesMoved = "pages that NUMA balancing moves",
        Log = "the kernel's log",
        Settings = "settings of the host",
        Processor = "the processor and its features",
        Modules = "parameters of KVM's modules",
        Release = "the kernel's release",
        Mitigations = "mitigations",
        Clocksource = "the clocksource",
        CpuidTime = "the time of CPUID",
        Exits = "exits and entries",
        Switches = "what the scheduler did",
    }
}

impl FactKind {
    /// What tells it: a command on the host, or an event to record.
    pub const fn provided_by(self) -> &'static str {
        match self {
            Self::Cpus | Self::Cores | Self::Caches => "lscpu -e",
            Self::Nodes => "lscpu -e=CPU,CORE,SOCKET,NODE",
            Self::TopClocks => "lscpu -e=CPU,MAXMHZ",
            Self::Isolated => "cat /sys/devices/system/cpu/isolated",
            Self::Definitions => "virsh dumpxml VM, qm config ID, or QEMU's command line",
            Self::Masks => "taskset -acp PID",
            Self::Seen => "ps -eLo pid,tid,psr,comm",
            Self::Ran => "top -H -b -n 2",
            Self::Waited | Self::Groups | Self::Settings => "kvmscope check, on the host",
            Self::Usage => "mpstat -P ALL 5 1",
            Self::Quotas => "cpu.max and cpu.stat of the VM's cgroup",
            Self::GuestMemory => "numastat -p PID",
            Self::Interrupts => "cat /proc/interrupts, twice",
            Self::Cards => "ethtool -i DEV; ethtool -l DEV",
            Self::CardCounters => "ethtool -S DEV, twice",
            Self::Switch => "ovs-appctl dpif-netdev/pmd-rxq-show",
            Self::Paging => "vmstat 1 5",
            Self::Pressure => "grep . /proc/pressure/*",
            Self::Disks => "iostat -x 5 2",
            Self::PagesMoved => "grep numa_ /proc/vmstat, twice",
            Self::Log => "dmesg",
            Self::Processor => "lscpu",
            Self::Modules => "grep . /sys/module/kvm*/parameters/*",
            Self::Release => "uname -r",
            Self::Mitigations => "grep . /sys/devices/system/cpu/vulnerabilities/*",
            Self::Clocksource => "cat /sys/devices/system/clocksource/clocksource0/current_clocksource",
            Self::CpuidTime => "kvmscope bench exits --tests cpuid",
            Self::Exits => "kvm_exit and kvm_entry, in the trace",
            Self::Switches => "sched_switch, in the trace",
        }
    }
}

impl Serialize for FactKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// How many kinds of missing facts the sentence names.
const NAMED: usize = 3;

/// How many rules lack a fact that they require, and which facts are most often missing. `subject`: what the rules are about.
pub fn unjudged<'a>(
    subject: &str,
    rules: impl Iterator<Item = &'a [FactKind]>,
    known: &BTreeSet<FactKind>,
) -> Option<Unknown> {
    let rules: Vec<&[FactKind]> = rules.collect();
    let mut lacking: BTreeMap<FactKind, usize> = BTreeMap::new();
    let mut open = 0;
    for needs in &rules {
        let mut missing = needs.iter().filter(|fact| !known.contains(fact)).peekable();
        open += usize::from(missing.peek().is_some());
        missing.for_each(|fact| *lacking.entry(*fact).or_default() += 1);
    }
    let mut lacking: Vec<(FactKind, usize)> = lacking.into_iter().collect();
    lacking.sort_by_key(|(_, rules)| std::cmp::Reverse(*rules));
    let named = lacking.iter().take(NAMED).map(|(fact, _)| format!("{} ({})", fact.name(), fact.provided_by()));
    let named: Vec<String> = named.collect();
    let more = match lacking.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(", and {}", counted(more as u64, "more kind of fact", "more kinds of facts")),
    };
    (open > 0).then(|| Unknown {
        what: "rules_not_judged".to_owned(),
        amount: Some(open as f64),
        unit: "rules".to_owned(),
        text: format!(
            "At least {open} of {} {subject} could not be judged. Most often missing: {}{more}.",
            counted(rules.len() as u64, "rule", "rules"),
            named.join(", "),
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_not_be_judged_is_counted_and_what_tells_most_is_named_first() {
        let rules: [&[FactKind]; 4] = [&[], &[FactKind::Log], &[FactKind::Cores, FactKind::Masks], &[FactKind::Masks]];
        let told = |known: &[FactKind]| unjudged("about this", rules.into_iter(), &known.iter().copied().collect());
        assert_eq!(told(&[FactKind::Log, FactKind::Cores, FactKind::Masks]), None);
        let text = told(&[]).unwrap().text;
        assert_eq!(
            text,
            "At least 3 of 4 rules about this could not be judged. Most often missing: where threads may run (taskset -acp PID), which CPUs share a core (lscpu -e), the kernel's log (dmesg)."
        );
        assert_eq!(told(&[FactKind::Masks, FactKind::Cores]).unwrap().amount, Some(1.0));
    }
}
