//! What the vCPUs of the host did since the agent began, as counters that grow all the time.
//!
//! ```text
//! difference of two looks, of each vCPU --add--> sums by vCPU, by VM and reason, by VM and taker --text--> OpenMetrics
//! ```
//! Of each vCPU the states add up to the time since it was met. What nothing tells has no sample, never a 0. Series of a VM end when it has not
//! been seen for [`FORGOTTEN_AFTER`], so that a host on which VMs come and go does not grow for ever.

use super::identity::{Identities, Taker};
use super::open_metrics::{Sample, Text, label, seconds};
use analysis::flow::live::Vcpu;
use std::collections::BTreeMap;
use std::time::Duration;

/// Longer than any pause between two scrapes.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(15 * 60);

/// More vCPUs than this have no series of their own, and their VMs have: our own limit, 13 series of each.
const MOST_VCPUS: usize = 2_048;

/// Who took time from one VM, by name: the first so many; the others are `other`.
const MOST_TAKERS: usize = 20;

/// Upper bounds of buckets: 1.024 us, each twice the one before, up to 134 ms. What the fold counts has these edges, so nothing is interpolated.
const BOUNDS_NS: [u64; 18] = {
    let mut bounds = [0; 18];
    let mut at = 0;
    while at < bounds.len() {
        bounds[at] = 1 << (10 + at);
        at += 1;
    }
    bounds
};

/// Guests of the host: levels below are not told apart here.
const LEVEL: &str = "L1";

/// How long a vCPU was in a state, where that is told.
type InState = fn(&Vcpu) -> Option<u64>;

/// States of a vCPU, as recordings call them.
const STATES: [(&str, InState); 11] = [
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
const WAKE_DELAY: usize = 7;

/// One vCPU since it was met; of what was never told there is nothing.
#[derive(Debug, Default, Clone)]
struct OfVcpu {
    states_ns: [Option<u64>; STATES.len()],
    ready_ns: Option<u64>,
    torn_ns: Option<u64>,
    wall_ns: u64,
}

#[derive(Debug, Default, Clone)]
struct OfReason {
    count: u64,
    clipped: u64,
    total_ns: u64,
    /// By upper edge.
    bins: BTreeMap<u64, u64>,
}

impl OfReason {
    fn add(&mut self, more: &OfReason) {
        self.count += more.count;
        self.clipped += more.clipped;
        self.total_ns += more.total_ns;
        more.bins.iter().for_each(|(below_ns, count)| *self.bins.entry(*below_ns).or_default() += count);
    }
}

fn of_reason(reason: &str) -> String {
    format!("{},{}", label("level", LEVEL), label("reason", reason))
}

/// One VM since it was met.
#[derive(Debug, Default, Clone)]
struct OfVm {
    vcpus: BTreeMap<u32, OfVcpu>,
    exits: BTreeMap<String, OfReason>,
    returns: BTreeMap<String, u64>,
    wakeups: BTreeMap<u64, u64>,
    taken_ns: BTreeMap<Taker, u64>,
    identity: String,
    seen_at: Duration,
}

/// Everything since the agent began.
#[derive(Default)]
pub(crate) struct Counters {
    is_exact: bool,
    observed: Duration,
    vms: BTreeMap<String, OfVm>,
    missed: u64,
    vcpus: usize,
}

/// Adds what is known to what is known.
fn add(sum: &mut Option<u64>, more: Option<u64>) {
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
                identity.clone_into(&mut vm.identity);
            }
            vm.add(seen, identities);
        }
        let now = self.observed;
        self.vms.retain(|_, vm| now.saturating_sub(vm.seen_at) <= FORGOTTEN_AFTER);
    }

    /// All families, without the end of the exposition.
    pub(crate) fn text(&self) -> String {
        let mut text = Text::default();
        let one = |value: f64| [(String::new(), value)];
        text.counter(
            "kvmscope_observed_seconds",
            "seconds",
            "Time that vCPUs were observed without a break.",
            &one(self.observed.as_secs_f64()),
        );
        text.gauge("kvmscope_observed_vcpus", "", "vCPUs that were there at the last look.", &one(self.vcpus as f64));
        let mode = if self.is_exact { "exact" } else { "proc" };
        text.gauge(
            "kvmscope_mode",
            "",
            "exact: every nanosecond is told, by the fold in the kernel. proc: no more than /proc tells, CPU Ready and time in guests.",
            &[(label("mode", mode), 1.0)],
        );
        let infos: Vec<Sample> = self.vms.values().map(|vm| (vm.identity.clone(), 1.0)).collect();
        let infos: Vec<Sample> = infos.into_iter().filter(|(labels, _)| !labels.is_empty()).collect();
        text.gauge("kvmscope_vm_info", "", "Who a VM is to those who manage it.", &infos);
        self.states(&mut text);
        self.exits(&mut text);
        self.taken(&mut text);
        if self.is_exact {
            text.counter(
                "kvmscope_fold_missed",
                "",
                "How often a vCPU's events did not fit what was known of it, so that time became unknown.",
                &one(self.missed as f64),
            );
        }
        text.0
    }

    fn states(&self, text: &mut Text) {
        let has_own = self.vms.values().map(|vm| vm.vcpus.len()).sum::<usize>() <= MOST_VCPUS;
        let rows: Vec<(String, OfVcpu)> = self.vms.iter().flat_map(|(name, vm)| vm.rows(name, has_own)).collect();
        let of = |value: &dyn Fn(&OfVcpu) -> Option<u64>| -> Vec<Sample> {
            rows.iter().filter_map(|(labels, row)| Some((labels.clone(), seconds(value(row)?)))).collect()
        };
        if self.is_exact {
            let mut states = Vec::new();
            for (at, (state, _)) in STATES.iter().enumerate() {
                let samples = of(&|row| row.states_ns[at]).into_iter();
                states.extend(samples.map(|(labels, value)| (format!("{labels},{}", label("state", state)), value)));
            }
            text.counter(
                "kvmscope_vcpu_seconds",
                "seconds",
                "Time of vCPUs by state; the states of a vCPU add up to kvmscope_vcpu_observed_seconds.",
                &states,
            );
        } else {
            let guest = STATES.iter().position(|(state, _)| *state == "guest").unwrap_or(0);
            text.counter(
                "kvmscope_vcpu_guest_seconds",
                "seconds",
                "Time in the guest, in steps of 10 ms.",
                &of(&|row| row.states_ns[guest]),
            );
        }
        text.counter(
            "kvmscope_vcpu_observed_seconds",
            "seconds",
            "Time since a vCPU was met.",
            &of(&|row| Some(row.wall_ns)),
        );
        text.counter(
            "kvmscope_vcpu_ready_seconds",
            "seconds",
            "CPU Ready: a vCPU could have run and did not, pre-empted or woken and not yet running.",
            &of(&|row| row.ready_ns),
        );
        text.counter(
            "kvmscope_vcpu_torn_seconds",
            "seconds",
            "A vCPU was ready while another one of its VM ran.",
            &of(&|row| row.torn_ns),
        );
    }

    fn exits(&self, text: &mut Text) {
        if !self.is_exact {
            return;
        }
        let of_vms = |of: fn(&OfReason) -> f64| -> Vec<Sample> {
            let rows =
                self.vms.iter().flat_map(|(vm, all)| all.exits.iter().map(move |(reason, row)| (vm, reason, row)));
            let key = |vm: &str, reason: &str| format!("{},{}", label("vm", vm), of_reason(reason));
            rows.map(|(vm, reason, row)| (key(vm, reason), of(row))).collect()
        };
        text.counter("kvmscope_exits", "", "Exits of guests by reason.", &of_vms(|row| row.count as f64));
        text.counter(
            "kvmscope_exit_handling_seconds",
            "seconds",
            "From exits to the next entry, time without a CPU left out.",
            &of_vms(|row| seconds(row.total_ns)),
        );
        let returns = self.vms.iter().flat_map(|(name, vm)| {
            let key = |reason: &str| format!("{},{}", label("vm", name), label("reason", reason));
            vm.returns.iter().map(move |(reason, count)| (key(reason), *count as f64))
        });
        let returns: Vec<Sample> = returns.collect();
        text.counter("kvmscope_userspace_exits", "", "Returns of KVM_RUN to the VMM by reason.", &returns);
        const COST: &str = "kvmscope_exit_duration_seconds";
        text.head(COST, "histogram", "seconds", "The same of one exit, over all VMs.");
        // Buckets of each reason of each VM would be most of all series.
        for (reason, row) in self.of_all_vms() {
            let timed = row.count.saturating_sub(row.clipped);
            text.histogram(COST, &of_reason(&reason), &cumulative(&row.bins), timed, row.total_ns);
        }
        const WAKE: &str = "kvmscope_wakeup_seconds";
        text.head(WAKE, "histogram", "seconds", "From woken to running.");
        for (name, vm) in &self.vms {
            let waited_ns = vm.vcpus.values().filter_map(|vcpu| vcpu.states_ns[WAKE_DELAY]).sum();
            let count = vm.wakeups.values().sum();
            text.histogram(WAKE, &label("vm", name), &cumulative(&vm.wakeups), count, waited_ns);
        }
    }

    fn of_all_vms(&self) -> BTreeMap<String, OfReason> {
        let mut all: BTreeMap<String, OfReason> = BTreeMap::new();
        for (reason, row) in self.vms.values().flat_map(|vm| &vm.exits) {
            all.entry(reason.clone()).or_default().add(row);
        }
        all
    }

    fn taken(&self, text: &mut Text) {
        let taken = self.vms.iter().flat_map(|(name, vm)| {
            let key = |taker: &Taker| {
                format!("{},{},{}", label("vm", name), label("kind", taker.kind), label("by", &taker.by))
            };
            vm.taken_ns.iter().map(move |(taker, ns)| (key(taker), seconds(*ns)))
        });
        if self.is_exact {
            text.counter(
                "kvmscope_taken_seconds",
                "seconds",
                "Who had the CPU for which a vCPU of the VM was ready.",
                &taken.collect::<Vec<_>>(),
            );
        }
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

    /// Its vCPUs, or all of them as one.
    fn rows(&self, name: &str, has_own: bool) -> Vec<(String, OfVcpu)> {
        let vm = label("vm", name);
        if has_own {
            let row =
                |(number, of): (&u32, &OfVcpu)| (format!("{vm},{}", label("vcpu", &number.to_string())), of.clone());
            return self.vcpus.iter().map(row).collect();
        }
        let mut all = OfVcpu::default();
        for of in self.vcpus.values() {
            all.states_ns.iter_mut().zip(of.states_ns).for_each(|(sum, more)| add(sum, more));
            add(&mut all.ready_ns, of.ready_ns);
            add(&mut all.torn_ns, of.torn_ns);
            all.wall_ns += of.wall_ns;
        }
        vec![(format!("{vm},{}", label("vcpu", "all")), all)]
    }
}

/// How many are below each of [`BOUNDS_NS`].
fn cumulative(bins: &BTreeMap<u64, u64>) -> Vec<(u64, u64)> {
    let below = |bound_ns: u64| bins.range(..=bound_ns).map(|(_, count)| count).sum();
    BOUNDS_NS.into_iter().map(|bound_ns| (bound_ns, below(bound_ns))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use analysis::flow::live::{Exits, Preemptor};

    fn value(text: &str, sample: &str) -> Option<f64> {
        text.lines().find_map(|line| line.strip_prefix(sample)?.strip_prefix(' ')?.parse().ok())
    }

    /// 100 ms of a vCPU that waited 30 for `by`, and exited twice.
    fn seen(vcpu: u32, by: &str) -> Vcpu {
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
        let text = counters(&[vec![seen(0, "hog"), seen(1, "hog")], vec![seen(0, "vhost-77")]]).text();
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
        let looks: Vec<Vec<Vcpu>> = (0..30).map(|number| vec![seen(0, &format!("task{number}"))]).collect();
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
        let many: Vec<Vcpu> = (0..=MOST_VCPUS as u32).map(|number| seen(number, "hog")).collect();
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
