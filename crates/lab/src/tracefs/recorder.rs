//! The tracefs recorder: from a plan to a trace.dat.

use super::clock::{self, Calibration, Pair, Scale};
use super::drain::{Drain, Meter};
use super::instance::{Instance, Tracefs};
use super::plan::Plan;
use super::ring::Keep;
use super::{describe, events, filter, pack, tsc};
use crate::journal::{Entry, Journal};
use crate::{Error, Recorder};
use base::recording::{PROCESSES_FILE, Part, PartKind, PartState, TSC_FILE, TscReadings, VmProcesses};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use trace::write::tracedat::TraceDat;

/// How long the clocks run between the first two pairs: the scale that a killed recording has.
const FIRST_SCALE: Duration = Duration::from_millis(50);
/// How often thread names and the scale are written again, so that a killed recording has them.
const REFRESH: Duration = Duration::from_secs(1);
/// How full a buffer is, in percent, when the thread that empties it wakes up.
const WAKE_PERCENT: &str = "25";

/// Records the kernel's events through a tracing instance of its own.
pub struct TracefsRecorder {
    tracefs: Tracefs,
    proc: PathBuf,
    instance: Instance,
    entry: Option<Entry>,
    drain: Option<Drain>,
    meter: Arc<Meter>,
    dat: TraceDat,
    clock: String,
    cpus: Vec<u32>,
    first: Pair,
    readings: TscReadings,
    /// The VMs of the machine, with their threads.
    processes: VmProcesses,
    calibration: Option<Calibration>,
    names: Names,
    keep: Option<Keep>,
    symbols: bool,
    refreshed: Instant,
    /// The recording's directory.
    root: PathBuf,
    machine: String,
    enabled: Vec<(String, String)>,
    /// The threads whose events are recorded, where filters keep others out.
    narrowed: Option<BTreeSet<u32>>,
}

impl TracefsRecorder {
    /// Begins to record into `root/machine/trace.partial/`.
    ///
    /// On return events are being recorded. If it fails, the host is as it was.
    ///
    /// # Errors
    /// If the kernel lacks what the plan asks for, if we are not root, or if the disk refuses.
    pub fn start(tracefs: &Tracefs, journal: &Journal, plan: &Plan, root: &Path, machine: &str) -> Result<Self, Error> {
        let mut entry = journal.begin("record")?;
        match Self::prepare(tracefs, journal.proc(), plan, root, machine, &mut entry) {
            Ok(mut recorder) => {
                recorder.entry = Some(entry);
                Ok(recorder)
            }
            Err(error) => {
                entry.put_back(journal.proc())?;
                Err(error)
            }
        }
    }

    fn prepare(
        tracefs: &Tracefs,
        proc: &Path,
        plan: &Plan,
        root: &Path,
        machine: &str,
        entry: &mut Entry,
    ) -> Result<Self, Error> {
        let clock = clock::choose(&tracefs.text("trace_clock"), plan.clock.as_deref())?;
        let names = events::wanted(tracefs, plan)?;
        let instance = Instance::create(tracefs, &format!("kvmscope-{}", entry.owner.pid), entry)?;
        instance.set("trace_clock", &clock)?;
        instance.set("buffer_size_kb", &plan.buffer_kib.to_string())?;
        instance.set_if_there("buffer_percent", WAKE_PERCENT)?;
        if !plan.cpus.is_empty() {
            let mask = plan.cpus.mask_like(&instance.text("tracing_cpumask"));
            instance.set("tracing_cpumask", &mask)?;
        }
        // Programs write their marks into the main instance; where the kernel has this, they are in ours as well.
        instance.set_if_there("options/copy_trace_marker", "1")?;
        let filtered: BTreeSet<u32> = plan.tids.iter().copied().collect();
        let switches = names.iter().any(|(system, name)| (system.as_str(), name.as_str()) == filter::SWITCH);
        let narrowed = match (filtered.is_empty(), switches) {
            (false, true) => Some(filtered),
            (false, false) => {
                let tids: Vec<String> = plan.tids.iter().map(u32::to_string).collect();
                instance.set_if_there("options/event-fork", "1")?;
                instance.set("set_event_pid", &tids.join(" "))?;
                None
            }
            (true, _) => None,
        };
        if let Some(tids) = &narrowed {
            filter::set(&instance, &names, tids)?;
        }
        let first = clock::pair();
        let enabled = events::enable(&instance, &names)?;
        let cpus = instance.cpus()?;
        let dat = describe::describe(tracefs, &instance, &enabled)?;
        std::thread::sleep(FIRST_SCALE);
        let directory = root.join(machine).join(PARTIAL);
        std::fs::create_dir_all(&directory).map_err(|error| Error::io(&directory, error))?;
        let mut recorder = Self {
            tracefs: tracefs.clone(),
            proc: proc.to_owned(),
            instance,
            entry: None,
            drain: None,
            meter: Arc::default(),
            dat,
            clock,
            cpus,
            first,
            readings: TscReadings::default(),
            processes: VmProcesses::default(),
            calibration: None,
            names: Names::default(),
            keep: plan.keep,
            symbols: plan.symbols,
            refreshed: Instant::now(),
            root: root.to_owned(),
            machine: machine.to_owned(),
            enabled,
            narrowed,
        };
        let page_bytes = recorder.dat.page_bytes as usize;
        let drain = Drain::start(&recorder.instance, &recorder.cpus, &directory, page_bytes, plan.sweep, plan.keep)?;
        recorder.meter = drain.meter();
        recorder.drain = Some(drain);
        recorder.write_head()?;
        if !plan.paused {
            recorder.go_on()?;
        }
        // Only now: what KVM writes from here on is an event.
        recorder.readings.first = tsc::read(recorder.tracefs.host(), &recorder.proc);
        recorder.write_readings()?;
        recorder.look_for_vms()?;
        recorder.write_processes()?;
        Ok(recorder)
    }

    /// Records from now on.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn go_on(&self) -> Result<(), Error> {
        self.instance.set("tracing_on", "1")
    }

    /// Records nothing until [`TracefsRecorder::go_on`]. The trace does not tell: whoever reads it has to know.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn pause(&self) -> Result<(), Error> {
        self.instance.set("tracing_on", "0")
    }

    /// What lies on disk from now on, until [`Recorder::stop`] makes it whole.
    pub fn partial(&self) -> Vec<Part> {
        let notes = [self.tsc_part(), self.processes_part()];
        [Some(self.part(PARTIAL, PartState::Partial))].into_iter().chain(notes).flatten().collect()
    }

    /// How much has been written so far, to be asked while it records.
    pub fn meter(&self) -> Arc<Meter> {
        Arc::clone(&self.meter)
    }

    /// How many kinds of events are recorded.
    pub fn events(&self) -> usize {
        self.enabled.len()
    }

    pub fn clock(&self) -> &str {
        &self.clock
    }

    fn part(&self, name: &str, state: PartState) -> Part {
        Part {
            path: Path::new(&self.machine).join(name),
            machine: self.machine.clone(),
            kind: PartKind::TraceDat,
            clock: Some(self.clock.clone()),
            state,
        }
    }

    /// Where its pages lie while it records.
    pub fn directory(&self) -> PathBuf {
        self.root.join(&self.machine).join(PARTIAL)
    }

    /// Where the file lies that tells which processes run VMs, once one does.
    pub fn processes(&self) -> PathBuf {
        self.root.join(&self.machine).join(PROCESSES_FILE)
    }

    /// The clock's scale as far as it is known by now.
    fn scale(&mut self) -> Option<Scale> {
        if self.clock == clock::TSC {
            self.calibration = clock::calibrate(self.first, clock::pair());
        }
        self.calibration.as_ref().map(|calibration| calibration.scale)
    }

    fn write_head(&mut self) -> Result<(), Error> {
        self.describe_now(Vec::new());
        pack::write_head(&self.directory(), &self.dat, &self.clock)
    }

    /// Keeps what ties the counter to CLOCK_MONOTONIC, which is the clock of perf's and LTTng's parts.
    fn write_pairs(&self) -> Result<Option<Part>, Error> {
        let Some(calibration) = &self.calibration else { return Ok(None) };
        let part = Part { kind: PartKind::Notes, ..self.part("clock.json", PartState::Complete) };
        let path = self.root.join(&part.path);
        let io = |error| Error::io(&path, error);
        let text = serde_json::to_string_pretty(calibration).map_err(|error| io(error.into()))?;
        std::fs::write(&path, text).map_err(io)?;
        Ok(Some(part))
    }

    /// Lets events of threads through that have been started meanwhile.
    fn narrow_again(&mut self) -> Result<(), Error> {
        let Some(tids) = &mut self.narrowed else { return Ok(()) };
        let now = filter::with_siblings(&self.proc, tids);
        if now.len() > tids.len() {
            filter::set(&self.instance, &self.enabled, &now)?;
            *tids = now;
        }
        Ok(())
    }

    /// The file that holds what KVM says of its guests' counters, if there are any.
    fn tsc_part(&self) -> Option<Part> {
        let any = !(self.readings.first.is_empty() && self.readings.last.is_empty());
        any.then(|| Part { kind: PartKind::Notes, ..self.part(TSC_FILE, PartState::Complete) })
    }

    fn write_readings(&self) -> Result<Option<Part>, Error> {
        let Some(part) = self.tsc_part() else { return Ok(None) };
        self.readings.write(&self.root.join(&part.path))?;
        Ok(Some(part))
    }

    /// Takes in which processes run VMs now, and which threads they have.
    fn look_for_vms(&mut self) -> Result<(), Error> {
        let now = host::Snapshot::open(self.tracefs.host())?;
        self.processes.merge(host::machine::vm_processes(&now));
        Ok(())
    }

    /// The file that tells threads of different VMs apart, if there are any.
    fn processes_part(&self) -> Option<Part> {
        let any = !self.processes.vms.is_empty();
        any.then(|| Part { kind: PartKind::Notes, ..self.part(PROCESSES_FILE, PartState::Complete) })
    }

    fn write_processes(&self) -> Result<Option<Part>, Error> {
        let Some(part) = self.processes_part() else { return Ok(None) };
        self.processes.write(&self.root.join(&part.path))?;
        Ok(Some(part))
    }

    fn describe_now(&mut self, losses: Vec<String>) {
        self.names.read(&self.tracefs, &self.proc, self.keep);
        self.dat.comms = self.names.known();
        let scale = self.scale();
        self.dat.options = describe::options(&self.instance, scale, self.cpus.len(), losses);
    }

    /// Ends tracing and takes the rest out of the buffers; then the instance is removed, come what may.
    fn complete(&mut self) -> Result<(), Error> {
        self.readings.last = tsc::read(self.tracefs.host(), &self.proc);
        self.look_for_vms()?;
        self.instance.set("tracing_on", "0")?;
        if let Some(drain) = self.drain.take() {
            drain.finish()?;
        }
        let stats: Vec<String> =
            self.cpus.iter().map(|cpu| format!("CPU: {cpu}\n{}", self.instance.stats(*cpu))).collect();
        self.meter.note_lost(stats.iter().map(|text| losses(text)).sum());
        self.describe_now(stats);
        pack::write_head(&self.directory(), &self.dat, &self.clock)
    }
}

/// Names of threads. A flight recorder that flies for weeks forgets those that ended before what it keeps.
#[derive(Default)]
struct Names {
    new: BTreeMap<i32, String>,
    /// Seen before.
    old: BTreeMap<i32, String>,
    since: Option<Instant>,
}

impl Names {
    fn read(&mut self, tracefs: &Tracefs, proc: &Path, keep: Option<Keep>) {
        let since = *self.since.get_or_insert_with(Instant::now);
        if keep.is_some_and(|keep| since.elapsed() > keep.length) {
            self.old = std::mem::take(&mut self.new);
            self.since = Some(Instant::now());
        }
        describe::comms(tracefs, proc, &mut self.new);
    }

    fn known(&self) -> Vec<(i32, String)> {
        let mut known = self.old.clone();
        known.extend(self.new.clone());
        known.into_iter().collect()
    }
}

/// What a part being recorded is called.
const PARTIAL: &str = "trace.partial";

impl Drop for TracefsRecorder {
    /// One that is not stopped, since something else failed, puts the host back as it was; what it cannot stays in the journal.
    fn drop(&mut self) {
        self.drain = None;
        if let Some(entry) = self.entry.take() {
            let _ = entry.put_back(&self.proc);
        }
    }
}

impl Recorder for TracefsRecorder {
    fn name(&self) -> &str {
        "tracefs"
    }

    fn poll(&mut self) -> Result<(), Error> {
        if let Some(drain) = &mut self.drain {
            drain.check()?;
        }
        if self.refreshed.elapsed() >= REFRESH {
            self.refreshed = Instant::now();
            self.meter.note_lost(self.cpus.iter().map(|cpu| losses(&self.instance.stats(*cpu))).sum());
            self.write_head()?;
            self.narrow_again()?;
        }
        Ok(())
    }

    fn stop(mut self: Box<Self>) -> Result<Vec<Part>, Error> {
        let completed = self.complete();
        self.drain = None;
        if let Some(entry) = self.entry.take() {
            entry.put_back(&self.proc)?;
        }
        completed?;
        let part = self.part("trace.dat", PartState::Complete);
        let (directory, whole) = (self.directory(), self.root.join(&part.path));
        // Megabytes of text: not for the head, which is renewed every second.
        self.dat.kallsyms = if self.symbols { describe::kallsyms(&self.proc) } else { String::new() };
        match self.keep {
            Some(keep) => {
                pack::write_head(&directory, &self.dat, &self.clock)?;
                self.meter.note_kept(pack::pack_last(&directory, &whole, keep.length)?);
            }
            None => pack::pack(&directory, &whole, &self.dat, &self.clock, &self.cpus)?,
        }
        let notes = [self.write_pairs()?, self.write_readings()?, self.write_processes()?];
        Ok([Some(part)].into_iter().chain(notes).flatten().collect())
    }
}

/// Events lost, in the text of `per_cpu/cpuN/stats`: overwritten, or dropped while the buffer was being written.
fn losses(stats: &str) -> u64 {
    let value = |line: &str| line.split_once(':').and_then(|(_, value)| value.trim().parse::<u64>().ok());
    let lost = |line: &&str| ["overrun:", "commit overrun:", "dropped events:"].iter().any(|key| line.starts_with(key));
    stats.lines().filter(lost).filter_map(value).sum()
}

/// Reverts an entry; what stays changed is an error.
#[cfg(test)]
mod tests {
    use super::losses;

    #[test]
    fn all_kinds_of_losses_are_added() {
        let text = "entries: 5\noverrun: 7\ncommit overrun: 1\nbytes: 9\ndropped events: 2\nread events: 3\n";
        assert_eq!(losses(text), 10);
    }
}
