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
#[cfg(feature = "channel")]
mod channel;
mod clock;
mod exits;
mod irq;
mod launches;
mod memory;
mod place;
mod status;
mod timer;
mod whole;
mod zeropages;

use clap::{Args, Subcommand};
use labs::bench::LAUNCHES;
use labs::bench::launch::{self, Launch};
use process::exit::Exit;

/// Measure what an exit, a clock read or a program costs here
#[derive(Args)]
pub(crate) struct Bench {
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
    #[cfg(feature = "channel")]
    Channel(Box<channel::Channel>),
    Macro(whole::Macro),
    /// One launch of a bench, its orders on standard input
    #[command(hide = true)]
    Launch,
}

/// All benches that measure in launches.
fn launches() -> Vec<Launch> {
    let launches = LAUNCHES.to_vec();
    #[cfg(feature = "channel")]
    let launches = [launches, vec![channel_bench::LAUNCH]].concat();
    launches
}

/// What starts a launch.
const LAUNCH: &[&str] = &["bench", "launch"];

impl Bench {
    /// Measures, and says what came of it.
    pub(crate) fn run(&self) -> anyhow::Result<Exit> {
        match &self.what {
            What::Exits(exits) => exits.run(),
            What::Clock(clock) => clock.run(),
            What::Timer(timer) => timer.run(),
            What::Irq(irq) => irq.run(),
            What::Memory(memory) => memory.run(),
            What::ZeroPages(zeropages) => zeropages.run(),
            #[cfg(feature = "channel")]
            What::Channel(channel) => channel.run(),
            What::Macro(whole) => whole.run(),
            What::Launch => {
                launch::inside(&launches())?;
                Ok(Exit::Answered)
            }
        }
    }
}
