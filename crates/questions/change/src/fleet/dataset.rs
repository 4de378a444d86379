//! The tables that a data set has of each recording beside those of its answers; the folders `host=` and `recording=` say whose they are.

use super::ID;
use base::table_file::FINDINGS;
use base::{TableSpec, columns, headings};

/// What is read back to answer over all recordings. The recording's own row comes last: it is there once all others are.
pub const STORED: &[&TableSpec] = &[&FINDINGS, &EXIT_HISTOGRAMS, &NUMBERS, &VERDICTS, &RECORDINGS];

pub const RECORDINGS: TableSpec = TableSpec {
    section: ID,
    name: "recordings",
    version: 1,
    row: "One recording of a data set: what was recorded, when, on which CPU and kernel, and by which version it was analysed. Written last, so it is there only if all other tables of the recording are.",
    columns: columns![
        key title, text created, text tool, text analysed_by, text cpu_model, text kernel, text emulated,
        count machines, count vcpus, ns wall_ns, count problems, text digest, text schema,
    ],
    shown: None,
};

/// What exits cost, as distributions that merge.
pub(crate) const EXIT_HISTOGRAMS: TableSpec = TableSpec {
    section: ID,
    name: "exit_histograms",
    version: 1,
    row: "The exits from one level for one reason in one machine's trace, all vCPUs together: costs as a histogram in HdrHistogram's V2 form at three significant digits, which merges without loss; its sum and maximum are exact.",
    columns: columns![
        key machine, key level, key reason, count count, count with_cost, ns total_ns, ns max_ns, distribution cost,
    ],
    shown: None,
};

/// Numbers by which hosts are compared.
pub const NUMBERS: TableSpec = TableSpec {
    section: ID,
    name: "numbers",
    version: 1,
    row: "One number of the outermost machine of a recording, by which hosts are compared; more is worse.",
    columns: columns![key machine, key what, f64("") value, text unit],
    shown: None,
};

/// Verdicts of the budget that the recording was judged by.
pub(crate) const VERDICTS: TableSpec = TableSpec {
    section: ID,
    name: "verdicts",
    version: 1,
    row: "The verdict on one goal of the latency budget for one vCPU, thread or migration of a recording.",
    columns: columns![key budget, key goal, key whose, text metric, text verdict, ns value_ns, ns limit_ns],
    shown: None,
};

/// Recordings that could not be analysed.
pub const FAILURES: TableSpec = TableSpec {
    section: ID,
    name: "failures",
    version: 1,
    row: "One recording that could not be added to the data set, and why.",
    columns: columns![key source, text error],
    shown: Some(base::table::Shown {
        whole: &["error"],
        ..base::table::Shown::of("Not added", headings![source: "recording", error: "why"], 20)
    }),
};
