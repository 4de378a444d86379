//! The tables that a data set has of each recording beside those of its answers; the folders `host=` and `recording=` say whose they are.

use super::ID;
use base::table::TableSpec;
use base::table_file::FINDINGS;
use base::{Column, ColumnType};

/// What is read back to answer over all recordings. The recording's own row comes last: it is there once all others are.
pub const STORED: &[&TableSpec] = &[&FINDINGS, &EXIT_HISTOGRAMS, &NUMBERS, &VERDICTS, &RECORDINGS];

/// The recording itself.
pub const RECORDINGS: TableSpec = TableSpec {
    section: ID,
    name: "recordings",
    version: 1,
    row: "One recording of a data set: what was recorded, when, on which CPU and kernel, and by which version it was analysed. Written last, so it is there only if all other tables of the recording are.",
    columns: &[
        Column::key("title"),
        Column::text("created"),
        Column::text("tool"),
        Column::text("analysed_by"),
        Column::text("cpu_model"),
        Column::text("kernel"),
        Column::text("emulated"),
        Column::count("machines"),
        Column::count("vcpus"),
        Column::ns("wall_ns"),
        Column::count("problems"),
        Column::text("digest"),
        Column::text("schema"),
    ],
    shown: None,
};

/// What exits cost, as distributions that merge.
pub const EXIT_HISTOGRAMS: TableSpec = TableSpec {
    section: ID,
    name: "exit_histograms",
    version: 1,
    row: "The exits from one level for one reason in one machine's trace, all vCPUs together: costs as a histogram in HdrHistogram's V2 form at three significant digits, which merges without loss; its sum and maximum are exact.",
    columns: &[
        Column::key("machine"),
        Column::key("level"),
        Column::key("reason"),
        Column::count("count"),
        Column::count("with_cost"),
        Column::ns("total_ns"),
        Column::ns("max_ns"),
        Column::distribution("cost"),
    ],
    shown: None,
};

/// Numbers by which hosts are compared.
pub const NUMBERS: TableSpec = TableSpec {
    section: ID,
    name: "numbers",
    version: 1,
    row: "One number of the outermost machine of a recording, by which hosts are compared; more is worse.",
    columns: &[
        Column::key("machine"),
        Column::key("what"),
        Column::value("value", "", ColumnType::F64),
        Column::text("unit"),
    ],
    shown: None,
};

/// Verdicts of the budget that the recording was judged by.
pub const VERDICTS: TableSpec = TableSpec {
    section: ID,
    name: "verdicts",
    version: 1,
    row: "The verdict on one goal of the latency budget for one vCPU, thread or migration of a recording.",
    columns: &[
        Column::key("budget"),
        Column::key("goal"),
        Column::key("whose"),
        Column::text("metric"),
        Column::text("verdict"),
        Column::ns("value_ns"),
        Column::ns("limit_ns"),
    ],
    shown: None,
};

/// Recordings that could not be analysed.
pub const FAILURES: TableSpec = TableSpec {
    section: ID,
    name: "failures",
    version: 1,
    row: "One recording that could not be added to the data set, and why.",
    columns: &[Column::key("source"), Column::text("error")],
    shown: Some(base::table::Shown {
        whole: &["error"],
        ..base::table::Shown::of("Not added", &[("source", "recording"), ("error", "why")], 20)
    }),
};
