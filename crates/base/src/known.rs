//! What rules have to know before they can judge, and what tells it: rules that nobody could judge are counted, never passed over.

use crate::Unknown;
use crate::number::counted;
use serde::{Serialize, Serializer};
use std::collections::{BTreeMap, BTreeSet};

crate::named! {
    /// A kind of fact, in the words of a person who lacks it.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    #[expect(missing_docs, reason = "the words of each are its documentation")]
    pub enum Known {
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

impl Known {
    /// What tells it: a command on the host, or an event to record.
    pub const fn told_by(self) -> &'static str {
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

impl Serialize for Known {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// How many kinds of missing facts the sentence names.
const NAMED: usize = 3;

/// How many rules lack a fact, by what each has to know; and what would tell most of that. `subject`: what the rules are about.
pub fn unjudged<'a>(
    subject: &str,
    rules: impl Iterator<Item = &'a [Known]>,
    known: &BTreeSet<Known>,
) -> Option<Unknown> {
    let rules: Vec<&[Known]> = rules.collect();
    let mut lacking: BTreeMap<Known, usize> = BTreeMap::new();
    let mut open = 0;
    for needs in &rules {
        let mut missing = needs.iter().filter(|fact| !known.contains(fact)).peekable();
        open += usize::from(missing.peek().is_some());
        missing.for_each(|fact| *lacking.entry(*fact).or_default() += 1);
    }
    let mut lacking: Vec<(Known, usize)> = lacking.into_iter().collect();
    lacking.sort_by_key(|(_, rules)| std::cmp::Reverse(*rules));
    let named = lacking.iter().take(NAMED).map(|(fact, _)| format!("{} ({})", fact.name(), fact.told_by()));
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
            "{open} of {} {subject} could not be judged: facts are missing. Most need {}{more}.",
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
        let rules: [&[Known]; 4] = [&[], &[Known::Log], &[Known::Cores, Known::Masks], &[Known::Masks]];
        let told = |known: &[Known]| unjudged("about this", rules.into_iter(), &known.iter().copied().collect());
        assert_eq!(told(&[Known::Log, Known::Cores, Known::Masks]), None);
        let text = told(&[]).unwrap().text;
        assert_eq!(
            text,
            "3 of 4 rules about this could not be judged: facts are missing. Most need where threads may run (taskset -acp \
             PID), which CPUs share a core (lscpu -e), the kernel's log (dmesg)."
        );
        assert_eq!(told(&[Known::Masks, Known::Cores]).unwrap().amount, Some(1.0));
    }
}
