//! What is read while packets flow: the counters of flows at one moment, and the machine at either end of a window.

use super::counters::{by_port, received, sent, sent_by_vnfs};
use super::ports::Wiring;
use super::switch::Switch;
use base::datapath::RateSample;
use base::recording::Moment;
use host::sched::Sample;
use lab::Error;
use lab::clocks;
use std::path::Path;

/// The machine at one end of the window.
pub(super) struct Edge {
    pub(super) count: Count,
    pub(super) threads: Sample,
    pub(super) stat: String,
}

/// The counters of flows at one moment, which only grow.
pub(super) struct Count {
    pub(super) at_ns: u64,
    pub(super) error_ns: u64,
    pub(super) sent: u64,
    received: u64,
    vnfs: Vec<u64>,
    /// Packets that matched any flow.
    pub(super) matched: u64,
}

impl Edge {
    /// Reads threads and CPUs first, packets last.
    pub(super) fn read(switch: &mut Switch, wiring: Wiring) -> Result<Self, Error> {
        let proc = Path::new("/proc");
        let threads = Sample::take(proc, &now_ns).map_err(|error| Error::io(proc, error))?;
        let stat = std::fs::read_to_string(proc.join("stat")).map_err(|error| Error::io(proc.join("stat"), error))?;
        Ok(Self { count: Count::read(switch, wiring)?, threads, stat })
    }
}

impl Count {
    /// Reads the counters between two readings of the clock.
    pub(super) fn read(switch: &mut Switch, wiring: Wiring) -> Result<Self, Error> {
        let before_ns = now_ns();
        let (flows, _) = by_port(switch)?;
        let error_ns = now_ns().saturating_sub(before_ns);
        Ok(Self {
            at_ns: before_ns + error_ns / 2,
            error_ns,
            sent: sent(wiring, &flows),
            received: received(wiring, &flows),
            vnfs: sent_by_vnfs(wiring, &flows),
            matched: flows.values().fold(0, |all: u64, packets| all.saturating_add(*packets)),
        })
    }

    /// What was counted since `before`.
    pub(super) fn since(&self, before: &Self) -> RateSample {
        RateSample {
            to_ns: self.at_ns,
            read_ns: self.error_ns,
            sent: self.sent.saturating_sub(before.sent),
            received: self.received.saturating_sub(before.received),
            vnfs: self.vnfs.iter().zip(&before.vnfs).map(|(now, before)| now.saturating_sub(*before)).collect(),
        }
    }
}

/// CLOCK_MONOTONIC.
fn now_ns() -> u64 {
    clocks::pair(super::HOST, Moment::Begin).monotonic_ns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_of_a_window_add_up_to_it_whatever_lies_between() {
        let count = |at_ns, sent, received, vnfs: [u64; 2]| Count {
            at_ns,
            error_ns: 3,
            sent,
            received,
            vnfs: vnfs.into(),
            matched: 0,
        };
        let all =
            [count(10, 5, 1, [4, 1]), count(20, 9, 3, [6, 3]), count(35, 30, 7, [20, 7]), count(40, 31, 8, [20, 8])];
        let samples: Vec<RateSample> = all.windows(2).map(|pair| pair[1].since(&pair[0])).collect();
        let whole = all[3].since(&all[0]);
        let sum = |of: fn(&RateSample) -> u64| samples.iter().map(of).sum::<u64>();
        assert_eq!((sum(|it| it.sent), sum(|it| it.received)), (whole.sent, whole.received));
        assert_eq!((sum(RateSample::of_system), whole.of_system(), whole.to_ns), (23, 23, 40));
    }
}
