//! The tables of a measured datapath. `rates` is the planner's, with kind `measured`.

use super::beside::{BOUNDS, STREAMS};
use super::dials::{MARKS, SAMPLES};
use super::gaps::GAPS;
use super::kinds::{Cycles, Kind, dropped_share};
use super::printed::{FLOWS, FORWARDERS, PMDS, PORTS, QUEUES, TRAFFIC};
use super::unseen::PREDICTED;
use crate::datapath::tables::RATES;
use base::datapath::DatapathRun;
use base::{Cell, Table, TableSpec, shown, table};
use facts::datapaths::Bed;

/// All of them but `rates`.
pub const TABLES: &[&TableSpec] = &[
    &TRIALS,
    &BOOKS,
    &TRAFFIC,
    &CYCLES,
    &PREDICTED,
    &POLLERS,
    &GAPS,
    &BOUNDS,
    &STREAMS,
    &SAMPLES,
    &MARKS,
    &PMDS,
    &QUEUES,
    &FLOWS,
    &PORTS,
    &FORWARDERS,
];

pub(super) const MOST_ROWS: usize = 60;

const TRIALS: TableSpec = table! {
    datapath.trials version 1:
    "One trial: what arrived within its window, and all packets of the trial: sent = received + dropped + held + missing.";
    key machine, key design, key pattern, key_u64("") vnfs, key_u64("") size_bytes, key_u64("") repeat,
    f64("") chain_pps, ns window_ns, ns window_error_ns, count sent, count received, count dropped, count held,
    i64("count") missing, count agreements, count faults, text bound_by, share steal_share, text interference;
    shown![
        "Trials and their books, in packets", MOST_ROWS;
        design, pattern, vnfs: "VNFs", size_bytes: "bytes", repeat: "trial", sent, received, dropped, held, missing,
        chain_pps: "per second", bound_by: "bound by",
    ]
};

const BOOKS: TableSpec = table! {
    datapath.books version 1:
    "Packets of one trial at one place, and the counter that shows them; kind is dropped or held.";
    key machine, key design, key pattern, key_u64("") vnfs, key_u64("") size_bytes, key_u64("") repeat, key kind,
    key place, count packets, text counter;
};

const CYCLES: TableSpec = table! {
    datapath.cycles version 1:
    "TSC cycles of a packet in the switch by frame size and polled queues, over all trials: as the switch counts them, and \
          those during which its thread ran. dropped_share: the most of any trial that was dropped at a full ring, which costs less than a hop.";
    key machine, key design, key_u64("") size_bytes, key_u64("") ports, count trials, f64("cycles") cycles,
    f64("cycles") low_cycles, f64("cycles") high_cycles, f64("cycles") counted_cycles, share dropped_share,
    f64("") tsc_hz;
    shown![
        "Cycles of a packet in the switch", MOST_ROWS;
        size_bytes: "bytes", ports: "queues", trials, cycles, low_cycles: "least", high_cycles: "most",
        counted_cycles: "as counted", dropped_share: "dropped",
    ]
};

const POLLERS: TableSpec = table! {
    datapath.pollers version 1:
    "One thread that polls for packets, within the window of one trial: the shares of it that it ran, and that it was ready \
          and another thread ran.";
    key machine, key pattern, key_u64("") vnfs, key_u64("") size_bytes, key_u64("") repeat, key thread, key_u64("") tid,
    u64("") cpu, share run_share, share wait_share;
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
            run.size_bytes.to_string().into(),
        ];
        table.push(cells.into());
    }
    table
}

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

/// The most that any trial dropped, as a share of what was sent.
pub(super) fn most_dropped(beds: &[Bed]) -> f64 {
    trials_of(beds).map(|(_, run)| dropped_share(run)).fold(0.0, f64::max)
}
