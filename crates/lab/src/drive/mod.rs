//! Recorders that people have: perf and LTTng, each landing in the same recording.
//!
//! ```text
//! PerfRecorder   perf record -k mono ... ------------> <machine>/perf.data
//! LttngRecorder  lttng create, enable, start, destroy-> <machine>/ctf/
//! ```
//! Both are programs of their own, started with plain arguments and never through a shell.

mod lttng;
mod perf;

pub use lttng::{LttngOptions, LttngRecorder};
pub use perf::{PerfOptions, PerfRecorder, Samples};
