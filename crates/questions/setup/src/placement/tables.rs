//! The tables of the answer: threads, CPUs, and what is proposed.

use super::host::HOST;
use super::hypotheses::HYPOTHESES;
use super::model::Model;
use super::preemptors::PREEMPTORS;
use super::rivals::RIVALS;
use base::{Cell, Table, TableSpec, shown, table};

/// All tables of this question, in reading order.
pub const TABLES: &[&TableSpec] =
    &[&RIVALS, &HYPOTHESES, &HOST, &PROPOSAL, &PLANS, &THREADS, &CPUS, &DOMAIN_XML, &PREEMPTORS];

/// Every thread of a VM: where it may run, what it ran, what it waited.
pub const THREADS: TableSpec = table! {
    placement.threads version 2:
    "One thread of a VM: where it may run, and what share of the time between two samples it ran and waited.";
    key machine, key vm, key role, key_i64("") tid, text cpus, share run_share, share wait_share, share starvation,
    u64("") last_cpu, flag assumed, text place, text comm;
    shown![
        "Threads", 24;
        vm: "VM", role: "thread", comm: "name", tid: "id", cpus: "may run on", run_share: "ran", wait_share: "waited",
    ]
};

/// Every CPU, and which threads of VMs may run there.
pub const CPUS: TableSpec = table! {
    placement.cpus version 2:
    "One CPU: its core, node and package, the lowest CPU that shares its last-level cache, which threads of VMs are bound to it, \
          and how it was used between two samples.";
    key machine, key_u64("") cpu, u64("") core, u64("") node, text threads, share busy, share softirq, share steal,
    u64("") package, u64("") last_cache;
};

/// Placements to choose from: every thread and interrupt of each, why it is there, what it would get.
pub const PROPOSAL: TableSpec = table! {
    placement.proposal version 2:
    "Where one proposed placement puts one thread or interrupt, why, and what share of a CPU the model gives it there.";
    key machine, key_u64("") rank, key thread, text cpus, text why, text predicted, text vm, share share_now,
    share share_then, text command, text undo, text idea;
    shown![
        "Placements to choose from", 24;
        rank: "#", thread, cpus: "on", why, predicted: "CPU use, modelled",
    ]
};

/// The plans with their scores, what holds now and what was rejected among them.
pub(crate) const PLANS: TableSpec = table! {
    placement.plans version 3:
    "The modelled score of one placement and the prices it is the sum of; the placement of today is one of them.";
    key machine, key_u64("") rank, text idea, f64("") score, f64("") shortfall, f64("") remote, f64("") strangers,
    f64("") shared, f64("") moved, count commands, f64("") effect, text verdict, f64("") missing, f64("") starved,
    f64("") interrupted, f64("") exposed, f64("") disturbed, f64("") spread, f64("") reserved, f64("") apart, f64("") crowded;
    shown![
        "Scores, modelled", 10;
        rank: "#", idea: "placement", commands, effect: "points per command", missing: "CPUs short",
        score: "score (lower is better)", verdict,
    ]
};

/// The elements of each domain's definition under each placement that is shown.
pub(crate) const DOMAIN_XML: TableSpec = table! {
    placement.domain_xml version 2: "The elements of one VM's libvirt definition under one proposed placement.";
    key machine, key_u64("") rank, key vm, text xml;
};

/// Table [`THREADS`].
pub fn threads(models: &[Model]) -> Table {
    let mut table = Table::new(&THREADS);
    for model in models {
        for thread in &model.machine.threads {
            table.push(vec![
                model.id.as_str().into(),
                Cell::from(thread.vm.clone()),
                thread.role.to_string().into(),
                thread.tid.map_or(Cell::Missing, |tid| Cell::I64(tid.into())),
                thread.affinity.as_ref().map(|set| set.value.to_string()).into(),
                thread.run_share.as_ref().map(|run| run.value).into(),
                thread.wait_share.as_ref().map(|wait| wait.value).into(),
                thread.starvation().into(),
                thread.last_cpu.as_ref().map(|cpu| u64::from(cpu.value)).into(),
                thread.assumed.into(),
                thread.affinity.as_ref().map(|set| set.place.clone()).into(),
                Some(thread.name.as_str()).filter(|name| !name.is_empty()).into(),
            ]);
        }
    }
    table
}

/// Table [`CPUS`].
pub fn cpus(models: &[Model]) -> Table {
    let mut table = Table::new(&CPUS);
    for model in models {
        let several = model.machine.domains.len() > 1;
        for (cpu, about) in &model.machine.topology.cpus {
            let usage = model.machine.cpu_use.get(cpu);
            table.push(vec![
                model.id.as_str().into(),
                Cell::U64((*cpu).into()),
                Cell::U64(about.core.into()),
                about.node.map(u64::from).into(),
                on_cpu(model, *cpu, several).into(),
                usage.map(|usage| usage.busy).into(),
                usage.map(|usage| usage.softirq).into(),
                usage.map(|usage| usage.steal).into(),
                about.package.map(u64::from).into(),
                about.last_cache.map(u64::from).into(),
            ]);
        }
    }
    table
}

/// Threads that are bound to a CPU or to a set with it, vhost workers counted.
pub fn on_cpu(model: &Model, cpu: u32, several: bool) -> String {
    let online = &model.machine.topology.online;
    let mut names: Vec<(String, usize)> = Vec::new();
    for thread in &model.machine.threads {
        let bound =
            thread.affinity.as_ref().is_some_and(|set| set.value.contains(cpu) && !online.is_within(&set.value));
        if !bound {
            continue;
        }
        let vm = thread.vm.as_deref().filter(|_| several).map_or(String::new(), |vm| format!("{vm} "));
        let name = format!("{vm}{}", thread.role);
        match names.iter_mut().find(|(known, _)| *known == name) {
            Some((_, count)) => *count += 1,
            None => names.push((name, 1)),
        }
    }
    let words = names.into_iter().map(|(name, count)| if count > 1 { format!("{count} {name}") } else { name });
    words.collect::<Vec<_>>().join(", ")
}

/// Table [`PROPOSAL`].
pub fn proposal(models: &[Model]) -> Table {
    let mut table = Table::new(&PROPOSAL);
    for model in models {
        let proposal = &model.proposal;
        let Some(now) = proposal.now() else { continue };
        for (rank, plan) in proposal.better().into_iter().enumerate() {
            for (unit, subject) in proposal.subjects.iter().enumerate() {
                let (before, after) = (now.shares[unit], plan.shares[unit]);
                let direction = match after - before {
                    change if change > 0.01 => "up",
                    change if change < -0.01 => "down",
                    _ => "same",
                };
                let changes = proposal.changes(plan, unit);
                let commands = |lines: Vec<String>| (!lines.is_empty()).then(|| lines.join("; "));
                table.push(vec![
                    model.id.as_str().into(),
                    Cell::U64(rank as u64 + 1),
                    proposal.name(unit).into(),
                    plan.places[unit].to_string().into(),
                    proposal.why(plan, unit).into(),
                    format!("{direction}, {before:.2} to {after:.2}").into(),
                    (!subject.vm.is_empty()).then(|| subject.vm.clone()).into(),
                    before.into(),
                    after.into(),
                    commands(changes.iter().map(base::Change::command).collect()).into(),
                    commands(changes.iter().map(base::Change::undo_or_why).collect()).into(),
                    plan.idea.as_str().into(),
                ]);
            }
        }
    }
    table
}

/// Table [`PLANS`].
pub fn plans(models: &[Model]) -> Table {
    let mut table = Table::new(&PLANS);
    for model in models {
        for (rank, plan) in model.proposal.plans.iter().enumerate() {
            let score = &plan.score;
            table.push(vec![
                model.id.as_str().into(),
                Cell::U64(rank as u64 + 1),
                plan.idea.as_str().into(),
                score.total.into(),
                score.shortfall.into(),
                score.remote.into(),
                score.strangers.into(),
                score.shared.into(),
                score.moved.into(),
                Cell::U64(plan.commands.into()),
                plan.effect.into(),
                model.proposal.verdict(plan).into(),
                model.proposal.missing(plan).into(),
                score.starved.into(),
                score.interrupted.into(),
                score.exposed.into(),
                score.disturbed.into(),
                score.spread.into(),
                score.reserved.into(),
                score.apart.into(),
                score.crowded.into(),
            ]);
        }
    }
    table
}

/// A domain under a placement, as elements of libvirt's XML.
pub struct Definition<'m> {
    /// Rank of the placement, 1 for the first.
    pub rank: u64,
    pub vm: &'m str,
    pub xml: String,
    pub machine: &'m str,
}

/// Every domain under every placement that is better than the present one.
pub fn definitions(models: &[Model]) -> impl Iterator<Item = Definition<'_>> {
    models.iter().flat_map(|model| {
        let better = model.proposal.better().into_iter().zip(1..);
        better.flat_map(move |(plan, rank)| {
            let definition =
                move |domain: &'_ host::machine::Domain| super::proposal::domain_xml(&model.proposal, plan, domain);
            model.machine.domains.iter().map(move |domain| Definition {
                rank,
                vm: &domain.name,
                xml: definition(domain),
                machine: &model.id,
            })
        })
    })
}

/// Table [`DOMAIN_XML`].
pub fn domain_xml(models: &[Model]) -> Table {
    let mut table = Table::new(&DOMAIN_XML);
    for Definition { machine, rank, vm, xml } in definitions(models) {
        table.push(vec![machine.into(), Cell::U64(rank), vm.into(), xml.into()]);
    }
    table
}
