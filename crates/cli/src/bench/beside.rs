//! The host, recorded while something is measured on it: by the counter alone, which is the clock of both.
//!
//! ```text
//! measured      who measures needs nothing of the place         timer, irq
//! along         launches, each of which keeps its results there, on CPUs of which only what changes who has them is recorded
//! ```

use super::place::Place;
use crate::arguments::JournalPlace;
use anyhow::anyhow;
use base::CpuSet;
use base::recording::{ClockPair, Moment, Part, PartKind, PartState};
use lab::Recorder;
use lab::tracefs::{Mounted, Plan, Selection, TracefsRecorder};
use std::path::Path;
use std::time::Duration;

/// How often the recorder is asked to do what has piled up.
const POLL: Duration = Duration::from_millis(100);

/// The clock of all that is recorded beside a bench: it reads it too.
const CLOCK: &str = "x86-tsc";

/// A recorder at work, or why there is none.
struct Beside(Result<(TracefsRecorder, Mounted), lab::Error>);

impl Beside {
    /// Begins to record the host into `place`, as `plan` says.
    fn begin(place: &Place, journal: &JournalPlace, plan: Plan) -> Self {
        let plan = Plan { clock: Some(CLOCK.to_owned()), ..plan };
        let record = || {
            let journal = journal.journal();
            let mounted = Mounted::at(Path::new("/"), &journal)?;
            let recorder = TracefsRecorder::start(mounted.tracefs(), &journal, &plan, place.root(), place.machine())?;
            Ok((recorder, mounted))
        };
        Self(record())
    }

    /// Why nothing is recorded.
    fn absent(&self) -> Option<&lab::Error> {
        self.0.as_ref().err()
    }

    /// Measures in another thread, which `name`s it, while the host is recorded; gives what was recorded too.
    fn during<T: Send>(
        self,
        name: &str,
        measure: impl FnOnce() -> Result<T, lab::Error> + Send,
    ) -> (Result<T, lab::Error>, Result<Vec<Part>, lab::Error>) {
        let Ok((mut recorder, mounted)) = self.0 else { return (measure(), Ok(Vec::new())) };
        let (measured, polled) = std::thread::scope(|scope| {
            let measuring = scope.spawn(measure);
            let mut polled = Ok(());
            while !measuring.is_finished() {
                polled = polled.and_then(|()| recorder.poll());
                std::thread::sleep(POLL);
            }
            let failed = || Err(lab::Error::Died(format!("the thread of {name} has failed")));
            (measuring.join().unwrap_or_else(|_| failed()), polled)
        });
        let parts = Box::new(recorder).stop();
        drop(mounted);
        (measured, polled.and(parts))
    }
}

/// What is measured while the host is recorded.
pub(super) struct Task<'a> {
    pub name: &'a str,
    /// What it means if nothing of the host is recorded.
    pub unexplained: &'a str,
    /// What people should know of the run.
    pub notes: &'a mut Vec<String>,
}

/// Measures, and records the host into `place` meanwhile; gives what was measured and recorded. If either fails, the place is
/// taken back.
pub(super) fn measured<T: Send>(
    mut place: Place,
    journal: &JournalPlace,
    task: Task<'_>,
    measure: impl FnOnce(&mut Vec<String>) -> Result<T, lab::Error> + Send,
) -> anyhow::Result<(Place, T, Vec<Part>)> {
    let Task { name, unexplained, notes } = task;
    place.note_clocks(Moment::Begin);
    let beside = Beside::begin(&place, journal, Plan::default());
    let absent = beside.absent();
    notes.extend(absent.map(|error| format!("Nothing of the host was recorded, so {unexplained}: {error}.")));
    let (measured, parts) = beside.during(name, || measure(notes));
    match measured.and_then(|measured| Ok((measured, parts?))) {
        Ok((measured, parts)) => {
            place.note_clocks(Moment::End);
            Ok((place, measured, parts))
        }
        Err(error) => {
            place.abandon()?;
            Err(error.into())
        }
    }
}

/// Does launches that keep their results in `place`, and records meanwhile who has `cpus`. Gives what was measured and recorded; the
/// place stays, whatever fails.
#[cfg(feature = "channel")]
pub(super) fn along<T: Send>(
    place: &mut Place,
    journal: &JournalPlace,
    cpus: CpuSet,
    task: Task<'_>,
    measure: impl FnOnce(&mut Place, &mut Vec<String>) -> T + Send,
) -> anyhow::Result<(T, Vec<Part>)> {
    let Task { name, unexplained, notes } = task;
    place.note_clocks(Moment::Begin);
    let mut plan = Plan::of_scheduling(cpus);
    plan.events.extend(Selection::parse("nmi:nmi_handler"));
    let beside = Beside::begin(place, journal, plan);
    notes.extend(beside.absent().map(|error| format!("Nothing of the host was recorded, so {unexplained}: {error}.")));
    let (measured, parts) = beside.during(name, || Ok(measure(place, notes)));
    place.note_clocks(Moment::End);
    Ok((measured?, parts?))
}

/// Writes `file` into the recording, and gives the part that it is.
pub(super) fn samples(
    place: &Place,
    file: &str,
    write: impl FnOnce(&Path) -> std::io::Result<()>,
) -> anyhow::Result<Part> {
    let machine = place.machine().to_owned();
    let path = Path::new(&machine).join("samples").join(file);
    let whole = place.root().join(&path);
    write(&whole).map_err(|error| anyhow!("{}: {error}", whole.display()))?;
    Ok(Part { path, machine, kind: PartKind::Samples, clock: None, state: PartState::Complete })
}

/// CLOCK_MONOTONIC by the time-stamp counter, as both were read at the beginning and at the end.
pub(super) fn monotonic(pairs: &[ClockPair]) -> impl Fn(u64) -> u64 {
    let read = pairs.iter().filter_map(|pair| Some((pair.tsc?, pair.monotonic_ns)));
    let (first, last) = (read.clone().next().unwrap_or((0, 0)), read.clone().next_back().unwrap_or((0, 0)));
    let (ticks, ns) = (last.0.saturating_sub(first.0).max(1), last.1.saturating_sub(first.1));
    move |at| {
        let since = i128::from(at) - i128::from(first.0);
        (i128::from(first.1) + since * i128::from(ns) / i128::from(ticks)) as u64
    }
}
