//! `kvmscope bench memory`: what is in the memory of a VM that runs, and how much of it is dirtied.

use super::place::PlaceOptions;
use crate::arguments::SurveyOptions;
use clap::Args;
use process::exit::Exit;
use process::interrupt::Interrupt;

/// Survey the memory of a running VM from outside: zeros, compressibility, and what is dirtied
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    kvmscope bench memory --vm web\n  \
    kvmscope bench memory --vm 4711 --windows 100ms,1s,10s -o web-memory\n  \
    kvmscope bench memory --vm web --qmp /run/web.qmp --json | jq '.sections[].tables.working_set'\n  \
    kvmscope plan migration --survey web-memory --bandwidth 10Gbit\n\n\
    The survey allocates no guest memory: holes are counted, never read, and swapped-out pages stay swapped out. Needs root, or the VM's user.\n\
    Exit status: 0 answered, 1 nothing could be measured, 2 wrong usage, 3 a finding at or above --fail-on.\n\
    With --json and without -o, no recording is kept.")]
pub(super) struct Memory {
    /// The VM's name, or the id of its process
    #[arg(long, value_name = "NAME|PID")]
    vm: String,
    #[command(flatten)]
    how: SurveyOptions,
    #[command(flatten)]
    place: PlaceOptions,
}

impl Memory {
    /// Looks, and says what is there.
    pub(super) fn run(&self) -> anyhow::Result<Exit> {
        let place = self.place.begin("memory", None, Interrupt::watch()?)?;
        let stop = place.interrupt.hold();
        match self.how.look(&self.vm, true, &mut |_| {}, &stop) {
            Ok(bench) => place.finish(&bench, &self.place),
            Err(error) => {
                place.interrupt.wait_if_asked();
                place.abandon()?;
                Err(error)
            }
        }
    }
}
