//! A recording with its traces opened: what every question is asked of.

use crate::Error;
use crate::benches::Benches;
use crate::budget::{self, Budget};
use crate::carried::Carried;
use crate::chain_plan::{ChainPlan, ReadPlan};
use crate::counts::Counts;
use crate::datapaths::Datapaths;
use crate::machines::Machines;
use crate::migrations::Migrations;
use crate::samples::ResultFiles;
use base::Problem;
use base::recording::{CutTrace, PartKind, Recording, TscReadings, VmProcess, VmProcesses};
use walk::Part;

/// A longer plan of service chains is not read.
pub const MOST_PLAN_BYTES: usize = 1 << 20;

pub struct Input {
    /// The manifest: machines, levels, the emulation mark.
    pub recording: Recording,
    pub parts: Vec<Part>,
    /// The snapshots of its machines, opened.
    pub machines: Machines,
    pub benches: Benches,
    /// What programs that measure latencies found on them.
    pub results: ResultFiles,
    /// What datapaths carried, measured, and what switches printed.
    pub datapaths: Datapaths,
    pub budget: Option<Carried<Budget>>,
    pub migrations: Migrations,
    /// What programs counted, without the events.
    pub counts: Counts,
    pub plan: Option<Carried<Box<dyn ChainPlan>>>,
    /// Damage found while opening.
    pub problems: Vec<Problem>,
}

impl Input {
    /// Opens all traces of `recording`.
    ///
    /// `read_plan` reads the plan of service chains, if it carries one. A part that cannot be opened becomes a problem, as long as one can, or a result was read.
    ///
    /// # Errors
    /// If no part can be opened: the first part's error.
    pub fn open(recording: Recording, read_plan: ReadPlan) -> Result<Self, Error> {
        let mut problems = recording.problems.clone();
        let (machines, unopened) = Machines::of(&recording);
        let (benches, unread) = Benches::of(&recording);
        let (results, damaged) = ResultFiles::of(&recording);
        let of_budget = (PartKind::Budget, "latency budget", budget::MOST_BYTES);
        let (budget, unused) = Carried::of(&recording, of_budget, Budget::read);
        let (migrations, untold) = Migrations::of(&recording);
        let (counts, uncounted) = Counts::of(&recording);
        let of_plan = (PartKind::Plan, "plan of service chains", MOST_PLAN_BYTES);
        let (plan, unplanned) = Carried::of(&recording, of_plan, read_plan);
        let (datapaths, unknown) = Datapaths::of(&recording);
        problems.extend(unopened.into_iter().chain(unread).chain(damaged).chain(unused).chain(unplanned));
        problems.extend(unknown.into_iter().chain(untold).chain(uncounted));
        let mut input = Self {
            recording,
            parts: Vec::new(),
            machines,
            benches,
            results,
            datapaths,
            budget,
            migrations,
            counts,
            plan,
            problems,
        };
        let mut first_error = None;
        for (index, part) in input.recording.parts.iter().enumerate() {
            if !part.kind.is_trace() {
                continue;
            }
            match trace::open(&input.recording.root.join(&part.path)) {
                Ok(trace) => {
                    input.problems.extend(trace.facts().problems.iter().cloned());
                    let level = input.recording.level_of(&part.machine);
                    let machine = part.machine.clone();
                    let tsc = input.recording.tsc_readings(&machine).and_then(|readings| {
                        let damaged = |error: base::recording::Error| {
                            let file = part.path.display().to_string();
                            Problem::at(file, None, "TSC offsets of guests", "none", 0, error.to_string())
                        };
                        readings.map_err(|error| input.problems.push(damaged(error))).ok()
                    });
                    let tsc = tsc.or_else(|| counters_in_snapshots(&input.machines, &machine));
                    let emulated = input.recording.emulated.is_some();
                    let (processes, damage) = processes_of(&input.recording, &input.machines, &machine);
                    input.problems.extend(damage);
                    let known = input.recording.cut_from(&part.path).unwrap_or_else(|| Ok(CutTrace::default()));
                    let cut_from = known.unwrap_or_else(|error| {
                        let text = error.to_string();
                        input.problems.push(Problem::at(&machine, None, "threads of vCPUs", "none", 0, text));
                        CutTrace::default()
                    });
                    let mut resumed_ns = input.datapaths.resumed_ns(&machine, &trace.facts().clock);
                    resumed_ns.extend(&trace.facts().resumed_ns);
                    resumed_ns.sort_unstable();
                    input.parts.push(Part {
                        index,
                        level,
                        machine,
                        trace,
                        tsc,
                        processes,
                        cut_from,
                        resumed_ns,
                        emulated,
                    });
                }
                Err(error) => {
                    let file = part.path.display().to_string();
                    input.problems.push(Problem::at(file, None, "a trace", "none", 0, error.to_string()));
                    first_error.get_or_insert(error);
                }
            }
        }
        match first_error {
            Some(error) if input.parts.is_empty() && input.results.is_empty() => {
                Err(Error::Unopened(input.recording.as_named(&error.to_string()).into_owned()))
            }
            _ => Ok(input),
        }
    }
}

/// What the first and the last snapshot of `machine` say of its guests' counters; `None` if they say nothing.
fn counters_in_snapshots(machines: &Machines, machine: &str) -> Option<TscReadings> {
    let snapshots = &machines.of_machine(machine)?.snapshots;
    let (first, others) = snapshots.split_first()?;
    let last = others.last().map(host::machine::guest_counters).unwrap_or_default();
    let readings = TscReadings { first: host::machine::guest_counters(first), last };
    (readings != TscReadings::default()).then_some(readings)
}

/// The processes that ran VMs on `machine`: as the recorder saw them, as its snapshots have them, and as KVM names them in
/// its readings of guests' counters.
fn processes_of(recording: &Recording, machines: &Machines, machine: &str) -> (VmProcesses, Option<Problem>) {
    let (mut processes, mut damage) = (VmProcesses::default(), None);
    match recording.vm_processes(machine) {
        Some(Ok(seen)) => processes.merge(seen),
        Some(Err(error)) => {
            damage = Some(Problem::at(machine, None, "processes of VMs", "none", 0, error.to_string()));
        }
        None => {}
    }
    let snapshots = machines.of_machine(machine).into_iter().flat_map(|known| &known.snapshots);
    snapshots.for_each(|snapshot| processes.merge(host::machine::vm_processes(snapshot)));
    if let Some(Ok(readings)) = recording.tsc_readings(machine) {
        let threads = readings.first.iter().chain(&readings.last).filter_map(|vcpu| Some((vcpu.pid, vcpu.tid?)));
        let vms = threads.map(|(pid, tid)| VmProcess { pid, vm: None, tids: vec![tid] });
        processes.merge(VmProcesses { vms: vms.collect() });
    }
    (processes, damage)
}
