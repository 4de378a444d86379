//! Where the results of a bench go, and how they are answered.
//!
//! ```text
//! -o DIR, or nothing   a recording that stays: <machine>/bench/<name>.json, written again after each launch
//! --json without -o    the same in a temporary directory, gone when the answer is printed
//! Ctrl-C               the temporary directory goes; of the other what launches have measured stays, and is named
//! ```

use crate::arguments::{Answered, DestinationOptions, OutputOptions, machine};
use analysis::{Answers, Case, Given};
use anyhow::anyhow;
use base::recording::{ClockPair, Destination, Emulator, Live, Machine, Moment, Part, PartKind, PartState, Recording};
use base::{Bench, Utc};
use clap::Args;
use process::exit::{Exit, complain};
use process::interrupt::{Interrupt, remove};
use std::path::Path;
use std::time::SystemTime;
use tempfile::TempDir;

/// Options of every bench.
#[derive(Args)]
pub(super) struct PlaceOptions {
    #[command(flatten)]
    destination: DestinationOptions,
    /// Level of this machine, and its name, where it is a guest: L1, L1:web
    #[arg(long = "as", value_name = "LEVEL[:NAME]", value_parser = machine, default_value = Machine::RECORDED)]
    machine: Machine,
    /// No progress line on stderr
    #[arg(long)]
    pub no_progress: bool,
    #[command(flatten)]
    output: OutputOptions,
}

/// A recording with one bench in it.
pub(super) struct Place {
    live: Live,
    part: Part,
    /// What was recorded beside it.
    beside: Vec<Part>,
    temporary: Option<TempDir>,
    /// What a signal takes back.
    pub interrupt: Interrupt,
}

impl PlaceOptions {
    /// Makes the recording of a bench called `name`, of a guest that is `emulated` or of a real one.
    pub(super) fn begin(&self, name: &str, emulated: Option<Emulator>, interrupt: Interrupt) -> anyhow::Result<Place> {
        self.output.check(1, self.destination.replaces())?;
        let utc = Utc::of(SystemTime::now());
        let temporary = match (self.destination.is_named(), self.output.json()) {
            (false, true) => Some(interrupt.temporary("kvmscope-bench")?),
            _ => None,
        };
        let destination = match &temporary {
            Some(directory) => Destination::from(&directory.path().join("bench")),
            None => self.destination.of("bench", utc)?,
        };
        let output = destination.path.clone();
        let recording = Recording {
            emulated,
            machines: vec![Machine { identity: host::identity(Path::new("/")), ..self.machine.clone() }],
            ..Recording::made(&format!("kvmscope bench {name} {}", env!("CARGO_PKG_VERSION")), utc.stamp())
        };
        let path = Path::new(&self.machine.id).join("bench").join(format!("{name}.json"));
        let make = || Live::begin(&destination, recording);
        let kept = temporary.is_none();
        let tidy = |live: &Live| {
            let (root, results) = (output.clone(), live.path(&path));
            move || match results.exists() {
                true if kept => {
                    let stays = format!("partial results are kept: kvmscope report {}", root.display());
                    complain(&anyhow!("interrupted; {stays}"));
                }
                _ => remove(&root),
            }
        };
        let live = interrupt.making(make, tidy)?;
        let part = Part {
            path,
            machine: self.machine.id.clone(),
            kind: PartKind::Bench,
            clock: None,
            state: PartState::Partial,
        };
        Ok(Place { live, part, beside: Vec::new(), temporary, interrupt })
    }

    /// Prints what the recording answers.
    fn answer(&self, recording: Recording, command: &str, kept: bool, interrupt: &Interrupt) -> anyhow::Result<Exit> {
        let root = recording.as_named(&recording.root.to_string_lossy()).into_owned();
        let case = Case::new(analysis::open(recording)?, Given::default());
        let Answers { mut sections, problems, failed } = Answers::of(&case);
        if let Some(error) = failed.into_iter().next() {
            return Err(error.into());
        }
        if let Some(section) = sections.first_mut().filter(|_| kept) {
            section.about.push(format!("kept in {root}"));
            section.next.push(format!("kvmscope report {root}"));
        }
        let some = sections.iter().any(|section| section.tables.iter().any(|table| !table.rows.is_empty()));
        let exit =
            self.output.end(command, &[Answered::of(case.input().recording.clone(), sections, problems)], interrupt)?;
        Ok(if some { exit } else { Exit::NoAnswer })
    }
}

impl Place {
    /// The recording's directory.
    pub(super) fn root(&self) -> &Path {
        self.live.root()
    }

    /// Id of the machine in it.
    pub(super) fn machine(&self) -> &str {
        &self.part.machine
    }

    /// Notes what the clocks of the machine show now.
    pub(super) fn note_clocks(&mut self, at: Moment) {
        self.live.note_clocks(lab::clocks::pair(&self.part.machine, at));
    }

    /// What they showed.
    pub(super) fn clock_pairs(&self) -> &[ClockPair] {
        self.live.clock_pairs()
    }

    /// Adds what was recorded beside the bench.
    pub(super) fn add(&mut self, parts: Vec<Part>) {
        self.beside.extend(parts);
    }

    /// Writes what there is so far; the first time, the manifest names it.
    pub(super) fn keep(&mut self, bench: &Bench) -> anyhow::Result<()> {
        let path = self.live.path(&self.part.path);
        let first = !path.exists();
        bench.write(&path)?;
        if first {
            self.live.with(vec![self.part.clone()])?;
        }
        Ok(())
    }

    /// Writes the whole, and prints what it answers.
    pub(super) fn finish(mut self, bench: &Bench, options: &PlaceOptions) -> anyhow::Result<Exit> {
        self.keep(bench)?;
        let part = Part { state: PartState::Complete, ..self.part };
        let mut recording = self.live.finish([vec![part], self.beside].concat())?;
        let kept = self.temporary.is_none();
        if kept {
            recording.shown = options.destination.shown(&recording.root);
        }
        // Answered before it is packed: its files are read as they are asked for.
        let exit = options.answer(recording.clone(), &format!("bench {}", bench.bench), kept, &self.interrupt)?;
        if kept {
            options.destination.finished(&recording, &self.interrupt)?;
        }
        Ok(exit)
    }

    /// Takes everything back: nothing was measured.
    pub(super) fn abandon(self) -> anyhow::Result<()> {
        Ok(self.live.abandon()?)
    }
}
