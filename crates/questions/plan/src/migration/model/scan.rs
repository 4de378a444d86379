//! How long does it take to find out which pages are zeros?
//!
//! One thread of QEMU looks at each page before it is sent: where most of memory is zeros, the first pass takes as long as one core takes to
//! look at all of it.

use super::super::predict::Asked;
use super::memory::PAGE_MEMORY_BYTES;
use base::number::duration;
use base::prediction::Said;

/// What one thread of QEMU looked at in a second: 100 GiB of zeros took 9,629 ms (Hao Xiang, \"Introduce multifd zero page checking\", qemu-devel,
/// 2024).
const PUBLISHED_BYTES_PER_S: f64 = 100.0 * 1_073_741_824.0 / 9.629;

/// The most that was: 8 GiB, idle, went over in 401 ms (OPNFV KVM4NFV, live_migration.userguide.rst).
const MOST_BYTES_PER_S: f64 = 8.0 * 1_073_741_824.0 / 0.401;

/// Seconds, between the least and the most that was published; one number where the host's own is stated.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Scan {
    pub(crate) least_s: f64,
    pub(crate) likely_s: f64,
    is_given: bool,
}

impl Scan {
    /// Of a guest with zeros, unless what sending takes was measured with them.
    pub(crate) fn of(asked: &Asked) -> Option<Self> {
        let memory = &asked.setting.memory;
        let bytes = memory.pages * PAGE_MEMORY_BYTES;
        let of = |bytes_per_s: f64| bytes / bytes_per_s;
        let scan = match asked.scan_bytes_per_s {
            Some(given) => Self { least_s: of(given), likely_s: of(given), is_given: true },
            None => Self { least_s: of(MOST_BYTES_PER_S), likely_s: of(PUBLISHED_BYTES_PER_S), is_given: false },
        };
        let is_measured = asked.senders.iter().any(|sender| sender.zeros_s > 0.0);
        (memory.zero_share > 0.0 && !is_measured).then_some(scan)
    }

    /// As a row beside what is predicted.
    pub(crate) fn said(&self) -> Said {
        let ns = |seconds: f64| Some(seconds * 1e9);
        let (low, likely) = (ns(self.least_s), ns(self.likely_s));
        Said { what: "scan".to_owned(), low, likely, high: likely, naive: likely, unit: "ns".to_owned() }
    }

    /// What it adds to the answer: where it was stated, or where the first pass may not be as short as what is sent.
    pub(crate) fn sentence(&self, asked: &Asked) -> Option<String> {
        let sent_s = asked.setting.memory.sent_bytes() / asked.setting.bytes_per_s;
        if !self.is_given && self.likely_s <= sent_s {
            return None;
        }
        let time = |seconds: f64| duration(seconds * 1e9);
        let took = if self.is_given {
            time(self.likely_s)
        } else {
            format!("{} to {} where nothing is stated (--scan)", time(self.least_s), time(self.likely_s))
        };
        let then = match (self.least_s > sent_s, self.likely_s > sent_s) {
            (true, _) => ": the first pass takes no less",
            (_, true) => ": the first pass may take as long",
            _ => ", less than sending the rest",
        };
        Some(format!("Looking for zeros takes {took}{then}."))
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::predict::Order;
    use super::super::super::predict::tests::asked;
    use super::super::working_set::WorkingSet;
    use super::*;

    #[test]
    fn the_scan_is_said_where_it_was_stated_or_cannot_be_left_out() {
        let of = |zero_share: f64, scan: Option<f64>| {
            let mut asked = asked(WorkingSet::Cyclic, 0.0, Order::Unknown);
            asked.setting.memory.zero_share = zero_share;
            asked.scan_bytes_per_s = scan;
            Scan::of(&asked).map(|scan| (scan, scan.sentence(&asked)))
        };
        assert_eq!(of(0.0, Some(1e9)), None, "no zeros are found at once");
        // 256 MiB: 13 ms at 21.4 GB/s, 24 ms as published; 3 ms of zeros are sent at 200 MB/s.
        let (scan, said) = of(1.0, None).unwrap();
        assert_eq!(((scan.least_s * 1e3).round(), (scan.likely_s * 1e3).round()), (13.0, 24.0));
        assert!(said.unwrap().contains("the first pass takes no less"));
        assert_eq!(of(0.5, None).unwrap().1, None, "sending the other half takes longer");
        let (scan, said) = of(0.5, Some(1e9)).unwrap();
        assert_eq!((scan.said().low, scan.said().high), (scan.said().likely, scan.said().likely));
        assert!(said.unwrap().contains("takes 268.4 ms, less than"), "stated");
    }
}
