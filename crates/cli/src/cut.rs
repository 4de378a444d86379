//! `kvmscope cut`: a smaller recording out of a window of time.
//!
//! In: a recording and a window on its axis of time. Out: a recording directory of its own, with the same machines and
//! the same emulation mark, whose traces hold the window's events byte for byte as they were; host snapshots, bench
//! results and notes are copied whole. Which threads run vCPUs, and what they are called, is kept beside the traces: the
//! events that say so may lie outside the window.
//!
//! ```text
//! L0 mono  |-------[====]--|      the axis is that of `report`: it starts at the first event of the outermost machine
//! L0 mono      |---[====]------|  what shares its clock, or is related to it by the recording's pairs of clocks
//! L1 tsc       |---[====]------|  a guest whose clock was aligned
//! ```
//! A trace that nothing relates to the axis counts from its own first event.

use crate::arguments::{Recordings, instant, is_dash};
use analysis::Input;
use analysis::facts::ledger::line;
use analysis::facts::walk::cut_from;
use anyhow::{anyhow, bail};
use base::Span;
use base::number::{duration, many};
use base::recording::{CUT_FROM_FILE, CutFrom, Destination, Draft, Part, PartKind, PartState, Recording, Shown};
use clap::{Args, ValueHint};
use process::Progress;
use process::exit::{Exit, WrongUse, as_named, complain, print};
use process::interrupt::Interrupt;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use trace::{Event, Listener, Reading, Request, Totals};

/// Extract a time window into a smaller recording
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    kvmscope cut trace.dat --from 1.5 --to 2 -o short\n  \
    kvmscope cut perf.data --to 5 -o begin && perf script -i begin/L0/perf.data\n  \
    kvmscope cut recording --from 10 -o end\n\n\
    Exit status: 0 cut, 1 nothing could be cut, 2 wrong usage.")]
pub(crate) struct Cut {
    #[command(flatten)]
    recordings: Recordings,
    /// Directory of the new recording
    #[arg(short, long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    output: PathBuf,
    /// Replace an existing recording
    #[arg(long)]
    force: bool,
    /// Start of the window, in seconds since the first event, as in report; a machine whose clock is not aligned with the others counts
    /// from its own first event
    #[arg(long, value_name = "SECONDS", value_parser = instant, default_value = "0")]
    from: u64,
    /// End of the window, in seconds since the first event [default: the end of the recording]
    #[arg(long, value_name = "SECONDS", value_parser = instant)]
    to: Option<u64>,
}

impl Cut {
    /// Cuts every trace of the recording.
    pub(crate) fn run(&self) -> anyhow::Result<Exit> {
        let window = Span { from_ns: self.from, to_ns: self.to.unwrap_or(u64::MAX) };
        if window.length_ns() == 0 {
            bail!(WrongUse("--from must be before --to".to_owned()));
        }
        let wanted = self.recordings.wanted();
        let [wanted] = wanted.as_slice() else {
            bail!(WrongUse("cut takes one recording; combine traces of several machines with --part".to_owned()));
        };
        if is_dash(&self.output) {
            bail!(WrongUse("a recording is a directory and cannot go to stdout; name one: -o DIR".to_owned()));
        }
        let interrupt = Interrupt::watch()?;
        let draft = interrupt.draft(&Destination { path: self.output.clone(), replace: self.force })?;
        let recording = self.recordings.open(wanted, &interrupt)?;
        recording.problems.iter().for_each(|problem| complain(&anyhow::Error::msg(problem.text.clone())));
        let made = Shown { place: draft.root().to_owned(), name: self.output.clone() };
        let shown = [recording.shown.as_slice(), &[made]].concat();
        self.write(recording, draft, window, &interrupt).map_err(|error| as_named(error, &shown))
    }

    fn write(&self, recording: Recording, draft: Draft, window: Span, interrupt: &Interrupt) -> anyhow::Result<Exit> {
        let (mut parts, mut places, mut events) = (Vec::new(), BTreeMap::new(), 0);
        let input = analysis::open(recording.clone())?;
        let progress = Progress::new(true);
        let windows = line::windows(&input, window, &mut progress.hear());
        progress.finish();
        let of_trace = |index: usize| input.parts.iter().position(|part| part.index == index);
        let is_kept = |part: &Part| part.kind != PartKind::Notes || !part.path.ends_with(CUT_FROM_FILE);
        for (index, part) in recording.parts.iter().enumerate().filter(|(_, part)| is_kept(part)) {
            let window = of_trace(index).map_or(window, |place| windows.own[place]);
            let path = free_place(new_path(&recording, part), &parts);
            let cut = Part { path, state: PartState::Complete, ..part.clone() };
            let (from, to) = (recording.root.join(&part.path), draft.part(&cut.path)?);
            let (mut problems, mut from_ns) = (Vec::new(), window.from_ns);
            match part.kind {
                PartKind::TraceDat => trace::tracedat::cut(&from, &to, window)?,
                PartKind::Ctf => {
                    let cut = trace::ctf::cut(&from, &to, window.from_ns, window.to_ns)?;
                    (problems, from_ns) = (cut.problems, cut.from_ns);
                }
                PartKind::PerfData => problems = trace::perfdata::cut(&from, &to, window)?,
                PartKind::Text => match trace::text::cut(&from, &to, window)? {
                    Some(damage) => problems = damage,
                    // A text without events is none of a trace.
                    None => continue,
                },
                PartKind::Host
                | PartKind::Bench
                | PartKind::Samples
                | PartKind::Qmp
                | PartKind::Pmd
                | PartKind::Datapath
                | PartKind::Budget
                | PartKind::Plan
                | PartKind::Prediction
                | PartKind::Heartbeat
                | PartKind::Network
                | PartKind::Processes
                | PartKind::MovedMemory
                | PartKind::Hibernation
                | PartKind::Counts
                | PartKind::Notes => {
                    process::carry::copy(&recording.root, &from, &to)?;
                }
            }
            problems.iter().for_each(|problem| complain(&anyhow::Error::msg(problem.text.clone())));
            if part.kind.is_trace() {
                events += counted(&to)?.events();
            }
            places.insert(index, (cut.path.clone(), from_ns));
            parts.push(cut);
        }
        if events == 0 {
            return Err(empty(&recording));
        }
        keep_known(&input, &places, &draft, &mut parts)?;
        let each = if windows.apart {
            "; traces whose clock is not aligned with the others count from their own first event"
        } else {
            ""
        };
        let (version, from) = (env!("CARGO_PKG_VERSION"), self.from);
        let to = self.to.map_or("the end".to_owned(), |to| format!("{to} ns"));
        let tool = Some(format!("kvmscope cut {version}: {from} ns to {to}{each}"));
        interrupt.whole(|| draft.finish(Recording { tool, parts, ..recording }))?;
        let place = self.output.display();
        print(&format!("{place}: {}; explain it with: kvmscope report {place}", many(events, "event")))?;
        Ok(Exit::Answered)
    }
}

/// What a trace holds.
fn counted(path: &Path) -> anyhow::Result<Totals> {
    struct Nobody;
    impl Listener for Nobody {
        fn event(&mut self, _: &Event<'_>) {}
    }
    let trace = trace::open(path)?;
    let request = Request::default();
    let reading = Reading { request: &request, fitted: trace::calibrate::fit(trace.as_ref()) };
    Ok(trace::replay(trace.as_ref(), &reading, &mut Nobody))
}

/// Says how long the recording is in which nothing lies in the window.
fn empty(recording: &Recording) -> anyhow::Error {
    let traces = recording.parts.iter().filter(|part| part.kind.is_trace());
    let spans = traces.filter_map(|part| counted(&recording.root.join(&part.path)).ok()?.span_ns);
    let longest_ns = spans.map(|(first, last)| last - first).max().unwrap_or(0);
    let length = duration(longest_ns as f64);
    anyhow!(
        "the window has no events; the recording is {length} long, and --from and --to are seconds since its first \
         event"
    )
}

/// Where a part lies in the new recording: where it lay, or at its default place if it was a bare file. What a killed
/// recorder left becomes whole.
fn new_path(recording: &Recording, part: &Part) -> PathBuf {
    if part.kind == PartKind::TraceDat && part.state == PartState::Partial {
        return part.path.with_file_name("trace.dat");
    }
    let has_place = !recording.root.as_os_str().is_empty() && part.path.is_relative();
    if has_place { part.path.clone() } else { part.default_place() }
}

/// A place that none of `parts` has: the one it would have, else with a number behind its name.
fn free_place(place: PathBuf, parts: &[Part]) -> PathBuf {
    let numbered = |number: usize| {
        let mut name = place.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{number}"));
        place.with_file_name(name)
    };
    let mut places = std::iter::once(place.clone()).chain((2..parts.len() + 2).map(numbered));
    places.find(|place| parts.iter().all(|part| part.path != *place)).unwrap_or(place)
}

/// Keeps beside the traces what the whole recording tells of their threads; `places` has where each part of it lies now, and
/// when its window begins.
fn keep_known(
    input: &Input,
    places: &BTreeMap<usize, (PathBuf, u64)>,
    draft: &Draft,
    parts: &mut Vec<Part>,
) -> anyhow::Result<()> {
    let mut files: BTreeMap<PathBuf, (String, CutFrom)> = BTreeMap::new();
    for part in &input.parts {
        let Some((place, from_ns)) = places.get(&part.index) else { continue };
        let name = Path::new(place.file_name().unwrap_or_default());
        let known = cut_from::of_part(part, *from_ns, name);
        if !known.vcpus.is_empty() {
            let file = files.entry(place.with_file_name(CUT_FROM_FILE)).or_default();
            file.0.clone_from(&part.machine);
            file.1.traces.push(known);
        }
    }
    for (path, (machine, known)) in files {
        known.write(&draft.part(&path)?)?;
        parts.push(Part { path, machine, kind: PartKind::Notes, clock: None, state: PartState::Complete });
    }
    Ok(())
}
