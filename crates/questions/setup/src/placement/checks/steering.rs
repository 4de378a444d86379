//! What a card hands to which CPU by itself: packets that arrived (RPS), packets to send (XPS), interrupts of further queues.
//!
//! ```text
//! command --> CPUs that would get the work --> room there, and nobody bound to them?  typed
//!                                          '-> full, bound, or not measured           no command, and what is missing
//! ```
//! None of it is a unit of the solver, so that no placement moves it: each command is judged here, by how these CPUs are used.

use super::queues::{FULL_SOFTIRQ, used};
use super::starved::with_victims;
use crate::placement::culprits::{Kind, Verdict, cpus_named};
use crate::placement::model::Model;
use base::number::{many, percent};
use base::shell::quoted;
use base::{CpuSet, Severity};
use facts::rule::Hit;
use facts::shares::{Direction, Interrupts};
use host::machine::{Nic, Role, Steering};

/// A CPU that is idle for more than this has room for a queue: our own threshold.
const ROOM: f64 = 0.2;

/// CPUs of new interrupts, where nobody asks for others (Documentation/core-api/irq/irq-affinity.rst, Linux 6.12).
pub(in crate::placement) const DEFAULT_AFFINITY: &str = "proc/irq/default_smp_affinity";

/// CPUs that vCPUs and polling threads are bound to.
fn bound(model: &Model) -> CpuSet {
    model.of_vcpus().or(&model.machine.switch.pmd_cpus())
}

/// Receive packet steering to CPUs of vCPUs.
pub(crate) fn rps(model: &Model) -> Vec<Hit> {
    let of_vcpus = model.of_vcpus();
    let steered = model.machine.nics.iter().filter(|nic| nic.rps_cpus().meets(&of_vcpus));
    let hits = steered.map(|nic| {
        let there = nic.rps_cpus().and(&of_vcpus);
        let title = format!(
            "{} steers received packets (RPS) to {} of vCPUs ({there})",
            nic.name,
            many(there.len() as u64, "CPU")
        );
        let place = format!("sys/class/net/{}/queues/rx-*/rps_cpus", nic.name);
        // Threads that starve there by interrupts and softirqs starve by this.
        let starve = |verdict: &&Verdict| {
            verdict.cpus.meets(&there) && verdict.winner().is_some_and(|winner| winner.kind == Kind::Interrupts)
        };
        let victims: Vec<&Verdict> = model.verdicts.all().iter().filter(starve).collect();
        let severity = if victims.is_empty() { Severity::Low } else { Severity::High };
        let mut hit = Hit::new(&nic.name, severity, title).seen(format!("rps_cpus are {}", nic.rps_cpus()), place);
        if !victims.is_empty() {
            hit = with_victims(model, hit, &victims);
            let vms = victims.iter().filter_map(|verdict| model.machine.threads[verdict.victim].vm.as_ref());
            hit.explains.extend(vms.map(|vm| format!("PLC-STARVED@{vm}")));
        }
        for queue in nic.rps.iter().filter(|queue| queue.cpus.value.meets(&of_vcpus)) {
            hit = away(model, nic, queue, hit);
        }
        hit
    });
    hits.collect()
}

/// The hit with what takes a queue's packets away from CPUs that others are bound to, if the rest of its CPUs can carry them.
fn away(model: &Model, nic: &Nic, queue: &Steering, mut hit: Hit) -> Hit {
    let (usage, bound) = (&model.machine.cpu_use, bound(model));
    let (there, rest) = (queue.cpus.value.and(&bound), queue.cpus.value.without(&bound));
    let all = |cpus: &CpuSet, share: fn(&host::machine::CpuUse) -> f64| -> Option<f64> {
        cpus.iter().map(|cpu| usage.get(&cpu).map(share)).sum()
    };
    let moved = all(&there, |usage| usage.softirq).zip(all(&rest, |usage| usage.idle));
    let why = match (Interrupts::moved(usage, &there, &rest), moved) {
        _ if rest.is_empty() => {
            // Others may have room for what these do.
            let idle = |cpu: &u32| usage.get(cpu).is_some_and(|usage| usage.idle > 1.0 - ROOM);
            let free: CpuSet =
                model.machine.topology.online.without(&bound).iter().filter(idle).take(there.len()).collect();
            let softirq = all(&there, |usage| usage.softirq);
            match softirq {
                Some(softirq) if softirq <= free.len() as f64 * (1.0 - ROOM) && !free.is_empty() => {
                    let (fix, undo) = steered_to(model, nic, queue, &free);
                    hit.fix.push(format!("{fix}   # {}, which are idle", cpus_named(&free)));
                    hit.undo.push(undo);
                    return hit.seen(format!("softirqs take {softirq:.2} CPUs of {}", cpus_named(&there)), "proc/stat");
                }
                _ => "without them no CPU is left, and packets are handled where the card interrupts".to_owned(),
            }
        }
        (Some(moved), Some((softirq, idle))) if moved.direction() != Direction::Worse && softirq <= idle => {
            let (fix, undo) = steered_to(model, nic, queue, &rest);
            hit.fix.push(fix);
            hit.undo.push(undo);
            return hit.seen(format!("queue {} without them: {moved}", queue.queue), "proc/stat");
        }
        (Some(moved), Some(_)) => format!("the rest of its CPUs is too busy: {moved}"),
        _ => format!("how busy {} are was not measured", cpus_named(&rest)),
    };
    hit.fix.push(format!("# no command for queue {}: {why}", queue.queue));
    hit
}

/// The command that steers a queue's packets to `cpus`, and the one that steers them back.
fn steered_to(model: &Model, nic: &Nic, queue: &Steering, cpus: &CpuSet) -> (String, String) {
    let path = format!("/sys/class/net/{}/queues/rx-{}/rps_cpus", nic.name, queue.queue);
    // The kernel prints a mask as wide as its CPUs are many.
    let count = model.machine.topology.cpus.keys().next_back().map_or(1, |last| last + 1);
    let (words, rest) = (count.div_ceil(32) as usize, (count - 1) % 32 + 1);
    let like = format!("{}{}", "0".repeat(rest.div_ceil(4) as usize), ",00000000".repeat(words - 1));
    let write = |cpus: &CpuSet| format!("echo {} > {}", cpus.mask_like(&like), quoted(&path));
    (write(cpus), write(&queue.cpus.value))
}

/// Send queues that are tied to CPUs of vCPUs alone: the workers that send have none of their own.
pub(crate) fn xps(model: &Model) -> Vec<Hit> {
    let of_vcpus = model.of_vcpus();
    let workers = model.machine.threads.iter().filter(|thread| thread.role == Role::Vhost);
    let masks: Vec<_> = workers.filter_map(|thread| thread.affinity.as_ref()).collect();
    let senders = masks.iter().fold(CpuSet::default(), |all, set| all.or(&set.value));
    let mut hits = Vec::new();
    for nic in used(model) {
        let tied = nic.xps_cpus();
        if tied.is_empty() || senders.is_empty() || !tied.is_within(&of_vcpus) || tied.meets(&senders) {
            continue;
        }
        let title =
            format!("XPS ties send queues of {} to CPUs {tied} of vCPUs; the workers send from {senders}", nic.name);
        let mut hit = Hit::new(&nic.name, Severity::Low, title);
        for queue in &nic.xps {
            hit = hit.seen(format!("queue {} is for CPUs {}", queue.queue, queue.cpus.value), &queue.cpus.place);
        }
        hit.fix.push(format!(
            "grep . /sys/class/net/{}/queues/tx-*/xps_cpus   # no other mask is typed: a queue of their own saves senders \
             locks and cache misses, which the model of CPU time does not know; measure one queue for each of {}",
            quoted(&nic.name),
            cpus_named(&senders)
        ));
        hits.push(
            hit.seen(format!("vhost workers may run on {senders}"), masks.first().map_or("", |set| set.place.as_str())),
        );
    }
    hits
}

/// Cards with fewer queues than they could have, where one CPU is full of their softirqs.
pub(crate) fn few(model: &Model) -> Vec<Hit> {
    let mut hits = Vec::new();
    for nic in &model.machine.nics {
        let Some((now, most)) = nic.channels.get("combined").filter(|(now, most)| now.value < *most) else { continue };
        let of_this =
            model.machine.irqs.iter().filter(|irq| model.machine.nic_of(irq).is_some_and(|of| of.name == nic.name));
        // One look has sums since boot.
        let cpus = of_this.flat_map(|irq| match irq.per_s.is_empty() {
            false => irq.per_s.keys().copied().collect::<Vec<_>>(),
            true => irq.counts.iter().filter(|(_, count)| **count > 0).map(|(cpu, _)| *cpu).collect(),
        });
        let full = cpus.filter_map(|cpu| Some((cpu, model.machine.cpu_use.get(&cpu)?.softirq)));
        let Some((cpu, softirq)) =
            full.filter(|(_, softirq)| *softirq > FULL_SOFTIRQ).max_by(|a, b| a.1.total_cmp(&b.1))
        else {
            continue;
        };
        let title = format!(
            "{} uses {} of {} queues, and CPU {cpu} spends {} of its time in softirqs",
            nic.name,
            now.value,
            most,
            percent(softirq)
        );
        let mut hit = Hit::new(&nic.name, Severity::Medium, title)
            .seen(format!("{} of {most} combined queues", now.value), &now.place)
            .seen(format!("softirqs took {} of CPU {cpu}", percent(softirq)), "proc/stat");
        match carriers(model).map(|free| ((*most).min(free.len() as u32), free)) {
            Ok((queues, free)) if queues > now.value => {
                hit = hit.seen(format!("{} may have their interrupts, and have room", cpus_named(&free)), "proc/stat");
                hit.fix.push(format!("ethtool -L {} combined {queues}", quoted(&nic.name)));
                hit.undo.push(format!("ethtool -L {} combined {}", quoted(&nic.name), now.value));
            }
            Ok((_, free)) => hit.fix.push(format!(
                "ethtool -l {}   # no more queues are typed: {} that may have interrupts {} room for one",
                quoted(&nic.name),
                many(free.len() as u64, "CPU"),
                if free.len() == 1 { "has" } else { "have" }
            )),
            Err(why) => {
                hit.fix.push(format!("cat /{DEFAULT_AFFINITY}   # no more queues are typed: {why}"));
            }
        }
        hits.push(hit);
    }
    hits
}

/// CPUs to which interrupts of further queues would come, and that have room for them; else what is not known, or in the way.
fn carriers(model: &Model) -> Result<CpuSet, String> {
    let (machine, bound) = (&model.machine, bound(model));
    let online = &machine.topology.online;
    let may = match machine.setting(DEFAULT_AFFINITY).and_then(CpuSet::parse_mask) {
        Some(mask) => mask.and(online),
        None if bound.is_empty() => online.clone(),
        None => return Err("which CPUs would get their interrupts was not read".to_owned()),
    };
    if may.meets(&bound) {
        let rest = may.without(&bound);
        return Err(format!(
            "their interrupts may come to {} of vCPUs or polling threads; take those out of it first, {} are left",
            cpus_named(&may.and(&bound)),
            cpus_named(&rest)
        ));
    }
    Ok(may.iter().filter(|cpu| machine.cpu_use.get(cpu).is_some_and(|usage| usage.idle > ROOM)).collect())
}
