//! Rates of a datapath while it is measured, with what they are held against.

use crate::datapath::{DatapathRun, RateSample, Traffic};
use serde::{Deserialize, Serialize};

/// What a datapath carried between two moments of a trial. Rates are of packets, counted where they are sent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RateLook {
    /// Its number in the recording, from 0.
    pub number: u64,
    /// From then, in ns since the first trial's window began,
    pub from_ns: u64,
    /// until then.
    pub to_ns: u64,
    /// How long reading the counters took.
    pub read_ns: u64,
    /// The trial in progress.
    pub trial: TrialName,
    /// Sent by the senders.
    pub sent_pps: f64,
    /// Received at the ends of all chains.
    pub received_pps: f64,
    /// Sent by all VNFs together.
    pub system_pps: f64,
    /// Sent by each VNF, in their order.
    pub vnfs_pps: Vec<f64>,
    /// What the model says that all VNFs together can send; missing where it knows too little.
    pub ceiling: Option<Ceiling>,
    /// What others published of the same pattern and size.
    pub published: Vec<Published>,
}

/// Which trial, and how many like it there will be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrialName {
    /// What carries the packets.
    pub design: String,
    /// Which way they go.
    pub pattern: Traffic,
    /// VNFs.
    pub vnfs: u32,
    /// Size of each frame, FCS counted.
    pub size_bytes: u32,
    /// Which trial of its kind, from 0,
    pub repeat: u32,
    /// of how many.
    pub repeats: u32,
}

/// A modelled limit of all VNFs together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ceiling {
    /// The resource that binds: `pmd`, `guest`.
    pub resource: String,
    /// Packets a second that all VNFs send.
    pub system_pps: f64,
    /// What it was computed from.
    pub from: String,
}

/// A published rate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Published {
    /// Its id in docs/formats/validation.md.
    pub point: String,
    /// What carried the packets there.
    pub design: String,
    /// VNFs there.
    pub vnfs: u32,
    /// Packets a second that all of them sent.
    pub system_pps: f64,
    /// Where it was published.
    pub source: String,
}

impl TrialName {
    /// The name of that trial.
    pub fn of(run: &DatapathRun, repeats: u32) -> Self {
        let DatapathRun { pattern, vnfs, size_bytes, repeat, .. } = *run;
        Self { design: run.design.clone(), pattern, vnfs, size_bytes, repeat, repeats }
    }
}

impl RateLook {
    /// The rates of `sample`, which counts from `from_ns` on; times are counted from `origin_ns`.
    pub fn of(trial: TrialName, from_ns: u64, sample: &RateSample, origin_ns: u64) -> Self {
        let seconds = sample.to_ns.saturating_sub(from_ns).max(1) as f64 / 1e9;
        let pps = |packets: u64| packets as f64 / seconds;
        Self {
            number: 0,
            from_ns: from_ns.saturating_sub(origin_ns),
            to_ns: sample.to_ns.saturating_sub(origin_ns),
            read_ns: sample.read_ns,
            trial,
            sent_pps: pps(sample.sent),
            received_pps: pps(sample.received),
            system_pps: pps(sample.of_system()),
            vnfs_pps: sample.vnfs.iter().map(|vnf| pps(*vnf)).collect(),
            ceiling: None,
            published: Vec::new(),
        }
    }
}
