//! `kvmscope bench zeropages`: how fast one core tells which pages are zeros, beside reading them.

use super::launches::{LaunchOptions, Work};
use super::place::PlaceOptions;
use base::Bench;
use clap::Args;
use lab::environment::{self, How};
use labs::bench::launch;
use labs::bench::zeropages::{Plan, memory_bytes};
use process::exit::Exit;
use process::interrupt::Interrupt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Measure how fast one core finds zero pages, as a live migration does in all of a guest's memory
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    kvmscope bench zeropages\n  \
    kvmscope bench zeropages --launches 10 --cpu 3 -o zeros\n  \
    kvmscope bench zeropages --json | jq '.sections[].tables.scans'\n\n\
    Needs no root. Looks at 256 KiB in the cache, and at twice the last-level cache of memory if the machine has it to spare.\n\
    Exit status: 0 answered, 1 nothing could be measured, 2 wrong usage, 3 a finding at or above --fail-on.\n\
    With --json and without -o, no recording is kept.")]
pub(super) struct ZeroPages {
    #[command(flatten)]
    launches: LaunchOptions,
    #[command(flatten)]
    place: PlaceOptions,
}

impl ZeroPages {
    /// Measures, and says what came of it.
    pub(super) fn run(&self) -> anyhow::Result<Exit> {
        let root = Path::new("/");
        let memory = memory_bytes(root);
        let plan = Plan {
            root: PathBuf::from(root),
            cpu: self.launches.on.cpu()?,
            target: Duration::from_nanos(self.launches.seconds),
            fifo: self.launches.on.fifo()?,
            memory_bytes: memory.as_ref().ok().copied(),
            launch: 0,
        };
        let mut environment = environment::here(How { fifo: plan.fifo, ..How::default() });
        environment.insert(base::bench::NS_PER_TICK.to_owned(), launch::ns_per_tick().to_string());
        let mut bench = Bench::new("zeropages", environment);
        bench.notes.extend(memory.err().map(|error| format!("Memory was not scanned: {error}.")));
        if cfg!(debug_assertions) {
            bench.notes.push("This program was built without optimization: it is slower than it could be.".to_owned());
        }
        let work = Work { results: plan.results(), rounds: 1, job: &|number, _| Ok(plan.launch(number)?), live: None };
        self.launches.run(bench, &work, &self.place, Interrupt::watch()?)
    }
}
