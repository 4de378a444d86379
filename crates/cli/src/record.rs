//! `kvmscope record`: what happens on this host from now on, as a recording that `report` explains.
//!
//! ```text
//! recording.json --> recorders start --> poll, several times a second --> stop, pack --> recording.json again
//!                    partial parts       until time, CMD or Ctrl-C        whole parts
//! ```
//! All recorders run side by side; each names the parts it has made when it is stopped.

mod beside;
mod breach;
mod check;
mod flight;
mod live;
mod status;
mod until;
mod untraced;

use crate::arguments::{DestinationOptions, JournalPlace, length, machine};
use crate::completed::vms;
use anyhow::{anyhow, bail};
use base::recording::{EndedBy, Live, Machine, Moment, Part, Recording};
use base::{Level, Utc};
use beside::Beside;
use breach::Judged;
use check::Checked;
use clap::Args;
use flight::FlightOptions;
use lab::Recorder;
use lab::tracefs::{Mounted, Plan, Selection, TracefsRecorder, buffer_kib, find_vm};
use live::{Watch, sweep};
use process::exit::{Exit, WrongUse, complain};
use process::interrupt::{Interrupt, remove};
use status::Status;
use std::ffi::OsString;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, SystemTime};
use until::Until;

/// How often recorders are asked to do what has piled up.
const POLL: Duration = Duration::from_millis(100);

/// What the kernel calls a machine that nobody has named (CONFIG_DEFAULT_HOSTNAME of Linux 6.12).
const UNNAMED: &str = "(none)";

/// Record the vCPUs of this host
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    kvmscope record --seconds 10\n  \
    kvmscope record -o web --vm web --seconds 10\n  \
    kvmscope record -o ticket-4711.kvmscope --seconds 10\n  \
    kvmscope record -o boot -- virsh start web\n  \
    kvmscope record --as L1 --events msr:write_msr,workqueue --buffer-size 16M -o inside\n  \
    kvmscope record --perf --sample 199 --seconds 10\n  \
    kvmscope record --live -o recordings/now\n  \
    kvmscope record --flight --keep 30s --trigger fifo -o watch\n  \
    kvmscope record --flight --stop-on kvm4nfv-2015 -o breach\n  \
    kvmscope record --no-trace --migration web -- virsh migrate --live web qemu+ssh://other/system\n\n\
    Without --seconds and CMD, records until Ctrl-C, or until the migrations of --migration are over. Then: kvmscope report DIR\n\n\
    Exit status: 3 if --stop-on saw a breach; else that of CMD if given; else 0 recorded, 1 not recorded, 2 wrong usage.")]
pub(crate) struct Record {
    #[command(flatten)]
    destination: DestinationOptions,
    /// Seconds to record
    #[arg(long, value_name = "SECONDS", value_parser = length, conflicts_with = "command")]
    seconds: Option<u64>,
    /// Level of this machine, and its name, where it is a guest: L1, L1:web
    #[arg(long = "as", value_name = "LEVEL[:NAME]", value_parser = machine, default_value = Machine::RECORDED)]
    machine: Machine,
    /// Record only the threads of this VM (name or pid), and all scheduler switches
    #[arg(long, value_name = "NAME|PID", add = vms())]
    vm: Option<String>,
    /// Additional events, as system:name or system; repeatable
    #[arg(long, value_name = "EVENTS", value_delimiter = ',', value_parser = selection)]
    events: Vec<Selection>,
    /// Trace clock [default: x86-tsc where the kernel has it, else mono]
    #[arg(long, value_name = "CLOCK")]
    clock: Option<String>,
    /// Size of each CPU's ring buffer, such as 512K or 16M
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = "4M")]
    buffer_size: u64,
    #[command(flatten)]
    place: JournalPlace,
    /// With --migration: do not trace this host; needs no root
    #[arg(long, requires = "migration", conflicts_with_all = ["perf", "lttng", "vm", "events", "clock", "buffer_size", "live", "flight",
          "no_self_check"])]
    no_trace: bool,
    /// Skip the test guest that checks which kvm events fire on this host
    #[arg(long)]
    no_self_check: bool,
    /// Sample the recording while it runs: DIR/live.json has the last 300 samples, for `kvmscope serve DIR`
    #[arg(long)]
    live: bool,
    /// With --live: seconds between two samples
    #[arg(long, value_name = "SECONDS", value_parser = rhythm, default_value = "1", requires = "live")]
    live_every: Duration,
    /// No progress line on stderr
    #[arg(long)]
    no_progress: bool,
    /// Print only errors
    #[arg(short, long)]
    quiet: bool,
    /// Record while this command runs
    #[arg(last = true, value_name = "CMD")]
    command: Vec<OsString>,
    #[command(flatten)]
    flight: FlightOptions,
    #[command(flatten)]
    beside: Beside,
}

impl Record {
    /// Records, and says where to.
    pub(crate) fn run(&self) -> anyhow::Result<Exit> {
        if self.no_trace {
            return self.run_untraced();
        }
        let (plan, goals) = (self.plan()?, self.flight.goals()?);
        let now = Utc::of(SystemTime::now());
        let destination = self.destination.of("record", now)?;
        let status = Status::new(self.quiet, !self.no_progress);
        Mounted::able(Path::new("/"))?;
        // Until events are recorded a signal ends this at once, and nothing is left: it would be a recording of nothing.
        let interrupt = Interrupt::watch()?;
        let mut live = interrupt.making(
            || Live::begin(&destination, self.manifest(now)),
            |live| {
                let root = live.root().to_owned();
                move || remove(&root)
            },
        )?;
        let (journal, machine, host) = (self.place.journal(), self.machine.id.as_str(), Path::new("/"));
        let checked = (!self.no_self_check).then(|| {
            status.say("self-check: running a test guest, to see which kvm events fire here");
            interrupt.whole(|| check::check(host, &journal, &live, machine))
        });
        self.beside.describe().into_iter().for_each(|what| status.say(what));
        let before = self.beside.before(live.root(), machine);
        let asked = interrupt.hold();
        let started = self.flight.start(live.root(), &journal).and_then(|flight| {
            let kept = goals.as_ref().map(|goals| goals.keep(live.root(), machine)).transpose()?;
            Ok((flight, kept))
        });
        let (mut flight, budget) = match started {
            Ok(started) => started,
            Err(error) => {
                live.abandon()?;
                return Err(error);
            }
        };
        live.note_clocks(lab::clocks::pair(machine, Moment::Begin));
        let begun = before.and_then(|before| {
            let mounted = Mounted::at(host, &journal)?;
            let beside = self.beside.start(&journal, &plan, live.root(), machine)?;
            match TracefsRecorder::start(mounted.tracefs(), &journal, &plan, live.root(), machine) {
                Ok(tracing) => Ok((before, beside, tracing, mounted)),
                Err(error) => Err(beside.stopped(error)),
            }
        });
        let (before, beside, tracing, mounted) = match begun {
            Ok(begun) => begun,
            Err(error) => {
                live.abandon()?;
                return Err(error.into());
            }
        };
        if asked.load(Ordering::Relaxed) {
            drop(Box::new(tracing).stop());
            beside.end();
            live.abandon()?;
            return Ok(Exit::Interrupted);
        }
        let mut notes: Vec<Part> = checked.iter().filter_map(|checked| checked.notes.clone()).collect();
        notes.extend(budget);
        live.with([notes.clone(), tracing.partial(), beside.parts, before.parts].concat())?;
        let meter = tracing.meter();
        if let (Some(flight), Some(goals), Some(every)) = (&mut flight, goals, self.flight.looks()) {
            let (directory, processes) = (tracing.directory(), tracing.processes());
            flight.judge(Judged::new(goals, &directory, &processes, every, Instant::now()));
        }
        let triggers = flight.as_ref().map_or_else(String::new, |flight| flight.ends());
        status.began(&tracing, &format!("{}{triggers}", self.ends()));
        let mut until = Until::new(self.seconds.map(Duration::from_nanos), asked);
        let level = Level::At(self.machine.level);
        let watch = || {
            let (directory, meter) = (tracing.directory(), tracing.meter());
            Watch::new(live.root(), &directory, level, meter, self.live_every, Instant::now())
        };
        let mut watch = self.live.then(watch);
        let mut recorders: Vec<Box<dyn Recorder>> = vec![Box::new(tracing)];
        let watched = beside.watched;
        notes.extend(beside.kept);
        let are_over = || self.ends_with_migration() && watched.are_over();
        recorders.extend(beside.recorders);
        recorders.extend(before.recorders);
        let ended = until.run(&self.command).and_then(|()| {
            let mut landed = || flight.as_mut().map_or(Ok(false), |flight| flight.is_over(Instant::now()));
            while !until.is_over()? && !landed()? && !are_over() {
                recorders.iter_mut().try_for_each(|recorder| recorder.poll())?;
                // A recording that cannot be watched is made all the same.
                if let Some(Err(error)) = watch.as_mut().map(|watch| watch.look(Instant::now())) {
                    status.wipe();
                    complain(&anyhow!("{error}; the recording continues without --live"));
                    watch = None;
                }
                let seen = watch.as_ref().map_or_else(String::new, Watch::line);
                status.show(until.elapsed(), seen, &meter);
                std::thread::sleep(POLL);
            }
            Ok(())
        });
        let recorded = until.elapsed();
        status.packing(&meter);
        if let Some(Err(error)) = watch.as_mut().map(Watch::end) {
            complain(&error);
        }
        let (mut parts, mut failed) = (Vec::new(), ended.err());
        for recorder in recorders {
            match recorder.stop() {
                Ok(made) => parts.extend(made),
                Err(error) => failed = failed.or(Some(error.into())),
            }
        }
        live.note_clocks(lab::clocks::pair(machine, Moment::End));
        let trace = live.path(&Path::new(machine).join("trace.dat"));
        let ended = match flight.filter(|_| failed.is_none()).map(|flight| flight.ended(until.by(), &trace)) {
            Some(Ok(ended)) => Some(ended),
            Some(Err(error)) => {
                failed = Some(error);
                None
            }
            None => None,
        };
        ended.iter().for_each(|ended| live.note_end(ended.clone()));
        drop(mounted);
        status.wipe();
        let recording = match failed {
            None => {
                parts.append(&mut notes);
                live.finish(parts)?
            }
            Some(error) if error.is::<WrongUse>() => {
                live.abandon()?;
                return Err(error);
            }
            Some(error) => return self.ended_early(live, error),
        };
        let place = self.destination.finished(&recording, &interrupt)?;
        if !self.quiet {
            // The recording is there whether or not anybody reads this.
            let summary = match &ended {
                Some(ended) => flight::summary(ended, recorded, &place, &meter),
                None => status::summary(recorded, &place, &meter),
            };
            let _ = self.explain(&summary, checked, &place);
        }
        let is_breach = ended.is_some_and(|ended| ended.by == EndedBy::Breach);
        Ok(if is_breach { Exit::FailOn } else { until.status().map_or(Exit::Answered, Exit::Of) })
    }

    /// Whether nothing else says when to end.
    fn ends_with_migration(&self) -> bool {
        self.beside.watches() && self.seconds.is_none() && self.command.is_empty()
    }

    /// What ends it, for people who wait.
    fn ends(&self) -> String {
        match (self.seconds, self.command.first()) {
            (None, None) if self.ends_with_migration() => "ends with the migration, or by Ctrl-C".to_owned(),
            (_, Some(program)) => format!("ends with {}", program.display()),
            (Some(ns), None) => format!("ends after {} s", Duration::from_nanos(ns).as_secs_f64()),
            (None, None) => "Ctrl-C ends it".to_owned(),
        }
    }

    fn explain(&self, summary: &str, checked: Option<Checked>, output: &Path) -> std::io::Result<()> {
        let mut out = std::io::stdout().lock();
        writeln!(out, "{summary}")?;
        if let Some(checked) = checked {
            writeln!(out, "{}", checked.sentence)?;
        }
        writeln!(out, "explain it with: kvmscope report {}", output.display())?;
        out.flush()
    }

    /// Says why, and what is there all the same. The manifest still names the partial parts.
    fn ended_early(&self, live: Live, error: anyhow::Error) -> anyhow::Result<Exit> {
        complain(&error);
        bail!("the recording is incomplete; to read what was recorded: kvmscope report {}", live.root().display())
    }

    fn plan(&self) -> anyhow::Result<Plan> {
        let keep = self.flight.keep();
        let mut plan = Plan { clock: self.clock.clone(), buffer_kib: self.buffer_size, keep, ..Plan::default() };
        let looks = self.live.then_some(self.live_every).into_iter().chain(self.flight.looks());
        if let Some(every) = looks.min() {
            plan.sweep = sweep(every);
        }
        plan.events.extend(self.events.iter().cloned());
        if let Some(wanted) = &self.vm {
            let vm = find_vm(Path::new("/proc"), wanted)?;
            if vm.tids.is_empty() {
                bail!(WrongUse(format!("process {} has ended", vm.pid)));
            }
            plan.tids = vm.tids;
        }
        Ok(plan)
    }

    fn manifest(&self, now: Utc) -> Recording {
        let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let name = self.machine.name.clone().or_else(|| (name != UNNAMED).then_some(name));
        Recording {
            machines: vec![Machine { name, identity: host::identity(Path::new("/")), ..self.machine.clone() }],
            ..Recording::made(&format!("kvmscope record {}", env!("CARGO_PKG_VERSION")), now.stamp())
        }
    }
}

/// The kernel's ring buffer has two pages at least (kernel/trace/ring_buffer.c, rb_allocate_cpu_buffer, Linux 6.12); in two
/// pages nothing is kept, so a buffer has as many as a burst of exits between two polls fills at the very least.
const LEAST_BUFFER_KIB: u64 = 64;

fn size(text: &str) -> Result<u64, String> {
    let kib = buffer_kib(text).ok_or_else(|| "write a size such as 512K, 8M or 1G".to_owned())?;
    if kib < LEAST_BUFFER_KIB {
        Err(format!("{LEAST_BUFFER_KIB}K is the smallest ring buffer of a CPU"))
    } else {
        Ok(kib)
    }
}

/// A look more often than this would see little but itself.
const FASTEST: Duration = Duration::from_millis(100);

fn rhythm(text: &str) -> Result<Duration, String> {
    let every = Duration::from_nanos(length(text)?);
    if every < FASTEST { Err("0.1 s is the minimum".to_owned()) } else { Ok(every) }
}

fn selection(text: &str) -> Result<Selection, String> {
    let parsed =
        Selection::parse(text).ok_or_else(|| "write system:name, such as kvm:kvm_exit, or system".to_owned())?;
    Ok(Selection { asked: true, ..parsed })
}

/// The command of the user that could not be run.
fn not_run(program: &OsString, error: &std::io::Error) -> anyhow::Error {
    anyhow!(WrongUse(format!("{}: {error}", program.display())))
}
