//! What we write, read back by the programs that own the formats: trace-cmd, babeltrace2, perf.

mod ctf;
mod expected;
mod page;
mod perfdata;
pub(crate) mod support;
mod text;
mod tracedat;
