//! Queues of cards: how often they interrupt, whether they are used at all.

use crate::placement::model::Model;
use base::number::{many, percent};
use base::shell::quoted;
use base::{CpuSet, Setting, Severity};
use facts::rule::Hit;
use host::machine::{Nic, Role, Thread};
use std::collections::{BTreeMap, BTreeSet};

/// An interrupt above this rate has time for little else: our own threshold.
pub(in crate::placement) const OFTEN_PER_S: f64 = 20_000.0;

/// A worker that runs less than this has nothing to do: our own threshold.
pub(in crate::placement) const IDLE: f64 = 0.01;

/// A worker that runs more than this carries a load: our own threshold.
pub(in crate::placement) const LOADED: f64 = 0.5;

/// A softirq share of a CPU from which on one queue is a limit: our own threshold.
pub(in crate::placement) const FULL_SOFTIRQ: f64 = 0.5;

/// Cards that VMs send through.
pub(super) fn used(model: &Model) -> impl Iterator<Item = &Nic> {
    let interfaces = model.machine.domains.iter().flat_map(|domain| &domain.interfaces);
    let names: BTreeSet<&str> =
        interfaces.flat_map(|interface| model.machine.cards_of(interface)).map(|card| card.name.as_str()).collect();
    model.machine.nics.iter().filter(move |nic| names.contains(nic.name.as_str()))
}

/// Cards that interrupt for each packet, and very often.
pub(crate) fn coalescing(model: &Model) -> Vec<Hit> {
    let mut hits = Vec::new();
    for nic in &model.machine.nics {
        let set = |key: &str| nic.coalescing.get(key);
        let number = |key: &str| set(key).and_then(|fact| fact.value.parse::<u32>().ok());
        let waits = set("adaptive-rx").is_some_and(|adaptive| adaptive.value == "on");
        let (Some(wait_us), Some(told), false) = (number("rx-usecs"), set("rx-usecs"), waits) else { continue };
        let of_this =
            model.machine.irqs.iter().filter(|irq| model.machine.nic_of(irq).is_some_and(|of| of.name == nic.name));
        let most = of_this.flat_map(|irq| irq.per_s.iter().map(move |(cpu, rate)| (irq.number, *cpu, *rate)));
        let Some((irq, cpu, rate)) = most.max_by(|a, b| a.2.total_cmp(&b.2)) else { continue };
        if wait_us > 1 || rate < OFTEN_PER_S {
            continue;
        }
        let title = format!("{} interrupts CPU {cpu} {rate:.0} times per second without coalescing", nic.name);
        let mut hit = Hit::new(&nic.name, Severity::Low, title)
            .seen(format!("rx-usecs is {wait_us}, adaptive-rx is off"), &told.place)
            .seen(format!("interrupt {irq} fired {rate:.0} times per second on CPU {cpu}"), "proc/interrupts");
        hit.fix.push(format!("ethtool -C {} adaptive-rx on", quoted(&nic.name)));
        hit.undo.push(format!("ethtool -C {} adaptive-rx off rx-usecs {wait_us}", quoted(&nic.name)));
        hits.push(hit);
    }
    hits
}

/// Cards of VMs whose packets are not put together before they are carried on.
pub(crate) fn offloads(model: &Model) -> Vec<Hit> {
    let off =
        used(model).filter_map(|nic| Some((nic, nic.offloads.get("generic-receive-offload").filter(|on| !on.value)?)));
    let hits = off.map(|(nic, told)| {
        let title = format!("{} passes on each packet by itself: generic-receive-offload is off", nic.name);
        let mut hit = Hit::new(&nic.name, Severity::Low, title).seen("generic-receive-offload is off", &told.place);
        hit.fix.push(format!("ethtool -K {} gro on", quoted(&nic.name)));
        hit.undo.push(format!("ethtool -K {} gro off", quoted(&nic.name)));
        hit
    });
    hits.collect()
}

/// VMs of whose workers some carry a load and others nothing.
pub(crate) fn unused(model: &Model) -> Vec<Hit> {
    let mut hits = Vec::new();
    for domain in &model.machine.domains {
        let workers: Vec<&Thread> = model.helpers(domain).filter(|thread| thread.role == Role::Vhost).collect();
        let run = |thread: &&&Thread| thread.run_share.as_ref().map(|run| run.value);
        let loaded: Vec<&&Thread> = workers.iter().filter(|thread| run(thread) > Some(LOADED)).collect();
        let idle = workers.iter().filter(|thread| run(thread).is_some_and(|run| run < IDLE)).count();
        let queues = domain.interfaces.iter().filter_map(|interface| interface.queues).max().unwrap_or(1);
        if loaded.is_empty() || idle == 0 || queues < 2 || loaded.len() + idle < workers.len() {
            continue;
        }
        let title = format!(
            "{} of {} vhost workers of {} {} all traffic, {idle} idle",
            loaded.len(),
            workers.len(),
            domain.name,
            if loaded.len() == 1 { "carries" } else { "carry" }
        );
        let hit = Hit::new(&domain.name, Severity::Medium, title).filling("N", queues);
        hits.push(loaded.iter().fold(hit, |hit, thread| {
            let (run, place) = thread.run_share.as_ref().map_or((0.0, ""), |run| (run.value, run.place.as_str()));
            hit.seen(format!("vhost {} used {} of a CPU", thread.tid.unwrap_or(0), percent(run)), place)
        }));
    }
    hits
}

/// Devices of Hyper-V all of whose channels interrupt one CPU.
pub(crate) fn channels(model: &Model) -> Vec<Hit> {
    let online = &model.machine.topology.online;
    let mut devices: BTreeMap<&str, Vec<&host::machine::Channel>> = BTreeMap::new();
    for channel in model.machine.channels.iter().filter(|channel| channel.cpu.is_some()) {
        devices.entry(&channel.device).or_default().push(channel);
    }
    let mut hits = Vec::new();
    for (device, channels) in devices {
        let cpus: CpuSet = channels.iter().filter_map(|channel| Some(channel.cpu.as_ref()?.value)).collect();
        if channels.len() < 2 || cpus.len() > 1 || online.len() < 2 {
            continue;
        }
        let title =
            format!("all {} of {} interrupt CPU {cpus}", many(channels.len() as u64, "channel"), channels[0].kind);
        let mut hit = Hit::new(format!("vmbus-{device}"), Severity::Medium, title);
        let free: Vec<u32> = online.without(&cpus).iter().collect();
        for (index, channel) in channels.iter().enumerate() {
            let Some(cpu) = &channel.cpu else { continue };
            hit = hit.seen(format!("channel {} interrupts CPU {}", channel.number, cpu.value), &cpu.place);
            // The first one stays.
            if let Some(to) = index.checked_sub(1).map(|next| free[next % free.len()]) {
                let path = format!("bus/vmbus/devices/{device}/channels/{}/cpu", channel.number);
                hit.changes.push(Setting::SysfsWrite { path }.change(to.to_string(), Some(cpu.value.to_string())));
            }
        }
        hits.push(hit);
    }
    hits
}
