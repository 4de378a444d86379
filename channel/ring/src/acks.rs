//! By which epoch of the flow table does each machine decide?
//!
//! ```text
//! guest    --writes--> its epoch, in memory that the vSwitch can only read
//! vSwitch  --reads, checks--> how far this guest is behind, or what it did wrong
//! ```
//! A guest acknowledges an epoch when it has copied the table. The vSwitch believes what can be: an epoch that has begun, and none before
//! the last one. A guest that says anything else is not believed any more. What a guest acknowledges says when *it* knew; that
//! nothing is delivered by an old rule does not depend on it.

use std::sync::atomic::Ordering;

use thiserror::Error;

use crate::fault::Refused;
use crate::flows::FlowView;
use crate::layout::{LINE_BYTES, PAGE_BYTES};
use crate::region::{Error, Region};

const MAGIC: u64 = u64::from_le_bytes(*b"kvmsacks");
const EPOCH_AT: usize = 2 * LINE_BYTES;

/// A guest's side: the only one that writes.
#[derive(Debug)]
pub struct Acknowledger {
    region: Region,
    epoch: u64,
}

impl Acknowledger {
    /// Of a guest that has read no epoch.
    pub fn new() -> Result<Acknowledger, Error> {
        let region = Region::read_only_for_others("kvmscope-acks", PAGE_BYTES)?;
        region.memory().store(0, MAGIC, Ordering::Release);
        Ok(Acknowledger { region, epoch: 0 })
    }

    /// For the vSwitch.
    pub fn region(&self) -> &Region {
        &self.region
    }

    /// From now on frames are judged by this copy of the table.
    #[inline]
    pub fn acknowledge(&mut self, view: &FlowView) {
        if view.epoch() != self.epoch {
            self.epoch = view.epoch();
            self.region.memory().store(EPOCH_AT, self.epoch, Ordering::Release);
        }
    }
}

/// What a guest acknowledged that cannot be. It is not believed any more.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum AckFault {
    /// An epoch that has not begun.
    #[error("the guest acknowledged epoch {seen}, and the current one is {current}")]
    Future {
        /// What it wrote.
        seen: u64,
        /// The latest that there is.
        current: u64,
    },
    /// An earlier one than before.
    #[error("the guest acknowledged epoch {seen} after {last}")]
    Backwards {
        /// What it wrote.
        seen: u64,
        /// What it had written before.
        last: u64,
    },
}

/// The vSwitch's side of one guest.
#[derive(Debug)]
pub struct Acknowledged {
    region: Region,
    last: u64,
    fault: Option<AckFault>,
}

impl Acknowledged {
    /// Of a guest that handed its memory out.
    pub fn of(region: Region) -> Result<Acknowledged, Error> {
        if region.bytes() < PAGE_BYTES || region.word(0) != MAGIC {
            return Err(Refused::NoRing.into());
        }
        Ok(Acknowledged { region, last: 0, fault: None })
    }

    /// The epoch that the guest has read last, while `current` is the latest; the guest may have read more since.
    #[inline]
    pub fn look(&mut self, current: u64) -> Result<u64, AckFault> {
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        // Read once; what is checked is what is used.
        let seen = self.region.word(EPOCH_AT);
        let fault = match seen {
            _ if seen > current => AckFault::Future { seen, current },
            _ if seen < self.last => AckFault::Backwards { seen, last: self.last },
            _ => {
                self.last = seen;
                return Ok(seen);
            }
        };
        self.fault = Some(fault);
        Err(fault)
    }

    /// The last one that was believed.
    pub fn last(&self) -> u64 {
        self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flows::Flows;
    use crate::memory::Access;

    fn again(region: &Region) -> Region {
        Region::received(region.file().try_clone_to_owned().unwrap(), Access::Read).unwrap()
    }

    #[test]
    fn a_guest_acknowledges_what_it_has_read_and_never_less_than_before() {
        let mut flows = Flows::new(64, 0).unwrap();
        let mut view = FlowView::of(again(flows.region())).unwrap();
        let mut guest = Acknowledger::new().unwrap();
        let mut seen = Acknowledged::of(again(guest.region())).unwrap();
        assert_eq!(seen.look(flows.epoch()), Ok(0));
        let mut last = 0;
        for key in 0..20 {
            flows.allow(key, 1).unwrap();
            assert_eq!(seen.look(flows.epoch()), Ok(last), "it has not read the last change");
            if key % 3 == 0 {
                view.refresh().unwrap();
                guest.acknowledge(&view);
                last = flows.epoch();
            }
            assert_eq!(seen.look(flows.epoch()), Ok(last));
        }
        assert_eq!(seen.last(), 19);
    }

    #[test]
    fn an_epoch_that_has_not_begun_and_one_of_before_end_the_trust_in_a_guest() {
        let guest = Acknowledger::new().unwrap();
        let says = |epoch| guest.region.memory().store(EPOCH_AT, epoch, Ordering::Release);
        let mut seen = Acknowledged::of(again(guest.region())).unwrap();
        says(7);
        assert_eq!(seen.look(7), Ok(7));
        says(9);
        let future = Err(AckFault::Future { seen: 9, current: 8 });
        assert_eq!(seen.look(8), future);
        // Though it has begun by now.
        assert_eq!((seen.look(9), seen.last()), (future, 7));

        let mut seen = Acknowledged::of(again(guest.region())).unwrap();
        assert_eq!(seen.look(9), Ok(9));
        says(8);
        assert_eq!(seen.look(10), Err(AckFault::Backwards { seen: 8, last: 9 }));
    }

    #[test]
    fn nobody_but_the_guest_can_write_what_it_acknowledges() {
        let guest = Acknowledger::new().unwrap();
        let file = guest.region().file().try_clone_to_owned().unwrap();
        assert!(guest.region().is_read_only_for_others() && Region::received(file, Access::ReadWrite).is_err());
        assert!(Acknowledged::of(Region::shared("kvmscope-test", PAGE_BYTES).unwrap()).is_err(), "it holds no epoch");
    }
}
