//! One opened trace of a recording, and what is known of it beside.

use base::Level;
use base::recording::{CutTrace, TscReadings, VmProcesses};
use trace::Trace;

/// One opened trace of a recording.
pub struct Part {
    /// Index in `recording.parts`.
    pub index: usize,
    /// Level of the machine it was recorded on.
    pub level: Level,
    /// Name of that machine in the manifest: `L0`.
    pub machine: String,
    pub trace: Box<dyn Trace>,
    /// What KVM said there of the counters of its guests, where the recorder or snapshots kept it.
    pub tsc: Option<TscReadings>,
    /// The processes that ran VMs there, by the recorder and by snapshots.
    pub processes: VmProcesses,
    /// What was known of its threads in the recording that this one was cut from.
    pub cut_from: CutTrace,
    /// When its recorder went on after a pause, by the trace's own clock, in order.
    pub resumed_ns: Vec<u64>,
    /// The machine's hardware was emulated.
    pub emulated: bool,
}
