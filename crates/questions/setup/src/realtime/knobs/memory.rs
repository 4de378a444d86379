//! Memory that is there before it is touched, and stays.

use super::super::checks::Told;
use super::super::host::Host;
use super::{Group, Place, Rule, Want, knob};
use base::Needs;
use base::number::list;
use base::shell::quoted;
use host::machine::Role;

pub(super) const KNOBS: &[Rule] = &[
    Rule {
        id: "LAT-THP",
        looks_at: "Transparent huge pages.",
        why: "Making and splitting them flushes the TLBs of every CPU that runs the process, and compaction moves its pages. \
              Caveat: guests without reserved huge pages depend on them.",
        source: "Documentation/admin-guide/mm/transhuge.rst, Linux 6.12; tuned 2.28, profile network-latency",
        ..knob(
            "transparent_hugepage",
            Group::Memory,
            Place::File("sys/kernel/mm/transparent_hugepage/enabled", Want::Is(&["never"])),
        )
    },
    Rule {
        id: "LAT-KSM",
        looks_at: "Whether equal pages are merged (KSM).",
        why: "A write to a merged page is a fault that copies it. Caveat: 2 copies all merged pages at once, for which there must be \
              memory.",
        source: "Documentation/admin-guide/mm/ksm.rst, Linux 6.12; tuned 2.28, profile realtime-virtual-host",
        ..knob("ksm", Group::Memory, Place::File("sys/kernel/mm/ksm/run", Want::Is(&["2", "0"])))
    },
    Rule {
        id: "LAT-SWAPPINESS",
        looks_at: "How readily memory of programs is swapped out.",
        why: "A page of the guest that was swapped out takes a disk's time to come back. Caveat: with locked memory or huge pages \
              nothing of the guest is swapped anyway.",
        source: "Documentation/admin-guide/sysctl/vm.rst, swappiness, Linux 6.12; tuned 2.28, profile throughput-performance",
        ..knob("swappiness", Group::Memory, Place::File("proc/sys/vm/swappiness", Want::AtMost(10)))
    },
    Rule {
        id: "LAT-HUGEPAGES",
        looks_at: "Whether the VMs of these vCPUs have huge pages of their own.",
        why: "Small pages are mapped at the first touch, each with an exit, and may be moved or taken back. Caveat: reserved \
              huge pages are not available to others, and a guest that does not fit does not start.",
        needs: Needs::Reload,
        source: "libvirt.org/formatdomain.html, memory backing; tuned 2.28, profile realtime-virtual-host",
        ..knob("memoryBacking", Group::Memory, Place::Told(small_pages))
    },
];

/// VMs whose vCPUs are on CPUs of real time, and that have no huge pages.
fn small_pages(host: &Host<'_>) -> Option<Told> {
    let has_vcpu = |name: &str| {
        host.machine.threads_of(name).any(|thread| {
            let set = thread.affinity.as_ref().map(|set| &set.value);
            matches!(thread.role, Role::Vcpu(_)) && set.is_some_and(|set| !set.is_empty() && set.is_within(&host.cpus))
        })
    };
    let domains: Vec<_> =
        host.machine.domains.iter().filter(|domain| domain.whole.is_some() && has_vcpu(&domain.name)).collect();
    let small: Vec<String> =
        domains.iter().filter(|domain| !domain.huge_pages).map(|domain| domain.name.clone()).collect();
    (!domains.is_empty()).then_some(())?;
    let value = if small.is_empty() { "huge pages".to_owned() } else { format!("small pages: {}", list(&small)) };
    let mut told = Told::new(value, "libvirt, memoryBacking", small.is_empty(), "huge pages");
    for name in small.iter().map(|name| quoted(name)) {
        told.fix.push(format!("virsh edit {name}   # <memoryBacking><hugepages/><locked/></memoryBacking>"));
        told.undo.push(format!("virsh edit {name}   # <memoryBacking> as it was"));
    }
    Some(told)
}
