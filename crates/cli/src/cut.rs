//! `kvmscope cut`: a smaller recording out of a window of time.
//!
//! In: a recording and a window on its axis of time. Out: a recording directory of its own, with the same machines and
//! the same emulation mark, whose traces hold the window's events byte for byte as they were; host snapshots, bench
//! results and notes are copied whole.
//!
//! ```text
//! L0 mono  |---a---[====]--|      traces of one machine with one clock share an axis: it starts at the earliest
//! L0 mono      |---[====]------|  event of both
//! L1 tsc       |-------[====]--|  any other trace has an axis of its own
//! ```

use crate::arguments::{Recordings, nanoseconds};
use crate::exit::{Exit, WrongUse, complain};
use crate::interrupt::Interrupt;
use crate::tree;
use anyhow::{Context, bail};
use base::Span;
use base::recording::{Part, PartKind, PartState, Recording};
use clap::Args;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Make a smaller recording out of a window of time
#[derive(Args)]
#[command(after_help = "Example:\n  kvmscope cut trace.dat --from 1.5 --to 2 -o short")]
pub struct Cut {
    #[command(flatten)]
    recordings: Recordings,
    /// Directory of the new recording; it must not be there yet, or be empty
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    /// Start of the window, in seconds since the first event; machines with clocks of their own are cut each on its own
    #[arg(long, value_name = "SECONDS", value_parser = nanoseconds, default_value = "0")]
    from: u64,
    /// End of the window, in seconds since the first event
    #[arg(long, value_name = "SECONDS", value_parser = nanoseconds)]
    to: u64,
}

impl Cut {
    /// Cuts every trace of the recording.
    pub fn run(&self) -> anyhow::Result<Exit> {
        let window = Span { from_ns: self.from, to_ns: self.to };
        if window.length_ns() == 0 {
            bail!(WrongUse("--from must lie before --to".to_owned()));
        }
        let wanted = self.recordings.wanted();
        let [wanted] = wanted.as_slice() else {
            bail!(WrongUse("cut takes one recording; put traces of several machines together by --part".to_owned()));
        };
        let recording = self.recordings.open(wanted)?;
        let interrupt = Interrupt::watch()?;
        let draft = interrupt.draft(&self.output)?;
        let mut parts = Vec::new();
        let axes = Axes::of(&recording)?;
        for (index, part) in recording.parts.iter().enumerate() {
            let window = axes.window(index, window);
            let cut = Part { path: new_path(&recording, part), state: PartState::Complete, ..part.clone() };
            let (from, to) = (recording.root.join(&part.path), draft.part(&cut.path)?);
            match part.kind {
                PartKind::TraceDat => trace::tracedat::cut(&from, &to, window)?,
                PartKind::Ctf => {
                    let cut = trace::ctf::cut(&from, &to, window.from_ns, window.to_ns)?;
                    cut.problems.iter().for_each(|problem| complain(&anyhow::Error::msg(problem.text.clone())));
                }
                PartKind::PerfData | PartKind::Text => {
                    bail!("{}: cut takes trace.dat and CTF; a perf.data or text part cannot be cut", from.display())
                }
                PartKind::Host | PartKind::Bench | PartKind::Qmp | PartKind::Notes => {
                    tree::copy(&from, &to).with_context(|| format!("copying {}", from.display()))?;
                }
            }
            parts.push(cut);
        }
        let each = if axes.starts.len() > 1 { ", on each clock since its own first event" } else { "" };
        let (version, from, to) = (env!("CARGO_PKG_VERSION"), self.from, self.to);
        let tool = Some(format!("kvmscope cut {version}: {from} ns to {to} ns{each}"));
        interrupt.whole(|| draft.finish(Recording { tool, parts, ..recording }))?;
        Ok(Exit::Answered)
    }
}

/// Axes of time, and how each part's own lies on its one.
struct Axes {
    /// Earliest event by machine and clock.
    starts: BTreeMap<(String, String), u64>,
    /// Of each part: its axis and its own first event; `None` for what is no trace.
    parts: Vec<Option<((String, String), u64)>>,
}

impl Axes {
    fn of(recording: &Recording) -> anyhow::Result<Self> {
        let mut axes = Self { starts: BTreeMap::new(), parts: Vec::new() };
        for part in &recording.parts {
            if !matches!(part.kind, PartKind::TraceDat | PartKind::Ctf) {
                axes.parts.push(None);
                continue;
            }
            let trace = trace::open(&recording.root.join(&part.path))?;
            let fitted = trace::calibrate::fit(trace.as_ref());
            let origin_ns = trace::replay::origin_ns(trace.as_ref(), fitted);
            let axis = (part.machine.clone(), trace.facts().clock.name.clone());
            let start_ns = axes.starts.entry(axis.clone()).or_insert(origin_ns);
            *start_ns = origin_ns.min(*start_ns);
            axes.parts.push(Some((axis, origin_ns)));
        }
        Ok(axes)
    }

    /// The window for a part, in ns since that part's own first event.
    fn window(&self, part: usize, window: Span) -> Span {
        let Some((axis, origin_ns)) = &self.parts[part] else { return window };
        let late_ns = origin_ns - self.starts[axis];
        Span { from_ns: window.from_ns.saturating_sub(late_ns), to_ns: window.to_ns.saturating_sub(late_ns) }
    }
}

/// Where a part lies in the new recording: where it lay, or at its default place if it was a bare file. What a killed
/// recorder left becomes whole.
fn new_path(recording: &Recording, part: &Part) -> PathBuf {
    if part.kind == PartKind::TraceDat && part.state == PartState::Partial {
        return part.path.with_file_name("trace.dat");
    }
    if !recording.root.as_os_str().is_empty() {
        return part.path.clone();
    }
    let name = if part.kind == PartKind::Ctf { "ctf" } else { "trace.dat" };
    Path::new(&part.machine).join(name)
}
