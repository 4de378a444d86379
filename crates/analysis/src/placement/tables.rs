//! The tables of the answer: threads, CPUs, and what is proposed.

use super::model::Model;
use base::table::Shown;
use base::{Cell, Column, ColumnType, Table};

const TEXT: ColumnType = ColumnType::Text;

fn shown(title: &str, columns: &[(&str, &str)], most_rows: usize) -> Option<Shown> {
    let columns = columns.iter().map(|(name, heading)| ((*name).to_owned(), (*heading).to_owned())).collect();
    Some(Shown { title: title.to_owned(), columns, most_rows, ..Shown::default() })
}

/// Every thread of a VM: where it may run, what it ran, what it waited.
pub fn threads(models: &[Model]) -> Table {
    let share = |name: &str| Column::value(name, "share", ColumnType::F64);
    let columns = vec![
        Column::key("vm"),
        Column::key("role"),
        Column::key_of("tid", ColumnType::I64),
        Column::value("cpus", "", TEXT),
        share("run_share"),
        share("wait_share"),
        share("starvation"),
        Column::value("last_cpu", "", ColumnType::U64),
        Column::value("assumed", "", ColumnType::Bool),
        Column::value("place", "", TEXT),
        Column::key("machine"),
        Column::value("comm", "", TEXT),
    ];
    let mut table = Table::new("threads", columns);
    for model in models {
        for thread in &model.machine.threads {
            table.push(vec![
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
                model.id.as_str().into(),
                Some(thread.name.as_str()).filter(|name| !name.is_empty()).into(),
            ]);
        }
    }
    let columns = [
        ("vm", "VM"),
        ("role", "thread"),
        ("comm", "name"),
        ("tid", "id"),
        ("cpus", "may run on"),
        ("run_share", "ran"),
        ("wait_share", "waited"),
    ];
    table.shown = shown("Threads", &columns, 24);
    table
}

/// Every CPU, and which threads of VMs may run there.
pub fn cpus(models: &[Model]) -> Table {
    let number = |name: &str| Column::value(name, "", ColumnType::U64);
    let share = |name: &str| Column::value(name, "share", ColumnType::F64);
    let columns = vec![
        Column::key_of("cpu", ColumnType::U64),
        number("core"),
        number("node"),
        Column::value("threads", "", TEXT),
        share("busy"),
        share("softirq"),
        share("steal"),
        Column::key("machine"),
    ];
    let mut table = Table::new("cpus", columns);
    for model in models {
        let several = model.machine.domains.len() > 1;
        for (cpu, about) in &model.machine.topology.cpus {
            let usage = model.machine.cpu_use.get(cpu);
            table.push(vec![
                Cell::U64((*cpu).into()),
                Cell::U64(about.core.into()),
                about.node.map(u64::from).into(),
                on_cpu(model, *cpu, several).into(),
                usage.map(|usage| usage.busy).into(),
                usage.map(|usage| usage.softirq).into(),
                usage.map(|usage| usage.steal).into(),
                model.id.as_str().into(),
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

/// Placements to choose from: every thread and interrupt of each, why it is there, what it would get.
pub fn proposal(models: &[Model]) -> Table {
    let share = |name: &str| Column::value(name, "share", ColumnType::F64);
    let text = |name: &str| Column::value(name, "", TEXT);
    let columns = vec![
        Column::key_of("rank", ColumnType::U64),
        Column::key("thread"),
        text("cpus"),
        text("why"),
        text("predicted"),
        text("vm"),
        share("share_now"),
        share("share_then"),
        text("command"),
        text("undo"),
        text("idea"),
        Column::key("machine"),
    ];
    let mut table = Table::new("proposal", columns);
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
                    plan.idea.into(),
                    model.id.as_str().into(),
                ]);
            }
        }
    }
    let columns =
        [("rank", "#"), ("thread", "thread"), ("cpus", "on"), ("why", "why"), ("predicted", "CPU use, modelled")];
    table.shown = shown("Placements to choose from", &columns, 24);
    table
}

/// The plans with their scores, what holds now and what was rejected among them.
pub fn plans(models: &[Model]) -> Table {
    let price = |name: &str| Column::value(name, "", ColumnType::F64);
    let columns = vec![
        Column::key_of("rank", ColumnType::U64),
        Column::value("idea", "", TEXT),
        price("score"),
        price("shortfall"),
        price("remote"),
        price("strangers"),
        price("shared"),
        price("moved"),
        Column::value("commands", "count", ColumnType::U64),
        price("effect"),
        Column::value("verdict", "", TEXT),
        price("missing"),
        price("starved"),
        price("interrupted"),
        price("exposed"),
        price("disturbed"),
        price("spread"),
        price("reserved"),
        Column::key("machine"),
    ];
    let mut table = Table::new("plans", columns);
    for model in models {
        for (rank, plan) in model.proposal.plans.iter().enumerate() {
            let score = &plan.score;
            table.push(vec![
                Cell::U64(rank as u64 + 1),
                plan.idea.into(),
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
                model.id.as_str().into(),
            ]);
        }
    }
    let columns = [
        ("rank", "#"),
        ("idea", "placement"),
        ("commands", "commands"),
        ("effect", "points per command"),
        ("missing", "CPUs short"),
        ("score", "score (lower is better)"),
        ("verdict", "verdict"),
    ];
    table.shown = shown("Scores, modelled", &columns, 10);
    table
}

/// A domain under a placement, as elements of libvirt's XML.
pub struct Definition<'m> {
    /// Rank of the placement, 1 for the first.
    pub rank: u64,
    /// The domain.
    pub vm: &'m str,
    /// Its elements.
    pub xml: String,
    /// The machine it runs on.
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

/// The elements of each domain's definition under each placement that is shown.
pub fn domain_xml(models: &[Model]) -> Table {
    let columns = vec![
        Column::key_of("rank", ColumnType::U64),
        Column::key("vm"),
        Column::value("xml", "", TEXT),
        Column::key("machine"),
    ];
    let mut table = Table::new("domain_xml", columns);
    for Definition { rank, vm, xml, machine } in definitions(models) {
        table.push(vec![Cell::U64(rank), vm.into(), xml.into(), machine.into()]);
    }
    table
}
