//! Who took the CPUs of the threads that poll? This computer is recorded while the windows of trials run.
//!
//! ```text
//! trial   | warm-up .............. | window ............ | books ..     | warm-up ...
//! trace                      | on ...................... | off                     | on ..
//! ```
//! Only the pollers' CPUs are recorded, and of these what changes who has them. In: windows. Out: the trace, a part of the
//! recording. Its clock is CLOCK_MONOTONIC, as that of the windows. Where nothing can be recorded, the lab works without it.

use super::HOST;
use super::seats::Seats;
use base::CpuSet;
use base::recording::{Draft, Moment, Part};
use lab::clocks;
use lab::journal::Journal;
use lab::tracefs::{Mounted, Plan, TracefsRecorder};
use lab::{Error, Recorder};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long before a window recording begins: nothing is known of a thread that waits for its CPU until it has run once, and where
/// others want the CPU too it was seen to wait for 70 ms.
pub(super) const LEAD: Duration = Duration::from_millis(200);
/// The clock of windows (`mono` of Documentation/trace/ftrace.rst, Linux 6.12).
const CLOCK: &str = "mono";

/// A recorder that waits for windows, or why there is none.
pub(super) struct Beside {
    recorder: Result<(TracefsRecorder, Mounted), String>,
    root: PathBuf,
}

impl Beside {
    /// Prepares to record into `root`, a directory that is removed with the lab.
    pub(super) fn start(seats: &Seats, root: &Path, journal: &Journal) -> Result<Self, Error> {
        let start = || {
            let mounted = Mounted::at(Path::new("/"), journal)?;
            let cpus = CpuSet::from_iter([seats.pmd, seats.vnfs]);
            let plan = Plan { clock: Some(CLOCK.to_owned()), paused: true, ..Plan::of_scheduling(cpus) };
            let recorder = TracefsRecorder::start(mounted.tracefs(), journal, &plan, root, HOST)?;
            Ok((recorder, mounted))
        };
        let recorder = match start() {
            Err(left @ Error::LeftBehind(_)) => return Err(left),
            started => started.map_err(|error: Error| error.to_string()),
        };
        Ok(Self { recorder, root: root.to_owned() })
    }

    /// True if nothing is recorded.
    pub(super) fn is_absent(&self) -> bool {
        self.recorder.is_err()
    }

    /// What is recorded, or why nothing is, for the recording.
    pub(super) fn noted(&self) -> String {
        match &self.recorder {
            Ok(_) => format!(
                "the trace is of the pollers' CPUs in the windows of trials and {} ms before each; between them it was off, and shows no switches",
                LEAD.as_millis()
            ),
            Err(why) => {
                format!(
                    "nothing of this computer was recorded, so who took pollers' CPUs is known by /proc alone: {why}"
                )
            }
        }
    }

    /// Records from now on; returns since when, CLOCK_MONOTONIC, if it does.
    pub(super) fn go_on(&self) -> Result<Option<u64>, Error> {
        let Ok((recorder, _)) = &self.recorder else { return Ok(None) };
        let from_ns = clocks::pair(HOST, Moment::Begin).monotonic_ns;
        recorder.go_on()?;
        Ok(Some(from_ns))
    }

    /// Records nothing more until the next window.
    pub(super) fn pause(&mut self) -> Result<(), Error> {
        let Ok((recorder, _)) = &mut self.recorder else { return Ok(()) };
        recorder.pause()?;
        // Names of threads that ended meanwhile are read while the kernel still knows them.
        recorder.poll()
    }

    /// Ends recording, and copies what was recorded into `draft`.
    pub(super) fn end(self, draft: &Draft) -> Result<Vec<Part>, Error> {
        let Ok((recorder, mounted)) = self.recorder else { return Ok(Vec::new()) };
        let parts = Box::new(recorder).stop();
        drop(mounted);
        let parts = parts?;
        for part in &parts {
            let from = self.root.join(&part.path);
            std::fs::copy(&from, draft.part(&part.path)?).map_err(|error| Error::io(from, error))?;
        }
        Ok(parts)
    }
}
