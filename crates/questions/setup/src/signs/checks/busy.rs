//! Who has no time left: a worker, a host, CPUs to which several VMs are bound.

use crate::placements::Model;
use crate::signs::Scene;
use base::number::{list, many, percent};
use base::{CpuSet, Level, Severity};
use facts::counts::{Counted, Row};
use facts::rule::Hit;
use host::machine::{Fact, Quoted, Role, TotalUse};
use host::paste::OVS_MAIN;
use std::collections::BTreeMap;

/// Share of a CPU from which a worker is full: our own threshold.
pub(in crate::signs) const FULL: f64 = 0.9;

/// A host with less of its CPUs' time idle is full: our own threshold.
pub(in crate::signs) const IDLE: f64 = 0.05;

/// Share of all exits by PAUSE from which vCPUs spin for locks: our own threshold.
pub(in crate::signs) const SPINNING: f64 = 0.2;

/// Workers of vhost without time left.
pub(in crate::signs) fn vhost(scene: &Scene<'_>) -> Vec<Hit> {
    let full = scene.models.iter().flat_map(|model| {
        let workers = model.machine.threads.iter().filter(|thread| thread.role == Role::Vhost);
        workers
            .filter_map(move |thread| Some((model, thread, thread.run_share.as_ref().filter(|run| run.value >= FULL)?)))
    });
    full.map(|(model, thread, run)| {
        let of = thread.vm.as_ref().map_or(String::new(), |vm| format!(" of {vm}"));
        let title = format!("the vhost worker{of} runs {} of a CPU: its queue is at its limit", percent(run.value));
        let mut hit = Hit::new(thread.name.as_str(), Severity::Medium, title);
        hit.level = Some(model.level);
        // A process of which nobody told the name has no definition by that name.
        if let Some(vm) = thread.vm.as_ref().filter(|vm| !vm.starts_with("process-")) {
            hit = hit.of_domain(vm);
        }
        let hit = hit.seen(format!("{} ran {} of a CPU", thread.name, percent(run.value)), &run.place);
        offloads(scene).into_iter().fold(hit, |hit, (what, place)| hit.seen(what, place))
    })
    .collect()
}

/// Offloads of guests' cards that are off, by which the worker has more to do.
fn offloads(scene: &Scene<'_>) -> Vec<(String, String)> {
    const NEEDED: [&str; 2] = ["tcp-segmentation-offload", "tx-checksumming"];
    let nics = scene.models.iter().flat_map(|model| model.machine.nics.iter().map(move |nic| (model, nic)));
    let off = nics.flat_map(|(model, nic)| {
        let off = NEEDED.iter().filter_map(|name| Some((*name, nic.offloads.get(*name).filter(|on| !on.value)?)));
        let on = scene.recording.on(&model.id);
        off.map(move |(name, told)| (format!("{name} of {}{on} is off", nic.name), told.place.clone()))
    });
    off.collect()
}

/// Hosts without CPU time left, and vCPUs that spin.
pub(in crate::signs) fn full(scene: &Scene<'_>) -> Vec<Hit> {
    let of_machine = |model: &Model| {
        let counted = scene.counts.iter().filter(|counted| counted.machine == model.id);
        // Only who runs VMs is a host, whatever its CPUs do; KVM counts where it runs them.
        let counts = counted.clone().next().is_some();
        let is_host =
            model.level == Level::L0 && model.machine.runs_vms() || !matches!(model.level, Level::At(1..)) && counts;
        let all = model.machine.total_use.iter().filter(|told| told.value.shares.steal < IDLE);
        let all: Vec<&Fact<TotalUse>> =
            all.filter(|told| told.value.shares.idle > 0.0 || told.value.shares.busy > 0.0).collect();
        let most = all.iter().max_by(|one, other| one.value.shares.idle.total_cmp(&other.value.shares.idle))?;
        if !is_host || most.value.shares.idle >= IDLE {
            return None;
        }
        let spins = counted.filter_map(spinning).max_by(|one, other| one.0.total_cmp(&other.0));
        let cpus = model.machine.topology.cpus.len() as u64;
        let cpus = if cpus == 0 { String::new() } else { format!(" of {}", many(cpus, "CPU")) };
        let and = spins.as_ref().map_or(String::new(), |(share, row, _)| {
            format!(
                "; {} of the exits are {}: vCPUs spin for locks whose holders wait for a CPU",
                percent(*share),
                row.name
            )
        });
        let title = format!("the host is full, {} of the time{cpus} is idle{and}", percent(most.value.shares.idle));
        let mut hit = Hit::new(model.id.as_str(), Severity::High, title);
        hit.level = Some(if counts { Level::L0 } else { model.level });
        hit = hit.seen(format!("idle {} of all CPUs' time", percent(most.value.shares.idle)), &most.place);
        Some(match spins {
            Some((share, row, counted)) => {
                hit.seen(format!("{}: {} of the exits", row.name, percent(share)), scene.named(&counted.path))
            }
            None => hit,
        })
    };
    scene.models.iter().filter_map(of_machine).collect()
}

/// The share of all exits that are by PAUSE, where vCPUs spin so much.
fn spinning(counted: &Counted) -> Option<(f64, &Row, &Counted)> {
    let is_pause = |row: &&Row| {
        let name = row.name.trim_start_matches("kvm_exit(").trim_end_matches(')');
        matches!(name, "PAUSE_INSTRUCTION" | "PAUSE" | "pause")
    };
    let row = counted.rows.iter().find(is_pause)?;
    let share = match counted.rows.iter().find(|row| row.name == "kvm_exit") {
        Some(all) if all.count > 0 => row.count as f64 / all.count as f64,
        _ => row.count_share.filter(|_| row.share_of.is_none())?,
    };
    (SPINNING..=1.0).contains(&share).then_some((share, row, counted))
}

/// VMs that a grepped definition of Proxmox binds to the same CPUs.
pub(in crate::signs) fn bound(scene: &Scene<'_>) -> Vec<Hit> {
    scene.models.iter().flat_map(of_affinities).collect()
}

/// What was told of a VM, by key.
type Told<'a> = BTreeMap<&'a str, &'a Quoted>;

fn of_affinities(model: &Model) -> Vec<Hit> {
    let mut vms: BTreeMap<&str, Told<'_>> = BTreeMap::new();
    for told in model.machine.quoted.iter().filter(|told| told.subject.starts_with("VM ")) {
        vms.entry(&told.subject).or_default().insert(&told.what, told);
    }
    let mut sets: BTreeMap<String, Vec<(&str, &Told<'_>)>> = BTreeMap::new();
    for (vm, of) in &vms {
        let Some(cpus) = of.get("affinity").and_then(|told| CpuSet::parse(&told.value)) else { continue };
        sets.entry(cpus.to_string()).or_default().push((vm, of));
    }
    let mut hits = Vec::new();
    for (name, members) in sets {
        let Some(cpus) = CpuSet::parse(&name) else { continue };
        let vcpus = |of: &Told<'_>| {
            let number = |key: &str| of.get(key).and_then(|told| told.value.parse::<u64>().ok());
            Some(number("cores")? * number("sockets").unwrap_or(1))
        };
        let all: u64 = members.iter().filter_map(|(_, of)| vcpus(of)).sum();
        if members.len() < 2 || all <= cpus.len() as u64 {
            continue;
        }
        let called =
            |vm: &str, of: &Told<'_>| of.get("name").map_or(vm.to_owned(), |name| format!("{vm} ({})", name.value));
        let names: Vec<String> = members.iter().map(|(vm, of)| called(vm, of)).collect();
        // A definition that was grepped may have lost its sockets.
        let least = if members.iter().all(|(_, of)| of.contains_key("sockets")) { "" } else { "at least " };
        let (vcpus_in_all, there_are) = (many(all, "vCPU"), many(cpus.len() as u64, "CPU"));
        let title = format!("{} are bound to the same CPUs {name}: {least}{vcpus_in_all} on {there_are}", list(&names));
        let waits = model.machine.threads.iter().any(|thread| thread.starvation().is_some_and(|share| share > 0.2));
        let mut hit = Hit::new(name.as_str(), if waits { Severity::High } else { Severity::Medium }, title);
        hit.level = Some(model.level);
        let idle = model.machine.cpu_use.iter().filter(|(cpu, usage)| !cpus.contains(**cpu) && usage.idle > 0.8);
        let idle: CpuSet = idle.map(|(cpu, _)| *cpu).collect();
        let most = members.iter().max_by_key(|(_, of)| vcpus(of));
        for (vm, of) in &members {
            let place = of.get("affinity").map_or("", |told| told.place.as_str());
            hit = hit.seen(format!("affinity of {} is {name}", called(vm, of)), place);
        }
        let id = most.map_or("VMID", |(vm, _)| vm.trim_start_matches("VM "));
        let there = if idle.is_empty() { "LIST".to_owned() } else { idle.to_string() };
        if !idle.is_empty() {
            hit = hit.seen(format!("CPUs {idle} are idle for more than 80 % of the time"), "table cpus");
        }
        hit.fix.push(format!("qm set {id} --affinity {there}   # away from the CPUs of the others; then stop and start it, or taskset -acp {there} PID at once"));
        hit.undo.push(format!("qm set {id} --affinity {name}"));
        hits.push(hit);
    }
    hits
}

/// A forwarder with more streams than cores, which were told of it.
pub(in crate::signs) fn forwarder(scene: &Scene<'_>) -> Vec<Hit> {
    let told = scene.models.iter().flat_map(|model| model.machine.quoted.iter().map(move |told| (model, told)));
    let number = |told: &Quoted, name: &str| -> Option<u64> {
        let (_, rest) = told.value.split_once(&format!(" - {name}="))?;
        rest.split(' ').next()?.parse().ok()
    };
    let hits = told.filter(|(_, told)| told.what == "testpmd, forwarding").filter_map(|(model, told)| {
        let (cores, streams) = (number(told, "cores")?, number(told, "streams")?);
        if streams <= cores || cores == 0 {
            return None;
        }
        let title = format!("testpmd forwards {} on {}: more cores would share them", many(streams, "stream"), many(cores, "core"));
        let mut hit = Hit::new("testpmd", Severity::Medium, title);
        hit.level = Some(model.level);
        let of_cores = model.machine.quoted.iter().filter(|told| told.what == "testpmd, forwards packets on");
        hit = hit.seen(&told.value, &told.place);
        hit = of_cores.fold(hit, |hit, told| hit.seen(format!("{} has {}", told.subject, told.value), &told.place));
        hit.fix.push(format!("dpdk-testpmd -l LIST .. -- --nb-cores={streams}   # one core of LIST is its own, so as many more; while it runs: stop, set nbcore {streams}, start"));
        hit.undo.push(format!("set nbcore {cores}   # in testpmd"));
        Some(hit)
    });
    hits.collect()
}

/// Share of its CPU from which a job of fio has no more: our own threshold.
pub(in crate::signs) const JOB: f64 = 0.95;

/// Jobs of fio whose own thread uses its CPU whole.
pub(in crate::signs) fn jobs(scene: &Scene<'_>) -> Vec<Hit> {
    let told = scene.models.iter().flat_map(|model| model.machine.quoted.iter().map(move |told| (model, told)));
    let percent_of = |told: &Quoted, name: &str| -> Option<f64> {
        let part = told.value.split(", ").find_map(|part| part.trim().strip_prefix(name)?.strip_prefix('='))?;
        Some(part.trim_end_matches('%').parse::<f64>().ok()? / 100.0)
    };
    let hits = told.filter(|(_, told)| told.what == "fio, cpu").filter_map(|(model, told)| {
        let (user, system) = (percent_of(told, "usr")?, percent_of(told, "sys")?);
        if user + system < JOB {
            return None;
        }
        let title = format!(
            "fio's job {} uses its CPU whole ({} in the kernel): the CPU that it runs on is its limit, and not the disk",
            told.subject,
            percent(system)
        );
        let mut hit = Hit::new(format!("fio {}", told.subject), Severity::Medium, title);
        hit.level = Some(model.level);
        hit = hit.seen(format!("usr {}, sys {}", percent(user), percent(system)), &told.place);
        hit.fix.push("fio .. --numjobs=4 --group_reporting   # more jobs: does the sum grow?".to_owned());
        Some(hit)
    });
    hits.collect()
}

/// Share of its CPUs' time from which a traffic generator has no more: our own threshold.
pub(in crate::signs) const GENERATOR: f64 = 0.95;

/// A traffic generator whose own cores are full.
pub(in crate::signs) fn generator(scene: &Scene<'_>) -> Vec<Hit> {
    let of_machine = |model: &Model| {
        let told = |name: &str| model.machine.quoted.iter().find(|told| told.what == "TRex" && told.subject == name);
        let cpu = told("cpu_util.")?;
        let share = cpu.value.split('%').next()?.trim().parse::<f64>().ok()? / 100.0;
        if share < GENERATOR {
            return None;
        }
        let title = format!("TRex uses {} of its own cores: it cannot send more, whatever it tests", percent(share));
        let mut hit = Hit::new("TRex", Severity::Medium, title);
        hit.level = Some(model.level);
        hit = hit.seen(format!("cpu_util. {}", cpu.value), &cpu.place);
        for (name, what) in [("total_pps", "it sends"), ("queue_full", "the card's queue was full for")] {
            hit = told(name).into_iter().fold(hit, |hit, told| hit.seen(format!("{what} {}", told.value), &told.place));
        }
        hit.fix.push("t-rex-64 -i -c N   # more cores for each pair of ports; and a profile that asks little of them (cached packets, no field engine)".to_owned());
        Some(hit)
    };
    scene.models.iter().filter_map(of_machine).collect()
}

/// Share of a CPU from which the main thread of ovs-vswitchd does more than manage: our own threshold.
pub(in crate::signs) const MAIN: f64 = 0.5;

/// A main thread of ovs-vswitchd that carries packets: of ports of the kernel, which no polling thread serves.
pub(in crate::signs) fn switch(scene: &Scene<'_>) -> Vec<Hit> {
    let told = scene.models.iter().flat_map(|model| model.machine.quoted.iter().map(move |told| (model, told)));
    let share = |told: &Quoted| told.value.trim_end_matches('%').parse::<f64>().ok().map(|percent| percent / 100.0);
    let own = told.filter(|(_, told)| told.what == OVS_MAIN);
    let most = own.filter_map(|(model, told)| Some((model, told, share(told).filter(|share| *share >= MAIN)?)));
    let most = most.max_by(|one, other| one.2.total_cmp(&other.2));
    let hit = most.map(|(model, told, share)| {
        let port = told.subject.split_once("AF_PACKET(").and_then(|(_, rest)| rest.split(')').next());
        let of = port.map_or(String::new(), |port| format!(", woken by port {port} of the kernel, which no polling thread serves"));
        let title = format!("the main thread of ovs-vswitchd uses {} of a CPU{of}", percent(share));
        let mut hit = Hit::new("ovs-vswitchd", Severity::Medium, title);
        hit.level = Some(if model.level == Level::Unknown { Level::L0 } else { model.level });
        hit = hit.seen(format!("{} ({} CPU usage)", told.subject, told.value), &told.place);
        hit.fix.push("ovs-vsctl --columns=name,type list Interface   # tap and system are the kernel's: VMs on dpdkvhostuserclient, cards on dpdk".to_owned());
        hit
    });
    hit.into_iter().collect()
}
