//! `kvmscope undo`: put a host back as it was before commands that were killed, or whose changes were meant to stay.
//!
//! In: the journal. An entry whose process still runs is being worked on, and is left alone.

use crate::arguments::JournalPlace;
use crate::exit::{Exit, complain};
use anyhow::{anyhow, bail};
use clap::Args;
use lab::journal::{Entry, Journal, Reverted};

/// Put back what was changed on this host
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    kvmscope undo --list\n  \
    kvmscope undo\n  \
    kvmscope undo record-4711-0\n\n\
    Exit status: 0 all is as it was, 1 something could not be put back, 2 wrong use.")]
pub struct Undo {
    /// Undo this entry alone; without it all whose program no longer runs
    #[arg(value_name = "ID")]
    id: Option<String>,
    /// Show what would be undone, and change nothing
    #[arg(long, conflicts_with = "id")]
    list: bool,
    #[command(flatten)]
    place: JournalPlace,
}

impl Undo {
    /// Undoes, or lists.
    pub fn run(&self) -> anyhow::Result<Exit> {
        let journal = self.place.journal();
        let mut exit = Exit::Answered;
        let mut entries = Vec::new();
        for entry in journal.entries()? {
            match entry {
                Ok(entry) => entries.push(entry),
                Err(error) => {
                    complain(&error.into());
                    exit = Exit::NoAnswer;
                }
            }
        }
        if let Some(id) = &self.id {
            let Some(at) = entries.iter().position(|entry| entry.id == *id) else {
                bail!("the journal has no entry {id}; `kvmscope undo --list` shows what it has");
            };
            let newer = entries.split_off(at + 1);
            entries.drain(..at);
            if let Some(over) = newer.iter().find(|newer| is_over(newer, &entries[0])) {
                bail!(
                    "{} has changed what {id} changed since; `kvmscope undo {}` first, or all at once",
                    over.id,
                    over.id
                );
            }
        }
        if entries.is_empty() {
            println!("nothing to undo");
        }
        // The newest first: what was changed twice has been what the older entry made of it before the newer one.
        for entry in entries.into_iter().rev() {
            if self.list {
                show(&journal, &entry);
            } else if journal.is_owned(&entry) {
                println!("{}: left alone, process {} is still at work", entry.id, entry.owner.pid);
            } else if !undo(&journal, entry)? {
                exit = Exit::NoAnswer;
            }
        }
        Ok(exit)
    }
}

/// True if `newer` changes something that `older` has changed: what that set is what this one would put back.
fn is_over(newer: &Entry, older: &Entry) -> bool {
    newer.steps.iter().any(|step| older.steps.iter().any(|other| step.is_of_same(other)))
}

fn show(journal: &Journal, entry: &Entry) {
    let state = if journal.is_owned(entry) { "at work" } else { "left behind" };
    println!("{}  {state}, process {}", entry.id, entry.owner.pid);
    entry.steps.iter().for_each(|step| println!("  {step}"));
}

/// True if all of the entry is as it was.
fn undo(journal: &Journal, entry: Entry) -> anyhow::Result<bool> {
    let id = entry.id.clone();
    let mut whole = true;
    for (step, outcome) in entry.finish(journal.proc())? {
        match outcome {
            Reverted::Done => println!("{id}: undone: {step}"),
            Reverted::LeftAlone(why) => println!("{id}: left alone: {step}: {why}"),
            Reverted::Failed(why) => {
                complain(&anyhow!("{id}: {step} could not be undone: {why}; it stays in the journal"));
                whole = false;
            }
        }
    }
    Ok(whole)
}
