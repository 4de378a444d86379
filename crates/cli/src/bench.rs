//! `kvmscope bench`: what exits, clock reads and whole programs cost on this machine, what is in a guest's memory, and what paths
//! between guests carry.
//!
//! ```text
//! exits, clock, zeropages,
//! channel        the same program again, once for each launch --> results --------\
//! timer          a loop that reads the counter, and the host beside it -----------/
//! irq            interrupts from outside a guest, and the host beside it ----------/
//! memory         a VM that runs, looked at from outside ------------------------+
//! macro -- CMD   the command, again and again --------------------------------> a recording --> its answer
//! ```

mod beside;
mod channel;
mod clock;
mod exits;
mod irq;
mod launches;
pub mod memory;
mod place;
mod status;
mod timer;
mod whole;
mod zeropages;

use crate::exit::Exit;
use clap::{Args, Subcommand};

/// Measure what an exit, a clock read or a program costs on this machine
#[derive(Args)]
pub struct Bench {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    Exits(exits::Exits),
    Clock(clock::Clock),
    Timer(timer::Timer),
    Irq(irq::Irq),
    Memory(memory::Memory),
    #[command(name = "zeropages")]
    ZeroPages(zeropages::ZeroPages),
    Channel(Box<channel::Channel>),
    Macro(whole::Macro),
    /// One launch of a bench, its orders on standard input
    #[command(hide = true)]
    Launch,
}

/// What starts a launch.
const LAUNCH: &[&str] = &["bench", "launch"];

impl Bench {
    /// Measures, and says what came of it.
    pub fn run(&self) -> anyhow::Result<Exit> {
        match &self.what {
            What::Exits(exits) => exits.run(),
            What::Clock(clock) => clock.run(),
            What::Timer(timer) => timer.run(),
            What::Irq(irq) => irq.run(),
            What::Memory(memory) => memory.run(),
            What::ZeroPages(zeropages) => zeropages.run(),
            What::Channel(channel) => channel.run(),
            What::Macro(whole) => whole.run(),
            What::Launch => {
                lab::bench::launch::inside()?;
                Ok(Exit::Answered)
            }
        }
    }
}
