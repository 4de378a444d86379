//! What does the same ring carry between two guests, through the memory of an `ivshmem` device?
//!
//! ```text
//! this process    memory (sealed memfd) --BAR 2--> QEMU, guest that sends      this program is its first process
//!                                       --BAR 2--> QEMU, guest that receives   the same
//!                 server of doorbells --eventfds--> both
//!                 disks <-- a line of JSON for each setup <-- both
//! ```
//! In: setups whose path is `PLAIN` or `DOORBELL`; one boot of both guests measures them all, each over a ring of a generation of its
//! own. Out: their runs. The guests are emulated (QEMU TCG): what arrives is real, and times are the emulator's.

mod control;
mod ends;
mod interrupts;
mod machines;
mod server;
mod stop;

pub use ends::{Ends, SIDE};

use super::rings::{self, Received};
use super::{Plan, name, named};
use base::bench::{Measured, Params};
use base::channel::{Run, Setup};
use ends::SentThere;
use lab::Error;
use machines::Answers;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::path::PathBuf;

/// The path through the memory of a device without interrupts.
pub const PLAIN: &str = "ivshmem-plain";
/// The path through the memory of a device whose register interrupts the other guest.
pub(crate) const DOORBELL: &str = "ivshmem-doorbell";

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Places {
    /// This program's file, the guests' first process.
    pub program: PathBuf,
    /// Where their kernel is kept and what they need meanwhile lies, if there is a place for it.
    pub cache: Option<PathBuf>,
}

/// Whether it is one between guests.
pub(super) fn is_path(setup: &Setup) -> bool {
    [PLAIN, DOORBELL].contains(&setup.path.as_str())
}

/// Measures all of `setups` in one boot, and tells each result. What cannot be had is a result without a run.
pub(super) fn carry(
    plan: &Plan,
    setups: Vec<Setup>,
    tell: &mut dyn FnMut(Measured) -> Result<(), Error>,
) -> Result<(), Error> {
    let (setups, refused): (Vec<_>, Vec<_>) = setups.into_iter().partition(|setup| why_not(plan, setup).is_none());
    for setup in refused {
        tell(result(plan, &setup, Err(why_not(plan, &setup).unwrap_or_default().to_owned())))?;
    }
    if setups.is_empty() {
        return Ok(());
    }
    let plan = Plan { setups, ..plan.clone() };
    let mut left: VecDeque<&Setup> = plan.setups.iter().collect();
    let ran = machines::run(&plan, &mut |answers| {
        let Some(setup) = left.pop_front() else { return Ok(()) };
        tell(result(&plan, setup, together(&plan, setup, answers)))
    });
    let why = match ran {
        Err(Error::Stopped) => return Err(Error::Stopped),
        Err(error) => error.to_string().lines().map(str::trim).collect::<Vec<_>>().join(" | "),
        Ok(()) => "the guests ended before its turn".to_owned(),
    };
    left.into_iter().try_for_each(|setup| tell(result(&plan, setup, Err(why.clone()))))
}

/// Why a setup is not tried.
fn why_not(plan: &Plan, setup: &Setup) -> Option<&'static str> {
    if plan.fifo {
        return Some("emulated guests are not run with SCHED_FIFO: leave --fifo out");
    }
    let sleeps = setup.policy != "poll";
    (sleeps && setup.path == PLAIN).then_some("ivshmem-plain has no interrupts: only --policy poll can be measured")
}

/// One run out of what both guests saw.
fn together(plan: &Plan, setup: &Setup, answers: Answers) -> Result<Run, String> {
    let (sent, received): (Result<SentThere, String>, Result<Received, String>) = (answers.sent?, answers.received?);
    // The side that failed first knows why; the other one only knows that it did.
    let (sent, received) = match (sent, received) {
        (Ok(sent), Ok(received)) => (sent, received),
        (Err(why), Err(other)) => return Err(if why == control::OTHER_FAILED { other } else { why }),
        (Err(why), _) | (_, Err(why)) => return Err(why),
    };
    let shape = rings::shape(plan, setup).map_err(|error| error.to_string())?;
    Ok(Run { emulated: true, ..rings::outcome(plan, setup, shape, sent.aligned(), received) })
}

fn result(plan: &Plan, setup: &Setup, run: Result<Run, String>) -> Measured {
    let one = named(plan, name(setup));
    let one = Measured { params: Params { place: "guest".to_owned(), ..one.params }, ..one };
    match run {
        Ok(run) => Measured { channel: Some(Box::new(run)), ..one },
        Err(why) => Measured { skipped: Some(why), ..one },
    }
}
