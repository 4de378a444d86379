//! Who took the CPU from a vCPU, where the recording has a trace that tells?
//!
//! In: the ledger (how long each vCPU was runnable, and who ran meanwhile, by `sched_switch`), and the threads of the
//! snapshots. Out: a table with placement's words for the threads, evidence on the findings about the same VM, a sentence in
//! the summary. No finding of its own: that a vCPU waited is flow's (`FLW-PREEMPT`).
//! ```text
//! ledger: web 0  thread 11  runnable 46 %        --thread id--> snapshot: VM web, vcpu 0
//!         web 0  thread 13  ran in 98 % of that  --thread id--> snapshot: VM web, vhost
//! ```
//! Two samples say who ran on the same CPU; only a trace says who ran while a thread was runnable.

use super::model::Model;
use base::number::{duration, percent};
use base::{About, Cell, Evidence, Level, Section, Table, TableSpec, shown, table};
use facts::Case;
use facts::ledger::measure::{Measures, measure};
use facts::ledger::model::Vcpu;
use walk::state::State;

/// A wait below this share of a vCPU's time is not worth a sentence; the same limit as flow's.
const WORTH_SAYING: f64 = 0.02;

/// Part of a vCPU's waits in which somebody ran who took most of them.
const MOSTLY: f64 = 0.5;

/// Rules about threads that share CPUs.
const ABOUT_SHARING: &[&str] =
    &["PLC-OVERLAP", "PLC-STARVED", "PLC-STACKED", "PLC-WORKERS", "PLC-FLOAT", "PLC-PMD", "PLC-OVERCOMMIT"];

/// A vCPU, and one of those that ran while it was runnable.
struct Wait {
    machine: String,
    vm: String,
    vcpu: u64,
    /// Share of its time that it was runnable.
    ready: f64,
    by: String,
    by_tid: i64,
    /// Of that, the share in which this one ran.
    part: f64,
}

/// Who took CPUs from vCPUs, by the traces.
pub(super) struct Taken {
    /// Of vCPUs that waited long enough to be worth a sentence.
    waits: Vec<Wait>,
    /// Where all waited for less, the longest.
    brief: Option<(Wait, u64)>,
}

impl Taken {
    /// What the traces of the case show about the threads of `models`.
    pub(super) fn of(case: &Case, models: &[Model]) -> Self {
        if case.input().parts.is_empty() {
            return Self { waits: Vec::new(), brief: None };
        }
        let (waits, short): (Vec<_>, Vec<_>) = waits(&measure(case.ledger(), case.given()), models)
            .into_iter()
            .partition(|(wait, _)| wait.ready > WORTH_SAYING);
        let waits: Vec<Wait> = waits.into_iter().map(|(wait, _)| wait).collect();
        let longest = short.into_iter().max_by_key(|(_, ns)| *ns);
        Self { brief: longest.filter(|_| waits.is_empty()), waits }
    }

    /// Whether anybody took a CPU from a vCPU, for however long.
    pub(super) fn is_any(&self) -> bool {
        !self.waits.is_empty() || self.brief.is_some()
    }

    /// Adds it to the answer.
    pub(super) fn add(self, section: &mut Section) {
        let said =
            match (self.waits.iter().max_by(|a, b| (a.ready * a.part).total_cmp(&(b.ready * b.part))), &self.brief) {
                (Some(worst), _) => format!("In the trace {}.", sentence(worst)),
                (None, Some((wait, ns))) => {
                    format!("In the trace {}, {} in all.", sentence(wait), duration(*ns as f64))
                }
                (None, None) => return,
            };
        section.summary = format!("{} {said}", section.summary).trim_start().to_owned();
        if self.waits.is_empty() {
            return;
        }
        section.tables.push(table(&self.waits));
        for finding in section.findings.iter_mut().filter(|finding| ABOUT_SHARING.contains(&finding.rule)) {
            // The name of a machine stands before the VM's where there are several.
            let vm = finding.subject.rsplit(':').next().unwrap_or_default().to_owned();
            let about = || self.waits.iter().filter(|wait| wait.vm == vm);
            finding.evidence.extend(about().map(evidence));
            // Who came and went between two snapshots stands in the trace alone.
            let took = about().filter(|wait| wait.part > MOSTLY).max_by(|a, b| a.ready.total_cmp(&b.ready));
            if let Some(Wait { by, by_tid, .. }) = took.filter(|wait| !finding.title.contains(&wait.by)) {
                finding.title += &format!("; in the trace mostly {by} (thread {by_tid}) ran meanwhile");
            }
        }
    }
}

fn evidence(wait: &Wait) -> Evidence {
    let seen = Evidence::in_table(sentence(wait), "placement.preemptors").key("machine", wait.machine.as_str());
    let rival = i32::try_from(wait.by_tid).map(|tid| About::Thread { tid });
    seen.key("vm", wait.vm.as_str()).key("vcpu", wait.vcpu).about([About::state("preempted")]).about(rival)
}

fn sentence(wait: &Wait) -> String {
    let Wait { vm, vcpu, ready, by, by_tid, part, .. } = wait;
    format!(
        "vCPU {vcpu} of {vm} waited for a CPU for {} of its time, {} of that while {by} (thread {by_tid}) ran",
        percent(*ready),
        percent(*part)
    )
}

/// The vCPUs that were runnable, each with who ran most meanwhile, and for how long that one did.
fn waits(measures: &[Measures<'_>], models: &[Model]) -> Vec<(Wait, u64)> {
    // Thread ids of a guest's own trace are those of another machine.
    let hosts = measures.iter().filter(|measure| measure.part.level == Level::L0);
    let vcpus = hosts.flat_map(|measure| measure.vcpus.iter().map(move |vcpu| (measure, *vcpu)));
    vcpus.filter_map(|(measure, vcpu)| wait(measure, vcpu, models)).collect()
}

fn wait(measure: &Measures<'_>, vcpu: &Vcpu, models: &[Model]) -> Option<(Wait, u64)> {
    let (wall_ns, ready_ns) = (vcpu.sums.wall_ns() as f64, vcpu.sums.ns(State::Preempted) as f64);
    if wall_ns <= 0.0 || ready_ns <= 0.0 {
        return None;
    }
    // Thread 0 is the idle task: a CPU that was free, and no rival.
    let rivals = vcpu.sums.preemptors.iter().filter_map(|(tid, sums)| Some(((*tid).filter(|tid| *tid != 0)?, sums)));
    let (tid, most) = rivals.max_by_key(|(_, sums)| sums.total_ns)?;
    let wait = Wait {
        machine: measure.part.machine.clone(),
        vm: thread(models, vcpu.tid).map_or_else(|| vcpu.vm.clone(), |(vm, _)| vm),
        vcpu: vcpu.vcpu.into(),
        ready: ready_ns / wall_ns,
        by: thread(models, tid).map_or_else(|| measure.task_name(tid), |(vm, role)| format!("{role} of {vm}")),
        by_tid: tid.into(),
        part: (most.total_ns as f64 / ready_ns).min(1.0),
    };
    Some((wait, most.total_ns))
}

/// VM and role of a thread of the lowest machine, which is the one that the host's trace is of.
fn thread(models: &[Model], tid: i32) -> Option<(String, String)> {
    let lowest = models.iter().min_by_key(|model| (model.level, &model.id))?;
    let thread = lowest.machine.threads.iter().find(|thread| tid > 0 && thread.tid == Some(tid))?;
    let vm = thread.vm.clone().filter(|vm| !vm.is_empty())?;
    Some((vm, thread.role.to_string()))
}

/// Who ran most while a vCPU was runnable, in the words of this question.
pub(super) const PREEMPTORS: TableSpec = table! {
    placement.preemptors version 2:
    "One vCPU that waited for a CPU, and the thread that ran longest in that time, by the trace.";
    key machine, key vm, key_u64("") vcpu, share ready_share, text by, i64("") by_tid, share part_of_waits;
    shown![
        "What took the CPU (from the trace)", 10;
        vm: "VM", vcpu, ready_share: "waited for a CPU", by: "longest while", part_of_waits: "of that",
    ]
};

fn table(waits: &[Wait]) -> Table {
    let mut table = Table::new(&PREEMPTORS);
    for wait in waits {
        table.push(vec![
            wait.machine.as_str().into(),
            wait.vm.as_str().into(),
            wait.vcpu.into(),
            Cell::F64(wait.ready),
            wait.by.as_str().into(),
            Cell::I64(wait.by_tid),
            Cell::F64(wait.part),
        ]);
    }
    table
}
