//! The tables that a data set has of each recording beside those of its answers; the folders `host=` and `recording=` say whose they are.

use base::table_file::FINDINGS;
use base::{Shown, TableSpec, shown, table};

/// What is read back to answer over all recordings. The recording's own row comes last: it is there once all others are.
pub const STORED: &[&TableSpec] = &[&FINDINGS, &EXIT_HISTOGRAMS, &NUMBERS, &VERDICTS, &RECORDINGS];

pub const RECORDINGS: TableSpec = table! {
    fleet.recordings version 1:
    "One recording of a data set: what was recorded, when, on which CPU and kernel, and by which version it was analysed. Written last, so it is there only if all other tables of the recording are.";
    key title, text created, text tool, text analysed_by, text cpu_model, text kernel, text emulated, count machines,
    count vcpus, ns wall_ns, count problems, text digest, text schema;
};

/// What exits cost, as distributions that merge.
pub(crate) const EXIT_HISTOGRAMS: TableSpec = table! {
    fleet.exit_histograms version 1:
    "The exits from one level for one reason in one machine's trace, all vCPUs together: costs as a histogram in HdrHistogram's V2 form at three significant digits, which merges without loss; its sum and maximum are exact.";
    key machine, key level, key reason, count count, count with_cost, ns total_ns, ns max_ns, distribution cost;
};

/// Numbers by which hosts are compared.
pub const NUMBERS: TableSpec = table! {
    fleet.numbers version 1:
    "One number of the outermost machine of a recording, by which hosts are compared; more is worse.";
    key machine, key what, f64("") value, text unit;
};

/// Verdicts of the budget that the recording was judged by.
pub(crate) const VERDICTS: TableSpec = table! {
    fleet.verdicts version 1:
    "The verdict on one goal of the latency budget for one vCPU, thread or migration of a recording.";
    key budget, key goal, key whose, text metric, text verdict, ns value_ns, ns limit_ns;
};

/// Recordings that could not be analysed.
pub const FAILURES: TableSpec = table! {
    fleet.failures version 1: "One recording that could not be added to the data set, and why.";
    key source, text error;
    Shown {
        whole: &["error"],
        ..shown!["Not added", 20; source: "recording", error: "why"]
    }
};
