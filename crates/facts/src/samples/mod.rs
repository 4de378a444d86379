//! What programs that measure latencies found: their files become samples of one shape.
//!
//! ```text
//! <machine>/samples/<file> --ResultFile--> a reader for each program --> Samples, one for each thread or CPU of each file
//!
//!   buckets [from, to) ns with counts     what a program truncates is an interval, so a count over a limit is one too
//!   timed                                 samples of which the file tells when they ended
//! ```
//! A damaged or truncated file gives what it holds, and a problem with the place.

mod buckets;
mod cyclictest;
mod cyclictest_text;
mod files;
mod gaps;
mod hwlatdetect;
mod interrupts;
mod jitterdebugger;
mod lines;
mod noise;
mod noise_trace;
mod osadl;
mod oslat;
mod oslat_text;
mod percentiles;
mod pqos;
mod rtla;
mod rtla_top;
mod stress_cyclic;
mod threads;
pub(crate) mod traced;
mod tscdeadline;
mod vm_trace;
mod vm_trace_binary;
mod work;
mod xenomai;

pub use buckets::{Bucket, Rounding, Samples, Timed};
pub use files::{ResultFiles, SampleFile};
pub use interrupts::Edges;
pub use noise::Noise;
pub use percentiles::by_percentile;
pub use pqos::CacheUse;
pub use traced::Breach;

use base::Problem;
use base::recording::ResultFile;

base::named! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Source {
        /// cyclictest of rt-tests.
        Cyclictest = "cyclictest",
        /// cyclictest, of the one sample after which it broke off and left a mark in a trace.
        Tracemark = "cyclictest --tracemark",
        /// oslat of rt-tests.
        Oslat = "oslat",
        Jitterdebugger = "jitterdebugger",
        /// `latency` of Xenomai.
        Xenomai = "xenomai latency",
        /// The stressor `cyclic` of stress-ng.
        StressCyclic = "stress-ng cyclic",
        /// `latmus` of EVL, which prints the same.
        Latmus = "latmus",
        /// The kernel's tracer timerlat, by itself or below rtla.
        Timerlat = "timerlat",
        /// The kernel's tracer osnoise, by itself or below rtla.
        Osnoise = "osnoise",
        /// hwlatdetect of rt-tests, which reads the kernel's tracer hwlat.
        Hwlatdetect = "hwlatdetect",
        /// That tracer by itself.
        Hwlat = "hwlat",
        /// `tscdeadline_latency.flat` of kvm-unit-tests.
        TscDeadline = "tscdeadline_latency",
        /// vm-trace of KVM4NFV.
        VmTrace = "vm-trace",
        /// The loop of `kvmscope bench timer`.
        Gaps = base::gaps::THREAD,
        /// The interrupts of `kvmscope bench irq`.
        Irq = base::interrupts::THREAD,
    }
}

impl Source {
    /// What its samples are lengths of.
    pub fn measures(self) -> Measures {
        match self {
            Source::Cyclictest
            | Source::Tracemark
            | Source::Jitterdebugger
            | Source::Timerlat
            | Source::Xenomai
            | Source::StressCyclic
            | Source::Latmus
            | Source::TscDeadline => Measures::Timer,
            Source::Oslat | Source::Osnoise | Source::Hwlatdetect | Source::Hwlat | Source::Gaps => Measures::Noise,
            Source::VmTrace => Measures::ExitToEntry,
            Source::Irq => Measures::Interrupt,
        }
    }
}

/// What a sample is the length of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measures {
    /// From when a timer was to expire to when its thread or handler ran.
    Timer,
    /// A stretch in which a thread that wanted its CPU did not have it.
    Noise,
    /// From an exit of a guest to its next entry.
    ExitToEntry,
    /// From a device's edge to the guest's handler.
    Interrupt,
}

/// By which clock a file tells when samples ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SampleClock {
    /// CLOCK_MONOTONIC of the machine.
    Monotonic,
    /// CLOCK_REALTIME of the machine.
    Realtime,
    /// The kernel's clock `local`, which traces have unless they are told another.
    Local,
    /// That of the machine's own trace, among whose events the samples are.
    Trace,
    /// It does not tell.
    #[default]
    None,
}

/// What a reader takes from a file, as it goes: what was read before damage stays.
#[derive(Debug, Default)]
pub struct Found {
    /// The file, as the user names it.
    pub file: String,
    /// One for each thread or CPU.
    pub samples: Vec<Samples>,
    pub cache_use: Vec<CacheUse>,
    /// What became of the edges, of interrupts.
    pub edges: Option<Edges>,
    /// The sample after which the program broke off.
    pub breach: Option<Breach>,
    /// What the program itself found out about its longest sample, line by line.
    pub analysis: Vec<String>,
    /// Noise of each CPU, of osnoise.
    pub noise: Vec<Noise>,
    /// What else it said of its samples; and of a run that met nothing, where it looked.
    pub said: Option<String>,
    pub nothing: Option<String>,
    pub problems: base::Problems,
}

impl Found {
    fn damaged(&mut self, offset: u64, expected: &str, found: impl Into<String>, text: impl Into<String>) {
        self.problems.note(Problem::at(self.file.clone(), offset, expected, found, 0, text));
    }

    fn remark(&mut self, expected: &str, found: &str, text: impl Into<String>) {
        self.problems.note(Problem::remark(self.file.clone(), expected, found, text));
    }
}

/// What is known beside a file.
#[derive(Debug, Clone, Copy, Default)]
pub struct Known {
    /// How long a tick of the machine's time-stamp counter is.
    pub ns_per_tick: Option<f64>,
}

/// Reads `input`, which is a file of that kind.
pub fn read(kind: ResultFile, input: &mut dyn std::io::BufRead, known: Known, found: &mut Found) {
    match kind {
        ResultFile::CyclictestJson => cyclictest::read(input, found),
        ResultFile::CyclictestText => cyclictest_text::read(input, found),
        ResultFile::OslatJson => oslat::read(input, found),
        ResultFile::OslatText => oslat_text::read(input, found),
        ResultFile::JitterdebuggerJson => jitterdebugger::read(input, found),
        ResultFile::JitterdebuggerSamples => jitterdebugger::read_samples(input, found),
        ResultFile::JitterdebuggerText => jitterdebugger::read_text(input, found),
        ResultFile::RtlaHistogram => rtla::read(input, found),
        ResultFile::RtlaTop => rtla_top::read(input, found),
        ResultFile::Hwlatdetect => hwlatdetect::read(input, found),
        ResultFile::TscDeadline => tscdeadline::read(input, known, found),
        ResultFile::VmTrace => vm_trace::read(input, found),
        ResultFile::VmTraceBinary => vm_trace_binary::read(input, found),
        ResultFile::NoiseTrace => noise_trace::read(input, found),
        ResultFile::PqosCsv => pqos::read(input, found),
        ResultFile::Osadl => osadl::read(input, found),
        ResultFile::Xenomai => xenomai::read(input, found),
        ResultFile::StressCyclic => stress_cyclic::read(input, found),
        ResultFile::Gaps => gaps::read(input, found),
        ResultFile::Interrupts => interrupts::read(input, found),
    }
}
