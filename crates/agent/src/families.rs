//! The counters of all vCPUs as families of OpenMetrics.

use super::counters::{Counters, OfReason, OfVcpu, OfVm, STATES, WAKE_DELAY, add};
use super::identity::Taker;
use super::open_metrics::{Sample, Text, label, seconds};
use std::collections::BTreeMap;

/// More vCPUs than this have no series of their own, and their VMs have: our own limit, 13 series of each.
pub(crate) const MOST_VCPUS: usize = 2_048;

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

fn of_reason(reason: &str) -> String {
    format!("{},{}", label("level", LEVEL), label("reason", reason))
}

impl Counters {
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
            "exact: counted by the fold in the kernel. proc: what /proc has, CPU Ready and time in guests.",
            &[(label("mode", mode), 1.0)],
        );
        // Of one that ended before it was looked up its name is all there is.
        let identity = |(name, vm): (&String, &OfVm)| vm.identity.clone().unwrap_or_else(|| label("vm", name));
        let infos: Vec<Sample> = self.vms.iter().map(|of| (identity(of), 1.0)).collect();
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
