//! What the kernel's tracepoints say, recorded by an instance of our own.
//!
//! ```text
//! plan.rs      what is wanted: events, clock, buffer, threads
//! vm.rs        the threads of one VM
//! filter.rs    only the events of some threads
//! instance.rs  <tracefs>/instances/kvmscope-PID, in the journal before it is made
//! mounted.rs   the file system itself, mounted where it is not
//! clock.rs     x86-tsc and CLOCK_MONOTONIC read together, at the start and at the end
//! tsc.rs       offsets and ratios of guests' counters -------------> tsc.json
//! describe.rs  formats, thread names, clock, losses ----------------> trace.partial/head.dat
//! stream.rs    per_cpu/cpuN/trace_pipe_raw --splice, whole pages---> trace.partial/cpuN.raw
//! ring.rs      of a flight recorder: its last pages-----------------> trace.partial/cpuN.K.raw
//! drain.rs     the threads that do it for all CPUs
//! pack.rs      trace.partial/ -------------------------------------> trace.dat
//! recorder.rs  all of it, from start to stop
//! probe.rs     which kvm events fire here when a guest runs
//! ```
//! A private instance has its own buffers, events and clock: what others trace is neither seen nor disturbed, and events
//! work where the function tracer is locked. Sources: Documentation/trace/ftrace.rst and ring-buffer-design.rst of
//! Linux 6.12.

mod clock;
pub use clock::tsc;
mod describe;
mod drain;
mod events;
mod filter;
mod instance;
mod mounted;
mod pack;
mod plan;
pub mod probe;
mod recorder;
mod ring;
mod stream;
mod tsc;
mod vm;

pub use drain::{LATE, Meter};
pub use instance::Tracefs;
pub use mounted::Mounted;
pub use plan::{Plan, Selection, buffer_kib};
pub use recorder::TracefsRecorder;
pub use ring::Keep;
pub use vm::{Vm, find as find_vm, names as vm_names};
