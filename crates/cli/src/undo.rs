//! `kvmscope undo`: put a host back as it was before commands that were killed, or whose changes were meant to stay.
//!
//! In: the journal. An entry whose process still runs is in use, and is left alone.

use crate::arguments::JournalPlace;
use anyhow::{anyhow, bail};
use base::shell::printable;
use clap::Args;
use lab::journal::{Entry, Journal, Reverted};
use process::Lines;
use process::exit::{Exit, complain};
use std::sync::atomic::AtomicBool;

/// Undo changes that kvmscope made on this host
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    kvmscope undo --list\n  \
    kvmscope undo\n  \
    kvmscope undo record-4711-0\n  \
    kvmscope undo 'record-*' 'tracefs-*'\n\n\
    Exit status: 0 all undone, 1 something could not be undone, 2 wrong usage.")]
pub(crate) struct Undo {
    /// Undo only these entries; record-* matches all with that prefix [default: all entries whose program no longer runs]
    #[arg(value_name = "ID")]
    ids: Vec<String>,
    /// List what would be undone, and change nothing
    #[arg(long, conflicts_with = "ids")]
    list: bool,
    #[command(flatten)]
    place: JournalPlace,
}

impl Undo {
    /// Undoes, or lists.
    pub(crate) fn run(&self) -> anyhow::Result<Exit> {
        let journal = self.place.journal();
        let mut lines = Lines::default();
        // Nobody changes meanwhile what is put back here.
        let _lock = if self.list || journal.is_empty()? { None } else { journal.lock(&AtomicBool::new(false))? };
        let (mut entries, mut exit) = read(&journal)?;
        if !self.ids.is_empty() {
            let (chosen, kept) = chosen(entries, &self.ids)?;
            entries = chosen;
            for (id, over) in kept {
                complain(&anyhow!(
                    "{over} changed the same setting after {id}; run `kvmscope undo {over}` first, or undo all together"
                ));
                exit = Exit::NoAnswer;
            }
        } else if !self.list {
            for name in journal.sweep()? {
                lines.say(format_args!(
                    "{}: removed; its program was killed before it changed anything",
                    printable(&name)
                ));
            }
        }
        if entries.is_empty() {
            lines.say("nothing to undo");
        }
        // The newest first: what was changed twice has been what the older entry made of it before the newer one.
        for entry in entries.into_iter().rev() {
            if self.list {
                show(&journal, &entry, &mut lines);
            } else if journal.is_owned(&entry) {
                lines.say(format_args!("{}: left alone, process {} still runs", entry.id, entry.owner.pid));
            } else if !undo(&journal, entry, &mut lines)? {
                exit = Exit::NoAnswer;
            }
        }
        lines.end()?;
        Ok(exit)
    }
}

/// The entries that can be understood; the others are complained of.
fn read(journal: &Journal) -> anyhow::Result<(Vec<Entry>, Exit)> {
    let (mut entries, mut exit) = (Vec::new(), Exit::Answered);
    for entry in journal.entries()? {
        match entry {
            Ok(entry) => entries.push(entry),
            Err(error) => {
                complain(&error.into());
                exit = Exit::NoAnswer;
            }
        }
    }
    Ok((entries, exit))
}

/// Ids of entries, each with the id of one that has to be undone first.
type Kept = Vec<(String, String)>;

/// The entries that `ids` name, and the ids of those that cannot be undone, each with a later one that stays and has changed the same since.
fn chosen(entries: Vec<Entry>, ids: &[String]) -> anyhow::Result<(Vec<Entry>, Kept)> {
    let names = |id: &String, entry: &Entry| match id.strip_suffix('*') {
        Some(start) => entry.id.starts_with(start),
        None => entry.id == *id,
    };
    let is_missing = |id: &&String| !id.ends_with('*') && !entries.iter().any(|entry| entry.id == **id);
    if let Some(id) = ids.iter().find(is_missing) {
        bail!("the journal has no entry {id}; `kvmscope undo --list` lists its entries");
    }
    let (mut chosen, mut kept, mut staying) = (Vec::new(), Vec::new(), Vec::<Entry>::new());
    for entry in entries.into_iter().rev() {
        match staying.iter().find(|newer| is_over(newer, &entry)).map(|over| over.id.clone()) {
            _ if !ids.iter().any(|id| names(id, &entry)) => staying.push(entry),
            None => chosen.push(entry),
            Some(over) => {
                kept.push((entry.id.clone(), over));
                staying.push(entry);
            }
        }
    }
    chosen.reverse();
    Ok((chosen, kept))
}

/// True if `newer` changes something that `older` has changed: what that set is what this one would put back.
fn is_over(newer: &Entry, older: &Entry) -> bool {
    newer.steps.iter().any(|step| older.steps.iter().any(|other| step.is_of_same(other)))
}

fn show(journal: &Journal, entry: &Entry, lines: &mut Lines) {
    let state = if journal.is_owned(entry) { "in use" } else { "left behind" };
    lines.say(format_args!("{}  {state}, process {}", entry.id, entry.owner.pid));
    entry.steps.iter().for_each(|step| lines.say(format_args!("  {step}")));
    if entry.steps.is_empty() {
        lines.say("  nothing was changed");
    }
}

/// True if all of the entry is as it was.
fn undo(journal: &Journal, entry: Entry, lines: &mut Lines) -> anyhow::Result<bool> {
    let id = entry.id.clone();
    let mut whole = true;
    if entry.steps.is_empty() {
        lines.say(format_args!("{id}: removed; nothing was changed"));
    }
    for (step, outcome) in entry.finish(journal.proc())? {
        match outcome {
            Reverted::Done => lines.say(format_args!("{id}: undone: {step}")),
            Reverted::LeftAlone(why) => lines.say(format_args!("{id}: left alone: {step}: {why}")),
            Reverted::Failed(why) => {
                complain(&anyhow!("{id}: {step} could not be undone: {why}; it stays in the journal"));
                whole = false;
            }
        }
    }
    Ok(whole)
}
