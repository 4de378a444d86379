//! Who took the time of samples.

use base::{Table, TableSpec, shown, table};
use facts::Case;
use facts::attribution::{ClockError, Part};

pub(super) const ATTRIBUTED: TableSpec = table! {
    latency.attributed version 1:
    "What one cause took from the samples of one result: from how many, how long in all, and the most from one sample. With a budget only samples over a limit count, and there are rows for each limit; the totals of a file and limit are the lengths of these samples. A sample ended at most clock_error_low_ns before and clock_error_high_ns after where it was looked for; cause `unexplained` is what the trace shows no cause of.";
    key machine, key source, key cause, count count, ns total_ns, ns max_ns, ns max_without_ns, ns clock_error_ns,
    key file, key_u64("ns") limit_ns, ns clock_error_low_ns, ns clock_error_high_ns;
    shown![
        "Who took the time of samples; without it: the longest sample if this cause had taken nothing", 12;
        machine, source: "program", cause, count: "samples", total_ns: "total", max_ns: "most",
        max_without_ns: "max without it", limit_ns: "over",
    ]
};

/// The cause of what nothing explains.
const UNEXPLAINED: &str = "unexplained";

pub(super) fn attributed(case: &Case) -> Table {
    let mut table = Table::new(&ATTRIBUTED);
    for one in case.attributed() {
        let error = one.by.clock_error();
        let row = |cause: &str, taken: Part, without_ns: u64| {
            vec![
                one.machine.as_str().into(),
                one.source.name().into(),
                cause.into(),
                taken.count.into(),
                taken.total_ns.into(),
                taken.max_ns.into(),
                without_ns.into(),
                error.map(ClockError::most_ns).into(),
                one.path.as_str().into(),
                one.over.limit_ns.into(),
                error.map(|error| error.low_ns).into(),
                error.map(|error| error.high_ns).into(),
            ]
        };
        for (name, taken) in one.sums.most_first() {
            table.push(row(name, taken, one.sums.max_without_ns(name)));
        }
        table.push(row(UNEXPLAINED, one.sums.unexplained, one.sums.max_ns()));
    }
    table
}
