//! `kvmscope cut`: a smaller recording out of a window of time.
//!
//! In: a recording and a window on its axis of time. Out: a recording directory of its own, with the same machines and
//! the same emulation mark, whose traces hold the window's events byte for byte as they were; host snapshots, bench
//! results and notes are copied whole.

use crate::arguments::{Recordings, nanoseconds};
use crate::exit::{Exit, WrongUse};
use anyhow::{Context, bail};
use base::Span;
use base::recording::{Draft, Part, PartKind, Recording};
use clap::Args;
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
    /// Start of the window, in seconds since the first event
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
        let draft = Draft::new(&self.output)?;
        let mut parts = Vec::new();
        for part in &recording.parts {
            let cut = Part { path: new_path(&recording, part), ..part.clone() };
            let (from, to) = (recording.root.join(&part.path), draft.part(&cut.path)?);
            match part.kind {
                PartKind::TraceDat => trace::tracedat::cut(&from, &to, window)?,
                PartKind::Ctf => trace::ctf::cut(&from, &to, window)?,
                PartKind::PerfData | PartKind::Text => {
                    bail!("{}: cut takes trace.dat and CTF; a perf.data or text part cannot be cut", from.display())
                }
                PartKind::Host | PartKind::Bench | PartKind::Qmp | PartKind::Notes => {
                    copy(&from, &to).with_context(|| format!("copying {}", from.display()))?;
                }
            }
            parts.push(cut);
        }
        let tool = Some(concat!("kvmscope cut ", env!("CARGO_PKG_VERSION")).to_owned());
        draft.finish(Recording { tool, parts, ..recording })?;
        Ok(Exit::Answered)
    }
}

/// Where a part lies in the new recording: where it lay, or at its default place if it was a bare file.
fn new_path(recording: &Recording, part: &Part) -> PathBuf {
    if !recording.root.as_os_str().is_empty() {
        return part.path.clone();
    }
    let name = if part.kind == PartKind::Ctf { "ctf" } else { "trace.dat" };
    Path::new(&part.machine).join(name)
}

/// Copies a file, or a directory with all that is in it. Links are left out: they may lead anywhere.
fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    let kind = std::fs::symlink_metadata(from)?.file_type();
    if kind.is_file() {
        std::fs::copy(from, to)?;
    } else if kind.is_dir() {
        std::fs::create_dir_all(to)?;
        for entry in std::fs::read_dir(from)? {
            let entry = entry?;
            copy(&entry.path(), &to.join(entry.file_name()))?;
        }
    }
    Ok(())
}
