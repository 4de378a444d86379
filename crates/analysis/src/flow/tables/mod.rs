//! The tables of section `flow`, with the names and columns of CONTRACTS section 3.

mod aligned;
mod bins;
mod nested;
mod overview;
mod profile;
mod waits;

pub use profile::stacks as sampled_stacks;

use crate::Options;
use crate::facts::ledger::measure::Measures;
use crate::facts::ledger::model::{ExitSums, Vcpu};
use crate::facts::state::{DEEPEST, State, TracedLevel};
use base::table::Shown;
use base::{Cell, Column, ColumnType, Histogram, Level, Table, parallel};
use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

const U64: ColumnType = ColumnType::U64;

/// All tables, in reading order.
pub fn tables(measures: &[Measures<'_>], options: &Options) -> Vec<Table> {
    let makers: &[&(dyn Fn() -> Table + Sync)] = &[
        &|| overview::vms(measures),
        &|| overview::reasons(measures),
        &|| overview::worst_vcpus(measures),
        &|| nested::chains(measures),
        &|| exits(measures),
        &|| exit_rates(measures),
        &|| bins::exit_bins(measures),
        &|| exit_details(measures),
        &|| waits::preemptors(measures),
        &|| waits::wakeups(measures),
        &|| waits::interrupts(measures),
        &|| vcpus(measures),
        &|| handled(measures),
        &|| nested::chain_sequences(measures),
        &|| nested::chain_exits(measures),
        &|| nested::nested_guests(measures),
        &|| threads(measures),
        &|| losses(measures),
        &|| events(measures),
        &|| aligned::alignment(measures, options),
        &|| aligned::matched_exits(measures, options),
        &|| aligned::exit_sites(measures, options),
        &|| aligned::guest_tasks(measures, options),
        &|| profile::profile(measures, options),
    ];
    let mut tables = parallel::map(makers.len(), |number| makers[number]());
    // An empty table is news only where it says that nothing is missing.
    for table in tables.iter_mut().filter(|table| table.rows.is_empty() && table.name != "losses") {
        table.shown = None;
    }
    let many = measures.iter().any(Measures::is_of_many);
    options.ranking.arrange(&mut tables, many);
    tables
}

fn keys() -> Vec<Column> {
    vec![Column::key("vm"), Column::key_of("vcpu", U64)]
}

fn shown(title: &str, columns: &[(&str, &str)], most_rows: usize) -> Option<Shown> {
    let columns = columns.iter().map(|(name, heading)| ((*name).to_owned(), (*heading).to_owned())).collect();
    Some(Shown { title: title.to_owned(), columns, most_rows, ..Shown::default() })
}

/// Shares are of one machine's trace, so its rows stay together.
fn by_machine(shown: Shown) -> Shown {
    Shown { grouped_by: Some("machine".into()), ..shown }
}

/// True if vCPUs of more than one machine are answered for.
fn of_several_machines(measures: &[Measures<'_>]) -> bool {
    let mut machines = measures.iter().filter(|measure| !measure.vcpus.is_empty()).map(|measure| &measure.part.machine);
    let first = machines.next();
    machines.any(|machine| Some(machine) != first)
}

fn each_vcpu<'m>(measures: &'m [Measures<'m>]) -> impl Iterator<Item = (&'m Measures<'m>, &'m Vcpu)> {
    measures.iter().flat_map(|measure| measure.vcpus.iter().map(move |vcpu| (measure, *vcpu)))
}

/// State columns: (column, its states) of one level each, then the rest; irq and softirq among them. Levels of columns
/// are everybody's; a trace recorded at level `base` sees as its own level 1 what is level `base` + 1 for everybody.
fn state_columns(deepest: u8, base: u8) -> Vec<(String, Vec<State>)> {
    let levels = |what: &str, state: fn(TracedLevel) -> State| {
        let own = |depth: u8| depth.checked_sub(base).filter(|own| (1..=DEEPEST).contains(own));
        let states = |depth| own(depth).map(|own| state(TracedLevel::at(own))).into_iter().collect();
        let mut columns: Vec<(String, Vec<State>)> =
            (1..=deepest).map(|depth| (format!("{what}_l{depth}_ns"), states(depth))).collect();
        columns.push((
            format!("{what}_unknown_level_ns"),
            [TracedLevel::Early, TracedLevel::Asked, TracedLevel::Lost].map(state).to_vec(),
        ));
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
        vcpu.sums.ns(State::Guest(TracedLevel::at(depth))) + vcpu.sums.ns(State::Handling(TracedLevel::at(depth))) > 0
    };
    let deepest = each_vcpu(measures)
        .filter_map(|(measure, vcpu)| (1..=DEEPEST).rev().find(|d| used(vcpu, *d)).map(|d| d + base(measure)))
        .max()
        .unwrap_or(2)
        .max(2);
    let mut columns = keys();
    columns.push(Column::key_of("tid", ColumnType::I64));
    columns.push(Column::value("wall_ns", "ns", U64));
    columns.extend(state_columns(deepest, 0).iter().map(|(name, _)| Column::value(name, "ns", U64)));
    columns.push(Column::value("exits", "count", U64));
    columns.push(Column::value("clipped", "count", U64));
    let mut table = Table::new("vcpus", columns);
    for (measure, vcpu) in each_vcpu(measures) {
        let wall_ns = vcpu.sums.wall_ns();
        let mut row: Vec<Cell> = vec![vcpu.vm.as_str().into(), u64::from(vcpu.vcpu).into(), Cell::I64(vcpu.tid.into())];
        row.push(wall_ns.into());
        let sum = |states: &[State]| Cell::U64(states.iter().map(|state| vcpu.sums.ns(*state)).sum());
        row.extend(state_columns(deepest, base(measure)).iter().map(|(_, states)| sum(states)));
        row.push(measure.exit_count_of(vcpu).into());
        row.push(measure.exits_of(vcpu).map(|(.., sums)| sums.count - sums.cost_ns.count()).sum::<u64>().into());
        table.push(row);
    }
    table
}

/// Exits of a vCPU by level and name; codes of one name (VMX 31 and 32 are both MSR) are one row.
fn by_name<'v>(measure: &Measures<'_>, vcpu: &'v Vcpu) -> BTreeMap<(Level, String), Vec<&'v ExitSums>> {
    let mut rows: BTreeMap<(Level, String), Vec<&ExitSums>> = BTreeMap::new();
    for (level, reason, sums) in measure.exits_of(vcpu) {
        rows.entry((level, reason.name())).or_default().push(sums);
    }
    rows
}

fn quantiles(histogram: &Histogram) -> [Cell; 3] {
    histogram.quantiles([0.5, 0.9, 0.99]).map_or([const { Cell::Missing }; 3], |values| values.map(Cell::from))
}

/// All samples of some distributions; nearly always there is one, which is not copied.
fn merged<'h>(histograms: impl Iterator<Item = &'h Histogram>) -> Cow<'h, Histogram> {
    let all = histograms.map(Cow::Borrowed).reduce(|mut all, one| {
        all.to_mut().merge(&one);
        all
    });
    all.unwrap_or_default()
}

fn exits(measures: &[Measures<'_>]) -> Table {
    let mut columns = keys();
    columns.extend([Column::key("level"), Column::key("reason"), Column::value("count", "count", U64)]);
    let costs = ["total_ns", "p50_ns", "p90_ns", "p99_ns", "max_ns"];
    columns.extend(costs.map(|name| Column::value(name, "ns", U64)));
    columns.extend(["count_share", "time_share"].map(|name| Column::value(name, "share", ColumnType::F64)));
    columns.push(Column::key("machine"));
    let mut table = Table::new("exits", columns);
    // Shares are of all exits of one machine's trace: a guest's own trace holds exits that the host's has as well.
    let whole = |measure: &Measures<'_>| {
        let exits = measure.vcpus.iter().flat_map(|vcpu| by_name(measure, vcpu).into_values().flatten());
        overview::totals(exits)
    };
    let wholes = measures.iter().flat_map(|measure| std::iter::repeat_n(whole(measure), measure.vcpus.len()));
    for ((measure, vcpu), (all_exits, all_ns)) in each_vcpu(measures).zip(wholes) {
        let mut rows: Vec<_> = by_name(measure, vcpu).into_iter().collect();
        rows.sort_by_key(|((level, _), sums)| (*level, Reverse(sums.iter().map(|sums| sums.count).sum::<u64>())));
        for ((level, reason), sums) in rows {
            let costs = merged(sums.iter().map(|sums| &sums.cost_ns));
            let count: u64 = sums.iter().map(|sums| sums.count).sum();
            let mut row: Vec<Cell> = vec![vcpu.vm.as_str().into(), u64::from(vcpu.vcpu).into()];
            row.extend([level.to_string().into(), reason.into(), count.into(), costs.sum().into()]);
            row.extend(quantiles(&costs));
            row.push((costs.count() > 0).then(|| costs.max()).into());
            row.push((all_exits > 0).then(|| count as f64 / all_exits as f64).into());
            row.push((all_ns > 0).then(|| costs.sum() as f64 / all_ns as f64).into());
            row.push(measure.part.machine.as_str().into());
            table.push(row);
        }
    }
    let machine = [("machine", "machine")];
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
    // Of one machine its name is no news.
    let columns = [if of_several_machines(measures) { &machine[..] } else { &[] }, &columns].concat();
    // Beside an overview the worst are enough; a ledger of few vCPUs has all its reasons.
    let most_rows = if measures.iter().any(Measures::is_of_many) { 16 } else { 40 };
    table.shown = shown("Exits", &columns, most_rows).map(by_machine);
    table
}

/// How often, and what share of the vCPU's time: what `exits` tells in relation to the time that was looked at.
fn exit_rates(measures: &[Measures<'_>]) -> Table {
    let mut columns = keys();
    columns.extend([Column::key("level"), Column::key("reason")]);
    columns.push(Column::value("per_second", "exits per second", ColumnType::F64));
    columns.push(Column::value("cpu_share", "share", ColumnType::F64));
    let mut table = Table::new("exit_rates", columns);
    for (measure, vcpu) in each_vcpu(measures) {
        let wall_ns = vcpu.sums.wall_ns().max(1) as f64;
        for ((level, reason), sums) in by_name(measure, vcpu) {
            let count: u64 = sums.iter().map(|sums| sums.count).sum();
            let total_ns: u64 = sums.iter().map(|sums| sums.cost_ns.sum()).sum();
            let mut row: Vec<Cell> = vec![vcpu.vm.as_str().into(), u64::from(vcpu.vcpu).into()];
            row.extend([level.to_string().into(), reason.into()]);
            row.extend([(count as f64 * 1e9 / wall_ns).into(), (total_ns as f64 / wall_ns).into()]);
            table.push(row);
        }
    }
    table
}

fn exit_details(measures: &[Measures<'_>]) -> Table {
    let mut columns = keys();
    columns.extend([Column::key("level"), Column::key("reason"), Column::key("detail")]);
    columns.extend([Column::value("count", "count", U64), Column::value("total_ns", "ns", U64)]);
    let mut table = Table::new("exit_details", columns);
    for (measure, vcpu) in each_vcpu(measures) {
        for ((level, reason), sums) in by_name(measure, vcpu) {
            let mut rows: BTreeMap<String, (u64, u64)> = BTreeMap::new();
            for (detail, (count, total_ns)) in sums.iter().flat_map(|sums| sums.details.iter()) {
                let row = rows.entry(detail.text()).or_default();
                *row = (row.0 + count, row.1 + total_ns);
            }
            let mut rows: Vec<_> = rows.into_iter().collect();
            rows.sort_by_key(|(_, (count, _))| Reverse(*count));
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
    fn most_first(row: &[Cell]) -> Option<(&str, u64, Reverse<u64>)> {
        match (&row[0], &row[1], &row[5]) {
            (Cell::Text(vm), Cell::U64(vcpu), Cell::U64(count)) => Some((vm, *vcpu, Reverse(*count))),
            _ => None,
        }
    }
    table.rows.sort_by(|a, b| most_first(a).cmp(&most_first(b)));
    let columns = [
        ("vm", "vm"),
        ("vcpu", "vcpu"),
        ("level", "level"),
        ("reason", "reason"),
        ("detail", "about"),
        ("count", "exits"),
        ("total_ns", "total"),
    ];
    table.shown = shown("Exit details", &columns, 12);
    table
}

fn handled(measures: &[Measures<'_>]) -> Table {
    let mut columns = keys();
    columns.extend([Column::key("level"), Column::key("reason")]);
    columns.extend(["kernel", "userspace", "reflected"].map(|name| Column::value(name, "count", U64)));
    let mut table = Table::new("handled_by", columns);
    for (measure, vcpu) in each_vcpu(measures) {
        for ((level, reason), sums) in by_name(measure, vcpu) {
            let by = |who: usize| Cell::U64(sums.iter().map(|sums| sums.handled[who]).sum());
            let mut row: Vec<Cell> = vec![vcpu.vm.as_str().into(), u64::from(vcpu.vcpu).into()];
            row.extend([level.to_string().into(), reason.into(), by(0), by(1), by(2)]);
            table.push(row);
        }
    }
    table
}

/// vCPU threads and vhost workers, as found by events and by name.
fn threads(measures: &[Measures<'_>]) -> Table {
    let columns = vec![
        Column::key_of("tid", ColumnType::I64),
        Column::value("role", "", ColumnType::Text),
        Column::value("comm", "", ColumnType::Text),
        Column::value("vm", "", ColumnType::Text),
    ];
    let mut table = Table::new("threads", columns);
    // Two traces of one machine, of two stretches of time, name the same workers.
    let mut workers = BTreeSet::new();
    for measure in measures {
        for vcpu in &measure.vcpus {
            let comm = vcpu.comm.as_str().into();
            table.push(vec![Cell::I64(vcpu.tid.into()), "vcpu".into(), comm, vcpu.vm.as_str().into()]);
        }
        let machine = measure.part.machine.as_str();
        for (comm, tid) in measure.part.vhost.iter().filter(|(_, tid)| workers.insert((machine, *tid))) {
            // A worker's name holds the id of the thread that owns it, which no event links to a VM.
            table.push(vec![Cell::I64((*tid).into()), "vhost".into(), comm.as_str().into(), Cell::Missing]);
        }
    }
    if measures.iter().any(|measure| !measure.part.vhost.is_empty()) {
        let columns = [("role", "role"), ("tid", "tid"), ("comm", "name"), ("vm", "vm")];
        table.shown = shown("Threads of VMs", &columns, 16);
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
    let columns = [("part", "part"), ("cpu", "CPU"), ("kind", "what"), ("count", "count"), ("bytes", "bytes")];
    table.shown = shown("Lost and damaged events", &columns, 12);
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
