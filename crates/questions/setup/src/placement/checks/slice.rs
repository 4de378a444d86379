//! Groups whose set of CPUs is what starved threads lack: other CPUs are idle, and no pin reaches them.

use super::starved::with_victims;
use crate::page::typed;
use crate::placement::culprits::{Verdict, cpus_named};
use crate::placement::model::Model;
use base::number::{counted, list};
use base::{Cost, CostKind, CpuSet, Severity};
use facts::rule::Hit;
use facts::starvation::UNIT;
use host::Machine;
use host::machine::{Cgroup, Thread, is_within_group};
use std::collections::BTreeMap;
use tongue::groups::{cpus, gives, named, unit};

/// Where a group's set of CPUs was read, and which of its threads are starved.
struct Group<'a> {
    limit: &'a CpuSet,
    place: &'a str,
    victims: Vec<&'a Verdict>,
}

/// Groups of systemd that keep starved threads on full CPUs, while others are idle. Those of Kubernetes have a pool for a reason.
pub(crate) fn slices(model: &Model) -> Vec<Hit> {
    let machine = &model.machine;
    let online = &machine.topology.online;
    let mut groups: BTreeMap<&str, Group<'_>> = BTreeMap::new();
    for verdict in model.verdicts.all() {
        let thread = &machine.threads[verdict.victim];
        let Some((path, limit)) = machine.limit_of(thread) else { continue };
        let takes_all = thread.affinity.as_ref().is_some_and(|set| limit.value.and(online).is_within(&set.value));
        let path = top_of(machine, path, &limit.value);
        if online.is_within(&limit.value) || path.contains("kubepods") || !takes_all {
            continue;
        }
        let place = effective(machine, path).map_or(limit.place.as_str(), |(_, place)| place);
        let group = Group { limit: &limit.value, place, victims: Vec::new() };
        groups.entry(path).or_insert(group).victims.push(verdict);
    }
    // Idle CPUs within it say that something else keeps the threads off them.
    groups.retain(|_, group| !group.limit.iter().any(|cpu| model.has_room(cpu)));
    let others =
        |path: &str| groups.iter().find(|(other, group)| **other != path && group.limit.meets(groups[path].limit));
    // What one group is given no other one gets.
    let mut given = CpuSet::default();
    let mut hit = |path: &&str| {
        let of = &groups[path];
        let idle =
            online.without(of.limit).without(&given).iter().filter(|cpu| model.has_room(*cpu)).collect::<CpuSet>();
        let free = idle.without(&taken(machine, path)).without(&owned(machine, path));
        match others(path) {
            _ if idle.is_empty() => None,
            _ if free.is_empty() => Some(kept(model, path, of, &idle)),
            // One of two moves, and the finding about it says so of both.
            Some((other, _)) if *other > *path => None,
            Some((other, group)) => Some(collides(model, (path, of), (other, group), &free)),
            None => {
                given = given.or(&enough(model, &free, said(path, of).0));
                Some(widened(model, path, of, &free))
            }
        }
    };
    let mut hits: Vec<Hit> = groups.keys().filter_map(&mut hit).collect();
    hits.extend(invalid(model));
    hits
}

/// Partitions that the kernel calls invalid, with threads of VMs in them: whoever set them believes their CPUs to be their own.
/// The reason stands in brackets (Documentation/admin-guide/cgroup-v2.rst, cpuset.cpus.partition, Linux 6.12).
fn invalid(model: &Model) -> Vec<Hit> {
    let machine = &model.machine;
    let told = |(path, group): (&'_ String, &'_ Cgroup)| {
        let (kind, why) = group.partition.as_deref()?.split_once(" invalid")?;
        let own = group.effective.as_ref()?;
        let inside = |thread: &Thread| {
            let group = thread.cgroup.as_deref();
            thread.vm.is_some() && group.is_some_and(|group| is_within_group(group, path))
        };
        machine.threads.iter().any(inside).then_some(())?;
        let of_group = |verdict: &&Verdict| inside(&machine.threads[verdict.victim]);
        let victims: Vec<&Verdict> = model.verdicts.all().iter().filter(of_group).collect();
        let why = why.trim_matches([' ', '(', ')']);
        let said = if why.is_empty() { String::new() } else { format!(": {why}") };
        let title = format!(
            "the partition {kind} of {} is invalid{said}; others run on {} as well",
            unit(path),
            cpus_named(&own.value)
        );
        let severity = if victims.is_empty() { Severity::Medium } else { Severity::High };
        let mut hit = Hit::new(path, severity, title);
        hit = hit
            .seen(format!("cpuset.cpus.partition is {}", group.partition.as_deref().unwrap_or_default()), &own.place);
        hit = with_victims(model, hit, &victims);
        let vms = victims.iter().filter_map(|verdict| machine.threads[verdict.victim].vm.as_ref());
        hit.explains.extend(vms.map(|vm| format!("PLC-STARVED@{vm}")));
        hit.explains.dedup();
        let reason = REASONS.iter().find(|(words, _)| said.to_lowercase().contains(words));
        hit.fix.extend(reason.map(|(_, change)| change.replace("UNIT", &unit(path))));
        // Beside it and its parents: who has some of its CPUs.
        let beside = machine.cgroups.iter().filter(|(other, _)| !other.is_empty() && is_apart(path, other));
        for (other, group) in beside.filter(|_| reason.is_none()) {
            let Some(theirs) = group.effective.as_ref().filter(|set| set.value.meets(&own.value)) else { continue };
            let rest = theirs.value.without(&own.value);
            if !rest.is_empty() && other.matches('/').count() == 1 {
                typed(&mut hit, cpus(&model.machine, other, &rest, &theirs.value));
            }
        }
        if hit.fix.is_empty() {
            hit.fix.push("grep . /sys/fs/cgroup/*/cpuset.cpus   # who has some of its CPUs".to_owned());
        }
        Some(hit)
    };
    machine.cgroups.iter().filter_map(told).collect()
}

/// Why a partition is invalid, beside that others have its CPUs (`perr_strings`, kernel/cgroup/cpuset.c, Linux 6.12), and what makes it valid.
const REASONS: [(&str, &str); 5] = [
    (
        "parent is",
        "echo root > /sys/fs/cgroup/PARENT/cpuset.cpus.partition   # undo: echo member; PARENT of UNIT has to be a partition, too",
    ),
    ("hotplug", "chcpu -e CPUS   # undo: chcpu -d; those of UNIT that are offline"),
    (
        "are empty",
        "systemctl set-property --runtime UNIT AllowedCPUs=CPUS   # undo: AllowedCPUs= alone; it needs CPUs to itself",
    ),
    (
        "distribute",
        "systemctl set-property --runtime UNIT AllowedCPUs=CPUS   # one fewer: the group above it has tasks and needs a CPU",
    ),
    (
        "housekeeping",
        "grep -oE '(isolcpus|nohz_full)=[^ ]*' /proc/cmdline   # AllowedCPUs= of UNIT has to hold all of these, or none",
    ),
];

/// The group that sets a limit: the highest with the same CPUs, below the root.
pub(super) fn top_of<'a>(machine: &Machine, path: &'a str, limit: &CpuSet) -> &'a str {
    let mut top = path;
    while let Some((above, _)) = top.rsplit_once('/').filter(|(above, _)| !above.is_empty())
        && effective(machine, above).is_some_and(|(set, _)| set == limit)
    {
        top = above;
    }
    top
}

fn effective<'a>(machine: &'a Machine, path: &str) -> Option<(&'a CpuSet, &'a str)> {
    let set = machine.cgroups.get(path)?.effective.as_ref()?;
    Some((&set.value, &set.place))
}

/// CPUs that partitions beside a group have: the kernel gives them to nobody else, and a set that claims them makes the partition
/// invalid (`update_cpumask`, kernel/cgroup/cpuset.c, Linux 6.12).
pub(super) fn taken(machine: &Machine, path: &str) -> CpuSet {
    let online = &machine.topology.online;
    let of_root = effective(machine, "").map_or_else(CpuSet::default, |(left, _)| online.without(left));
    let beside = partitions(machine).filter(|(other, _)| !is_within_group(path, other));
    beside.fold(of_root, |all, (_, cpus)| all.or(cpus))
}

fn partitions(machine: &Machine) -> impl Iterator<Item = (&str, &CpuSet)> {
    let is_one = |kind: &String| matches!(kind.as_str(), "root" | "isolated");
    let groups = machine
        .cgroups
        .iter()
        .filter(move |(path, group)| !path.is_empty() && group.partition.as_ref().is_some_and(is_one));
    groups.filter_map(|(path, group)| Some((path.as_str(), &group.effective.as_ref()?.value)))
}

/// CPUs that somebody beside a group has for himself: units that were given CPUs, and VMs whose threads are bound.
pub(super) fn owned(machine: &Machine, path: &str) -> CpuSet {
    let online = &machine.topology.online;
    let units = given(machine).filter(|(other, _)| is_apart(path, other)).map(|(_, cpus)| cpus);
    let is_beside = |thread: &&Thread| {
        let group = thread.cgroup.as_deref();
        thread.vm.is_some() && group.is_none_or(|group| !is_within_group(group, path))
    };
    let bound = machine.threads.iter().filter(is_beside).filter_map(|thread| Some(&thread.affinity.as_ref()?.value));
    units.chain(bound.filter(|set| !online.is_within(set))).fold(CpuSet::default(), |all, set| all.or(set))
}

/// Groups that have fewer CPUs than what they are in.
fn given(machine: &Machine) -> impl Iterator<Item = (&str, &CpuSet)> {
    let online = &machine.topology.online;
    let above = |path: &str| {
        let mut above = path;
        while let Some((next, _)) = above.rsplit_once('/') {
            above = next;
            if let Some((set, _)) = effective(machine, above).filter(|_| !above.is_empty()) {
                return set;
            }
        }
        online
    };
    machine.cgroups.keys().filter_map(move |path| {
        let (set, _) = effective(machine, path).filter(|_| !path.is_empty())?;
        (!set.is_empty() && !above(path).is_within(set)).then_some((path.as_str(), set))
    })
}

fn is_apart(path: &str, other: &str) -> bool {
    !is_within_group(path, other) && !is_within_group(other, path)
}

/// `machine.slice allows CPUs 0-3 alone: 4 threads there are 1.20 CPUs short`.
fn said(path: &str, of: &Group<'_>) -> (f64, String) {
    let short: f64 = of.victims.iter().map(|verdict| verdict.waited).sum();
    let threads = counted(of.victims.len() as u64, "thread is", "threads are");
    (short, format!("{} allows {} alone: {threads} there {short:.2} CPUs short", named(path), cpus_named(of.limit)))
}

fn hit_of(model: &Model, path: &str, of: &Group<'_>, title: String) -> Hit {
    let (short, _) = said(path, of);
    let mut hit = Hit::new(path, Severity::High, title).seen(format!("{path} has CPUs {}", of.limit), of.place);
    hit = with_victims(model, hit, &of.victims);
    hit.cost = Cost::of(CostKind::Measured, short, UNIT);
    hit.explains.push(format!("PLC-OVERCOMMIT@cpus-{}", of.limit));
    let machine = &model.machine;
    let mut vms: Vec<String> =
        of.victims.iter().filter_map(|verdict| machine.threads[verdict.victim].vm.clone()).collect();
    vms.sort_unstable();
    vms.dedup();
    let about = ["PLC-STARVED", "PLC-OVERLAP", "PLC-WORKERS"];
    hit.explains.extend(vms.iter().flat_map(|vm| about.map(|rule| format!("{rule}@{vm}"))));
    hit.seen(format!("{} may use no others, whatever their pins are", list(&vms)), of.place)
}

fn are(cpus: &CpuSet) -> &'static str {
    if cpus.len() == 1 { "is" } else { "are" }
}

/// `are idle`, of CPUs of which hardly anything is used.
fn idle_or_roomy(model: &Model, cpus: &CpuSet) -> String {
    match (cpus.iter().all(|cpu| idle(model, cpu) >= IDLE), cpus.len()) {
        (true, _) => format!("{} idle", are(cpus)),
        (false, 1) => "has room".to_owned(),
        (false, _) => "have room".to_owned(),
    }
}

fn idle(model: &Model, cpu: u32) -> f64 {
    model.machine.cpu_use.get(&cpu).map_or(0.0, |usage| usage.idle)
}

/// A CPU that does nothing for so much of the time is idle: our own limit.
pub(in crate::placement) const IDLE: f64 = 0.8;

/// The idlest of these CPUs, as many as give what is short.
pub(super) fn enough(model: &Model, free: &CpuSet, short: f64) -> CpuSet {
    let mut idlest: Vec<u32> = free.iter().collect();
    idlest.sort_by(|a, b| idle(model, *b).total_cmp(&idle(model, *a)).then(a.cmp(b)));
    let mut given = 0.0;
    let needed = idlest.into_iter().take_while(|cpu| {
        let is_short = given < short;
        given += idle(model, *cpu);
        is_short
    });
    needed.collect()
}

/// The group gets of the idle CPUs beside its own what is short, as others may want the rest. What a partition gets nobody else has, and one
/// that takes the last CPU of the groups above is invalid (Documentation/admin-guide/cgroup-v2.rst, cpuset.cpus.partition, Linux 6.12).
fn widened(model: &Model, path: &str, of: &Group<'_>, free: &CpuSet) -> Hit {
    let (short, what) = said(path, of);
    let kind = model.machine.cgroups.get(path).and_then(|group| group.partition.as_deref());
    let kind = kind.filter(|_| partitions(&model.machine).any(|(partition, _)| partition == path));
    let most = if kind.is_some() { free.len() - 1 } else { free.len() };
    let given: CpuSet = enough(model, free, short).iter().take(most).collect();
    let named = if given.is_empty() { free } else { &given };
    let title = format!(
        "{}{what}, while {} {}",
        if kind.is_some() { "the partition of " } else { "" },
        cpus_named(named),
        idle_or_roomy(model, named)
    );
    let mut hit = hit_of(model, path, of, title);
    if let Some(kind) = kind {
        hit =
            hit.seen(format!("cpuset.cpus.partition is {kind}: CPUs that it gets are taken from all others"), of.place);
    }
    if given.is_empty() {
        hit.fix.push(format!(
            "# {} {} the only idle one: its owner decides whether others can do without it",
            cpus_named(free),
            are(free)
        ));
    } else {
        typed(&mut hit, cpus(&model.machine, path, &of.limit.or(&given), of.limit));
    }
    hit
}

/// Two groups have some of the same CPUs: this one gets idle ones for them.
fn collides(model: &Model, (path, of): (&str, &Group<'_>), (other, beside): (&str, &Group<'_>), free: &CpuSet) -> Hit {
    let both = of.limit.and(beside.limit);
    let instead: CpuSet = free.iter().take(both.len()).collect();
    let title = format!(
        "{} and {} both have {}: {}, while {} {}",
        named(other),
        named(path),
        cpus_named(&both),
        said(path, of).1,
        cpus_named(&instead),
        idle_or_roomy(model, &instead)
    );
    let mut hit = hit_of(model, path, of, title).seen(format!("{other} has CPUs {}", beside.limit), beside.place);
    hit.explains.push(format!("PLC-OVERCOMMIT@cpus-{}", beside.limit));
    let machine = &model.machine;
    let vms = beside.victims.iter().filter_map(|verdict| machine.threads[verdict.victim].vm.as_ref());
    hit.explains.extend(vms.map(|vm| format!("PLC-STARVED@{vm}")));
    hit.explains.dedup();
    typed(&mut hit, cpus(&model.machine, path, &of.limit.without(&both).or(&instead), of.limit));
    hit
}

/// The idle CPUs are somebody else's: a partition's, a unit's, a VM's that is bound to them. Only the owner gives them back.
fn kept(model: &Model, path: &str, of: &Group<'_>, idle: &CpuSet) -> Hit {
    let machine = &model.machine;
    let is_owner = |(other, cpus): &(&str, &CpuSet)| is_apart(path, other) && cpus.meets(idle);
    let partition = partitions(machine).find(is_owner).map(|(path, _)| unit(path));
    let unit_beside = given(machine).find(is_owner).map(|(path, _)| named(path));
    let is_partition = partition.is_some() || taken(machine, path).meets(idle);
    let whose = match (&partition, &unit_beside) {
        (Some(unit), _) => format!("the partition of {unit}"),
        (None, _) if is_partition => "a partition of another group".to_owned(),
        (None, Some(unit)) => unit.to_string(),
        (None, None) => "VMs that are bound to them".to_owned(),
    };
    let (short, _) = said(path, of);
    let title = format!(
        "{} belong to {whose} and {}, while {} on {} {short:.2} CPUs short",
        cpus_named(idle),
        idle_or_roomy(model, idle),
        counted(of.victims.len() as u64, "thread is", "threads are"),
        cpus_named(of.limit)
    );
    let mut hit = hit_of(model, path, of, title);
    if !is_partition {
        hit.fix.push(format!(
            "# if its owner can do without some of {idle}: {}",
            gives(path, &format!("{},CPUS", of.limit))
        ));
        return hit;
    }
    hit.first.push("grep . /sys/fs/cgroup/*/cpuset.cpus.partition   # whose it is".to_owned());
    let owner = partition.as_deref().unwrap_or("UNIT");
    hit.fix.push(format!(
        "# if its owner does not need all of {idle}: systemctl set-property --runtime {owner} AllowedCPUs=LIST; a set of {} that \
         claims them makes the partition invalid",
        unit(path)
    ));
    hit
}
