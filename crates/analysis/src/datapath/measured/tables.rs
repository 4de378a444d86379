//! The tables of a measured datapath. `rates` is the planner's, with kind `measured`.

use super::beside::{BOUNDS, STREAMS};
use super::kinds::{Cycles, Kind, dropped_share};
use crate::datapath::tables::RATES;
use crate::facts::datapaths::{Bed, Printed};
use base::datapath::DatapathRun;
use base::table::{Shown, TableSpec};
use base::{Cell, Column, ColumnType, Table};

/// All of them but `rates`.
pub const TABLES: &[&TableSpec] =
    &[&TRIALS, &BOOKS, &CYCLES, &POLLERS, &BOUNDS, &STREAMS, &PMDS, &QUEUES, &FLOWS, &PORTS];

const MOST_ROWS: usize = 60;

/// A whole number that is part of what a row is about.
const fn key_u64(name: &'static str) -> Column {
    Column::key_of(name, ColumnType::U64)
}

const TRIALS: TableSpec = TableSpec {
    section: "datapath",
    name: "trials",
    version: 1,
    row: "One trial: what arrived within its window, and all packets of the trial: sent = received + dropped + held + missing.",
    columns: &[
        Column::key("machine"),
        Column::key("design"),
        Column::key("pattern"),
        key_u64("vnfs"),
        key_u64("size_bytes"),
        key_u64("repeat"),
        Column::value("chain_pps", "", ColumnType::F64),
        Column::ns("window_ns"),
        Column::ns("window_error_ns"),
        Column::count("sent"),
        Column::count("received"),
        Column::count("dropped"),
        Column::count("held"),
        Column::value("missing", "count", ColumnType::I64),
        Column::count("agreements"),
        Column::count("faults"),
        Column::text("bound_by"),
        Column::share("steal_share"),
        Column::text("interference"),
    ],
    shown: Some(Shown::of(
        "Trials and their books, in packets",
        &[
            ("pattern", "pattern"),
            ("vnfs", "VNFs"),
            ("size_bytes", "bytes"),
            ("repeat", "trial"),
            ("sent", "sent"),
            ("received", "received"),
            ("dropped", "dropped"),
            ("held", "held"),
            ("missing", "missing"),
            ("chain_pps", "per second"),
            ("bound_by", "bound by"),
        ],
        MOST_ROWS,
    )),
};

const BOOKS: TableSpec = TableSpec {
    section: "datapath",
    name: "books",
    version: 1,
    row: "Packets of one trial at one place, and the counter that says so; kind is dropped or held.",
    columns: &[
        Column::key("machine"),
        Column::key("design"),
        Column::key("pattern"),
        key_u64("vnfs"),
        key_u64("size_bytes"),
        key_u64("repeat"),
        Column::key("kind"),
        Column::key("place"),
        Column::count("packets"),
        Column::text("counter"),
    ],
    shown: None,
};

const CYCLES: TableSpec = TableSpec {
    section: "datapath",
    name: "cycles",
    version: 1,
    row: "TSC cycles of a packet in the switch by frame size and polled queues, over all trials: as the switch counts them, and \
          those during which its thread ran. dropped_share: the most of any trial that was dropped at a full ring, which costs less than a hop.",
    columns: &[
        Column::key("machine"),
        Column::key("design"),
        key_u64("size_bytes"),
        key_u64("ports"),
        Column::count("trials"),
        Column::value("cycles", "cycles", ColumnType::F64),
        Column::value("low_cycles", "cycles", ColumnType::F64),
        Column::value("high_cycles", "cycles", ColumnType::F64),
        Column::value("counted_cycles", "cycles", ColumnType::F64),
        Column::share("dropped_share"),
        Column::value("tsc_hz", "", ColumnType::F64),
    ],
    shown: Some(Shown::of(
        "Cycles of a packet in the switch",
        &[
            ("size_bytes", "bytes"),
            ("ports", "queues"),
            ("trials", "trials"),
            ("cycles", "cycles"),
            ("low_cycles", "least"),
            ("high_cycles", "most"),
            ("counted_cycles", "as counted"),
            ("dropped_share", "dropped"),
        ],
        MOST_ROWS,
    )),
};

const POLLERS: TableSpec = TableSpec {
    section: "datapath",
    name: "pollers",
    version: 1,
    row: "One thread that polls for packets, within the window of one trial: the shares of it that it ran, and that it was ready \
          and another thread ran.",
    columns: &[
        Column::key("machine"),
        Column::key("pattern"),
        key_u64("vnfs"),
        key_u64("size_bytes"),
        key_u64("repeat"),
        Column::key("thread"),
        key_u64("tid"),
        Column::value("cpu", "", ColumnType::U64),
        Column::share("run_share"),
        Column::share("wait_share"),
    ],
    shown: None,
};

const PMDS: TableSpec = TableSpec {
    section: "datapath",
    name: "pmds",
    version: 1,
    row: "What one polling thread of Open vSwitch says of itself since its counters were cleared.",
    columns: &[
        Column::key("machine"),
        Column::key("file"),
        key_u64("cpu"),
        Column::count("packets"),
        Column::value("cycles_per_packet", "", ColumnType::F64),
        Column::share("busy_share"),
        Column::value("packets_per_batch", "", ColumnType::F64),
        Column::count("emc_hits"),
        Column::count("simple_match_hits"),
        Column::count("smc_hits"),
        Column::count("megaflow_hits"),
        Column::count("upcalls"),
        Column::count("lost_upcalls"),
    ],
    shown: Some(Shown::of(
        "Polling threads of Open vSwitch, as it prints them",
        &[
            ("file", "file"),
            ("cpu", "CPU"),
            ("packets", "packets"),
            ("cycles_per_packet", "cycles each"),
            ("busy_share", "busy"),
            ("packets_per_batch", "per batch"),
            ("upcalls", "upcalls"),
            ("lost_upcalls", "lost"),
        ],
        MOST_ROWS,
    )),
};

const QUEUES: TableSpec = TableSpec {
    section: "datapath",
    name: "queues",
    version: 1,
    row: "One receive queue and the polling thread that serves it; its usage includes polling, and is missing until the switch has measured it.",
    columns: &[
        Column::key("machine"),
        Column::key("file"),
        key_u64("cpu"),
        Column::key("port"),
        key_u64("queue"),
        Column::share("usage_share"),
    ],
    shown: Some(Shown {
        in_terminals: false,
        ..Shown::of(
            "Receive queues and who serves them",
            &[("file", "file"), ("cpu", "CPU"), ("port", "port"), ("queue", "queue"), ("usage_share", "usage")],
            MOST_ROWS,
        )
    }),
};

const FLOWS: TableSpec = TableSpec {
    section: "datapath",
    name: "flows",
    version: 1,
    row: "Packets from one port for which the datapath had the same actions.",
    columns: &[
        Column::key("machine"),
        Column::key("file"),
        Column::key("in_port"),
        Column::key("actions"),
        Column::count("packets"),
    ],
    shown: None,
};

const PORTS: TableSpec = TableSpec {
    section: "datapath",
    name: "ports",
    version: 1,
    row: "One port of testpmd, as it was shown last: what it received and sent, and what was lost there.",
    columns: &[
        Column::key("machine"),
        Column::key("file"),
        key_u64("port"),
        Column::count("rx_packets"),
        Column::count("rx_lost"),
        Column::count("tx_packets"),
        Column::count("tx_dropped"),
        Column::value("rx_pps", "", ColumnType::U64),
        Column::value("tx_pps", "", ColumnType::U64),
    ],
    shown: Some(Shown {
        in_terminals: false,
        ..Shown::of(
            "Ports of testpmd",
            &[
                ("file", "file"),
                ("port", "port"),
                ("rx_packets", "received"),
                ("rx_lost", "lost"),
                ("tx_packets", "sent"),
                ("tx_dropped", "dropped"),
                ("rx_pps", "received/s"),
                ("tx_pps", "sent/s"),
            ],
            MOST_ROWS,
        )
    }),
};

/// Table [`RATES`] of what was measured.
pub(super) fn rates(kinds: &[Kind<'_>]) -> Table {
    let mut table = Table::new(&RATES);
    for kind in kinds {
        let (Some(run), Some(pps)) = (kind.first(), kind.chain_pps()) else { continue };
        let system_pps = pps.median * f64::from(run.vnfs);
        let cells: [Cell; 22] = [
            run.design.as_str().into(),
            run.pattern.name().into(),
            u64::from(run.vnfs).into(),
            u64::from(run.size_bytes).into(),
            pps.median.into(),
            system_pps.into(),
            (system_pps * f64::from(run.size_bytes) * 8.0 / 1e9).into(),
            kind.bound_by().into(),
            Cell::Missing,
            Cell::Missing,
            run.cores.map(u64::from).into(),
            Cell::Missing,
            Cell::Missing,
            pps.low.into(),
            pps.high.into(),
            Cell::Missing,
            "measured".into(),
            Cell::Missing,
            Cell::Missing,
            run.design.as_str().into(),
            run.cores.map(u64::from).into(),
            Cell::Missing,
        ];
        table.push(cells.into());
    }
    table
}

/// The trials of all beds with their machines.
fn trials_of(beds: &[Bed]) -> impl Iterator<Item = (&Bed, &DatapathRun)> {
    beds.iter().flat_map(|bed| bed.runs.runs.iter().map(move |run| (bed, run)))
}

/// What a trial is, in the first columns of a table.
fn keys(bed: &Bed, run: &DatapathRun) -> [Cell; 6] {
    [
        bed.machine.as_str().into(),
        run.design.as_str().into(),
        run.pattern.name().into(),
        u64::from(run.vnfs).into(),
        u64::from(run.size_bytes).into(),
        u64::from(run.repeat).into(),
    ]
}

/// Table [`TRIALS`].
pub(super) fn trials(beds: &[Bed]) -> Table {
    let mut table = Table::new(&TRIALS);
    for (bed, run) in trials_of(beds) {
        let sum =
            |places: &[base::datapath::Place]| places.iter().fold(0_u64, |all, at| all.saturating_add(at.packets));
        let rest: [Cell; 13] = [
            run.chain_pps().into(),
            run.window_ns.into(),
            run.window_error_ns.into(),
            run.books.sent.into(),
            run.books.received.into(),
            sum(&run.books.dropped).into(),
            sum(&run.books.held).into(),
            i64::try_from(run.books.missing()).map_or(Cell::Missing, Cell::I64),
            (run.books.agreements.len() as u64).into(),
            (run.books.faults().len() as u64).into(),
            run.bound_by.clone().into(),
            run.steal_share.into(),
            Some(run.interference.join("; ")).filter(|text| !text.is_empty()).into(),
        ];
        table.push(keys(bed, run).into_iter().chain(rest).collect());
    }
    table
}

/// Table [`BOOKS`].
pub(super) fn books(beds: &[Bed]) -> Table {
    let mut table = Table::new(&BOOKS);
    for (bed, run) in trials_of(beds) {
        for (kind, places) in [("dropped", &run.books.dropped), ("held", &run.books.held)] {
            for at in places {
                let rest: [Cell; 4] =
                    [kind.into(), at.place.as_str().into(), at.packets.into(), at.counter.as_str().into()];
                table.push(keys(bed, run).into_iter().chain(rest).collect());
            }
        }
    }
    table
}

/// Table [`CYCLES`].
pub(super) fn cycles(all: &[Cycles<'_>]) -> Table {
    let mut table = Table::new(&CYCLES);
    for one in all {
        let cells: [Cell; 11] = [
            one.machine.into(),
            one.design.into(),
            u64::from(one.size_bytes).into(),
            u64::from(one.ports).into(),
            (one.on_cpu.count as u64).into(),
            one.on_cpu.median.into(),
            one.on_cpu.low.into(),
            one.on_cpu.high.into(),
            one.counted.median.into(),
            one.dropped_share.into(),
            one.hz.into(),
        ];
        table.push(cells.into());
    }
    table
}

/// Table [`POLLERS`].
pub(super) fn pollers(beds: &[Bed]) -> Table {
    let mut table = Table::new(&POLLERS);
    for (bed, run) in trials_of(beds) {
        let [machine, _, pattern, vnfs, size, repeat] = keys(bed, run);
        for poller in &run.pollers {
            let trial = [&machine, &pattern, &vnfs, &size, &repeat].map(Cell::clone);
            let rest: [Cell; 5] = [
                poller.name.as_str().into(),
                u64::from(poller.tid).into(),
                u64::from(poller.cpu).into(),
                poller.run_share.into(),
                poller.wait_share.into(),
            ];
            table.push(trial.into_iter().chain(rest).collect());
        }
    }
    table
}

/// Tables [`PMDS`], [`QUEUES`], [`FLOWS`] and [`PORTS`], those that have rows.
pub(super) fn printed(all: &[Printed]) -> Vec<Table> {
    let (mut pmds, mut queues, mut flows, mut ports) =
        (Table::new(&PMDS), Table::new(&QUEUES), Table::new(&FLOWS), Table::new(&PORTS));
    for text in all {
        let of = |text: &Printed| [Cell::from(text.machine.as_str()), text.path.as_str().into()];
        for pmd in text.pmds.iter().filter(|pmd| pmd.cpu.is_some()) {
            let rest: [Cell; 11] = [
                pmd.cpu.map(u64::from).into(),
                pmd.packets.into(),
                pmd.cycles_per_packet().into(),
                pmd.busy_share().into(),
                pmd.packets_per_batch.into(),
                pmd.emc_hits.into(),
                pmd.simple_match_hits.into(),
                pmd.smc_hits.into(),
                pmd.megaflow_hits.into(),
                pmd.upcalls.into(),
                pmd.lost_upcalls.into(),
            ];
            pmds.push(of(text).into_iter().chain(rest).collect());
        }
        for pmd in &text.queues {
            for queue in &pmd.queues {
                let rest: [Cell; 4] = [
                    u64::from(pmd.cpu).into(),
                    queue.port.as_str().into(),
                    u64::from(queue.queue).into(),
                    queue.usage.into(),
                ];
                queues.push(of(text).into_iter().chain(rest).collect());
            }
        }
        for flow in &text.flows {
            let rest: [Cell; 3] = [flow.in_port.as_str().into(), flow.actions.as_str().into(), flow.packets.into()];
            flows.push(of(text).into_iter().chain(rest).collect());
        }
        let numbers: std::collections::BTreeSet<u32> =
            text.testpmd.ports.keys().chain(text.testpmd.forwarded.keys()).copied().collect();
        for number in numbers {
            let port = text.testpmd.ports.get(&number).copied().unwrap_or_default();
            let forwarded = text.testpmd.forwarded.get(&number).copied().unwrap_or_default();
            let rest: [Cell; 7] = [
                u64::from(number).into(),
                port.rx_packets.or(forwarded.rx_packets).into(),
                port.rx_missed.or(forwarded.rx_dropped).into(),
                port.tx_packets.or(forwarded.tx_packets).into(),
                forwarded.tx_dropped.into(),
                port.rx_pps.into(),
                port.tx_pps.into(),
            ];
            ports.push(of(text).into_iter().chain(rest).collect());
        }
    }
    [pmds, queues, flows, ports].into_iter().filter(|table| !table.rows.is_empty()).collect()
}

/// The most that any trial dropped, as a share of what was sent.
pub(super) fn most_dropped(beds: &[Bed]) -> f64 {
    trials_of(beds).map(|(_, run)| dropped_share(run)).fold(0.0, f64::max)
}
