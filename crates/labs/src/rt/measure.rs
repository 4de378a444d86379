//! What happens while the guest runs: this computer records, and disturbs, from the moment at which the guest is ready to the
//! one at which it has measured.
//!
//! ```text
//! thread emulator  | boots | ready ------------------------------------ measured | packs | off
//! this thread              | ask | record -- load, disturbance -- over | ask | stop
//! ```
//! In: a guest. Out: [`Measured`]: what was recorded here, and how far the guest's counter is ahead of this one.

use super::disturb::{Disturber, Truth};
use super::guest::{Guest, Threads};
use super::quota::Quota;
use super::{Disturbance, HOST, Seats, Settings, load, tools};
use crate::machine::page::{Bounds, Order, Phase};
use crate::machine::scratch::Scratch;
use base::recording::{
    Burst, ClockPair, Draft, Moment, Part, PartKind, PartState, TRUTH_FILE, TSC_FILE, TscReading, TscReadings,
};
use lab::journal::{Entry, Journal};
use lab::tracefs::{Mounted, Plan, TracefsRecorder};
use lab::{Error, Recorder, clocks};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread::{Builder, ScopedJoinHandle};
use std::time::Duration;

/// How often the guest and the recorder are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// The trace's clock: the guest's counts the same.
const CLOCK: &str = "x86-tsc";
/// The part of the scratch directory that becomes the recording.
const RECORDING: &str = "recording";

pub(super) struct Session<'a> {
    pub(super) settings: &'a Settings,
    pub(super) seats: &'a Seats,
    pub(super) guest: &'a Guest<'a>,
    pub(super) scratch: &'a Scratch,
    pub(super) journal: &'a Journal,
}

pub(super) struct Measured {
    root: PathBuf,
    parts: Vec<Part>,
    /// What this computer's clocks showed.
    pub(super) clock_pairs: Vec<ClockPair>,
}

impl Measured {
    /// Copies the files into a recording, and says what they are.
    pub(super) fn copied(&self, draft: &Draft) -> Result<Vec<Part>, Error> {
        for part in &self.parts {
            let from = self.root.join(&part.path);
            std::fs::copy(&from, draft.part(&part.path)?).map_err(|error| Error::io(from, error))?;
        }
        Ok(self.parts.clone())
    }
}

/// The emulator at work in its thread, as this thread sees it.
struct Watched<'a, 's> {
    emulator: ScopedJoinHandle<'s, Result<(), Error>>,
    lines: Receiver<String>,
    say: &'a mut dyn FnMut(&str),
    stop: &'a AtomicBool,
}

impl Watched<'_, '_> {
    /// Passes on what the guest says.
    ///
    /// # Errors
    /// If the user has had enough, or if the emulator has ended.
    fn look(&mut self) -> Result<(), Error> {
        std::thread::sleep(LOOK_EVERY);
        self.lines.try_iter().for_each(|line| (self.say)(&line));
        match (self.stop.load(Ordering::Relaxed), self.emulator.is_finished()) {
            (true, _) => Err(Error::Stopped),
            (false, true) => Err(Error::Died("the guest ended in the middle of its work".to_owned())),
            (false, false) => Ok(()),
        }
    }

    /// Waits for the guest's own end, or, where `measured` is none, for that which `end` brings about.
    fn end<T>(mut self, measured: Result<T, Error>, end: &AtomicBool) -> Result<T, Error> {
        end.store(measured.is_err(), Ordering::Relaxed);
        while !self.emulator.is_finished() {
            if let Err(Error::Stopped) = self.look() {
                end.store(true, Ordering::Relaxed);
            }
        }
        let died = |_| Err(Error::Died("the thread of the emulator panicked; please report it".to_owned()));
        match (measured, self.emulator.join().unwrap_or_else(died)) {
            // Why a guest ended early it says itself, unless we ended it.
            (Err(why), Ok(()) | Err(Error::Stopped)) => Err(why),
            (_, Err(why)) => Err(why),
            (Ok(measured), Ok(())) => Ok(measured),
        }
    }
}

impl Session<'_> {
    /// Runs the guest from its start to its end; `entry` notes what is changed on this computer.
    pub(super) fn run(
        &self,
        entry: &mut Entry,
        say: &mut dyn FnMut(&str),
        stop: &AtomicBool,
    ) -> Result<Measured, Error> {
        let version = self.guest.version();
        say(&format!("booting the guest, Linux {version} with PREEMPT_RT, in QEMU TCG on CPU {}", self.seats.vcpu));
        let measuring = tools::measuring(self.settings.seconds);
        let end = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let (tell, lines) = channel();
            let emulator = self.guest.emulator(measuring, &end);
            let run = move || {
                emulator.run(&mut |line| {
                    // Who no longer listens has heard enough.
                    let _ = tell.send(line.to_owned());
                })
            };
            let started = Builder::new().name("emulator".to_owned()).spawn_scoped(scope, run);
            let emulator = started.map_err(|error| Error::refused("no thread for the emulator", error))?;
            let mut watched = Watched { emulator, lines, say, stop };
            let measured = self.measured(entry, &mut watched);
            watched.end(measured, &end)
        })
    }

    fn measured(&self, entry: &mut Entry, watched: &mut Watched<'_, '_>) -> Result<Measured, Error> {
        self.until(Phase::Ready, watched, &mut || Ok(()))?;
        let threads = self.guest.seat(self.seats, self.journal.proc())?;
        let quota = (self.settings.disturbance == Disturbance::Quota)
            .then(|| Quota::of(self.journal.proc(), threads.pid, entry))
            .transpose()?;
        let before = self.guest.page.ask()?;
        let root = self.scratch.join(RECORDING);
        let mounted = Mounted::at(Path::new("/"), self.journal)?;
        let plan = Plan { clock: Some(CLOCK.to_owned()), ..Plan::default() };
        let mut clock_pairs = vec![clocks::pair(HOST, Moment::Begin)];
        let mut recorder = TracefsRecorder::start(mounted.tracefs(), self.journal, &plan, &root, HOST)?;
        let disturbed = self.disturbed(threads, quota.as_ref(), watched, &mut recorder);
        clock_pairs.push(clocks::pair(HOST, Moment::End));
        // Stopped come what may: it has changed this computer.
        let stopped = Box::new(recorder).stop();
        let (truth, after) = disturbed?;
        let mut parts = stopped?;
        self.note_counter(&root, threads, [before, after], &mut parts)?;
        self.note_truth(&root, &truth, &mut parts)?;
        Ok(Measured { root, parts, clock_pairs })
    }

    /// The guest measures, and is disturbed meanwhile; then its counter is asked again, and it may hand over.
    fn disturbed(
        &self,
        threads: Threads,
        quota: Option<&Quota>,
        watched: &mut Watched<'_, '_>,
        recorder: &mut TracefsRecorder,
    ) -> Result<(Truth, Bounds), Error> {
        let Settings { environment, disturbance, .. } = *self.settings;
        let (over, file) = (AtomicBool::new(false), self.scratch.join("io"));
        let disturber = Disturber { kind: disturbance, seats: self.seats, guest: threads, quota };
        let work = || load::work(environment, &self.seats.others, &file, &over);
        let (loaded, done) = std::thread::scope(|scope| {
            let named = |name: &str| Builder::new().name(name.to_owned());
            let names = load::names(environment, &self.seats.others);
            let workers: Result<Vec<_>, _> =
                names.into_iter().map(|name| named(name).spawn_scoped(scope, work)).collect();
            let disturbs = disturbance.thread().map(|name| named(name).spawn_scoped(scope, || disturber.run(&over)));
            self.guest.page.order(Order::Measure);
            let measured = self.until(Phase::Measured, watched, &mut || recorder.poll());
            over.store(true, Ordering::Relaxed);
            let unable = |error| Error::refused("no thread for the load", error);
            let workers = workers.map_err(unable)?.into_iter();
            let loaded = workers.map(joined).collect::<Result<Vec<()>, Error>>();
            let done = disturbs.transpose().map_err(unable)?.map(joined).transpose();
            measured.map(|()| (loaded, done))
        })?;
        loaded?;
        let (by_tid, bursts): (Option<u32>, Vec<Burst>) =
            done?.map_or((None, Vec::new()), |(tid, bursts)| (Some(tid), bursts));
        let after = self.guest.page.ask()?;
        self.guest.page.order(Order::Finish);
        let truth = Truth {
            environment,
            disturbance,
            cpu: self.seats.vcpu,
            vcpu_tid: threads.vcpu,
            by: disturbance.thread().map(str::to_owned),
            by_tid,
            bursts,
        };
        Ok((truth, after))
    }

    /// Waits until the guest is that far, and does what else there is to do.
    fn until(
        &self,
        phase: Phase,
        watched: &mut Watched<'_, '_>,
        work: &mut dyn FnMut() -> Result<(), Error>,
    ) -> Result<(), Error> {
        while !self.guest.page.has_reached(phase) {
            watched.look()?;
            work()?;
        }
        Ok(())
    }

    /// Notes how far the guest's counter is ahead, where others note what KVM says of it.
    fn note_counter(
        &self,
        root: &Path,
        threads: Threads,
        asked: [Bounds; 2],
        parts: &mut Vec<Part>,
    ) -> Result<(), Error> {
        let part = note(TSC_FILE);
        let path = root.join(&part.path);
        let is_there = parts.iter().any(|other| other.path == part.path);
        let mut readings = if is_there { TscReadings::read(&path)? } else { TscReadings::default() };
        let [before, after] = asked;
        // Where both hold together, one constant explains all answers, and both narrow it.
        let both = before.and(after);
        let of = |bounds: Bounds| {
            let (offset, error_ticks) = both.unwrap_or(bounds).middle();
            TscReading {
                pid: threads.pid as i32,
                vcpu: 0,
                tid: Some(threads.vcpu as i32),
                offset: Some(offset),
                scaling: None,
                is_own: true,
                error_ticks: Some(error_ticks),
            }
        };
        readings.first.push(of(before));
        readings.last.push(of(after));
        readings.write(&path)?;
        parts.extend((!is_there).then_some(part));
        Ok(())
    }

    fn note_truth(&self, root: &Path, truth: &Truth, parts: &mut Vec<Part>) -> Result<(), Error> {
        let part = note(TRUTH_FILE);
        let path = root.join(&part.path);
        let text = serde_json::to_vec_pretty(truth).map_err(|error| Error::io(&path, error.into()))?;
        std::fs::write(&path, text).map_err(|error| Error::io(&path, error))?;
        parts.push(part);
        Ok(())
    }
}

fn note(name: &str) -> Part {
    let (path, machine) = (Path::new(HOST).join(name), HOST.to_owned());
    Part { path, machine, kind: PartKind::Notes, clock: None, state: PartState::Complete }
}

fn joined<T>(thread: ScopedJoinHandle<'_, Result<T, Error>>) -> Result<T, Error> {
    let died = |_| Err(Error::Died("a thread of the lab panicked; please report it".to_owned()));
    thread.join().unwrap_or_else(died)
}
