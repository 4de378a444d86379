//! Which lanes are there, in which order, and where do their pieces come from?
//!
//! ```text
//! vcpu of all lowest machines | their cpu | vhost, emulator, iothread | guests' own: vcpu, cpu
//! ```
//! vCPUs stand first, so that a lane's number does not depend on what else a recording tells.

use super::draft::Draft;
use super::lanes::{self, Around, CpuLane, Put, TaskLane};
use super::{Part, passing, workers};
use crate::ledger::model::{PartFlow, Vcpu};
use base::timeline::{Lane, LaneKind};
use std::collections::BTreeMap;

/// One lane to be drawn.
pub(super) struct Source {
    pub lane: Lane,
    /// Its part's place among those that are drawn.
    pub part: usize,
    /// Number of the vCPU or the CPU.
    pub number: u32,
}

/// The tasks that had a CPU, by thread, as slices name them.
pub(super) fn names(flow: &PartFlow, draft: &Draft) -> BTreeMap<i32, String> {
    passing::names(flow, draft.watch.cpus.iter().flat_map(|cpu| &cpu.holders).filter_map(|(_, holder)| *holder))
}

/// The lanes of all `parts`; what is left out is added to `notes`.
pub(super) fn sources(parts: &[Part<'_>], notes: &mut Vec<String>) -> Vec<Source> {
    let lowest = || parts.iter().enumerate().filter(|(_, part)| part.inside.is_none());
    let several = lowest().count() > 1;
    let mut sources: Vec<Source> = Vec::new();
    for (place, part) in lowest() {
        sources.extend(vcpus(place, part, LaneKind::Vcpu));
    }
    let cpus_of = |part: &Part<'_>| {
        let seen = part.draft.watch.cpus.iter().enumerate().filter(|(_, cpu)| !cpu.holders.is_empty());
        seen.map(|(number, _)| number as u32).collect::<Vec<u32>>()
    };
    for (place, part) in lowest() {
        let machine = several.then_some(part.flow.machine.as_str());
        let on = |(lane, number)| Source { lane, part: place, number };
        sources.extend(cpus_of(part).into_iter().map(|number| on((cpu_lane(number, machine), number))));
        let tasks = &part.draft.tasks;
        let met = |tid: i32| tasks.by_tid.get(&tid).map(|track| workers::ran_ns(track));
        let (seen, left_out) = workers::longest(crate::workers::of(part.flow), met);
        notes.extend(workers::note(seen.len(), left_out));
        sources.extend(seen.into_iter().map(|worker| on((worker_lane(worker, machine), 0))));
    }
    for (place, part) in parts.iter().enumerate().filter(|(_, part)| part.inside.is_some()) {
        sources.extend(vcpus(place, part, LaneKind::GuestVcpu));
        let lane = |number| (guest_cpu_lane(number, &part.flow.machine), number);
        sources.extend(cpus_of(part).into_iter().map(lane).map(|(lane, number)| Source { lane, part: place, number }));
    }
    sources
}

fn vcpus(place: usize, part: &Part<'_>, kind: LaneKind) -> Vec<Source> {
    let seen = part.flow.vcpus.iter().filter(|vcpu| part.draft.thread(vcpu.tid).is_some());
    let source = |vcpu| Source { lane: vcpu_lane(vcpu, kind, &part.flow.machine), part: place, number: vcpu.vcpu };
    seen.map(source).collect()
}

/// The lane of a vCPU; of a guest's own trace where `kind` says so, recorded on `machine`.
pub(super) fn vcpu_lane(vcpu: &Vcpu, kind: LaneKind, machine: &str) -> Lane {
    let (group, title) = match kind {
        LaneKind::GuestVcpu => {
            // The group names the machine already.
            let vm = vcpu.vm.strip_prefix(&format!("{machine}/")).unwrap_or(&vcpu.vm);
            (own_trace(machine), format!("{vm} vCPU {}", vcpu.vcpu))
        }
        _ => (vcpu.vm.clone(), format!("vCPU {}", vcpu.vcpu)),
    };
    Lane { kind, group, title, tid: Some(vcpu.tid) }
}

/// The lane of a CPU of the lowest machine, which is named where there are several.
pub(super) fn cpu_lane(number: u32, machine: Option<&str>) -> Lane {
    let group = format!("{} CPUs", machine.unwrap_or("host"));
    Lane { kind: LaneKind::Cpu, group, title: format!("CPU {number}"), tid: None }
}

/// The lane of a thread on the VMM's side there.
pub(super) fn worker_lane((kind, tid, comm): (LaneKind, i32, &str), machine: Option<&str>) -> Lane {
    let group = format!("{} threads", machine.unwrap_or("host"));
    Lane { kind, group, title: format!("{comm} ({tid})"), tid: Some(tid) }
}

/// The lane of a CPU of a guest, by its own trace.
pub(super) fn guest_cpu_lane(number: u32, machine: &str) -> Lane {
    Lane { kind: LaneKind::GuestCpu, group: own_trace(machine), title: format!("CPU {number}"), tid: None }
}

fn own_trace(machine: &str) -> String {
    format!("{machine} (own trace)")
}

impl Source {
    /// Tells the lane's pieces in order, in the time of its trace.
    pub(super) fn pieces(&self, part: &Part<'_>, put: &mut Put<'_>) {
        match (self.lane.kind, self.lane.tid) {
            (LaneKind::Vcpu | LaneKind::GuestVcpu, Some(tid)) => {
                if let Some(thread) = part.draft.thread(tid) {
                    lanes::vcpu(&thread.pieces, &thread.exits, put);
                }
            }
            (_, Some(tid)) => {
                let track = part.draft.tasks.by_tid.get(&tid).map_or(&[][..], Vec::as_slice);
                TaskLane::default().tell(track, part.draft.span, put);
            }
            (_, None) => {
                let draft = &part.draft;
                let around = Around {
                    vcpu: &|tid| draft.thread(tid).filter(|thread| thread.is_vcpu),
                    names: &part.names,
                    handlers: &draft.watch.handlers,
                    span: draft.span,
                    now_ns: None,
                    waits: 0,
                };
                CpuLane::default().tell(&draft.watch.cpus[self.number as usize], &around, put);
            }
        }
    }
}
