//! Why nothing is said of who took the time of a file's samples.

/// What is missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lacking {
    /// A trace of the machine, or of the one below.
    Trace,
    /// In the machine's own trace: the threads of the program, or the switches of tasks.
    Threads,
    Times,
    /// What relates the machine's CLOCK_MONOTONIC to its time-stamp counter.
    Pairs,
    /// The trace below has a clock of this name, which nothing relates to the time-stamp counter.
    HostClock(String),
    /// The trace below has several VMs, and nothing says which of them the guest is.
    Vm(Vec<String>),
    /// The trace below shows no vCPU that is this CPU of the guest; `None` where the file names no CPU.
    Vcpu(Option<u32>),
    /// By how much the guest's time-stamp counter differs from that of the machine below.
    Offset,
}

/// A file of whose samples nothing is said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unattributed {
    pub machine: String,
    /// The machine below, if it is a guest.
    pub below: Option<String>,
    pub path: String,
    /// What is missing.
    pub lacking: Lacking,
}
