//! The tables of section `flow`, with the names and columns of CONTRACTS section 3.

use super::measure::{Measures, grouped};
use super::model::{ExitSums, Vcpu};
use crate::Options;
use crate::shared::reasons::Reason;
use crate::shared::state::{DEEPEST, Lv, State};
use base::table::Shown;
use base::{Cell, Column, ColumnType, Histogram, Level, Table};
use std::collections::BTreeMap;

const U64: ColumnType = ColumnType::U64;

/// All tables, in reading order.
pub fn tables(measures: &[Measures<'_>], options: &Options) -> Vec<Table> {
    vec![
        chains(measures, options),
        exits(measures, options),
        exit_details(measures, options),
        preemptors(measures),
        wakeups(measures),
        interrupts(measures),
        vcpus(measures),
        handled(measures, options),
        chain_sequences(measures, options),
        nested_guests(measures),
        losses(measures),
        events(measures),
    ]
}

fn keys() -> Vec<Column> {
    vec![Column::key("vm"), Column::key_of("vcpu", U64)]
}

fn shown(title: &str, columns: &[(&str, &str)], most_rows: usize) -> Option<Shown> {
    let columns = columns.iter().map(|(name, heading)| ((*name).to_owned(), (*heading).to_owned())).collect();
    Some(Shown { title: title.to_owned(), columns, most_rows, bar: None })
}

fn each_vcpu<'m>(measures: &'m [Measures<'m>]) -> impl Iterator<Item = (&'m Measures<'m>, &'m Vcpu)> {
    measures.iter().flat_map(|measure| measure.vcpus.iter().map(move |vcpu| (measure, *vcpu)))
}

/// State columns: (column, state) of one level each, then the rest; irq and softirq among them.
fn state_columns(deepest: u8) -> Vec<(String, Vec<State>)> {
    let levels = |what: &str, state: fn(Lv) -> State| {
        let mut columns: Vec<(String, Vec<State>)> =
            (1..=deepest).map(|depth| (format!("{what}_l{depth}_ns"), vec![state(Lv::At(depth))])).collect();
        columns.push((format!("{what}_unknown_level_ns"), [Lv::Early, Lv::Asked, Lv::Lost].map(state).to_vec()));
        columns
    };
    let mut columns = levels("guest", State::Guest);
    columns.extend(levels("handling", State::Handling));
    let plain = [
        ("userspace_ns", State::Userspace),
        ("irq_ns", State::Irq),
        ("softirq_ns", State::Softirq),
        ("nmi_ns", State::Nmi),
        ("halt_poll_ns", State::HaltPoll),
        ("halted_ns", State::Halted),
        ("wake_delay_ns", State::WakeDelay),
        ("preempted_ns", State::Preempted),
        ("blocked_ns", State::Blocked),
        ("unknown_ns", State::Unknown),
    ];
    columns.extend(plain.map(|(name, state)| (name.to_owned(), vec![state])));
    columns
}

/// Where each vCPU's time went. The columns' levels are counted from the recorded machine of each part.
fn vcpus(measures: &[Measures<'_>]) -> Table {
    let base = |measure: &Measures<'_>| if let Level::At(base) = measure.part.level { base } else { 0 };
    let used = |vcpu: &Vcpu, depth: u8| {
        vcpu.sums.ns(State::Guest(Lv::At(depth))) + vcpu.sums.ns(State::Handling(Lv::At(depth))) > 0
    };
    let deepest = each_vcpu(measures)
        .filter_map(|(measure, vcpu)| (1..=DEEPEST).rev().find(|d| used(vcpu, *d)).map(|d| d + base(measure)))
        .max()
        .unwrap_or(2)
        .max(2);
    let states = state_columns(deepest);
    let mut columns = keys();
    columns.push(Column::key_of("tid", ColumnType::I64));
    columns.push(Column::value("wall_ns", "ns", U64));
    columns.extend(states.iter().map(|(name, _)| Column::value(name, "ns", U64)));
    columns.push(Column::value("exits", "count", U64));
    columns.push(Column::value("clipped", "count", U64));
    let mut table = Table::new("vcpus", columns);
    for (measure, vcpu) in each_vcpu(measures) {
        let wall_ns = vcpu.sums.wall_ns();
        let mut row: Vec<Cell> = vec![vcpu.vm.as_str().into(), u64::from(vcpu.vcpu).into(), Cell::I64(vcpu.tid.into())];
        row.push(wall_ns.into());
        // A trace recorded inside L1 sees as its own level 1 what is level 2 for everybody.
        let shift = |state: State| match state {
            State::Guest(Lv::At(depth)) => depth.checked_sub(base(measure)).map(|own| State::Guest(Lv::At(own))),
            State::Handling(Lv::At(depth)) => depth.checked_sub(base(measure)).map(|own| State::Handling(Lv::At(own))),
            other => Some(other),
        };
        let own = |state: &State| match shift(*state) {
            Some(State::Guest(Lv::At(0)) | State::Handling(Lv::At(0))) | None => 0,
            Some(state) => vcpu.sums.ns(state),
        };
        row.extend(states.iter().map(|(_, states)| Cell::U64(states.iter().map(own).sum())));
        row.push(vcpu.sums.exit_count().into());
        let unfinished = |sums: &ExitSums| sums.count - sums.cost_ns.count();
        row.push(vcpu.sums.exits.values().map(unfinished).sum::<u64>().into());
        table.push(row);
    }
    table
}

/// Exits of a vCPU by level and name; codes of one name (VMX 31 and 32 are both MSR) are one row.
fn by_name<'v>(
    measure: &Measures<'_>,
    vcpu: &'v Vcpu,
    options: &Options,
) -> BTreeMap<(Level, String), Vec<&'v ExitSums>> {
    let mut rows: BTreeMap<(Level, String), Vec<&ExitSums>> = BTreeMap::new();
    for ((level, reason), sums) in &vcpu.sums.exits {
        let level = measure.part.level_of(*level);
        if options.level.is_none_or(|wanted| wanted == level) {
            rows.entry((level, reason.name())).or_default().push(sums);
        }
    }
    rows
}

fn quantiles(histogram: &Histogram) -> [Cell; 3] {
    [0.5, 0.9, 0.99].map(|q| histogram.quantile(q).into())
}

fn merged<'h>(histograms: impl Iterator<Item = &'h Histogram>) -> Histogram {
    histograms.fold(Histogram::new(), |mut all, one| {
        all.merge(one);
        all
    })
}

fn exits(measures: &[Measures<'_>], options: &Options) -> Table {
    let mut columns = keys();
    columns.extend([Column::key("level"), Column::key("reason"), Column::value("count", "count", U64)]);
    let costs = ["total_ns", "p50_ns", "p90_ns", "p99_ns", "max_ns"];
    columns.extend(costs.map(|name| Column::value(name, "ns", U64)));
    let mut table = Table::new("exits", columns);
    for (measure, vcpu) in each_vcpu(measures) {
        let mut rows: Vec<_> = by_name(measure, vcpu, options).into_iter().collect();
        rows.sort_by_key(|((level, _), sums)| {
            (*level, std::cmp::Reverse(sums.iter().map(|sums| sums.count).sum::<u64>()))
        });
        for ((level, reason), sums) in rows {
            let costs = merged(sums.iter().map(|sums| &sums.cost_ns));
            let count: u64 = sums.iter().map(|sums| sums.count).sum();
            let mut row: Vec<Cell> = vec![vcpu.vm.as_str().into(), u64::from(vcpu.vcpu).into()];
            row.extend([level.to_string().into(), reason.into(), count.into(), costs.sum().into()]);
            row.extend(quantiles(&costs));
            row.push((costs.count() > 0).then(|| costs.max()).into());
            table.push(row);
        }
    }
    let columns = [
        ("vm", "vm"),
        ("vcpu", "vcpu"),
        ("level", "level"),
        ("reason", "reason"),
        ("count", "exits"),
        ("total_ns", "total"),
        ("p50_ns", "p50"),
        ("p99_ns", "p99"),
        ("max_ns", "max"),
    ];
    table.shown = shown("Exits", &columns, 40).map(|shown| Shown { bar: Some("count".into()), ..shown });
    table
}

fn exit_details(measures: &[Measures<'_>], options: &Options) -> Table {
    let mut columns = keys();
    columns.extend([Column::key("level"), Column::key("reason"), Column::key("detail")]);
    columns.extend([Column::value("count", "count", U64), Column::value("total_ns", "ns", U64)]);
    let mut table = Table::new("exit_details", columns);
    for (measure, vcpu) in each_vcpu(measures) {
        for ((level, reason), sums) in by_name(measure, vcpu, options) {
            let mut rows: BTreeMap<String, (u64, u64)> = BTreeMap::new();
            for (detail, (count, total_ns)) in sums.iter().flat_map(|sums| &sums.details) {
                let row = rows.entry(detail.text()).or_default();
                *row = (row.0 + count, row.1 + total_ns);
            }
            let mut rows: Vec<_> = rows.into_iter().collect();
            rows.sort_by_key(|(_, (count, _))| std::cmp::Reverse(*count));
            for (detail, (count, total_ns)) in rows {
                table.push(vec![
                    vcpu.vm.as_str().into(),
                    u64::from(vcpu.vcpu).into(),
                    level.to_string().into(),
                    reason.as_str().into(),
                    detail.into(),
                    count.into(),
                    total_ns.into(),
                ]);
            }
        }
    }
    table.rows.sort_by_key(|row| match (&row[0], &row[1], &row[5]) {
        (Cell::Text(vm), Cell::U64(vcpu), Cell::U64(count)) => (vm.clone(), *vcpu, std::cmp::Reverse(*count)),
        _ => (String::new(), 0, std::cmp::Reverse(0)),
    });
    let columns = [
        ("vm", "vm"),
        ("vcpu", "vcpu"),
        ("level", "level"),
        ("reason", "reason"),
        ("detail", "about"),
        ("count", "exits"),
        ("total_ns", "total"),
    ];
    table.shown = shown("What exits were about", &columns, 12);
    table
}

fn chains(measures: &[Measures<'_>], options: &Options) -> Table {
    let mut columns = vec![Column::key("vm"), Column::key("reason")];
    columns.extend(["count", "censored", "interrupted"].map(|name| Column::value(name, "count", U64)));
    columns.extend(["exits_p50", "exits_p90", "exits_p99"].map(|name| Column::value(name, "count", U64)));
    columns.push(Column::value("exits_mean", "", ColumnType::F64));
    columns.push(Column::value("total_ns", "ns", U64));
    let mut table = Table::new("chains", columns);
    if options.level.is_some_and(|level| level != Level::L2) {
        return table;
    }
    let mut rows: BTreeMap<(&str, String), Vec<&super::model::ChainSums>> = BTreeMap::new();
    for (_, vcpu) in each_vcpu(measures) {
        for (reason, sums) in &vcpu.sums.chains {
            rows.entry((&vcpu.vm, reason.name())).or_default().push(sums);
        }
    }
    let mut rows: Vec<_> = rows.into_iter().collect();
    rows.sort_by_key(|((vm, _), sums)| (*vm, std::cmp::Reverse(sums.iter().map(|sums| sums.count).sum::<u64>())));
    for ((vm, reason), sums) in rows {
        let exits = merged(sums.iter().map(|sums| &sums.exits));
        let sum = |of: fn(&super::model::ChainSums) -> u64| Cell::U64(sums.iter().map(|sums| of(sums)).sum());
        let mut row: Vec<Cell> = vec![vm.into(), reason.into()];
        row.extend([sum(|sums| sums.count), sum(|sums| sums.censored), sum(|sums| sums.interrupted)]);
        row.extend(quantiles(&exits));
        row.push(exits.mean().into());
        row.push(sum(|sums| sums.cost_ns.sum()));
        table.push(row);
    }
    let columns = [
        ("vm", "vm"),
        ("reason", "reason of L2's exit"),
        ("count", "chains"),
        ("exits_p50", "p50"),
        ("exits_p90", "p90"),
        ("exits_p99", "p99"),
        ("exits_mean", "mean"),
        ("interrupted", "L1 halted"),
        ("total_ns", "total"),
    ];
    table.shown = shown("Chains: how many exits of L1 one exit of L2 costs", &columns, 20);
    table
}

fn chain_sequences(measures: &[Measures<'_>], options: &Options) -> Table {
    let mut columns = vec![Column::key("vm"), Column::key("reason"), Column::key("sequence")];
    columns.extend([Column::value("exits", "count", U64), Column::value("count", "count", U64)]);
    let mut table = Table::new("chain_sequences", columns);
    if options.level.is_some_and(|level| level != Level::L2) {
        return table;
    }
    let mut rows: BTreeMap<(&str, Reason, &[Reason]), u64> = BTreeMap::new();
    for (_, vcpu) in each_vcpu(measures) {
        for (reason, sums) in &vcpu.sums.chains {
            for (sequence, count) in &sums.sequences {
                *rows.entry((&vcpu.vm, *reason, sequence)).or_default() += count;
            }
        }
    }
    let mut rows: Vec<_> = rows.into_iter().collect();
    rows.sort_by_key(|((vm, ..), count)| (*vm, std::cmp::Reverse(*count)));
    rows.truncate(MOST_SEQUENCES);
    for ((vm, reason, sequence), count) in rows {
        let name = |(name, times): (String, usize)| if times == 1 { name } else { format!("{name} x{times}") };
        let text: Vec<String> = grouped(sequence).into_iter().map(name).collect();
        table.push(vec![
            vm.into(),
            reason.name().into(),
            text.join(", ").into(),
            (sequence.len() as u64).into(),
            count.into(),
        ]);
    }
    let columns =
        [("vm", "vm"), ("reason", "reason"), ("count", "chains"), ("exits", "exits"), ("sequence", "what L1 did")];
    table.shown = shown("Chains: what L1 did in the most frequent ones", &columns, 8);
    table
}

/// Sequences kept in the table, most frequent first.
const MOST_SEQUENCES: usize = 200;

fn handled(measures: &[Measures<'_>], options: &Options) -> Table {
    let mut columns = keys();
    columns.extend([Column::key("level"), Column::key("reason")]);
    columns.extend(["kernel", "userspace", "reflected"].map(|name| Column::value(name, "count", U64)));
    let mut table = Table::new("handled_by", columns);
    for (measure, vcpu) in each_vcpu(measures) {
        for ((level, reason), sums) in by_name(measure, vcpu, options) {
            let by = |who: usize| Cell::U64(sums.iter().map(|sums| sums.handled[who]).sum());
            let mut row: Vec<Cell> = vec![vcpu.vm.as_str().into(), u64::from(vcpu.vcpu).into()];
            row.extend([level.to_string().into(), reason.into(), by(0), by(1), by(2)]);
            table.push(row);
        }
    }
    table
}

fn preemptors(measures: &[Measures<'_>]) -> Table {
    let mut columns = keys();
    columns.extend([Column::key("by"), Column::key_of("by_tid", ColumnType::I64)]);
    columns.extend([Column::value("count", "count", U64)]);
    columns.extend(["total_ns", "max_ns"].map(|name| Column::value(name, "ns", U64)));
    let mut table = Table::new("preemptors", columns);
    for (measure, vcpu) in each_vcpu(measures) {
        let mut rows: Vec<_> = vcpu.sums.preemptors.iter().collect();
        rows.sort_by_key(|(_, sums)| std::cmp::Reverse(sums.total_ns));
        for (tid, sums) in rows {
            table.push(vec![
                vcpu.vm.as_str().into(),
                u64::from(vcpu.vcpu).into(),
                task_name(measure, *tid).into(),
                Cell::I64((*tid).into()),
                sums.count.into(),
                sums.total_ns.into(),
                sums.max_ns.into(),
            ]);
        }
    }
    let columns = [
        ("vm", "vm"),
        ("vcpu", "vcpu"),
        ("by", "by"),
        ("by_tid", "tid"),
        ("count", "times"),
        ("total_ns", "total"),
        ("max_ns", "longest"),
    ];
    table.shown = shown("Who ran while a vCPU stood ready", &columns, 8);
    table
}

/// Name of a task; thread 0 of every CPU is its idle task.
pub fn task_name(measure: &Measures<'_>, tid: i32) -> String {
    match measure.part.comms.get(&tid) {
        Some(name) => name.clone(),
        None if tid == 0 => "idle".into(),
        None => "unknown".into(),
    }
}

fn wakeups(measures: &[Measures<'_>]) -> Table {
    let mut columns = keys();
    columns.push(Column::value("count", "count", U64));
    for what in ["run", "entry"] {
        columns.extend(["p50", "p99", "max"].map(|q| Column::value(&format!("to_{what}_{q}_ns"), "ns", U64)));
    }
    let mut table = Table::new("wakeups", columns);
    for (_, vcpu) in each_vcpu(measures) {
        let (run, entry) = (&vcpu.sums.wake_to_run, &vcpu.sums.wake_to_entry);
        if run.count() == 0 {
            continue;
        }
        let mut row: Vec<Cell> = vec![vcpu.vm.as_str().into(), u64::from(vcpu.vcpu).into(), run.count().into()];
        for histogram in [run, entry] {
            let max = (histogram.count() > 0).then(|| histogram.max());
            row.extend([histogram.quantile(0.5).into(), histogram.quantile(0.99).into(), max.into()]);
        }
        table.push(row);
    }
    let columns = [
        ("vm", "vm"),
        ("vcpu", "vcpu"),
        ("count", "wake-ups"),
        ("to_run_p50_ns", "to run p50"),
        ("to_run_p99_ns", "p99"),
        ("to_entry_p50_ns", "to guest p50"),
        ("to_entry_p99_ns", "p99"),
        ("to_entry_max_ns", "max"),
    ];
    table.shown = shown("Wake-ups: from made ready to running, and to the guest", &columns, 16);
    table
}

fn interrupts(measures: &[Measures<'_>]) -> Table {
    let mut columns = keys();
    columns.extend([Column::key_of("vector", U64), Column::value("count", "count", U64)]);
    for what in ["inject", "entry"] {
        columns.extend(["p50", "p99", "max"].map(|q| Column::value(&format!("to_{what}_{q}_ns"), "ns", U64)));
    }
    let mut table = Table::new("interrupts", columns);
    for (_, vcpu) in each_vcpu(measures) {
        let mut rows: Vec<_> = vcpu.sums.interrupts.iter().collect();
        rows.sort_by_key(|(_, sums)| std::cmp::Reverse(sums.to_entry_ns.count()));
        for (vector, sums) in rows {
            let mut row: Vec<Cell> = vec![vcpu.vm.as_str().into(), u64::from(vcpu.vcpu).into()];
            row.extend([u64::from(*vector).into(), sums.to_entry_ns.count().into()]);
            for histogram in [&sums.to_inject_ns, &sums.to_entry_ns] {
                row.extend([histogram.quantile(0.5).into(), histogram.quantile(0.99).into(), histogram.max().into()]);
            }
            table.push(row);
        }
    }
    let columns = [
        ("vm", "vm"),
        ("vcpu", "vcpu"),
        ("vector", "vector"),
        ("count", "interrupts"),
        ("to_inject_p50_ns", "injected p50"),
        ("to_entry_p50_ns", "in guest p50"),
        ("to_entry_p99_ns", "p99"),
        ("to_entry_max_ns", "max"),
    ];
    table.shown = shown("Virtual interrupts: from accepted by the APIC to the guest", &columns, 8);
    table
}

fn nested_guests(measures: &[Measures<'_>]) -> Table {
    let mut columns = vec![Column::key("vm"), Column::key("control_block"), Column::key("level")];
    columns.extend(["vcpus", "entries"].map(|name| Column::value(name, "count", U64)));
    let mut table = Table::new("nested_guests", columns);
    let mut guests: BTreeMap<(&str, u64), (Level, u64, u64)> = BTreeMap::new();
    for (measure, vcpu) in each_vcpu(measures) {
        for context in &vcpu.contexts {
            let level = measure.part.level_of(Lv::At(context.depth));
            let row = guests.entry((&vcpu.vm, context.vmcb)).or_insert((level, 0, 0));
            *row = (row.0.max(level), row.1 + 1, row.2 + context.entries);
        }
    }
    for ((vm, vmcb), (level, vcpus, entries)) in guests {
        table.push(vec![
            vm.into(),
            format!("{vmcb:#x}").into(),
            level.to_string().into(),
            vcpus.into(),
            entries.into(),
        ]);
    }
    table
}

fn losses(measures: &[Measures<'_>]) -> Table {
    let mut columns = vec![Column::key("part"), Column::key_of("cpu", U64), Column::key("kind")];
    columns.extend([Column::value("count", "count", U64), Column::value("bytes", "bytes", U64)]);
    let mut table = Table::new("losses", columns);
    for measure in measures {
        for loss in &measure.part.losses {
            let cpu = loss.cpu.map(u64::from);
            table.push(vec![
                measure.part.path.as_str().into(),
                cpu.into(),
                loss.kind.as_str().into(),
                loss.count.into(),
                loss.bytes.into(),
            ]);
        }
    }
    let columns = [("part", "part"), ("cpu", "CPU"), ("kind", "what"), ("count", "how many"), ("bytes", "bytes")];
    table.shown = shown("What is missing", &columns, 12);
    table
}

fn events(measures: &[Measures<'_>]) -> Table {
    let columns = vec![Column::key("part"), Column::key("event"), Column::value("count", "count", U64)];
    let mut table = Table::new("events", columns);
    for measure in measures {
        for (name, count) in &measure.part.tally {
            table.push(vec![measure.part.path.as_str().into(), name.as_str().into(), (*count).into()]);
        }
    }
    if measures.iter().all(|measure| measure.vcpus.is_empty()) {
        table.shown = shown("Events in the trace", &[("part", "part"), ("event", "event"), ("count", "events")], 30);
    }
    table
}
