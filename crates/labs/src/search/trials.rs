//! One trial, whether it counts, and how often a rate is tried again.

use super::{Ended, Range};

/// How far a sender may be from its rate, as a share of it.
const MOST_MISSED: f64 = 0.001;
/// How much of the host's CPU time may be taken away by the hypervisor below during a trial.
pub(super) const MOST_STEAL: f64 = 0.02;
/// After so many trials in a row in which a sender missed a rate it cannot hold it.
const MOST_MISSES: u32 = 3;
/// After so many trials in a row in which too much time was stolen the host is not fit for a search.
const MOST_STOLEN: u32 = 10;

/// What happened at one offered rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Trial {
    /// Frames per second that were to be sent.
    pub intended_pps: u64,
    pub sent: u64,
    pub received: u64,
    /// How long sending took.
    pub took_ns: u64,
    /// CPU time that the hypervisor below took, as a share of the time of all CPUs.
    pub steal_share: f64,
}

/// Why a trial does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Discarded {
    /// The sender missed its rate by more than 0.1 %.
    RateMissed,
    /// More than 2 % of the CPU time was stolen.
    Steal,
}

impl Trial {
    /// The share of frames that did not arrive. Frames that somebody else put in never make it negative.
    pub fn loss_ratio(&self) -> f64 {
        if self.sent == 0 {
            return 0.0;
        }
        self.sent.saturating_sub(self.received) as f64 / self.sent as f64
    }

    /// The rate at which frames were sent.
    pub(crate) fn sent_pps(&self) -> f64 {
        per_second(self.sent, self.took_ns)
    }

    /// The rate at which they arrived.
    pub fn received_pps(&self) -> f64 {
        per_second(self.received, self.took_ns)
    }

    /// Why the trial does not count, if it does not.
    pub fn discarded(&self) -> Option<Discarded> {
        let intended = self.intended_pps as f64;
        if self.steal_share > MOST_STEAL {
            Some(Discarded::Steal)
        } else if (self.sent_pps() - intended).abs() > MOST_MISSED * intended {
            Some(Discarded::RateMissed)
        } else {
            None
        }
    }
}

fn per_second(frames: u64, took_ns: u64) -> f64 {
    if took_ns == 0 { 0.0 } else { frames as f64 * 1e9 / took_ns as f64 }
}

pub(super) struct Trials<F> {
    run: F,
    pub(super) kept: Vec<(Trial, Option<Discarded>)>,
    most: u32,
    /// The lowest rate that the sender does not hold; one above the range's highest as long as it holds all.
    pub(super) ceiling_pps: u64,
}

/// Why a rate was not tried.
pub(super) enum Refused<E> {
    /// The sender cannot hold it, and the ceiling is lower now.
    Missed,
    /// Nothing more can be tried.
    Over(Ended),
    /// The caller's error.
    Failed(E),
}

impl<F, E> Trials<F>
where
    F: FnMut(u64) -> Result<Trial, E>,
{
    pub(super) fn new(range: &Range, run: F) -> Self {
        let ceiling_pps = range.most_pps.saturating_add(1);
        Self { run, kept: Vec::new(), most: range.most_trials, ceiling_pps }
    }

    /// Why a search ended: at the device's own bound, or at the sender's.
    pub(super) fn ended(&self, ended: Ended, upper: Option<u64>) -> Ended {
        let is_senders = upper.is_none_or(|upper| self.ceiling_pps < upper);
        match ended {
            Ended::Narrow | Ended::CarriesLess if is_senders => Ended::SenderMissed { pps: self.ceiling_pps },
            ended => ended,
        }
    }

    /// The bounds of a goal by all trials so far: the lowest rate that lost more, and the highest below it that did not.
    pub(super) fn bounds(&self, loss_ratio: f64) -> (Option<u64>, Option<u64>) {
        let counted = || self.kept.iter().filter(|(_, discarded)| discarded.is_none()).map(|(trial, _)| trial);
        let loses = |trial: &&Trial| trial.loss_ratio() > loss_ratio;
        let upper = counted().filter(loses).map(|trial| trial.intended_pps).min();
        let is_below = |pps: &u64| upper.is_none_or(|upper| *pps < upper);
        let lower = counted().filter(|trial| !loses(trial)).map(|trial| trial.intended_pps).filter(is_below).max();
        (lower, upper)
    }

    /// A trial at that rate that counts.
    pub(super) fn at(&mut self, pps: u64) -> Result<Trial, Refused<E>> {
        let (mut missed, mut stolen) = (0, 0);
        loop {
            if self.kept.len() >= self.most as usize {
                return Err(Refused::Over(Ended::Trials));
            }
            let trial = (self.run)(pps).map_err(Refused::Failed)?;
            let discarded = trial.discarded();
            self.kept.push((trial, discarded));
            match discarded {
                None => return Ok(trial),
                Some(Discarded::RateMissed) => missed += 1,
                Some(Discarded::Steal) => stolen += 1,
            }
            if missed >= MOST_MISSES {
                self.ceiling_pps = self.ceiling_pps.min(pps);
                return Err(Refused::Missed);
            }
            if stolen >= MOST_STOLEN {
                return Err(Refused::Over(Ended::Stolen));
            }
        }
    }
}
