//! What the vCPUs of the host did since the agent began: counters that grow all the time.
//!
//! ```text
//! difference of two looks, of each vCPU --add--> sums by vCPU, by VM and reason, by VM and taker --families--> OpenMetrics
//! ```
//! Of each vCPU the states add up to the time since it was met. What nothing tells has no sample, never a 0. Series of a VM end when it has not
//! been seen for [`FORGOTTEN_AFTER`], so that a host on which VMs come and go does not grow for ever.

use super::identity::{Identities, Taker};
use analysis::flow::live::Vcpu;
use std::collections::BTreeMap;
use std::time::Duration;

/// Longer than any pause between two scrapes.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(15 * 60);

/// Who took time from one VM, by name: the first so many; the others are `other`.
const MOST_TAKERS: usize = 20;

/// How long a vCPU was in a state, where that is told.
type InState = fn(&Vcpu) -> Option<u64>;

/// States of a vCPU, as recordings call them.
pub(crate) const STATES: [(&str, InState); 11] = [
    ("guest", |vcpu| vcpu.guest_ns),
    ("handling", |vcpu| vcpu.handling_ns),
    ("userspace", |vcpu| vcpu.userspace_ns),
    ("irq", |vcpu| vcpu.irq_ns),
    ("softirq", |vcpu| vcpu.softirq_ns),
    ("nmi", |vcpu| vcpu.nmi_ns),
    ("halted", |vcpu| vcpu.halted_ns),
    ("wake_delay", |vcpu| vcpu.wake_delay_ns),
    ("preempted", |vcpu| vcpu.preempted_ns),
    ("blocked", |vcpu| vcpu.blocked_ns),
    ("unknown", |vcpu| vcpu.unknown_ns),
];

/// Where the wait from woken to running stands among them.
pub(crate) const WAKE_DELAY: usize = 7;

/// One vCPU since it was met; of what was never told there is nothing.
#[derive(Debug, Default, Clone)]
pub(crate) struct OfVcpu {
    pub states_ns: [Option<u64>; STATES.len()],
    pub ready_ns: Option<u64>,
    pub torn_ns: Option<u64>,
    pub wall_ns: u64,
}

#[derive(Debug, Default, Clone)]
pub(crate) struct OfReason {
    pub count: u64,
    pub clipped: u64,
    pub total_ns: u64,
    /// By upper edge.
    pub bins: BTreeMap<u64, u64>,
}

impl OfReason {
    pub(crate) fn add(&mut self, more: &OfReason) {
        self.count += more.count;
        self.clipped += more.clipped;
        self.total_ns += more.total_ns;
        more.bins.iter().for_each(|(below_ns, count)| *self.bins.entry(*below_ns).or_default() += count);
    }
}

/// One VM since it was met.
#[derive(Debug, Default, Clone)]
pub(crate) struct OfVm {
    pub vcpus: BTreeMap<u32, OfVcpu>,
    pub exits: BTreeMap<String, OfReason>,
    pub returns: BTreeMap<String, u64>,
    pub wakeups: BTreeMap<u64, u64>,
    pub taken_ns: BTreeMap<Taker, u64>,
    pub identity: Option<String>,
    pub seen_at: Duration,
}

/// Everything since the agent began.
#[derive(Default)]
pub(crate) struct Counters {
    pub(crate) is_exact: bool,
    pub(crate) observed: Duration,
    pub(crate) vms: BTreeMap<String, OfVm>,
    pub(crate) missed: u64,
    pub(crate) vcpus: usize,
}

/// Adds what is known to what is known.
pub(crate) fn add(sum: &mut Option<u64>, more: Option<u64>) {
    if let Some(more) = more {
        *sum = Some(sum.unwrap_or(0) + more);
    }
}

impl Counters {
    pub(crate) fn begin(&mut self, is_exact: bool) {
        self.is_exact = is_exact;
    }

    /// What was between two looks that are `since` apart.
    pub(crate) fn add(&mut self, vcpus: &[Vcpu], since: Duration, identities: &mut Identities) {
        self.observed += since;
        self.vcpus = vcpus.len();
        for seen in vcpus {
            self.missed += seen.missed.unwrap_or(0);
            let vm = self.vms.entry(seen.vm.clone()).or_default();
            vm.seen_at = self.observed;
            if let Some(identity) = identities.of_vm(&seen.vm) {
                vm.identity = Some(identity.to_owned());
            }
            vm.add(seen, identities);
        }
        let now = self.observed;
        self.vms.retain(|_, vm| now.saturating_sub(vm.seen_at) <= FORGOTTEN_AFTER);
    }
}

impl OfVm {
    fn add(&mut self, seen: &Vcpu, identities: &mut Identities) {
        let vcpu = self.vcpus.entry(seen.vcpu).or_default();
        vcpu.states_ns.iter_mut().zip(STATES).for_each(|(sum, (_, of))| add(sum, of(seen)));
        add(&mut vcpu.ready_ns, seen.ready_ns);
        add(&mut vcpu.torn_ns, seen.torn_ns);
        vcpu.wall_ns += seen.wall_ns;
        for exits in seen.exits.iter().flatten() {
            let bins = exits.bins.iter().copied().collect();
            let more = OfReason { count: exits.count, clipped: exits.clipped, total_ns: exits.total_ns, bins };
            self.exits.entry(exits.reason.clone()).or_default().add(&more);
        }
        for (reason, count) in seen.userspace_exits.iter().flatten() {
            *self.returns.entry(reason.clone()).or_default() += count;
        }
        seen.wakeups.iter().for_each(|(below_ns, count)| *self.wakeups.entry(*below_ns).or_default() += count);
        for preemptor in seen.preemptors.iter().flatten() {
            let taker = identities.taker(preemptor);
            let is_known = self.taken_ns.contains_key(&taker) || self.taken_ns.len() < MOST_TAKERS;
            let taker = if is_known { taker } else { Taker { kind: "other", by: "other".to_owned() } };
            *self.taken_ns.entry(taker).or_default() += preemptor.total_ns;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::families::MOST_VCPUS;
    use analysis::flow::live::{Exits, Preemptor};

    fn value(text: &str, sample: &str) -> Option<f64> {
        text.lines().find_map(|line| line.strip_prefix(sample)?.strip_prefix(' ')?.parse().ok())
    }

    /// 100 ms of a vCPU that waited 30 for `by`, and exited three times.
    fn waiting_vcpu(vcpu: u32, by: &str) -> Vcpu {
        let preemptor =
            Preemptor { by: by.to_owned(), tid: Some(4_000_000), count: 1, total_ns: 30_000_000, max_ns: None };
        let exits = Exits {
            reason: "CPUID".to_owned(),
            count: 3,
            clipped: 1,
            total_ns: 5_000,
            p50_ns: None,
            p90_ns: None,
            p99_ns: None,
            max_ns: None,
            bins: vec![(1_024, 1), (6_144, 1)],
        };
        Vcpu {
            vm: "web \"1\"".to_owned(),
            vcpu,
            tid: 10 + vcpu as i32,
            wall_ns: 100_000_000,
            guest_ns: Some(70_000_000),
            preempted_ns: Some(30_000_000),
            ready_ns: Some(30_000_000),
            exits: Some(vec![exits]),
            preemptors: Some(vec![preemptor]),
            wakeups: vec![(1_536, 2)],
            missed: Some(1),
            ..Vcpu::default()
        }
    }

    fn counters(looks: &[Vec<Vcpu>]) -> Counters {
        let nowhere = tempfile::tempdir().unwrap();
        let mut identities = Identities::new(nowhere.path().to_owned());
        let mut counters = Counters { is_exact: true, ..Counters::default() };
        looks.iter().for_each(|look| counters.add(look, Duration::from_millis(100), &mut identities));
        counters
    }

    #[test]
    fn looks_add_up_and_what_nobody_tells_has_no_sample() {
        let text =
            counters(&[vec![waiting_vcpu(0, "hog"), waiting_vcpu(1, "hog")], vec![waiting_vcpu(0, "vhost-77")]]).text();
        let of = |sample: &str| value(&text, sample).unwrap_or_else(|| panic!("{sample}: {text}"));
        let vcpu = |number: u32| format!("vm=\"web \\\"1\\\"\",vcpu=\"{number}\"");
        assert!((of("kvmscope_observed_seconds_total") - 0.2).abs() < 1e-9);
        assert!((of(&format!("kvmscope_vcpu_seconds_total{{{},state=\"guest\"}}", vcpu(0))) - 0.14).abs() < 1e-9);
        assert!((of(&format!("kvmscope_vcpu_observed_seconds_total{{{}}}", vcpu(0))) - 0.2).abs() < 1e-9);
        assert!((of(&format!("kvmscope_vcpu_ready_seconds_total{{{}}}", vcpu(1))) - 0.03).abs() < 1e-9);
        assert!(!text.contains("state=\"halted\"") && !text.contains("kvmscope_vcpu_torn_seconds_total{"), "{text}");
        let reason = "level=\"L1\",reason=\"CPUID\"";
        assert_eq!(of(&format!("kvmscope_exits_total{{vm=\"web \\\"1\\\"\",{reason}}}")), 9.0);
        let cost = |le: &str| of(&format!("kvmscope_exit_duration_seconds_bucket{{{reason},le=\"{le}\"}}"));
        assert_eq!(["0.000001024", "0.000004096", "0.000008192", "+Inf"].map(cost), [3.0, 3.0, 6.0, 6.0]);
        assert_eq!(
            of(&format!("kvmscope_exit_duration_seconds_count{{{reason}}}")),
            6.0,
            "without those that no entry ended"
        );
        let taken = |kind: &str, by: &str| {
            of(&format!("kvmscope_taken_seconds_total{{vm=\"web \\\"1\\\"\",kind=\"{kind}\",by=\"{by}\"}}"))
        };
        assert!((taken("other", "hog") - 0.06).abs() < 1e-9 && (taken("vhost", "vhost-77") - 0.03).abs() < 1e-9);
        assert_eq!(of("kvmscope_fold_missed_total"), 3.0);
    }

    #[test]
    fn takers_of_a_vm_are_capped_and_nothing_of_their_time_is_lost() {
        let looks: Vec<Vec<Vcpu>> = (0..30).map(|number| vec![waiting_vcpu(0, &format!("task{number}"))]).collect();
        let text = counters(&looks).text();
        let taken: Vec<f64> = text
            .lines()
            .filter(|line| line.starts_with("kvmscope_taken_seconds_total{"))
            .map(|line| line.rsplit(' ').next().unwrap().parse().unwrap())
            .collect();
        assert_eq!(taken.len(), MOST_TAKERS + 1);
        assert!((taken.iter().sum::<f64>() - 0.9).abs() < 1e-9, "{taken:?}");
    }

    #[test]
    fn many_vcpus_are_told_by_their_vms_and_vms_that_are_gone_are_forgotten() {
        let many: Vec<Vcpu> = (0..=MOST_VCPUS as u32).map(|number| waiting_vcpu(number, "hog")).collect();
        let mut all = counters(&[many]);
        let text = all.text();
        let ready: Vec<&str> =
            text.lines().filter(|line| line.starts_with("kvmscope_vcpu_ready_seconds_total{")).collect();
        assert!(ready.len() == 1 && ready[0].contains("vcpu=\"all\""), "{ready:?}");
        let mut identities = Identities::new("/nowhere".into());
        all.add(&[], FORGOTTEN_AFTER, &mut identities);
        assert!(all.text().contains("kvmscope_vcpu_ready_seconds_total{"), "a scrape may be late");
        all.add(&[], Duration::from_secs(1), &mut identities);
        assert!(!all.text().contains("vm=\"web"), "{}", all.text());
    }

    #[test]
    fn the_wait_to_run_is_where_histograms_take_it_from() {
        assert_eq!(STATES[WAKE_DELAY].0, "wake_delay");
    }
}
