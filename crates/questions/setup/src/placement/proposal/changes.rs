//! A plan as typed changes, each of which prints as a command and its way back.

use super::units::{WORKQUEUES, What};
use super::{Plan, Proposal};
use crate::placement::solver::Kind;
use base::setting::ThreadId;
use base::{Change, CpuSet, Setting};
use host::machine::Role;

impl Proposal {
    /// The typed changes of a unit in a plan; none: it stays. All polling threads have one mask, which stands with the first.
    pub fn changes(&self, plan: &Plan, unit: usize) -> Vec<Change> {
        let (subject, place) = (&self.subjects[unit], &plan.places[unit]);
        let moves = |unit: usize| self.task.units[unit].now.as_ref() != Some(&plan.places[unit]);
        if subject.what != What::PmdMask && !moves(unit) {
            return Vec::new();
        }
        let (domain, cpus) = (subject.vm.clone(), place.to_string());
        let from = subject.from.clone();
        match (subject.what, subject.role) {
            (What::Tasks, _) => {
                let elsewhere = subject.threads.iter().filter(|(_, now)| now.as_ref() != Some(place));
                let moved = |(thread, now): &(ThreadId, Option<CpuSet>)| {
                    Setting::TaskAffinity(thread.clone()).change(cpus.clone(), now.as_ref().map(CpuSet::to_string))
                };
                elsewhere.map(moved).collect()
            }
            (What::Pin, Role::Vcpu(vcpu)) => vec![Setting::vcpu_pin(domain, vcpu).change(cpus, from)],
            (What::Pin, Role::IoThread(iothread)) => vec![Setting::iothread_pin(domain, iothread).change(cpus, from)],
            (What::Pin, _) => vec![Setting::emulator_pin(domain).change(cpus, from)],
            (What::Irq(irq), _) => vec![Setting::IrqAffinity { irq }.change(cpus, from)],
            (What::PmdMask, _) => {
                let first = self.task.units.iter().position(|unit| unit.kind == Kind::Pmd);
                let mask = self.polling(plan).filter(|_| first == Some(unit));
                mask.map(|cpus| Setting::PmdMask.change(cpus.to_string(), from)).into_iter().collect()
            }
            (What::Workqueues, _) => {
                let to = place.mask_like(from.as_deref().unwrap_or_default());
                let path = WORKQUEUES.trim_start_matches("sys/").to_owned();
                vec![Setting::SysfsWrite { path }.change(to, from)]
            }
        }
    }

    pub fn all_changes(&self, plan: &Plan) -> Vec<Change> {
        self.in_order().into_iter().flat_map(|unit| self.changes(plan, unit)).collect()
    }

    /// Units in the order in which they are moved and moved back: a pin of libvirt before masks of single threads, which it may
    /// take with it.
    pub(super) fn in_order(&self) -> Vec<usize> {
        let mut units: Vec<usize> = (0..self.subjects.len()).collect();
        units.sort_by_key(|unit| (self.subjects[*unit].what == What::Tasks, self.task.units[*unit].kind));
        units
    }
}
