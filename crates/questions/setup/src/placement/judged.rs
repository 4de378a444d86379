//! What is known of a machine, so that rules can judge it.

use super::model::Model;
use super::rules::rules;
use ::host::Machine;
use ::host::machine::{GaugeKind, Role, Thread};
use base::Unknown;
use base::fact_kind::{FactKind, unjudged};
use std::collections::BTreeSet;

/// How many rules could not be judged on any of these machines; where no VM is known, nobody asks.
pub(super) fn not_judged(models: &[Model]) -> Option<Unknown> {
    let asked = models.iter().filter(|model| !model.machine.domains.is_empty());
    let known: Vec<_> = asked.map(|model| of(&model.machine, model.pasted)).collect();
    let known = (!known.is_empty()).then(|| known.into_iter().flatten().collect())?;
    unjudged("about who runs where", rules().map(|rule| rule.requires), &known)
}

/// Kinds of facts of which at least one was told. What a whole tree does not have is not there: of its switch, its VMs and their limits
/// nothing is left to tell.
fn of(machine: &Machine, is_pasted: bool) -> BTreeSet<FactKind> {
    let topology = &machine.topology;
    let every_cpu =
        |is_told: fn(&::host::machine::Cpu) -> bool| !topology.cpus.is_empty() && topology.cpus.values().all(is_told);
    let of_vms = || machine.threads.iter().filter(|thread| thread.role != Role::Other);
    let no_vms = machine.lists_processes && machine.domains.is_empty();
    let thread = |is_told: fn(&Thread) -> bool| no_vms || of_vms().any(is_told);
    let gauge = |kinds: &[GaugeKind]| machine.gauges.iter().any(|gauge| kinds.contains(&gauge.kind));
    let setting = |start: &str| machine.settings.keys().any(|path| path.starts_with(start));
    let is_whole = !is_pasted;
    let told = [
        (FactKind::Cpus, !topology.cpus.is_empty()),
        (FactKind::Cores, !topology.cpus.is_empty() && !topology.cores_unknown),
        (FactKind::Caches, every_cpu(|cpu| cpu.last_cache.is_some())),
        (FactKind::Nodes, every_cpu(|cpu| cpu.node.is_some())),
        (FactKind::Isolated, topology.isolated.is_some()),
        (FactKind::TopClocks, machine.settings.keys().any(|path| path.ends_with("/cpuinfo_max_freq"))),
        (FactKind::Definitions, no_vms || !machine.domains.is_empty()),
        (FactKind::Masks, thread(|thread| thread.affinity.is_some())),
        (FactKind::Seen, thread(|thread| thread.last_cpu.is_some())),
        (FactKind::Ran, thread(|thread| thread.run_share.is_some())),
        (FactKind::Waited, thread(|thread| thread.wait_share.is_some())),
        (FactKind::Usage, !machine.cpu_use.is_empty()),
        (FactKind::Groups, thread(|thread| thread.cgroup.is_some())),
        (FactKind::Quotas, is_whole || !machine.quotas.is_empty()),
        (FactKind::GuestMemory, no_vms || !machine.vm_memory.is_empty() || !machine.process_memory.is_empty()),
        (FactKind::Interrupts, machine.irqs.iter().any(|irq| !irq.per_s.is_empty())),
        (FactKind::Cards, !machine.nics.is_empty()),
        (
            FactKind::CardCounters,
            machine.nics.iter().any(|nic| !nic.counters.is_empty()) || !machine.switch.statistics.is_empty(),
        ),
        (FactKind::Switch, is_whole || machine.switch != Default::default()),
        (FactKind::Paging, gauge(&[GaugeKind::SwappedIn, GaugeKind::SwappedOut])),
        (FactKind::Pressure, gauge(&[GaugeKind::PressureSome, GaugeKind::PressureFull, GaugeKind::RunQueue])),
        (
            FactKind::Disks,
            gauge(&[GaugeKind::DiskBusy, GaugeKind::DiskRead, GaugeKind::DiskWrite, GaugeKind::DiskQueue]),
        ),
        (FactKind::PagesMoved, machine.pages_moved_per_s.is_some()),
        (FactKind::Log, machine.kernel_lines > 0 || !machine.complaints.is_empty()),
        (FactKind::Settings, setting("proc/sys/") || setting("sys/")),
        (FactKind::Processor, machine.vendor.is_some()),
    ];
    told.into_iter().filter(|(_, is_told)| *is_told).map(|(known, _)| known).collect()
}
