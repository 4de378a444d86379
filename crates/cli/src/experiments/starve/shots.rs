//! A recording of either state: the kernel's events, two samples of the machine around them, the throughput of each run.
//!
//! ```text
//! DIR/before/L0/host/0, host/1    what `check` reads          after/ is the same, with the threads moved
//!              trace.dat          what `report` and `compare` read; not made where there is no tracing file system
//!              bench/netns.json   what `compare` holds against each other
//! ```
//! Events are recorded while the load flows, but not during the runs that count: recording costs throughput.

use super::in_state;
use base::bench::{Bench, Measured};
use base::recording::{ClockPair, Destination, Draft, Machine, Moment, Part, PartKind, PartState, Recording};
use base::utc::Utc;
use lab::Recorder;
use lab::journal::Journal;
use lab::snapshot::{Around, More};
use lab::tracefs::{Mounted, Plan, TracefsRecorder};
use rustix::process::{getpriority_process, setpriority_process};
use std::path::Path;
use std::time::{Duration, SystemTime};

/// The machine that is recorded.
const MACHINE: &str = "L0";
/// How often the recorder is asked to do what has piled up.
const POLL: Duration = Duration::from_millis(100);

/// How much nicer others are to who records: a weight of about ten of them (sched_prio_to_weight, kernel/sched/core.c).
const AHEAD: i32 = 10;

/// While it is there this thread, and those it starts, go before others: who records the fault must not wait behind it.
struct Hurry {
    before: i32,
}

impl Hurry {
    fn begin() -> Self {
        let before = getpriority_process(None).unwrap_or(0);
        // Where it is refused the recording takes longer, and that is all.
        let _ = setpriority_process(None, before - AHEAD);
        Self { before }
    }
}

impl Drop for Hurry {
    fn drop(&mut self) {
        let _ = setpriority_process(None, self.before);
    }
}

/// A recording that lacks its bench alone.
struct Shot {
    name: &'static str,
    draft: Draft,
    parts: Vec<Part>,
    clock_pairs: Vec<ClockPair>,
}

/// The two recordings while they are made.
pub(super) struct Shots<'a> {
    root: &'a Destination,
    journal: &'a Journal,
    begun: Vec<Shot>,
    /// Why no events are recorded, if none are.
    pub(super) without_events: Option<String>,
}

impl<'a> Shots<'a> {
    pub(super) fn new(root: &'a Destination, journal: &'a Journal) -> Self {
        Self { root, journal, begun: Vec::new(), without_events: None }
    }

    /// True if that state was recorded.
    pub(super) fn has(&self, name: &str) -> bool {
        self.begun.iter().any(|shot| shot.name == name)
    }

    /// Records the machine for so long under that name; `rest` waits, and is true if the user has had enough: then nothing
    /// of it stays.
    pub(super) fn take(
        &mut self,
        name: &'static str,
        span: Duration,
        rest: &dyn Fn(Duration) -> bool,
    ) -> anyhow::Result<()> {
        let draft = Draft::new(in_state(self.root, name))?;
        let _hurry = Hurry::begin();
        let around = Around::begin(Path::new("/"), More::default(), draft.root(), MACHINE)?;
        let mut clock_pairs = vec![lab::clocks::pair(MACHINE, Moment::Begin)];
        let started = Mounted::at(Path::new("/"), self.journal).and_then(|mounted| {
            let tracefs = mounted.tracefs();
            let tracing = TracefsRecorder::start(tracefs, self.journal, &Plan::default(), draft.root(), MACHINE)?;
            Ok((mounted, tracing))
        });
        let mut mounted = None;
        let mut tracing = match started {
            Ok((needed, tracing)) => {
                mounted = Some(needed);
                Some(Box::new(tracing))
            }
            Err(error) => {
                self.without_events.get_or_insert(error.to_string());
                None
            }
        };
        let (mut left, mut polled, mut ended) = (span, Ok(()), false);
        while !left.is_zero() && polled.is_ok() && !ended {
            ended = rest(left.min(POLL));
            left = left.saturating_sub(POLL);
            polled = tracing.as_mut().map_or(Ok(()), |tracing| tracing.poll());
        }
        // Stopped come what may: it has changed the host.
        let stopped = tracing.map_or(Ok(Vec::new()), |tracing| tracing.stop());
        clock_pairs.push(lab::clocks::pair(MACHINE, Moment::End));
        drop(mounted);
        let mut parts = stopped?;
        polled?;
        if ended {
            return Ok(());
        }
        parts.extend(Box::new(around).stop()?);
        self.begun.push(Shot { name, draft, parts, clock_pairs });
        Ok(())
    }

    /// Writes what was measured, and puts the recordings in their place.
    pub(super) fn finish(self, before: &[f64], after: &[f64], what: &str) -> anyhow::Result<()> {
        let environment = lab::environment::environment(Path::new("/"));
        for Shot { name, draft, mut parts, clock_pairs } in self.begun {
            let samples = if name == "before" { before } else { after };
            let mut bench = Bench::new("netns", environment.clone());
            // Frames, offloads and who sent decide what a throughput means.
            bench.notes.push(what.to_owned());
            bench.results.push(Measured {
                name: "throughput".to_owned(),
                unit: "Gbit/s".to_owned(),
                samples: samples.iter().map(|bits| bits / 1e9).collect(),
                ..Measured::default()
            });
            let path = Path::new(MACHINE).join("bench/netns.json");
            bench.write(&draft.part(&path)?)?;
            let machine = MACHINE.to_owned();
            parts.push(Part { path, machine, kind: PartKind::Bench, clock: None, state: PartState::Complete });
            draft.finish(Recording {
                machines: vec![Machine {
                    id: MACHINE.to_owned(),
                    level: 0,
                    parent: None,
                    name: None,
                    identity: host::identity(Path::new("/")),
                }],
                parts,
                clock_pairs,
                ..Recording::made(
                    concat!("kvmscope lab netns ", env!("CARGO_PKG_VERSION")),
                    Utc::of(SystemTime::now()).stamp(),
                )
            })?;
        }
        Ok(())
    }
}
