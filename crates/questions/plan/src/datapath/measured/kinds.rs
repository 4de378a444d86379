//! Trials of one kind, and their spread; cycles of a packet by size and ports.

use super::rules;
use base::bench::NS_PER_TICK;
use base::datapath::{DatapathRun, Traffic};
use facts::datapaths::Bed;
use std::collections::BTreeMap;

/// All trials that measured the same.
pub(super) struct Kind<'a> {
    pub(super) trials: Vec<&'a DatapathRun>,
}

/// The middle of several numbers, and how far they are apart.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Spread {
    pub(super) median: f64,
    pub(super) low: f64,
    pub(super) high: f64,
    pub(super) count: usize,
}

impl Spread {
    pub(super) fn of(mut values: Vec<f64>) -> Option<Self> {
        values.retain(|value| value.is_finite());
        values.sort_by(f64::total_cmp);
        let (low, high) = (*values.first()?, *values.last()?);
        let (half, count) = (values.len() / 2, values.len());
        let median = if count % 2 == 1 { values[half] } else { f64::midpoint(values[half - 1], values[half]) };
        Some(Self { median, low, high, count })
    }
}

/// What one trial is of; the order is that of tables.
type Key<'a> = (&'a str, &'a str, Traffic, u32, u32);

pub(super) fn of(beds: &[Bed]) -> Vec<Kind<'_>> {
    let mut kinds: BTreeMap<Key<'_>, Kind<'_>> = BTreeMap::new();
    for bed in beds {
        for run in bed.runs.runs.iter().filter(|run| run.offered_pps.is_none()) {
            let key = (bed.machine.as_str(), run.design.as_str(), run.pattern, run.vnfs, run.size_bytes);
            let kind = kinds.entry(key).or_insert_with(|| Kind { trials: Vec::new() });
            kind.trials.push(run);
        }
    }
    kinds.into_values().collect()
}

impl<'a> Kind<'a> {
    /// What its trials have in common.
    pub(super) fn first(&self) -> Option<&'a DatapathRun> {
        self.trials.first().copied()
    }

    /// Packets per second from end to end.
    pub(super) fn chain_pps(&self) -> Option<Spread> {
        Spread::of(self.trials.iter().map(|trial| trial.chain_pps()).collect())
    }

    /// The resource that bound all trials; `None` where they differ, or where threads that poll waited for their CPUs.
    pub(super) fn bound_by(&self) -> Option<&'a str> {
        if self.is_disturbed() {
            return None;
        }
        let bound = self.first()?.bound_by.as_deref()?;
        self.trials.iter().all(|trial| trial.bound_by.as_deref() == Some(bound)).then_some(bound)
    }
}

impl Kind<'_> {
    /// Whether threads that poll waited for their CPUs in a trial.
    pub(super) fn is_disturbed(&self) -> bool {
        self.trials.iter().any(|trial| rules::is_disturbed(trial))
    }
}

/// Cycles of a packet in the switch, for one size and number of ports.
pub(super) struct Cycles<'a> {
    pub(super) machine: &'a str,
    pub(super) design: &'a str,
    pub(super) size_bytes: u32,
    pub(super) ports: u32,
    /// By the switch's own account: its cycles go on while another thread has the CPU.
    pub(super) counted: Spread,
    /// Only those during which the thread ran.
    pub(super) on_cpu: Spread,
    /// Share of the packets that were dropped at a full ring, which costs less than a hop: the most of all trials.
    pub(super) dropped_share: f64,
    /// Cycles in a second, where the bed tells.
    pub(super) hz: Option<f64>,
}

/// Cycles by size and ports.
pub(super) fn cycles(beds: &[Bed]) -> Vec<Cycles<'_>> {
    type Numbers = (Vec<f64>, Vec<f64>, f64, Option<f64>);
    let mut found: BTreeMap<(&str, &str, u32, u32), Numbers> = BTreeMap::new();
    for bed in beds {
        let ns_per_tick = bed.runs.environment.get(NS_PER_TICK).and_then(|text| text.parse::<f64>().ok());
        let hz = ns_per_tick.filter(|length| *length > 0.0).map(|length| 1e9 / length);
        for run in &bed.runs.runs {
            for (poller, cycles) in run.pollers.iter().filter_map(|poller| Some((poller, poller.cycles.as_ref()?))) {
                if cycles.packets == 0 {
                    continue;
                }
                let each = cycles.busy as f64 / cycles.packets as f64;
                let key = (bed.machine.as_str(), run.design.as_str(), run.size_bytes, cycles.queues);
                let (counted, on_cpu, dropped, known_hz) = found.entry(key).or_default();
                counted.push(each);
                on_cpu.push(each * poller.run_share.clamp(0.0, 1.0));
                *dropped = dropped.max(dropped_share(run));
                *known_hz = known_hz.or(hz);
            }
        }
    }
    let row = |((machine, design, size_bytes, ports), (counted, on_cpu, dropped_share, hz)): (_, Numbers)| {
        let (counted, on_cpu) = (Spread::of(counted)?, Spread::of(on_cpu)?);
        Some(Cycles { machine, design, size_bytes, ports, counted, on_cpu, dropped_share, hz })
    };
    found.into_iter().filter_map(row).collect()
}

/// Share of the packets that were dropped somewhere.
pub(super) fn dropped_share(run: &DatapathRun) -> f64 {
    let dropped: f64 = run.books.dropped.iter().map(|at| at.packets as f64).sum();
    dropped / (run.books.sent.max(1) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_lies_between_the_least_and_the_most() {
        let spread = Spread::of(vec![4.0, 1.0, f64::NAN, 2.0]).unwrap();
        assert_eq!((spread.median, spread.low, spread.high, spread.count), (2.0, 1.0, 4.0, 3));
        assert_eq!(Spread::of(vec![1.0, 2.0]).unwrap().median, 1.5);
        assert_eq!(Spread::of(vec![f64::NAN]), None);
    }
}
