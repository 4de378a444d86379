//! Numbers for causes, so that a piece needs not hold its own.

use super::model::{By, Cause, LostIn};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Places of the causes that are not known yet: each state by itself.
pub(super) const HANDLING: u32 = 0;
pub(super) const USERSPACE: u32 = 1;
pub(super) const BLOCKED: u32 = 2;
pub(super) const PREEMPTED: u32 = 3;
pub(super) const WAKE_DELAY: u32 = 4;

/// Their states, by these places.
const OPEN: [LostIn; 5] = [LostIn::Handling, LostIn::Userspace, LostIn::Blocked, LostIn::Preempted, LostIn::WakeDelay];

/// All causes of a trace, in the order in which they were met.
#[derive(Clone)]
pub(super) struct Causes {
    all: Vec<Cause>,
    places: FxHashMap<Cause, u32>,
}

impl Default for Causes {
    fn default() -> Self {
        let mut causes = Self { all: Vec::new(), places: FxHashMap::default() };
        for state in OPEN {
            causes.place(state, By::Unknown);
        }
        causes
    }
}

impl Causes {
    /// The place of a cause.
    pub fn place(&mut self, state: LostIn, by: By) -> u32 {
        let cause = Cause { state, by };
        *self.places.entry(cause).or_insert_with(|| {
            self.all.push(cause);
            self.all.len() as u32 - 1
        })
    }

    /// The place of the cause that is known now of a piece whose own was `open`.
    pub fn known(&mut self, open: u32, by: By) -> u32 {
        self.place(self.all[open as usize].state, by)
    }

    /// All, by their places.
    pub fn into_all(self) -> Arc<[Cause]> {
        self.all.into()
    }
}
