//! What does an honest side do when its peer breaks each of the rules?
//!
//! ```text
//! this process    the peer: writes any byte of the ring, by script     --> what was injected
//! a forked one    the honest side: the crate's public API, nothing else --> what it counted, what it handed out
//! ```
//! The honest side has a process of its own, so that a crash or a hang of it is something that was seen, and does not end the bench.
//! Rules: docs/labs/channel.md, "Twelve rules against a hostile peer".
//!
//! | rules | where |
//! |---|---|
//! | 1, 2 | [`indices`] |
//! | 3 to 6, 9 | [`slots`] |
//! | 7, 8 | [`connection`] |
//! | 10 | [`kicks`] |
//! | 11 | [`window`] |
//! | 12 | no script: the types of the crate keep it |

mod connection;
mod honest;
mod indices;
mod kicks;
mod script;
mod slots;
mod window;

use super::Plan;
use super::rings::settle;
use base::channel::{Fault, Faults, SENDER};
use channel::Ticks;
use lab::Error;

/// Breaks each rule.
///
/// # Errors
/// If a process or a ring cannot be made.
pub(crate) fn faults(plan: &Plan, ticks: Ticks) -> Result<Faults, Error> {
    settle(plan, plan.cpus.0, SENDER)?;
    let by_type = Fault {
        rule: 12,
        what: "nothing: no byte of a region can make a reference".to_owned(),
        injected: 0,
        seen: None,
        survived: None,
        why: "this holds by the types of the crate, and a test of its source looks".to_owned(),
    };
    let rules = vec![
        indices::outside_the_ring()?,
        indices::of_ours()?,
        slots::length_that_changes(plan)?,
        slots::length_beyond_the_slot()?,
        slots::size_rewritten()?,
        slots::overwritten_after_receipt()?,
        connection::silent(ticks)?,
        connection::other_generation_or_gone(ticks)?,
        slots::never_written()?,
        kicks::too_many_and_lost(ticks)?,
        window::used_after_it_closed()?,
        by_type,
    ];
    Ok(Faults { rules })
}
