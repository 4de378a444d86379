//! `kvmscope top`: what the vCPUs of this host do right now, VM by VM, or what those of a recording did.
//!
//! ```text
//! fold, in the kernel --look, style, ..--> what was between two of them --> sections --> text, JSON, CSV
//! /proc alone, where that is not allowed ---^
//! ```
//! Nothing is recorded, nothing is changed, and nothing stays when it ends, however it ends.

#[cfg(feature = "full")]
mod on_screen;

use crate::arguments::{Answered, JournalPlace, Stdin, instant, kept, length, opened};
use crate::completed::vms;
#[cfg(feature = "full")]
use ::top::Screen;
use ::top::{Frame, Observer, Options, Replay, text};
use anyhow::bail;
use base::Utc;
use base::recording::Recording;
use clap::{Args, ValueHint};
use lab::tracefs::find_vm;
#[cfg(feature = "full")]
use on_screen::OnScreen;
use process::exit::{Exit, WrongUse};
use process::interrupt::Interrupt;
use process::{PageOptions, Staging};
#[cfg(feature = "full")]
use std::io::IsTerminal;
use std::io::Write;
use std::path::{Path, PathBuf};
#[cfg(feature = "full")]
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, SystemTime};

/// Show what vCPUs of this host do right now, or did in a recording
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    kvmscope top\n  \
    kvmscope top -d 2 --vm web\n  \
    kvmscope top --flight 30s\n  \
    kvmscope top --once\n  \
    kvmscope top --batch -n 5 -d 1 --width 120\n  \
    kvmscope top --once --json | jq '.sections[].tables'\n  \
    kvmscope top --once -d 10 --csv now\n  \
    kvmscope top fixtures/nested-vmx-shadow-on -d 0.1 --batch\n  \
    kvmscope top fixtures/nested-vmx-shadow-on --once -d 0.5 --at 0.5\n\n\
    On a terminal an interactive table, `?` lists its keys, q ends it; elsewhere, and with --batch, a block of text for each interval until Ctrl-C.\n\
    docs/use/live.md says what the columns mean, and what stays unknown on which host.\n\
    With root, or CAP_BPF and CAP_PERFMON, time is exact; without, no more than /proc shows.\n\
    Exit status: 0 shown, 1 nothing could be shown, 2 wrong usage.")]
pub(crate) struct Top {
    /// Replay this recording in place of observing this host
    #[arg(value_name = "RECORDING", value_hint = ValueHint::AnyPath, conflicts_with_all = ["no_irq", "measure_cost", "proc_only"])]
    recording: Option<PathBuf>,
    /// Time after its first event to begin at
    #[arg(long, value_name = "SECONDS", value_parser = instant, requires = "recording", default_value = "0")]
    at: u64,
    /// Show one interval and exit
    #[arg(long, conflicts_with = "intervals")]
    once: bool,
    /// Print blocks of text on a terminal too, as in a pipe
    #[arg(short, long)]
    batch: bool,
    /// Print N blocks of text and exit
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    intervals: Option<u32>,
    /// Seconds of an interval
    #[arg(short, long, value_name = "SECONDS", value_parser = interval, default_value = "1")]
    delay: Duration,
    /// Only this VM, vCPU by vCPU: its name, or the pid of its process
    #[arg(long, value_name = "NAME|PID", add = vms())]
    vm: Option<String>,
    /// Leave the host's interrupts out: what they interrupt gets their time
    #[arg(long)]
    no_irq: bool,
    /// Have the kernel measure the cost of observing, which adds a little to it
    #[arg(long)]
    measure_cost: bool,
    /// Read /proc alone, as without root
    #[arg(long)]
    proc_only: bool,
    /// On a terminal, keep the last TIME of events; key f saves them as a recording
    #[arg(long, value_name = "TIME", value_parser = kept, conflicts_with_all = ["recording", "once", "batch", "intervals"])]
    flight: Option<Duration>,
    /// Print one JSON object (schema kvmscope/1) instead of text; with --once
    #[arg(long, requires = "once")]
    json: bool,
    /// Also write each table as a CSV file into DIR; with --once
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, requires = "once")]
    csv: Option<PathBuf>,
    /// Replace existing files
    #[arg(long, requires = "csv")]
    force: bool,
    #[command(flatten)]
    place: JournalPlace,
    #[command(flatten)]
    page: PageOptions,
}

/// Where intervals come from.
enum Source {
    /// This host, of all VMs or of the one whose process has this id.
    Host(Observer, Option<u32>),
    Recorded(Replay),
}

impl Source {
    /// The next one; `None` where a recording ends.
    fn frame(&mut self, every: Duration) -> anyhow::Result<Option<Frame>> {
        match self {
            Source::Host(observer, pid) => observer.frame(*pid).map(Some),
            Source::Recorded(replay) => Ok(replay.frame(every)),
        }
    }

    /// When the last one ended: the time here, or the place in the recording.
    #[cfg(feature = "full")]
    fn time(&self) -> String {
        match self {
            Source::Host(..) => Utc::of(SystemTime::now()).stamp(),
            Source::Recorded(replay) => replay.position(),
        }
    }

    /// What JSON says that it is of.
    fn recording(&self) -> Recording {
        match self {
            Source::Host(..) => {
                let created = Utc::of(SystemTime::now()).stamp();
                Recording::made(&format!("kvmscope top {}", env!("CARGO_PKG_VERSION")), created)
            }
            Source::Recorded(replay) => replay.recording().clone(),
        }
    }
}

/// Shorter intervals show little but the look itself, longer ones nothing of now.
const SHORTEST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(3600);

fn interval(text: &str) -> Result<Duration, String> {
    let delay = Duration::from_nanos(length(text)?);
    match (SHORTEST..=LONGEST).contains(&delay) {
        true => Ok(delay),
        false => Err("an interval is 0.1 s to an hour".to_owned()),
    }
}

impl Top {
    /// Looks again and again, and shows what was in between.
    pub(crate) fn run(&self) -> anyhow::Result<Exit> {
        let interrupt = Interrupt::watch()?;
        self.csv.as_deref().map_or(Ok(()), |directory| Staging::check_directory(directory, self.force))?;
        let stdin = Stdin::default();
        let mut source = match &self.recording {
            Some(path) => Source::Recorded(self.replay(path, &stdin, &interrupt)?),
            None => {
                let find = |wanted: &str| find_vm(Path::new("/proc"), wanted);
                let pid = self.vm.as_deref().map(find).transpose()?.map(|vm| vm.pid);
                let options =
                    Options { interrupts: !self.no_irq, measure: self.measure_cost, proc_only: self.proc_only };
                Source::Host(Observer::new(Path::new("/"), &options)?, pid)
            }
        };
        #[cfg(feature = "full")]
        if self.has_screen() {
            return self.screen(&mut source, &interrupt);
        }
        if self.flight.is_some() {
            let here = if cfg!(feature = "full") { "there is no terminal" } else { "this build has none" };
            bail!(WrongUse(format!(
                "--flight is for the interactive table, and {here}; elsewhere: kvmscope record --flight --trigger fifo"
            )));
        }
        let most = if self.once { Some(1) } else { self.intervals };
        let mut next = Instant::now();
        for number in 0.. {
            if most.is_some_and(|most| number >= most) {
                break;
            }
            next += self.delay;
            // Nobody waits for the past.
            if self.recording.is_none() {
                std::thread::sleep(next.saturating_duration_since(Instant::now()));
            }
            let Some(frame) = source.frame(self.delay)? else { break };
            self.show(&frame, &source, number > 0, &interrupt)?;
        }
        Ok(Exit::Answered)
    }

    fn replay(&self, path: &Path, stdin: &Stdin, interrupt: &Interrupt) -> anyhow::Result<Replay> {
        let input = analysis::open(opened(path, stdin, interrupt)?)?;
        Replay::of(input, self.vm.clone(), Duration::from_nanos(self.at))
    }

    /// Whether somebody sits there who presses keys.
    #[cfg(feature = "full")]
    fn has_screen(&self) -> bool {
        let is_wanted = !self.once && !self.batch && self.intervals.is_none();
        let is_able = std::env::var_os("TERM").is_some_and(|terminal| !terminal.is_empty() && terminal != "dumb");
        is_wanted && is_able && std::io::stdin().is_terminal() && std::io::stdout().is_terminal()
    }

    #[cfg(feature = "full")]
    fn screen(&self, source: &mut Source, interrupt: &Interrupt) -> anyhow::Result<Exit> {
        let stop = interrupt.hold();
        let mut screen = Screen::new(self.delay, self.vm.is_some(), self.page.page().ascii);
        let mut shown = OnScreen::new(source, self.flight, self.place.directory())?;
        ::top::show(&mut screen, self.delay, &mut shown, &stop)?;
        // The screen is gone with what it said.
        for place in shown.saved() {
            println!("saved: kvmscope report {}", place.display());
        }
        Ok(if stop.load(Ordering::Relaxed) { Exit::Interrupted } else { Exit::Answered })
    }

    fn show(&self, frame: &Frame, source: &Source, is_later: bool, interrupt: &Interrupt) -> anyhow::Result<()> {
        if self.vm.is_some() && frame.vcpus.is_empty() && self.once {
            bail!(WrongUse("that VM has no vCPU that could be seen in the interval".to_owned()));
        }
        let page = self.page.page();
        let sections = || {
            let about = frame.floor.clone();
            analysis::flow::live::sections(&frame.machine, &frame.vcpus, about, frame.head.line(self.delay))
        };
        if let Some(directory) = &self.csv {
            let sections = sections();
            let fill = |partial: &Path| show::csv::write_csv(&sections, None, partial);
            Staging::new(interrupt).directory(directory, fill)?;
        }
        let mut out = std::io::stdout().lock();
        if self.json {
            let answered = Answered::of(source.recording(), sections(), Vec::new());
            show::json::write(&mut out, "top", &[answered.shown()])?;
        } else {
            let gap = if is_later { "\n" } else { "" };
            write!(out, "{gap}{}", text(frame, self.delay, &page, self.vm.is_some()))?;
        }
        Ok(out.flush()?)
    }
}
