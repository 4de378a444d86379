//! A recording that is being made is looked at once a second: what happened since the last look becomes a sample.
//!
//! ```text
//! trace.partial/cpuN.raw --pages that came--> flow, which goes on --> sample --> live.json, a line on stderr
//! ```
//! The recorder knows nothing of it, and does not wait for it: its threads go on while a look takes.

use analysis::facts::ledger::live::LiveFlow;
use base::Level;
use base::gauges::{Gauges, Sample};
use base::number::{duration, percent, thousands};
use lab::tracefs::{LATE, Meter};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use trace::tracedat::growing::Growing;

/// Most bytes of pages in one sample: about a million events, which take a tenth of a second to look at.
pub(super) const MOST_BYTES: u64 = 32 << 20;

/// Pages that are not full are taken so many times between two looks, but once a second at least.
const SWEEPS_A_LOOK: u32 = 4;

pub(super) struct Watch {
    growing: Growing,
    flow: LiveFlow,
    gauges: Gauges,
    root: PathBuf,
    every: Duration,
    next: Instant,
    late_bytes: u64,
    meter: std::sync::Arc<Meter>,
}

/// How often a recorder takes pages that are not full where it is looked at `every` so often.
pub(super) fn sweep(every: Duration) -> Duration {
    (every / SWEEPS_A_LOOK).min(Duration::from_secs(1))
}

impl Watch {
    /// Watches the recording at `root` whose pages come into `directory`, from `now` on.
    pub(super) fn new(
        root: &Path,
        directory: &Path,
        level: Level,
        meter: std::sync::Arc<Meter>,
        every: Duration,
        now: Instant,
    ) -> Self {
        let lag_ns = (sweep(every) + LATE).as_nanos() as u64;
        Self {
            growing: Growing::new(directory, lag_ns, MOST_BYTES),
            flow: LiveFlow::new(level),
            gauges: Gauges::new(every),
            root: root.to_owned(),
            every,
            next: now + every,
            late_bytes: 0,
            meter,
        }
    }

    /// Looks, if it is time to.
    pub(super) fn look(&mut self, now: Instant) -> anyhow::Result<()> {
        if now < self.next {
            return Ok(());
        }
        // A look that took too long costs those that it made late.
        self.next = (self.next + self.every).max(now);
        if let Some(grown) = self.growing.look()? {
            let mut sample = self.flow.sample(&grown.trace, grown.span, grown.skipped_ns);
            self.late_bytes += grown.late_bytes;
            (sample.lost_events, sample.bytes) = (self.meter.lost(), self.meter.bytes());
            sample.late_bytes = self.late_bytes;
            self.gauges.push(sample);
        }
        // Also without a sample: its age tells that somebody is still at it.
        Ok(self.gauges.write(&self.root)?)
    }

    /// The last sample as a line; empty before the first.
    pub(super) fn line(&self) -> String {
        self.gauges.samples.back().map_or_else(String::new, line)
    }

    /// Says that the recording has ended as it should.
    pub(super) fn end(&mut self) -> anyhow::Result<()> {
        self.gauges.ended = true;
        Ok(self.gauges.write(&self.root)?)
    }
}

/// What is most telling, and known.
fn line(sample: &Sample) -> String {
    let rate =
        |value: Option<f64>, what: &str| value.map(|value| format!("{} {what}/s", thousands(value.round() as u64)));
    let share = |name: &str, what: &str| {
        let share = sample.shares.get(name).copied().flatten().filter(|share| *share >= 0.0005)?;
        Some(format!("{what} {}", percent(share)))
    };
    let exits = rate(sample.exits_per_second, "exits")
        .or_else(|| rate(sample.userspace_exits_per_second, "exits to userspace"));
    let parts = [
        exits,
        share("guest_l2", "L2"),
        share("guest_l1", "L1"),
        share("kvm", "KVM"),
        share("vmm", "VMM"),
        share("halted", "halted"),
        share("preempted", "preempted"),
        share("unknown", "unknown"),
        sample.exits_per_chain.map(|exits| format!("{exits:.1} exits per chain")),
        sample.wakeup_p99_ns.map(|ns| format!("wake-up p99 {}", duration(ns as f64))),
        (sample.seen_share < 1.0).then(|| format!("{} of events seen", percent(sample.seen_share))),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join("  ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn the_line_says_what_is_known() {
        let mut sample = Sample {
            number: 3,
            from_ns: 0,
            to_ns: 1,
            seen_share: 1.0,
            events_per_second: 9.0,
            exits_per_second: None,
            userspace_exits_per_second: Some(1234.4),
            chains_per_second: None,
            exits_per_chain: None,
            wakeup_p99_ns: Some(25_000),
            vcpus: 1,
            shares: BTreeMap::from([
                ("unknown".to_owned(), Some(0.75)),
                ("vmm".to_owned(), Some(0.25)),
                ("kvm".to_owned(), None),
            ]),
            vms: Vec::new(),
            lost_events: 0,
            bytes: 0,
            late_bytes: 0,
        };
        let said = line(&sample);
        assert!(said.starts_with("1,234 exits to userspace/s  VMM 25"), "{said}");
        assert!(said.contains("unknown 75") && said.contains("wake-up p99 25") && !said.contains("KVM"), "{said}");
        (sample.exits_per_second, sample.seen_share) = (Some(0.0), 0.5);
        let said = line(&sample);
        assert!(said.starts_with("0 exits/s") && said.contains("of events seen"), "{said}");
    }
}
