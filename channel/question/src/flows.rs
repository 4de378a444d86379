//! What became of frames while the flow table changed?

use base::channel::FlowRun;
use base::number::{counted, duration, many, thousands};
use base::{Cell, Histogram, Level, Table, TableSpec, Unknown, shown, table};
use facts::benches::BenchRun;

/// What became of frames while a flow table changed.
pub(crate) const FLOWS: TableSpec = table! {
    channel.flows version 1:
    "What became of frames while the flow table of several machines changed under full load, all launches together. A lag is the time \
          from a change until a machine acknowledged it or a later one, and the vSwitch saw that; one sample for each change and machine. \
          stale_sent are frames whose rule was gone when they were sent; the receiver drops those that are too late. misdelivered are frames \
          that were delivered though the log of all changes forbids it.";
    key machine, key_u64("count") vms, f64("1/s") changes_per_s, ns lag_p99_ns, count stale_sent, count misdelivered,
    key_u64("1/s") asked_per_s, ns lag_p50_ns, ns lag_max_ns, count revocations, count sent, count delivered,
    count dropped, count unacknowledged, count ack_faults, flag shared_cpus, count launches;
    shown![
        "What becomes of frames while the flow table changes", 20;
        vms: "VMs", changes_per_s: "changes", lag_p50_ns: "lag p50", lag_p99_ns: "lag p99", sent, stale_sent: "stale",
        delivered, dropped, misdelivered,
    ]
};

/// Launches of the same machines and changes.
#[derive(Debug, Clone)]
pub(crate) struct Changed<'b> {
    pub machine: &'b str,
    pub level: Level,
    /// Machines, and changes that were asked for.
    pub vms: u32,
    pub asked_per_s: u64,
    pub launches: Vec<&'b FlowRun>,
    pub lags: Histogram,
}

impl<'b> Changed<'b> {
    pub(crate) fn of(runs: &[&'b BenchRun]) -> Vec<Self> {
        let mut all: Vec<Self> = Vec::new();
        for run in runs {
            for result in &run.bench.results {
                let Some(one) = result.flows.as_deref() else { continue };
                let key = (run.machine.as_str(), one.vms, one.asked_per_s);
                let lags = result.distribution();
                match all.iter_mut().find(|known| (known.machine, known.vms, known.asked_per_s) == key) {
                    Some(known) => {
                        known.launches.push(one);
                        known.lags.merge(&lags);
                    }
                    None => all.push(Self {
                        machine: &run.machine,
                        level: run.level,
                        vms: one.vms,
                        asked_per_s: one.asked_per_s,
                        launches: vec![one],
                        lags,
                    }),
                }
            }
        }
        all
    }

    pub(crate) fn sum(&self, of: impl Fn(&FlowRun) -> u64) -> u64 {
        self.launches.iter().fold(0, |sum, one| sum.saturating_add(of(one)))
    }

    pub(crate) fn changes_per_s(&self) -> f64 {
        self.sum(|one| one.changes) as f64 * 1e9 / self.sum(|one| one.ns).max(1) as f64
    }

    /// The share of frames that were sent by a rule that was gone.
    pub(crate) fn stale_share(&self) -> f64 {
        self.sum(|one| one.stale_sent) as f64 / self.sum(|one| one.sent).max(1) as f64
    }

    /// `2 machines, 10,000 changes per second`.
    pub(crate) fn name(&self) -> String {
        format!(
            "{}, {} per second",
            counted(self.vms.into(), "machine", "machines"),
            counted(self.asked_per_s, "change", "changes")
        )
    }
}

/// Table [`FLOWS`].
pub(crate) fn table(all: &[Changed<'_>]) -> Table {
    let mut table = Table::new(&FLOWS);
    for one in all {
        let lag = |share: f64| Cell::from(one.lags.quantile(share));
        let sum = |of: fn(&FlowRun) -> u64| Cell::from(one.sum(of));
        table.push(vec![
            one.machine.into(),
            u64::from(one.vms).into(),
            one.changes_per_s().round().into(),
            lag(0.99),
            sum(|one| one.stale_sent),
            sum(|one| one.misdelivered),
            one.asked_per_s.into(),
            lag(0.5),
            lag(1.0),
            sum(|one| one.revocations),
            sum(|one| one.sent),
            sum(|one| one.delivered),
            sum(|one| one.dropped),
            sum(|one| one.unacknowledged),
            sum(|one| one.acknowledgement_faults),
            one.launches.iter().any(|one| one.shared_cpus).into(),
            (one.launches.len() as u64).into(),
        ]);
    }
    table
}

pub(crate) fn said(one: &Changed<'_>) -> String {
    let lag = match one.lags.quantile(0.99) {
        Some(ns) => format!("; a change was acknowledged within {} (p99)", duration(ns as f64)),
        None => String::new(),
    };
    let shared = if one.launches.iter().any(|one| one.shared_cpus) { ", with machines that shared CPUs" } else { "" };
    format!(
        "With {} flow-table changes per second among {}, {} of {} delivered were misdelivered{lag}{shared}.",
        thousands(one.changes_per_s().round() as u64),
        counted(one.vms.into(), "machine", "machines"),
        thousands(one.sum(|one| one.misdelivered)),
        many(one.sum(|one| one.delivered), "frame")
    )
}

/// Changes that were never acknowledged.
pub(crate) fn unknown(all: &[Changed<'_>]) -> Option<Unknown> {
    let amount = all.iter().fold(0_u64, |sum, one| sum.saturating_add(one.sum(|one| one.unacknowledged)));
    (amount > 0).then(|| Unknown {
        what: "unacknowledged".into(),
        amount: Some(amount as f64),
        unit: "changes".into(),
        text: format!(
            "{} not acknowledged before the run ended, and {} no lag.",
            counted(amount, "change was", "changes were"),
            if amount == 1 { "has" } else { "have" }
        ),
    })
}
