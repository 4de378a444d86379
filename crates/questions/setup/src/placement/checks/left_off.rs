//! CPUs of the host that are offline, or that its kernel was told not to look for, where threads wait.

use super::starved::with_victims;
use crate::placement::culprits::Verdict;
use crate::placement::model::Model;
use base::number::counted;
use base::{Cost, CostKind, CpuSet, Severity};
use facts::rule::Hit;
use facts::starvation::UNIT;
use tongue::bootloader::{booted_with, parameter};

/// CPUs that the host has and does not use, while threads wait that could run there and nothing that they may use has room.
pub(super) fn left_off(model: &Model) -> Option<Hit> {
    const PRESENT: &str = "sys/devices/system/cpu/present";
    const SMT: &str = "sys/devices/system/cpu/smt/control";
    let (machine, online) = (&model.machine, &model.machine.topology.online);
    let off = machine.setting(PRESENT).and_then(CpuSet::parse).unwrap_or_default().without(online);
    let waits = |verdict: &&Verdict| {
        let set = machine.threads[verdict.victim].affinity.as_ref().map(|set| &set.value);
        let could = set.is_some_and(|set| set.meets(&off) || online.is_within(set));
        could && set.is_some_and(|set| !set.and(online).iter().any(|cpu| model.has_room(cpu)))
    };
    let victims: Vec<&Verdict> = model.verdicts.all().iter().filter(waits).collect();
    let booted = machine.setting("proc/cmdline").unwrap_or_default();
    // A limit that leaves less than it allows is none.
    let binds =
        |name: &'static str| Some((name, parameter(booted, name).filter(|most| most.parse() == Ok(online.len()))?));
    let limit = ["maxcpus", "nr_cpus"].into_iter().find_map(binds);
    if victims.is_empty() || off.is_empty() && limit.is_none() {
        return None;
    }
    let short: f64 = victims.iter().map(|verdict| verdict.waited).sum();
    let waits = format!("{} {short:.2} CPUs short", counted(victims.len() as u64, "thread is", "threads are"));
    let title = match limit.filter(|_| off.is_empty()) {
        Some((name, most)) => format!("the kernel was booted with {name}={most}, whatever the machine has: {waits}"),
        None => format!(
            "{} offline: {waits}",
            if off.len() == 1 { format!("CPU {off} is") } else { format!("CPUs {off} are") }
        ),
    };
    let severity = if off.is_empty() { Severity::Medium } else { Severity::High };
    let hit = Hit::new("host", severity, title).seen(format!("online: {online}"), "sys/devices/system/cpu/online");
    let mut hit = with_victims(model, hit, &victims);
    hit.cost = Cost::of(CostKind::Measured, short, UNIT);
    hit.nothing_to_change = true;
    let vms = victims.iter().filter_map(|verdict| machine.threads[verdict.victim].vm.as_deref());
    hit.explains.extend(vms.map(|vm| format!("PLC-STARVED@{vm}")));
    hit.explains.extend(["PLC-OVERCOMMIT@host".to_owned(), format!("PLC-OVERCOMMIT@cpus-{online}")]);
    hit.explains.dedup();
    // No sibling is brought up while SMT is off; chcpu(8) of util-linux.
    let smt = machine.setting(SMT).map(str::trim).filter(|state| !off.is_empty() && state.contains("off"));
    if let Some(state) = smt {
        hit.fix.push(format!("echo on > /{SMT}   # forceoff: only without nosmt=force on the kernel command line"));
        hit.undo.push(format!("echo {state} > /{SMT}"));
    } else if !off.is_empty() {
        hit.fix.push(format!("chcpu -e {off}   # or echo 1 > /sys/devices/system/cpu/cpuN/online for each of them"));
        hit.undo.push(format!("chcpu -d {off}"));
    }
    if let Some([without, back]) = limit.map(|(name, most)| booted_with(name, most, None)) {
        hit.fix.push(without);
        hit.undo.push(back);
    }
    Some(hit)
}
