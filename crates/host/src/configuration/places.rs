//! Who may run where: threads of VMs and of a switch, interrupts, groups.

use super::{Area, Name, Setting, Settings, Value};
use crate::Machine;
use crate::machine::{Role, Thread};
use base::CpuSet;
use std::collections::BTreeMap;

pub(super) fn settings(machine: &Machine) -> Settings {
    let threads = threads(&machine.threads);
    let irqs = machine.irqs.iter().filter_map(|irq| {
        let affinity = irq.affinity.as_ref()?;
        let name = if irq.name.is_empty() { irq.number.to_string() } else { irq.name.clone() };
        Some(cpus(format!("interrupt {name}"), &affinity.value, &affinity.place))
    });
    let groups = machine.cgroups.iter().filter_map(|(path, group)| {
        let asked = group.cpus.as_ref()?;
        Some(cpus(format!("cgroup {path}"), &asked.value, &asked.place))
    });
    threads.into_iter().chain(irqs).chain(groups).collect()
}

fn cpus(name: String, cpus: &CpuSet, place: &str) -> (Name, Setting) {
    let value = Value::Line(format!("CPUs {cpus}"));
    ((Area::Placement, name), Setting { value, place: place.to_owned() })
}

/// `web vcpu 0`; threads of one VM that do the same are told together, as their order is nobody's choice.
fn threads(threads: &[Thread]) -> Settings {
    let mut by_name: BTreeMap<String, (Vec<String>, &str)> = BTreeMap::new();
    for thread in threads.iter().filter(|thread| thread.role != Role::Other) {
        let Some(affinity) = &thread.affinity else { continue };
        let whose = thread.vm.as_deref().map_or(String::new(), |vm| format!("{vm} "));
        let mut told = affinity.value.to_string();
        match thread.policy {
            Some(1) => told.push_str(", SCHED_FIFO"),
            Some(2) => told.push_str(", SCHED_RR"),
            _ => {}
        }
        let (all, _) =
            by_name.entry(format!("{whose}{}", thread.role)).or_insert_with(|| (Vec::new(), &affinity.place));
        all.push(told);
    }
    let setting = |(name, (mut all, place)): (String, (Vec<String>, &str))| {
        all.sort();
        all.dedup();
        let value = Value::Line(format!("CPUs {}", all.join(" and ")));
        ((Area::Placement, name), Setting { value, place: place.to_owned() })
    };
    by_name.into_iter().map(setting).collect()
}
