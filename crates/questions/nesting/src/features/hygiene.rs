//! How is the machine set up for guests beyond KVM: threads of a core, frequency, CPUs kept apart, huge pages?
//!
//! Files: Documentation/admin-guide/pm/cpufreq.rst, mm/transhuge.rst, kernel-parameters.txt (isolcpus, nohz_full, rcu_nocbs),
//! Documentation/ABI/testing/sysfs-devices-system-cpu, Linux 6.12. None of it is right or wrong by itself, so no rule fires.

use crate::model::Seen;
use base::figure::Standing;
use base::number::many;
use host::Virtualization;

const CPUS: &str = "sys/devices/system/cpu";

/// A file of one line; unknown where the snapshot has none.
fn line(facts: &Virtualization, path: &str, state: fn(&str) -> Standing) -> Option<Seen> {
    Some(match facts.snapshot.line(path) {
        Some(text) => Seen::new(state(&text), format!("{path} = {}", if text.is_empty() { "(empty)" } else { &text })),
        None => Seen::new(Standing::Unknown, format!("{path} is not in the snapshot")),
    })
}

/// Two threads a core.
pub(super) fn smt(facts: &Virtualization) -> Option<Seen> {
    line(facts, "sys/devices/system/cpu/smt/active", |text| Standing::of(text == "1"))
}

/// The governor that keeps the clock high, on all CPUs.
pub(super) fn governor(facts: &Virtualization) -> Option<Seen> {
    let files = facts.snapshot.find(&format!("{CPUS}/cpu*/cpufreq/scaling_governor"));
    let read: Vec<String> = files.iter().filter_map(|file| facts.snapshot.line(file)).collect();
    let other = read.iter().find(|governor| *governor != "performance");
    Some(match (read.is_empty(), other) {
        (true, _) if facts.snapshot.names(&format!("{CPUS}/cpu0")).is_empty() => {
            Seen::new(Standing::Unknown, format!("{CPUS}/cpu0 is not in the snapshot"))
        }
        (true, _) if facts.below.present == Some(true) => {
            Seen::new(Standing::Absent, "no cpufreq: the hypervisor sets the frequency")
        }
        (true, _) => Seen::new(Standing::Unknown, format!("{CPUS}/cpu*/cpufreq is not in the snapshot")),
        (false, None) => Seen::new(Standing::On, format!("performance on {}", many(read.len() as u64, "CPU"))),
        (false, Some(other)) => Seen::new(Standing::Off, format!("scaling_governor = {other}")),
    })
}

/// CPUs that the scheduler leaves alone.
pub(super) fn isolated(facts: &Virtualization) -> Option<Seen> {
    line(facts, "sys/devices/system/cpu/isolated", |text| Standing::of(!text.is_empty()))
}

/// CPUs without a tick while one task runs.
pub(super) fn nohz_full(facts: &Virtualization) -> Option<Seen> {
    const FILE: &str = "sys/devices/system/cpu/nohz_full";
    let asked_for = facts.snapshot.line("proc/cmdline").is_some_and(|line| line.contains("nohz_full="));
    let others_are_there = facts.snapshot.line("sys/devices/system/cpu/online").is_some();
    if facts.snapshot.line(FILE).is_none() && others_are_there && !asked_for {
        return Some(Seen::new(Standing::Absent, format!("no {FILE}: the kernel was built without it")));
    }
    line(facts, FILE, |text| Standing::of(!text.is_empty() && text != "(null)"))
}

/// CPUs whose RCU callbacks run elsewhere; those of `nohz_full` are among them.
pub(super) fn rcu_nocbs(facts: &Virtualization) -> Option<Seen> {
    const CMDLINE: &str = "proc/cmdline";
    let Some(text) = facts.snapshot.line(CMDLINE) else {
        return Some(Seen::new(Standing::Unknown, format!("{CMDLINE} is not in the snapshot")));
    };
    let word = text.split_whitespace().find(|word| word.starts_with("rcu_nocbs") || word.starts_with("nohz_full="));
    Some(match word {
        Some(word) => Seen::new(Standing::On, format!("{CMDLINE} has {word}")),
        None => Seen::new(Standing::Off, format!("{CMDLINE} has neither rcu_nocbs nor nohz_full")),
    })
}

/// Huge pages by themselves.
pub(super) fn transparent(facts: &Virtualization) -> Option<Seen> {
    line(facts, "sys/kernel/mm/transparent_hugepage/enabled", |text| Standing::of(!text.contains("[never]")))
}

/// Huge pages set aside.
pub(super) fn reserved(facts: &Virtualization) -> Option<Seen> {
    let files = facts.snapshot.find("sys/kernel/mm/hugepages/hugepages-*/nr_hugepages");
    let some = files.iter().find(|file| facts.snapshot.line(file).is_some_and(|text| text != "0"));
    Some(match (files.is_empty(), some) {
        (true, _) => Seen::new(Standing::Unknown, "sys/kernel/mm/hugepages is not in the snapshot"),
        (false, Some(file)) => {
            Seen::new(Standing::On, format!("{file} = {}", facts.snapshot.line(file).unwrap_or_default()))
        }
        (false, None) => Seen::new(Standing::Off, "nr_hugepages is 0 for every size"),
    })
}
