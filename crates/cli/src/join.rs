//! `kvmscope join`: parts made on different machines become one recording.
//!
//! In: recordings, each made where its machine is (`record` on the host, `record --as L1` in its guest). Out: a recording
//! with all machines and parts, which `report` puts on one axis of time.

use crate::arguments::{DestinationOptions, Stdin, opened};
use anyhow::bail;
use base::number::many;
use base::recording::{Error, Machine, ParentLink, PartState, Recording, join};
use base::utc::Utc;
use clap::Args;
use process::carry;
use process::exit::{Exit, WrongUse, complain, print};
use process::interrupt::Interrupt;
use std::path::PathBuf;
use std::time::SystemTime;

/// Join recordings of several machines, a host and its guest, in one
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    kvmscope join host-recording guest-recording -o both\n  \
    kvmscope join host web db --parent L1=L0 --parent L1-db=L0\n\n\
    Files are hard-linked where possible, else copied. A machine whose id is already taken is\n\
    named after its recording: L1 of `db` becomes L1-db.\n\
    Exit status: 0 joined, 1 something could not be read, 2 the recordings cannot be joined.")]
pub(crate) struct Join {
    /// Recording directories or bare trace files (assumed to be of L0)
    #[arg(value_name = "PATH", required = true, num_args = 2..)]
    paths: Vec<PathBuf>,
    #[command(flatten)]
    destination: DestinationOptions,
    /// Which machine hosts which [default: a machine is a guest of the one at the nearest outer level]
    #[arg(long, value_name = "GUEST=HOST", value_parser = parent)]
    parent: Vec<ParentLink>,
}

impl Join {
    /// Joins them and says what came of it.
    pub(crate) fn run(&self) -> anyhow::Result<Exit> {
        let destination = self.destination.of("join", Utc::of(SystemTime::now()))?;
        let (stdin, interrupt) = (Stdin::default(), Interrupt::watch()?);
        let each = self.paths.iter().map(|path| opened(path, &stdin, &interrupt));
        let recordings = each.collect::<Result<Vec<_>, _>>()?;
        let joined = join(&recordings, &self.parent).map_err(|error| match error {
            Error::Named(sentence) => anyhow::Error::new(WrongUse(sentence)),
            other => other.into(),
        })?;
        let notes = joined.recording.problems.iter().map(|problem| &problem.text).chain(&joined.notes);
        notes.for_each(|note| complain(&anyhow::Error::msg(note.clone())));
        if let Some(missing) = joined.from.iter().find(|from| !from.path.exists()) {
            bail!("{} is in the manifest but missing; the recording is incomplete", missing.path.display());
        }
        let draft = interrupt.draft(&destination)?;
        for (part, from) in joined.recording.parts.iter().zip(&joined.from) {
            // What a recorder may still be writing is copied: a link would change with it.
            let carried = if part.state == PartState::Complete { carry::link_or_copy } else { carry::copy };
            carried(&from.root, &from.path, &draft.part(&part.path)?)?;
        }
        let titles: Vec<String> = recordings.iter().map(Recording::title).collect();
        let tool = format!("kvmscope join {}: {}", env!("CARGO_PKG_VERSION"), titles.join(", "));
        let whole = Recording { tool: Some(tool), problems: Vec::new(), ..joined.recording };
        let recording = interrupt.whole(|| draft.finish(whole))?;
        let machines: Vec<String> = recording.machines.iter().map(told).collect();
        let parts = many(recording.parts.len() as u64, "part");
        let place = self.destination.finished(&Recording { root: destination.path, ..recording }, &interrupt)?;
        print(&format!("{}: {parts} of {}", place.display(), machines.join(", ")))?;
        Ok(Exit::Answered)
    }
}

fn told(machine: &Machine) -> String {
    let Machine { id, parent, .. } = machine;
    parent.as_ref().map_or_else(|| id.clone(), |parent| format!("{id} (a guest of {parent})"))
}

fn parent(text: &str) -> Result<ParentLink, String> {
    match text.split_once('=') {
        Some((child, parent)) if !child.is_empty() && !parent.is_empty() => {
            Ok(ParentLink { child: child.to_owned(), parent: parent.to_owned() })
        }
        _ => Err("write GUEST=HOST with the ids of two machines, such as L1=L0".to_owned()),
    }
}
