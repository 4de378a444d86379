//! Tables of what is measured beside trials: bounds of searches, and streams of messages.

use super::kinds::Spread;
use base::datapath::StreamRun;
use base::table::{Shown, TableSpec};
use base::{Cell, Column, ColumnType, Table};
use facts::datapaths::Bed;
use std::collections::BTreeMap;

const MOST_ROWS: usize = 60;

pub(super) const BOUNDS: TableSpec = TableSpec {
    section: "datapath",
    name: "bounds",
    version: 1,
    row: "Between which offered rates a measured datapath begins to lose more than loss_ratio; a bound that was not found is \
          missing, and ended says why. Trials are those of all goals of one search; discarded ones did not count.",
    columns: &[
        Column::key("machine"),
        Column::key("design"),
        Column { key: true, ..Column::value("vnfs", "", ColumnType::U64) },
        Column { key: true, ..Column::value("size_bytes", "", ColumnType::U64) },
        Column::key("goal"),
        Column::key("method"),
        Column::value("loss_ratio", "share", ColumnType::F64),
        Column::value("lower_pps", "", ColumnType::U64),
        Column::value("upper_pps", "", ColumnType::U64),
        Column::text("ended"),
        Column::value("trials", "count", ColumnType::U64),
        Column::value("discarded", "count", ColumnType::U64),
    ],
    shown: Some(Shown {
        whole: &["lower_pps", "upper_pps"],
        ..Shown::of(
            "Rates between which frames begin to be lost, measured",
            &[
                ("design", "design"),
                ("vnfs", "VNFs"),
                ("size_bytes", "bytes"),
                ("goal", "goal"),
                ("lower_pps", "from"),
                ("upper_pps", "to"),
                ("trials", "trials"),
                ("ended", "ended"),
            ],
            MOST_ROWS,
        )
    }),
};

pub(super) const STREAMS: TableSpec = TableSpec {
    section: "datapath",
    name: "streams",
    version: 1,
    row: "TCP streams over one path whose program writes messages of one size, measured: the median of all runs, and the least and \
          the most. A message is no frame, so nothing here is a rate of frames.",
    columns: &[
        Column::key("machine"),
        Column::key("path"),
        Column { key: true, ..Column::value("vnfs", "", ColumnType::U64) },
        Column { key: true, ..Column::value("message_bytes", "", ColumnType::U64) },
        Column::value("runs", "count", ColumnType::U64),
        Column::value("gbps", "", ColumnType::F64),
        Column::value("low_gbps", "", ColumnType::F64),
        Column::value("high_gbps", "", ColumnType::F64),
        Column::value("sender_cpu_s_per_gb", "", ColumnType::F64),
        Column::value("receiver_cpu_s_per_gb", "", ColumnType::F64),
        Column::value("retransmits", "count", ColumnType::U64),
    ],
    shown: Some(Shown::of(
        "TCP streams of messages of one size, measured (a message is no frame)",
        &[
            ("path", "path"),
            ("vnfs", "VNFs"),
            ("message_bytes", "message bytes"),
            ("gbps", "Gb/s"),
            ("low_gbps", "least"),
            ("high_gbps", "most"),
            ("sender_cpu_s_per_gb", "CPU s/GB, sender"),
            ("receiver_cpu_s_per_gb", "receiver"),
            ("retransmits", "retransmits"),
        ],
        MOST_ROWS,
    )),
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
