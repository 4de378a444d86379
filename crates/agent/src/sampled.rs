//! What all recordings counted, as OpenMetrics.
//!
//! Counters begin at 0 with the agent, and grow with each recording: divide by `kvmscope_recorded_seconds_total`, not by the time that passed.
//! Where the same is counted all the time (module counters), that has the plain names, and what was recorded is called `kvmscope_sampled_..`.

use super::keep::Kept;
use super::open_metrics::{Text, label, seconds};
use super::round::Done;
use analysis::facts::counted::Counted;
use base::Histogram;
use std::collections::BTreeMap;
use std::time::Duration;

/// Upper bounds of the buckets of exits: 1, 2 and 5 of each decade from 1 us to 100 ms. Fixed, so that hosts and days add up.
const BOUNDS_NS: [u64; 16] = [
    1_000,
    2_000,
    5_000,
    10_000,
    20_000,
    50_000,
    100_000,
    200_000,
    500_000,
    1_000_000,
    2_000_000,
    5_000_000,
    10_000_000,
    20_000_000,
    50_000_000,
    100_000_000,
];

/// Everything since the agent began.
#[derive(Default)]
pub(crate) struct Sampled {
    /// The same is counted all the time, by the plain names.
    is_beside: bool,
    counted: Counted,
    recordings: u64,
    failed: u64,
    exported: u64,
    last_s: u64,
    findings: BTreeMap<(&'static str, &'static str), u64>,
}

pub(crate) struct State {
    pub kept: Kept,
    pub every: Duration,
    pub used: Duration,
    pub share: f64,
}

impl Sampled {
    pub(crate) fn new(is_beside: bool) -> Self {
        Self { is_beside, ..Self::default() }
    }

    fn name(&self, plain: &str) -> String {
        if self.is_beside { format!("kvmscope_sampled_{plain}") } else { format!("kvmscope_{plain}") }
    }

    /// A round that went well.
    pub(crate) fn add(&mut self, done: &Done) {
        self.counted.add(&done.counted);
        self.recordings += 1;
        self.exported += u64::from(done.is_exported);
        self.last_s = done.created_s;
        self.findings.clear();
        for (rule, severity) in &done.findings {
            *self.findings.entry((rule, severity)).or_default() += 1;
        }
    }

    /// One that did not.
    pub(crate) fn fail(&mut self) {
        self.failed += 1;
    }

    pub(crate) fn text(&self, state: &State) -> String {
        let mut out = Text::default();
        out.counter(
            "kvmscope_recordings",
            "",
            "Recordings that were made and counted.",
            &[(String::new(), self.recordings as f64)],
        );
        out.counter(
            "kvmscope_recordings_failed",
            "",
            "Recordings that could not be made or counted.",
            &[(String::new(), self.failed as f64)],
        );
        out.counter(
            "kvmscope_recordings_exported",
            "",
            "Recordings that are in the data set.",
            &[(String::new(), self.exported as f64)],
        );
        out.counter(
            "kvmscope_recorded_seconds",
            "seconds",
            "Time that was recorded.",
            &[(String::new(), seconds(self.counted.recorded_ns))],
        );
        out.counter(
            "kvmscope_events_lost",
            "",
            "Events that the recorder lost.",
            &[(String::new(), self.counted.events_lost as f64)],
        );
        self.exits(&mut out);
        let states = self.counted.states_ns.iter().map(|(state, ns)| (label("state", state), seconds(*ns)));
        out.counter(
            &self.name("vcpu_seconds"),
            "seconds",
            "Recorded time of vCPUs by state.",
            &states.collect::<Vec<_>>(),
        );
        let lost = self.counted.lost_ns.iter().map(|(state, ns)| (label("state", state), seconds(*ns)));
        out.counter(
            &self.name("vcpu_lost_seconds"),
            "seconds",
            "What the host took from vCPUs without being asked, by their state.",
            &lost.collect::<Vec<_>>(),
        );
        let findings = self.findings.iter().map(|((rule, severity), count)| {
            (format!("{},{}", label("rule", rule), label("severity", severity)), *count as f64)
        });
        out.gauge("kvmscope_findings", "", "Findings in the last recording.", &findings.collect::<Vec<_>>());
        out.gauge(
            "kvmscope_last_recording_timestamp_seconds",
            "seconds",
            "When the last recording began.",
            &[(String::new(), self.last_s as f64)],
        );
        out.gauge(
            "kvmscope_kept_recordings",
            "",
            "Recordings on disk.",
            &[(String::new(), state.kept.recordings as f64)],
        );
        out.gauge("kvmscope_kept_bytes", "bytes", "Their size.", &[(String::new(), state.kept.bytes as f64)]);
        out.gauge(
            "kvmscope_agent_cpu_seconds",
            "seconds",
            "CPU time of the last round, children and all.",
            &[(String::new(), state.used.as_secs_f64())],
        );
        out.gauge(
            "kvmscope_agent_cpu_share",
            "",
            "The same as a share of one CPU, until the next round.",
            &[(String::new(), state.share)],
        );
        out.gauge(
            "kvmscope_agent_interval_seconds",
            "seconds",
            "From the beginning of the last round to that of the next.",
            &[(String::new(), state.every.as_secs_f64())],
        );
        out.0
    }

    /// Exits by level and reason, each with its distribution.
    fn exits(&self, out: &mut Text) {
        let key = |(level, reason): &(String, String)| format!("{},{}", label("level", level), label("reason", reason));
        let all = self.counted.exits.iter().map(|(of, count)| (key(of), *count as f64));
        out.counter(&self.name("exits"), "", "Recorded exits of guests by level and reason.", &all.collect::<Vec<_>>());
        let name = self.name("exit_seconds");
        out.head(&name, "histogram", "seconds", "Time from exit to entry, of exits whose entry was recorded.");
        for (of, histogram) in &self.counted.exits_ns {
            let below: Vec<(u64, u64)> = BOUNDS_NS.into_iter().zip(cumulative(histogram)).collect();
            out.histogram(&name, &key(of), &below, histogram.count(), histogram.sum());
        }
    }
}

/// How many samples are at most each of [`BOUNDS_NS`], as far as the histogram's counters tell.
fn cumulative(histogram: &Histogram) -> [u64; BOUNDS_NS.len()] {
    let buckets = histogram.buckets();
    BOUNDS_NS.map(|bound_ns| buckets.iter().take_while(|(value, _)| *value <= bound_ns).map(|(_, count)| count).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn done(costs_ns: &[u64]) -> Done {
        let mut histogram = Histogram::new();
        costs_ns.iter().for_each(|ns| histogram.record(*ns));
        let key = || ("L1".to_owned(), "CPUID".to_owned());
        let counted = Counted {
            exits_ns: BTreeMap::from([(key(), histogram)]),
            exits: BTreeMap::from([(key(), costs_ns.len() as u64 + 1)]),
            states_ns: BTreeMap::from([("guest_l1".to_owned(), 2_000_000_000)]),
            lost_ns: BTreeMap::from([("preempted", 500_000_000)]),
            events_lost: 3,
            recorded_ns: 5_000_000_000,
        };
        Done {
            place: "kvmscope-agent".into(),
            counted,
            findings: vec![("FLW-PREEMPT", "low")],
            created_s: 1_700_000_000,
            is_exported: true,
        }
    }

    fn value(text: &str, sample: &str) -> f64 {
        let line = text.lines().find_map(|line| line.strip_prefix(sample)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("{sample}: {text}")).parse().unwrap()
    }

    #[test]
    fn recordings_add_up_and_buckets_are_cumulative() {
        let mut metrics = Sampled::new(false);
        metrics.add(&done(&[800, 1_500, 3_000]));
        metrics.add(&done(&[40_000, 200_000_000]));
        metrics.fail();
        let kept = Kept { recordings: 2, bytes: 100 };
        let (every, used) = (Duration::from_secs(300), Duration::from_millis(1_500));
        let text = metrics.text(&State { kept, every, used, share: 0.005 });
        let bucket = |le: &str| {
            value(&text, &format!("kvmscope_exit_seconds_bucket{{level=\"L1\",reason=\"CPUID\",le=\"{le}\"}}"))
        };
        assert_eq!(
            ["0.000001", "0.000002", "0.000005", "0.00005", "0.1", "+Inf"].map(bucket),
            [1.0, 2.0, 3.0, 4.0, 4.0, 5.0]
        );
        let of = |name: &str| value(&text, name);
        assert_eq!(of("kvmscope_exits_total{level=\"L1\",reason=\"CPUID\"}"), 7.0);
        assert_eq!(of("kvmscope_exit_seconds_count{level=\"L1\",reason=\"CPUID\"}"), 5.0);
        assert!((of("kvmscope_exit_seconds_sum{level=\"L1\",reason=\"CPUID\"}") - 0.2000453).abs() < 1e-9);
        assert_eq!((of("kvmscope_recordings_total"), of("kvmscope_recordings_failed_total")), (2.0, 1.0));
        assert_eq!((of("kvmscope_recorded_seconds_total"), of("kvmscope_events_lost_total")), (10.0, 6.0));
        assert_eq!(of("kvmscope_vcpu_lost_seconds_total{state=\"preempted\"}"), 1.0);
        assert_eq!(of("kvmscope_findings{rule=\"FLW-PREEMPT\",severity=\"low\"}"), 1.0, "of the last one");
        assert_eq!((of("kvmscope_agent_cpu_share"), of("kvmscope_kept_bytes")), (0.005, 100.0));
        assert!(text.ends_with('\n') && !text.contains("\n\n"));
        // Beside what is counted all the time, it has a name of its own.
        let beside = Sampled { is_beside: true, ..metrics }.text(&State { kept, every, used, share: 0.005 });
        assert_eq!(value(&beside, "kvmscope_sampled_exits_total{level=\"L1\",reason=\"CPUID\"}"), 7.0);
        assert!(!beside.contains("kvmscope_exits_total") && !beside.contains("kvmscope_vcpu_seconds_total"));
    }
}
