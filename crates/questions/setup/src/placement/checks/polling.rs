//! Polling threads of Open vSwitch: each takes its CPU whole, so that whoever shares it gets what is left.

use super::starved::with_victims;
use crate::placement::culprits::{Reporter, Verdict};
use crate::placement::model::{BUSY, Demand, Model};
use crate::placement::solver::{Kind, Plan};
use base::number::{list, many, percent};
use base::shell::quoted;
use base::{CpuSet, Evidence, Severity};
use facts::rule::Hit;
use facts::shares::room_beside;
use host::machine::{Pmd, PmdQueue, Role, SwitchPort, Thread};
use std::collections::BTreeSet;

/// Polling threads with the one CPU that each has.
fn polling(model: &Model) -> impl Iterator<Item = (&Thread, u32, &str)> {
    let pmds = model.machine.threads.iter().filter(|thread| thread.role == Role::Pmd);
    pmds.filter_map(|thread| {
        let set = thread.affinity.as_ref().filter(|set| set.value.len() == 1)?;
        Some((thread, set.value.first()?, set.place.as_str()))
    })
}

/// How a vCPU and a polling thread meet.
const SAME: &str = "on the same CPU";
const SIBLING: &str = "on the sibling thread of the same core";

/// Polling threads on the CPUs or cores of pinned vCPUs.
pub(crate) fn shared(model: &Model) -> Vec<Hit> {
    let topology = &model.machine.topology;
    let mut same: Vec<Hit> = Vec::new();
    for (pmd, cpu, place) in polling(model) {
        let core = topology.cpus.get(&cpu).map(|about| topology.of_core(about.core)).unwrap_or_default();
        let vcpus = model.machine.threads.iter().filter(|thread| matches!(thread.role, Role::Vcpu(_)));
        for vcpu in vcpus {
            let Some(set) = vcpu.affinity.as_ref().filter(|set| !topology.online.is_within(&set.value)) else {
                continue;
            };
            let victims: Vec<&Verdict> = victims(model, pmd, vcpu).collect();
            let measured = pmd.wait_share.is_some() && vcpu.wait_share.is_some();
            let (how, severity) = if set.value.contains(cpu) {
                (
                    SAME,
                    if !victims.is_empty() {
                        Severity::High
                    } else if measured {
                        Severity::Info
                    } else {
                        Severity::Medium
                    },
                )
            } else if set.value.meets(&core) {
                // It slows the vCPU, and makes it wait for nothing: what that costs is modelled.
                let busy = pmd.run_share.as_ref().map_or(1.0, |run| run.value);
                let lacks = Demand::of(vcpu).likely - room_beside(0.0, busy) > BUSY;
                (SIBLING, if measured && !lacks { Severity::Low } else { Severity::Medium })
            } else {
                continue;
            };
            let vm = vcpu.vm.as_deref().unwrap_or("a VM");
            let index = same.iter().position(|hit| hit.subject == vm).unwrap_or_else(|| {
                same.push(Hit::new(vm, severity, ""));
                same.len() - 1
            });
            let old = std::mem::replace(&mut same[index], Hit::new("", severity, ""));
            let ran = |thread: &Thread| {
                thread.run_share.as_ref().map_or(String::new(), |run| format!(", ran {}", percent(run.value)))
            };
            let what = format!(
                "{} of {vm} may run on {}{}; {} polls CPU {cpu}{}, {how}",
                vcpu.role,
                set.value,
                ran(vcpu),
                pmd.name,
                ran(pmd)
            );
            let told = old.seen(what, format!("{}, {place}", set.place));
            same[index] = with_victims(model, told, &victims);
            same[index].severity = same[index].severity.max(severity);
        }
    }
    for hit in &mut same {
        // A vCPU that meets several of them is one.
        let with = |how: &str| {
            let met = hit.evidence.iter().filter(|seen| seen.what.ends_with(how));
            let vcpus: BTreeSet<&str> = met.filter_map(|seen| Some(seen.what.split_once(" may run on ")?.0)).collect();
            vcpus.len() as u64
        };
        let (here, beside) = (with(SAME), with(SIBLING));
        hit.title = match (here, beside) {
            (0, _) => format!("polling threads share cores with {} of {}", many(beside, "vCPU"), hit.subject),
            (_, 0) => format!("polling threads share CPUs with {} of {}", many(here, "vCPU"), hit.subject),
            _ => format!(
                "polling threads share CPUs with {} and cores with {beside} more of {}",
                many(here, "vCPU"),
                hit.subject
            ),
        };
        hit.changes = model.proposal.part(|unit, _| unit.kind == Kind::Pmd);
        if hit.changes.is_empty() {
            hit.changes = model.proposal.part(|unit, of| unit.kind == Kind::Vcpu && of.vm == hit.subject);
        }
        if hit.changes.is_empty() {
            hit.fix.push(model.proposal.why_none());
        }
        if model.machine.switch.mask_in_force().is_none() {
            hit.fix.push(
                "ovs-vsctl get Open_vSwitch . other_config   # pmd-cpu-mask was not read: polling threads stay, because \
                 nothing would undo another mask"
                    .to_owned(),
            );
        }
    }
    same
}

/// Another number of polling threads than run, where somebody asks for one: a planner of datapaths, or an option.
pub(crate) fn asked(model: &Model) -> Vec<Hit> {
    let Some(asked) = &model.proposal.asked_polling else { return Vec::new() };
    let threads = model.machine.threads.iter().filter(|thread| thread.role == Role::Pmd).count();
    let running = if threads > 0 { threads } else { model.machine.switch.pmd_cpus().len() };
    if running == asked.threads as usize {
        return Vec::new();
    }
    let wanted = many(u64::from(asked.threads), "polling thread");
    let known = if running == 0 { "none is known to run".to_owned() } else { format!("{running} run") };
    let mut hit = Hit::new("pmd-cpu-mask", Severity::Medium, format!("{wanted} are asked for, and {known}"))
        .seen(format!("{wanted} are asked for"), asked.from.clone());
    if let Some(mask) = model.machine.switch.pmd_mask.as_ref() {
        hit = hit.seen(format!("pmd-cpu-mask is CPUs {}", mask.value), &mask.place);
    }
    hit.changes = model.proposal.part(|unit, _| unit.kind == Kind::Pmd);
    match model.proposal.advised() {
        Some(plan) if !hit.changes.is_empty() => {
            let units = model.proposal.task.units.iter().zip(&plan.places);
            let polling = units.filter(|(unit, _)| unit.kind == Kind::Pmd);
            let cpus = polling.fold(CpuSet::default(), |all, (_, place)| all.or(place));
            let others = model.proposal.all_changes(plan).len() - hit.changes.len();
            hit = hit.seen(
                format!("placement gives them CPUs {cpus}, on one map with all vCPUs"),
                "modelled: table placement.proposal",
            );
            if others > 0 {
                let more = base::number::counted(others as u64, "more command", "more commands");
                hit.fix.push(format!(
                    "kvmscope check   # PLC-PROPOSAL has {more} of the same placement: what has to leave these CPUs"
                ));
            }
            let (fix, undo) = retied(model, plan);
            hit.fix.extend(fix);
            hit.undo.extend(undo);
        }
        _ => hit.fix.push(model.proposal.why_none()),
    }
    vec![hit]
}

/// Queues that are tied to a polling thread which a plan moves, tied to where it goes: a queue that is tied to a CPU outside the mask is
/// polled by nobody (Open vSwitch 3.1, Documentation/topics/dpdk/pmd.rst). What sets them, and what sets them back.
fn retied(model: &Model, plan: &Plan) -> (Vec<String>, Vec<String>) {
    let units = || model.proposal.task.units.iter().zip(&plan.places).filter(|(unit, _)| unit.kind == Kind::Pmd);
    let mask = units().fold(CpuSet::default(), |all, (_, place)| all.or(place));
    let goes = |cpu: u32| {
        let of_thread = units().find(|(unit, _)| unit.now.as_ref().is_some_and(|now| now.contains(cpu)));
        of_thread.and_then(|(_, place)| place.first()).filter(|_| !mask.contains(cpu))
    };
    let ports = model.machine.switch.bridges.iter().flat_map(|bridge| &bridge.ports);
    let tied = ports.filter(|port| port.rx_affinity.iter().any(|(_, cpu)| !mask.contains(*cpu)));
    let command = |port: &SwitchPort, pairs: Vec<(u32, u32)>| {
        let name = quoted(&port.name);
        match pairs.is_empty() {
            true => format!("ovs-vsctl remove Interface {name} other_config pmd-rxq-affinity"),
            false => format!("ovs-vsctl set Interface {name} other_config:pmd-rxq-affinity=\"{}\"", ties(&pairs)),
        }
    };
    let both = tied.map(|port| {
        let kept = port.rx_affinity.iter().filter_map(|(queue, cpu)| {
            let stays = mask.contains(*cpu).then_some(*cpu);
            Some((*queue, stays.or_else(|| goes(*cpu))?))
        });
        (command(port, kept.collect()), command(port, port.rx_affinity.clone()))
    });
    both.unzip()
}

/// `0:3,1:7`: queues with their CPUs.
fn ties(pairs: &[(u32, u32)]) -> String {
    pairs.iter().map(|(queue, cpu)| format!("{queue}:{cpu}")).collect::<Vec<_>>().join(",")
}

/// The polling thread and the vCPU, as far as one starves by the other.
fn victims<'a>(model: &'a Model, pmd: &'a Thread, vcpu: &'a Thread) -> impl Iterator<Item = &'a Verdict> {
    let is = |position: usize, thread: &Thread| std::ptr::eq(&model.machine.threads[position], thread);
    model.verdicts.of_reporter(Reporter::Pmd).filter(move |verdict| {
        let busiest = verdict.winner().and_then(|winner| winner.threads.first());
        let by = |rival: &Thread| busiest.is_some_and(|busiest| is(*busiest, rival));
        is(verdict.victim, vcpu) && by(pmd) || is(verdict.victim, pmd) && by(vcpu)
    })
}

/// Polling threads that serve a card of another node, where queues are known to be busy or not known to be idle.
pub(crate) fn remote(model: &Model) -> Vec<Hit> {
    let machine = &model.machine;
    let mut hits = Vec::new();
    for pmd in &machine.switch.pmds {
        let of_cpu = machine.topology.cpus.get(&pmd.cpu).and_then(|cpu| cpu.node).or(pmd.node);
        let far = pmd.queues.iter().filter_map(|queue| {
            let node = machine.switch.port(&queue.port)?.node.as_ref()?;
            (Some(node.value) != of_cpu && queue.enabled && queue.usage != Some(0.0)).then_some((queue, node))
        });
        let far: Vec<_> = far.collect();
        let (Some((_, first)), Some(of_cpu)) = (far.first(), of_cpu) else { continue };
        let names: Vec<String> = far.iter().map(|(queue, _)| format!("{} queue {}", queue.port, queue.queue)).collect();
        let title = format!(
            "the polling thread on CPU {} (node {of_cpu}) serves {} of node {}",
            pmd.cpu,
            list(&names),
            first.value
        );
        let mut hit = Hit::new(format!("pmd-c{:02}", pmd.cpu), Severity::Medium, title);
        for (queue, node) in &far {
            let usage = queue.usage.map_or("an unknown share".to_owned(), percent);
            hit =
                hit.seen(format!("{} queue {} takes {usage} of CPU {}", queue.port, queue.queue, pmd.cpu), &pmd.place);
            hit = hit.seen(format!("{} is on node {}", queue.port, node.value), &node.place);
        }
        nearer(model, pmd, far[0].0, first.value, &mut hit);
        hits.push(hit);
    }
    hits
}

/// A polling thread above this share is full: pmd-auto-lb-load-threshold of ovs-vswitchd.conf.db(5).
pub(in crate::placement) const FULL: f64 = 0.95;

/// A polling thread below this share has room: our own threshold.
pub(in crate::placement) const ROOM: f64 = 0.5;

/// From this share of a full polling thread on one queue is what fills it: our own threshold.
pub(in crate::placement) const OF_ONE: f64 = 0.8;

/// The queue that fills its polling thread, which then no other assignment relieves.
fn filling(pmd: &Pmd) -> Option<(&PmdQueue, f64)> {
    let busy = pmd.busy().filter(|busy| *busy > FULL)?;
    let queues = pmd.queues.iter().filter_map(|queue| Some((queue, queue.usage?)));
    queues.max_by(|a, b| a.1.total_cmp(&b.1)).filter(|(_, usage)| *usage >= OF_ONE * busy)
}

/// Queues that fill their polling threads alone.
pub(crate) fn one_queue(model: &Model) -> Vec<Hit> {
    let full = model.machine.switch.pmds.iter().filter_map(|pmd| Some((pmd, filling(pmd)?)));
    let hits = full.map(|(pmd, (queue, usage))| {
        let (port, number) = (&queue.port, queue.queue);
        let title = format!(
            "queue {number} of {port} fills the polling thread on CPU {} alone ({}): another assignment cannot help",
            pmd.cpu,
            percent(usage)
        );
        let mut hit = Hit::new(format!("{port}-{number}"), Severity::Medium, title)
            .seen(format!("{port} queue {number} takes {} of CPU {}", percent(usage), pmd.cpu), &pmd.place);
        let queues = pmd.queues.iter().filter(|other| other.port == *port).count() + 1;
        hit.fix = vec![
            format!("ovs-vsctl set Interface {port} options:n_rxq={queues}   # of a physical port; the card spreads flows over its queues"),
            format!("ethtool -L eth0 combined {queues}   # of a vhost-user port: in the guest, whose <interface> needs <driver queues='{queues}'/>"),
        ];
        hit.undo = vec![format!("ovs-vsctl set Interface {port} options:n_rxq={}", queues - 1)];
        hit
    });
    hits.collect()
}

/// Full polling threads beside others of their node that have room.
pub(crate) fn unbalanced(model: &Model) -> Vec<Hit> {
    let topology = &model.machine.topology;
    let node = |pmd: &Pmd| topology.cpus.get(&pmd.cpu).and_then(|cpu| cpu.node).or(pmd.node);
    let pmds = &model.machine.switch.pmds;
    let mut hits = Vec::new();
    // One queue alone cannot be shared out.
    let busy_queues = |pmd: &Pmd| pmd.queues.iter().filter(|queue| queue.usage > Some(0.0)).count();
    let may_be_relieved = |pmd: &&Pmd| pmd.busy() > Some(FULL) && busy_queues(pmd) > 1 && filling(pmd).is_none();
    for full in pmds.iter().filter(may_be_relieved) {
        let near = |other: &&Pmd| node(other) == node(full) && !other.isolated && other.busy().unwrap_or(0.0) < ROOM;
        let Some(other) = pmds.iter().find(near).filter(|_| !full.isolated) else { continue };
        let share = |pmd: &Pmd| percent(pmd.busy().unwrap_or(0.0));
        let title = format!(
            "the polling thread on CPU {} is saturated ({}), the one on CPU {} is not ({})",
            full.cpu,
            share(full),
            other.cpu,
            share(other)
        );
        let mut hit = Hit::new(format!("pmd-c{:02}", full.cpu), Severity::Medium, title);
        for queue in full.queues.iter().filter(|queue| queue.usage > Some(0.0)) {
            let usage = percent(queue.usage.unwrap_or(0.0));
            hit = hit
                .seen(format!("{} queue {} takes {usage} of CPU {}", queue.port, queue.queue, full.cpu), &full.place);
        }
        hits.push(hit);
    }
    hits
}

/// A mask of polling threads and a list of them that do not fit together.
pub(crate) fn contradicting(model: &Model) -> Vec<Hit> {
    let switch = &model.machine.switch;
    let listed: CpuSet = switch.pmds.iter().map(|pmd| pmd.cpu).collect();
    let online = &model.machine.topology.online;
    let running = |mask: &CpuSet| if online.is_empty() { mask.clone() } else { mask.and(online) };
    let Some(mask) = switch.pmd_mask.as_ref().filter(|mask| !listed.is_empty() && running(&mask.value) != listed)
    else {
        return Vec::new();
    };
    let title = format!("pmd-cpu-mask names CPUs {}, but Open vSwitch lists polling threads on {listed}", mask.value);
    let hit =
        Hit::new("pmd-cpu-mask", Severity::Medium, title).seen(format!("the mask is CPUs {}", mask.value), &mask.place);
    vec![hit.seen(format!("polling threads are on {listed}"), &switch.pmds[0].place)]
}

/// What brings a queue to its node: a polling thread there that has room for it. A thread that a queue is tied to serves no
/// other queues but such (pmd-rxq-isolate, ovs-vswitchd.conf.db(5)): where it has others, what becomes of them is not known.
fn nearer(model: &Model, pmd: &Pmd, queue: &PmdQueue, node: u32, hit: &mut Hit) {
    let topology = &model.machine.topology;
    // A CPU that a vCPU shares is no better place: PLC-PMD takes the polling thread away from there.
    let taken = model.of_vcpus();
    let there = |other: &&Pmd| {
        topology.cpus.get(&other.cpu).and_then(|cpu| cpu.node) == Some(node) && !taken.contains(other.cpu)
    };
    let judged = model.machine.switch.pmds.iter().filter(there).map(|near| (near, room_for(near, queue)));
    let judged: Vec<(&Pmd, Result<f64, String>)> = judged.collect();
    let best = judged.iter().filter_map(|(near, room)| Some((near.cpu, *room.as_ref().ok()?)));
    if let Some((cpu, load)) = best.min_by(|a, b| a.1.total_cmp(&b.1)) {
        let now = percent(pmd.busy().unwrap_or(0.0));
        hit.evidence.push(Evidence::new(
            format!(
                "with the queue, the polling thread on CPU {cpu} is {} busy; that on CPU {} is {now} now",
                percent(load),
                pmd.cpu
            ),
            "modelled: usage of queues added up",
        ));
        let tied = model.machine.switch.port(&queue.port).map_or(&[][..], |port| &port.rx_affinity);
        let others = tied.iter().copied().filter(|(number, _)| *number != queue.queue);
        let (port, to) = (quoted(&queue.port), ties(&others.chain([(queue.queue, cpu)]).collect::<Vec<_>>()));
        hit.fix.push(format!("ovs-vsctl set Interface {port} other_config:pmd-rxq-affinity=\"{to}\""));
        hit.undo.push(match tied {
            [] => format!("ovs-vsctl remove Interface {port} other_config pmd-rxq-affinity"),
            _ => {
                let from = ties(tied);
                format!("ovs-vsctl set Interface {port} other_config:pmd-rxq-affinity=\"{from}\"")
            }
        });
        return;
    }
    hit.fix.push(match judged.into_iter().find_map(|(near, room)| Some((near.cpu, room.err()?))) {
        Some((cpu, why)) => format!("# the queue is not tied to CPU {cpu}: {why}"),
        None => format!(
            "# no polling thread of node {node} is on a CPU without a vCPU: pmd-cpu-mask needs {} there, which the thread takes \
             whole",
            match topology.isolated.as_ref().is_some_and(|isolated| !isolated.is_empty()) {
                true => "an isolated CPU",
                false => "a CPU",
            }
        ),
    });
}

/// The load of a polling thread with one more queue; else why it must not get it, or what is missing to tell.
fn room_for(near: &Pmd, queue: &PmdQueue) -> Result<f64, String> {
    let others: Vec<&PmdQueue> = near.queues.iter().filter(|other| other.enabled).collect();
    let Some(usage) = queue.usage else { return Err("how much of a CPU the queue takes is unknown".to_owned()) };
    let load = match (near.busy(), &others[..]) {
        (Some(busy), _) => busy + usage,
        (None, []) => usage,
        (None, [_, ..]) => return Err("how busy its polling thread is, is unknown".to_owned()),
    };
    match (load > FULL, near.isolated || others.is_empty()) {
        (true, _) => Err(format!("its polling thread would be {} busy", percent(load))),
        (false, true) => Ok(load),
        (false, false) => {
            let count = many(others.len() as u64, "other queue");
            Err(format!("its polling thread would give up {count}, and which thread gets them is not known"))
        }
    }
}
