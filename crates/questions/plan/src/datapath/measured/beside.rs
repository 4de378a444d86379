//! Tables of what is measured beside trials: bounds of searches, and streams of messages.

use super::kinds::Spread;
use base::datapath::StreamRun;
use base::{Cell, Shown, Table, TableSpec, shown, table};
use facts::datapaths::Bed;
use std::collections::BTreeMap;

const MOST_ROWS: usize = 60;

pub(super) const BOUNDS: TableSpec = table! {
    datapath.bounds version 1:
    "Between which offered rates a measured datapath begins to lose more than loss_ratio; a bound that was not found is missing, with the reason \
     in ended. Trials are those of all goals of one search; discarded ones did not count.";
    key machine, key design, key_u64("") vnfs, key_u64("") size_bytes, key goal, key method, share loss_ratio,
    u64("") lower_pps, u64("") upper_pps, text ended, count trials, count discarded;
    Shown {
        whole: &["lower_pps", "upper_pps"],
        ..shown![
            "Rates between which frames begin to be lost, measured", MOST_ROWS;
            design, vnfs: "VNFs", size_bytes: "bytes", goal, lower_pps: "from", upper_pps: "to", trials, ended,
        ]
    }
};

pub(super) const STREAMS: TableSpec = table! {
    datapath.streams version 1:
    "TCP streams over one path whose program writes messages of one size, measured: the median of all runs, and the least and \
          the most. A message is no frame, so nothing here is a rate of frames.";
    key machine, key path, key_u64("") vnfs, key_u64("") message_bytes, count runs, f64("") gbps, f64("") low_gbps,
    f64("") high_gbps, f64("") sender_cpu_s_per_gb, f64("") receiver_cpu_s_per_gb, count retransmits;
    shown![
        "TCP streams of messages of one size, measured (a message is no frame)", MOST_ROWS;
        path, vnfs: "VNFs", message_bytes: "message bytes", gbps: "Gb/s", low_gbps: "least", high_gbps: "most",
        sender_cpu_s_per_gb: "CPU s/GB, sender", receiver_cpu_s_per_gb: "receiver", retransmits,
    ]
};

/// Both tables, as far as they have rows.
pub(super) fn tables(beds: &[Bed]) -> Vec<Table> {
    [bounds(beds), streams(beds)].into_iter().filter(|table| !table.rows.is_empty()).collect()
}

fn bounds(beds: &[Bed]) -> Table {
    let mut table = Table::new(&BOUNDS);
    for (bed, found) in beds.iter().flat_map(|bed| bed.runs.bounds.iter().map(move |found| (bed, found))) {
        let cells: [Cell; 12] = [
            bed.machine.as_str().into(),
            found.design.as_str().into(),
            u64::from(found.vnfs).into(),
            u64::from(found.size_bytes).into(),
            found.goal.as_str().into(),
            found.method.as_str().into(),
            found.loss_ratio.into(),
            found.lower_pps.into(),
            found.upper_pps.into(),
            found.ended.as_str().into(),
            u64::from(found.trials).into(),
            u64::from(found.discarded).into(),
        ];
        table.push(cells.into());
    }
    table
}

fn streams(beds: &[Bed]) -> Table {
    let mut kinds: BTreeMap<(&str, &str, u32, u32), Vec<&StreamRun>> = BTreeMap::new();
    for (bed, run) in beds.iter().flat_map(|bed| bed.runs.streams.iter().map(move |run| (bed, run))) {
        kinds.entry((&bed.machine, &run.path, run.vnfs, run.message_bytes)).or_default().push(run);
    }
    let mut table = Table::new(&STREAMS);
    for ((machine, path, vnfs, message_bytes), runs) in kinds {
        let spread = |of: fn(&StreamRun) -> f64| Spread::of(runs.iter().map(|run| of(run)).collect());
        let gbps = spread(|run| run.gbps);
        let cells: [Cell; 11] = [
            machine.into(),
            path.into(),
            u64::from(vnfs).into(),
            u64::from(message_bytes).into(),
            (runs.len() as u64).into(),
            gbps.map(|gbps| gbps.median).into(),
            gbps.map(|gbps| gbps.low).into(),
            gbps.map(|gbps| gbps.high).into(),
            spread(|run| run.sender_cpu_s_per_gb).map(|cpu| cpu.median).into(),
            spread(|run| run.receiver_cpu_s_per_gb).map(|cpu| cpu.median).into(),
            runs.iter().fold(0_u64, |sum, run| sum.saturating_add(run.retransmits)).into(),
        ];
        table.push(cells.into());
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Level;
    use base::datapath::{DatapathRuns, RateBounds};

    #[test]
    fn bounds_stay_bounds_and_streams_of_one_size_are_one_row() {
        let stream = |message_bytes, repeat, gbps| StreamRun {
            path: "veth".into(),
            vnfs: 1,
            message_bytes,
            repeat,
            gbps,
            sender_cpu_s_per_gb: 0.5,
            receiver_cpu_s_per_gb: 0.25,
            retransmits: 2,
        };
        let found = RateBounds {
            design: "veth".into(),
            vnfs: 1,
            size_bytes: 64,
            method: "mlrsearch".into(),
            goal: "ndr".into(),
            loss_ratio: 0.0,
            lower_pps: Some(300_000),
            upper_pps: None,
            ended: "the sender cannot offer more, so there is no upper bound".into(),
            trials: 40,
            discarded: 3,
        };
        let mut runs = DatapathRuns::new(BTreeMap::new());
        runs.streams = vec![stream(64, 0, 3.0), stream(512, 0, 9.0), stream(64, 1, 1.0), stream(64, 2, 2.0)];
        runs.bounds = vec![found];
        let beds = [Bed { machine: "L0".into(), level: Level::L0, runs }];
        let [bounds, streams] = <[Table; 2]>::try_from(tables(&beds)).unwrap();
        assert_eq!(bounds.rows[0][7..9], [Cell::from(Some(300_000_u64)), Cell::Missing]);
        let of_64: Vec<Cell> = [2.0, 1.0, 3.0, 0.5, 0.25].map(Cell::from).into();
        assert_eq!((streams.rows.len(), &streams.rows[0][5..10]), (2, of_64.as_slice()));
        assert_eq!(streams.rows[0][10], Cell::from(6_u64));
        assert!(tables(&[]).is_empty());
    }
}
