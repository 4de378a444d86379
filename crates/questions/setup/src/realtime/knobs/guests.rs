//! How guests of real time were started: switches of their virtual processors.

use super::super::checks::Told;
use super::super::host::Host;
use super::{Group, Place, Rule, knob};
use base::Needs;
use base::number::list;
use std::collections::BTreeMap;

pub(super) const KNOBS: &[Rule] = &[
    Rule {
        id: "LAT-GUESTPMU",
        looks_at: "Whether guests on these CPUs have performance counters (pmu of QEMU's -cpu).",
        why: "With counters in the guest KVM saves, restores and checks them, and their overflow is an NMI in the host. Caveat: \
              perf counts no events of the processor in a guest without them, and its NMI watchdog ends.",
        needs: Needs::Reload,
        source: "QEMU 7.2, target/i386/cpu.c (pmu, on for the models host and max); OPNFV KVM4NFV, ci/envs (pmu=off)",
        ..knob("pmu of guests", Group::Kvm, Place::Told(performance_counters))
    },
    Rule {
        id: "LAT-MIGRATABLE",
        looks_at: "Whether guests on these CPUs see the invariant TSC (migratable=off, or +invtsc, of QEMU's -cpu).",
        why: "A guest that may be migrated is not shown that its time-stamp counter is invariant, and may then read a slower clock. \
              Caveat: such a guest cannot be migrated; leave it as it is where that may ever be needed.",
        needs: Needs::Reload,
        source: "QEMU 7.2, docs/system/cpu-models-x86.rst and target/i386/cpu.c (migratable); OPNFV KVM4NFV, ci/envs",
        ..knob("migratable of guests", Group::Kvm, Place::Told(migratable))
    },
];

/// The `-cpu` of a VM: its model, and what was switched.
struct Processor {
    vm: String,
    model: String,
    switches: BTreeMap<String, bool>,
}

impl Processor {
    /// Out of a command line, whose arguments end with zero bytes; QEMU's default model has no name here.
    fn of(vm: &str, command: &str) -> Self {
        let arguments: Vec<&str> = command.split('\0').collect();
        let given = arguments.windows(2).rev().find(|pair| pair[0] == "-cpu").map_or("", |pair| pair[1]);
        let mut words = given.split(',');
        let model = words.next().unwrap_or_default().to_owned();
        let switch = |word: &str| match (word.strip_prefix('+'), word.strip_prefix('-'), word.split_once('=')) {
            (Some(name), ..) => Some((name.to_owned(), true)),
            (_, Some(name), _) => Some((name.to_owned(), false)),
            (.., Some((name, value))) => Some((name.to_owned(), matches!(value, "on" | "yes" | "true"))),
            (None, None, None) => None,
        };
        Self { vm: vm.to_owned(), model, switches: words.filter_map(switch).collect() }
    }

    fn is_hosts(&self) -> bool {
        matches!(self.model.as_str(), "host" | "max")
    }

    /// A switch that is on for the host's models where nobody says otherwise.
    fn has(&self, name: &str) -> bool {
        self.switches.get(name).copied().unwrap_or(self.is_hosts())
    }
}

/// The VMs that have a vCPU bound to the CPUs of real time, as they were started.
fn processors(host: &Host<'_>) -> Vec<Processor> {
    let is_there = |thread: &&host::machine::Thread| {
        thread.affinity.as_ref().is_some_and(|set| !set.value.is_empty() && set.value.is_within(&host.cpus))
    };
    let pids: BTreeMap<i32, &str> =
        host.vcpus().filter(is_there).filter_map(|thread| Some((thread.pid?, thread.vm.as_deref()?))).collect();
    let read = |(pid, vm): (i32, &str)| Some(Processor::of(vm, &host.last.read(&format!("proc/{pid}/cmdline"))?));
    pids.into_iter().filter_map(read).collect()
}

/// What the guests that are not as wanted are told to be instead.
fn told(host: &Host<'_>, wanted: &str, is_other: impl Fn(&Processor) -> bool, element: &str) -> Option<Told> {
    let all = processors(host);
    if all.is_empty() {
        return None;
    }
    let others: Vec<String> = all.iter().filter(|one| is_other(one)).map(|one| one.vm.clone()).collect();
    let value = if others.is_empty() { wanted.to_owned() } else { format!("on for {}", list(&others)) };
    let mut told = Told::new(value, "proc/*/cmdline", others.is_empty(), wanted);
    for vm in &others {
        told.fix.push(format!("virsh edit {}   # {element}, from its next start on", base::shell::quoted(vm)));
    }
    Some(told)
}

fn performance_counters(host: &Host<'_>) -> Option<Told> {
    told(host, "off", |one| one.has("pmu"), "in <features>: <pmu state='off'/>; of QEMU: -cpu ..,pmu=off")
}

fn migratable(host: &Host<'_>) -> Option<Told> {
    let hides = |one: &Processor| one.is_hosts() && one.has("migratable") && one.switches.get("invtsc") != Some(&true);
    told(host, "off", hides, "<cpu mode='host-passthrough' migratable='off'/>; of QEMU: -cpu host,migratable=off")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn switches_are_read_in_all_their_spellings_and_the_last_cpu_counts() {
        let of = |cpu: &str| Processor::of("x", &format!("qemu\0-cpu\0qemu64\0-cpu\0{cpu}\0-m\x001G\0"));
        for (cpu, pmu) in [
            ("host", true),
            ("max,migratable=off", true),
            ("host,pmu=off", false),
            ("host,-pmu", false),
            ("Haswell", false),
            ("Haswell,pmu=on", true),
            ("EPYC,+pmu", true),
        ] {
            assert_eq!(of(cpu).has("pmu"), pmu, "{cpu}");
        }
        assert!(!Processor::of("x", "qemu\0-m\x001G\0").has("pmu"), "the default model has none");
        assert!(of("host,+invtsc").switches["invtsc"] && !of("host,invtsc=off").switches["invtsc"]);
    }
}
