//! Which lanes are there, in which order, and where do their pieces come from?
//!
//! ```text
//! vcpu of all lowest machines | their cpu | vhost, emulator, iothread | guests' own: vcpu, cpu
//! ```
//! vCPUs stand first, so that a lane's number does not depend on what else a recording tells.

use super::draft::Draft;
use super::lanes::{self, Put};
use super::{Part, workers};
use crate::flow::model::PartFlow;
use base::timeline::{Lane, LaneKind};
use std::collections::BTreeMap;

/// One lane to be drawn.
pub struct Source {
    /// The lane.
    pub lane: Lane,
    /// Its part's place among those that are drawn.
    pub part: usize,
    /// Number of the vCPU or the CPU.
    pub number: u32,
}

/// The tasks that had a CPU, by thread, as slices name them.
pub fn names(flow: &PartFlow, draft: &Draft) -> BTreeMap<i32, String> {
    let holders = draft.watch.cpus.iter().flat_map(|cpu| &cpu.holders).filter_map(|(_, holder)| *holder);
    let mut names = BTreeMap::new();
    for tid in holders {
        let name = || flow.comms.get(&tid).map_or_else(|| format!("thread {tid}"), |comm| format!("{comm} ({tid})"));
        names.entry(tid).or_insert_with(name);
    }
    names
}

/// The lanes of all `parts`; what is left out is added to `notes`.
pub fn sources(parts: &[Part<'_>], notes: &mut Vec<String>) -> Vec<Source> {
    let lowest = || parts.iter().enumerate().filter(|(_, part)| part.inside.is_none());
    let several = lowest().count() > 1;
    let mut sources: Vec<Source> = Vec::new();
    for (place, part) in lowest() {
        sources.extend(vcpus(place, part, LaneKind::Vcpu, None));
    }
    for (place, part) in lowest() {
        let of = |what: &str| if several { format!("{} {what}", part.flow.machine) } else { format!("host {what}") };
        sources.extend(cpus(place, part, LaneKind::Cpu, &of("CPUs")));
        let worker = |(kind, tid, comm): (LaneKind, i32, &str)| Source {
            lane: Lane { kind, group: of("threads"), title: format!("{comm} ({tid})"), tid: Some(tid) },
            part: place,
            number: 0,
        };
        let (seen, left_out) = workers::of(part.flow, &part.draft.tasks);
        if left_out > 0 {
            notes.push(format!(
                "Of {} threads on the VMMs' side those {} that ran longest are drawn.",
                seen.len() + left_out,
                workers::MOST
            ));
        }
        sources.extend(seen.into_iter().map(worker));
    }
    for (place, part) in parts.iter().enumerate().filter(|(_, part)| part.inside.is_some()) {
        let group = format!("{} (own trace)", part.flow.machine);
        sources.extend(vcpus(place, part, LaneKind::GuestVcpu, Some(&group)));
        sources.extend(cpus(place, part, LaneKind::GuestCpu, &group));
    }
    sources
}

fn vcpus(place: usize, part: &Part<'_>, kind: LaneKind, group: Option<&str>) -> Vec<Source> {
    let seen = part.flow.vcpus.iter().filter(|vcpu| part.draft.thread(vcpu.tid).is_some());
    let source = |vcpu: &crate::flow::model::Vcpu| {
        let title = match group {
            None => format!("vCPU {}", vcpu.vcpu),
            // The group names the machine already.
            Some(_) => {
                let vm = vcpu.vm.strip_prefix(&format!("{}/", part.flow.machine)).unwrap_or(&vcpu.vm);
                format!("{vm} vCPU {}", vcpu.vcpu)
            }
        };
        let group = group.map_or_else(|| vcpu.vm.clone(), str::to_owned);
        Source { lane: Lane { kind, group, title, tid: Some(vcpu.tid) }, part: place, number: vcpu.vcpu }
    };
    seen.map(source).collect()
}

fn cpus(place: usize, part: &Part<'_>, kind: LaneKind, group: &str) -> Vec<Source> {
    let seen = part.draft.watch.cpus.iter().enumerate().filter(|(_, cpu)| !cpu.holders.is_empty());
    let source = |(number, _)| Source {
        lane: Lane { kind, group: group.to_owned(), title: format!("CPU {number}"), tid: None },
        part: place,
        number: number as u32,
    };
    seen.map(source).collect()
}

impl Source {
    /// Tells the lane's pieces in order, in the time of its trace.
    pub fn pieces(&self, part: &Part<'_>, put: &mut Put<'_>) {
        match (self.lane.kind, self.lane.tid) {
            (LaneKind::Vcpu | LaneKind::GuestVcpu, Some(tid)) => {
                if let Some(thread) = part.draft.thread(tid) {
                    lanes::vcpu(thread, put);
                }
            }
            (_, Some(tid)) => lanes::thread(&part.draft, tid, put),
            (_, None) => lanes::cpu(&part.draft, self.number as usize, &part.names, put),
        }
    }
}
