//! The samples of a side: repeats of each kind of trial, or medians of its recordings.

use crate::compare::disturbed::Measurements;
use base::datapath::{DatapathRun, Traffic};
use facts::datapaths::Bed;
use facts::statistics::spread::median;
use std::collections::{BTreeMap, BTreeSet};

base::named! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub(super) enum Measure {
        /// Packets a second from end to end.
        Rate = "chain_pps",
        /// Cycles of a packet in the switch, during which its threads ran.
        Cycles = "cycles",
        /// Gb/s of a TCP stream of messages.
        Stream = "stream_gbps",
    }
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Kind {
    pub design: String,
    /// `None`: a stream.
    pub pattern: Option<Traffic>,
    pub vnfs: u32,
    /// Of a frame, or of a message.
    pub bytes: u32,
    pub measure: Measure,
}

/// The samples of a kind on one side.
#[derive(Debug, Clone, Default)]
pub(super) struct Series {
    pub measured: Measurements,
    /// Resources that bound trials.
    bounds: BTreeSet<String>,
}

pub(super) type Samples = BTreeMap<Kind, Series>;

impl Measure {
    /// What there is more or less of.
    pub(super) fn noun(self) -> &'static str {
        match self {
            Measure::Rate => "the packets",
            Measure::Cycles => "the cycles of a packet in the switch",
            Measure::Stream => "the bits of a stream",
        }
    }

    /// Unit of sentences.
    pub(super) fn unit(self) -> &'static str {
        match self {
            Measure::Rate => "Mpps",
            Measure::Cycles => "cycles",
            Measure::Stream => "Gb/s",
        }
    }

    /// What a value is divided by for that unit.
    pub(super) fn scale(self) -> f64 {
        match self {
            Measure::Rate => 1e6,
            Measure::Cycles | Measure::Stream => 1.0,
        }
    }
}

impl Kind {
    fn of(run: &DatapathRun, measure: Measure) -> Self {
        let (pattern, bytes) = (Some(run.pattern), run.size_bytes);
        Self { design: run.design.clone(), pattern, vnfs: run.vnfs, bytes, measure }
    }

    /// `ovs-dpdk, chain of 2 VNFs, 64 bytes`.
    pub(super) fn words(&self) -> String {
        let vnfs = base::number::many(u64::from(self.vnfs), "VNF");
        let way = match self.pattern {
            Some(Traffic::Chain) => format!("chain of {vnfs}"),
            Some(Traffic::NorthSouth) => format!("north-south through {vnfs}"),
            None => format!("stream through {vnfs}"),
        };
        let what = if self.pattern.is_none() { "messages of " } else { "" };
        format!("{}, {way}, {what}{} bytes", self.design, self.bytes)
    }
}

impl Series {
    pub(super) fn mean(&self) -> Option<f64> {
        let values = &self.measured.values;
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    }

    /// What bound its trials: `pmd`, or `guest or pmd` where they differ.
    pub(super) fn bound(&self) -> Option<String> {
        let all: Vec<&str> = self.bounds.iter().map(String::as_str).collect();
        (!all.is_empty()).then(|| all.join(" or "))
    }
}

/// Of a side, given by the beds of each of its recordings: its repeats, or the median of each of several recordings.
pub(super) fn of(recordings: &[&[Bed]], are_repeats: bool) -> Samples {
    let mut all = Samples::new();
    for (kind, series) in recordings.iter().flat_map(|beds| repeats(beds)) {
        let known = all.entry(kind).or_default();
        match are_repeats {
            true => known.measured.extend(series.measured),
            false => {
                if let Some(median) = median(&series.measured.values) {
                    known.measured.push_median(median, &series.measured);
                }
            }
        }
        known.bounds.extend(series.bounds);
    }
    all
}

/// Every repeat of a recording. What was offered at a lower rate than the most is a trial of a search.
fn repeats(beds: &[Bed]) -> Samples {
    let mut all = Samples::new();
    for run in beds.iter().flat_map(|bed| &bed.runs.runs).filter(|run| run.offered_pps.is_none()) {
        let rate = all.entry(Kind::of(run, Measure::Rate)).or_default();
        rate.measured.push(run.chain_pps(), &run.interference);
        rate.bounds.extend(run.bound_by.clone());
        if let Some(cycles) = cycles(run) {
            // Only the time in which its threads ran is counted.
            all.entry(Kind::of(run, Measure::Cycles)).or_default().measured.push(cycles, &[]);
        }
    }
    for run in beds.iter().flat_map(|bed| &bed.runs.streams) {
        let (design, vnfs, bytes) = (run.path.clone(), run.vnfs, run.message_bytes);
        let kind = Kind { design, pattern: None, vnfs, bytes, measure: Measure::Stream };
        all.entry(kind).or_default().measured.push(run.gbps, &[]);
    }
    all
}

/// Cycles of a packet in the switch, all its threads together; cycles go on while another thread has the CPU, and those do not count.
fn cycles(run: &DatapathRun) -> Option<f64> {
    let of_switch = || run.pollers.iter().filter_map(|poller| Some((poller, poller.cycles.as_ref()?)));
    let ran: f64 = of_switch().map(|(poller, cycles)| cycles.busy as f64 * poller.run_share.clamp(0.0, 1.0)).sum();
    let packets: f64 = of_switch().map(|(_, cycles)| cycles.packets as f64).sum();
    Some(ran / packets).filter(|each| each.is_finite() && *each > 0.0)
}
