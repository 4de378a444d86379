//! Interrupts as units: which can be placed, and what of a CPU each takes.
//!
//! The kernel counts the time of interrupts and softirqs by CPU, not by interrupt. What a CPU spent on them is divided among
//! its interrupts by how often each came: at most what each costs, because timers and RCU are in it as well.

use super::units::{Subject, What};
use crate::placement::model::Wishes;
use crate::placement::solver::{Kind, Unit};
use host::Machine;
use host::machine::{Irq, Role};
use std::collections::BTreeMap;

/// An interrupt that comes less often is placed only if it is a NIC's.
const OFTEN_PER_S: f64 = 100.0;

/// What an interrupt of a NIC is taken to need of a CPU where nothing was measured.
const UNMEASURED: f64 = 0.05;

/// Shares of CPUs that interrupts took, by interrupt and CPU.
#[derive(Debug, Default)]
pub(super) struct Attributed(BTreeMap<u32, BTreeMap<u32, f64>>);

impl Attributed {
    /// What all of them took of a CPU.
    pub(super) fn on_cpu(&self, cpu: u32) -> f64 {
        self.0.values().filter_map(|cpus| cpus.get(&cpu)).sum()
    }

    fn of(&self, irq: u32) -> Option<f64> {
        self.0.get(&irq).map(|cpus| cpus.values().sum())
    }
}

fn can_be_placed(machine: &Machine, irq: &Irq) -> bool {
    let often = irq.per_s.values().sum::<f64>() >= OFTEN_PER_S;
    let of_nic = machine.nic_of(irq).is_some() && irq.counts.values().any(|count| *count > 0);
    irq.affinity.is_some() && !irq.is_managed() && (often || of_nic)
}

/// What each interrupt that can be placed took of each CPU, by the interrupt's number.
pub(in crate::placement) fn taken_by_interrupts(machine: &Machine) -> BTreeMap<u32, BTreeMap<u32, f64>> {
    attributed(machine).0
}

/// The same, as the units ask for it.
pub(super) fn attributed(machine: &Machine) -> Attributed {
    let mut all: BTreeMap<u32, f64> = BTreeMap::new();
    for (cpu, per_s) in machine.irqs.iter().flat_map(|irq| &irq.per_s) {
        *all.entry(*cpu).or_default() += per_s;
    }
    let mut attributed = Attributed::default();
    for irq in machine.irqs.iter().filter(|irq| can_be_placed(machine, irq)) {
        let part = |(cpu, per_s): (&u32, &f64)| {
            let usage = machine.cpu_use.get(cpu)?;
            Some((*cpu, (usage.irq + usage.softirq) * per_s / all[cpu]))
        };
        attributed.0.insert(irq.number, irq.per_s.iter().filter_map(part).collect());
    }
    attributed
}

/// Interrupts that can be placed. An interrupt that may use several CPUs is where the kernel put it.
pub(super) fn units(machine: &Machine, wishes: &Wishes, attributed: &Attributed) -> Vec<(Unit, Subject)> {
    let unit = |irq: &Irq| {
        let asked = irq.affinity.as_ref()?;
        let granted = irq.effective.clone().filter(|granted| granted.len() == 1);
        let nic = machine.nic_of(irq);
        let named = |name: &str| name == irq.name || nic.is_some_and(|nic| nic.name == name);
        let kept = wishes.keeps("irqs")
            || wishes.keeps(&format!("irq{}", irq.number))
            || wishes.keep.iter().any(|name| named(name));
        let measured = machine.span_ns.is_some().then(|| attributed.of(irq.number)).flatten();
        let demand = measured.unwrap_or(UNMEASURED).min(1.0);
        let unit = Unit {
            vm: None,
            kind: Kind::Irq,
            threads: 1,
            commands: 1,
            demand,
            now: Some(granted.unwrap_or_else(|| asked.value.clone())),
            home: nic.and_then(|nic| nic.node.as_ref()).map(|node| node.value).or(irq.node),
            kept,
            limit: None,
            stuck: None,
        };
        let subject = Subject {
            vm: String::new(),
            name: format!("irq {} {}", irq.number, irq.name).trim_end().to_owned(),
            role: Role::Other,
            what: What::Irq(irq.number),
            threads: Vec::new(),
            from: Some(asked.value.to_string()),
            demand: (0.0, demand),
            kept: "kept, as you asked",
        };
        Some((unit, subject))
    };
    machine.irqs.iter().filter(|irq| can_be_placed(machine, irq)).filter_map(unit).collect()
}
