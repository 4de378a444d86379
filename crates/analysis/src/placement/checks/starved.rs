//! Threads that waited for a CPU.
//!
//! Where another rule has found whom they share it with (PLC-OVERLAP, PLC-STACKED), the waiting stands there as evidence and
//! not here once more.

use super::{overlap, pins};
use crate::facts::starvation::{FLOOR, is_starved};
use crate::placement::model::Model;
use crate::rule::Hit;
use base::number::{many, percent};
use base::{CostKind, Severity};
use host::machine::{Role, Thread};

/// Whether a thread's waiting was measured, and is too much.
pub(super) fn starves(thread: &Thread) -> bool {
    let shares = thread.run_share.as_ref().zip(thread.wait_share.as_ref());
    shares.is_some_and(|(run, wait)| is_starved(run.value, wait.value))
}

/// Starved threads whose cause no other rule tells, one finding for each VM.
pub fn starved(model: &Model) -> Vec<Hit> {
    let told: Vec<Option<i32>> = overlap::told(model).chain(pins::told(model)).map(|thread| thread.tid).collect();
    let mut hits: Vec<Hit> = Vec::new();
    let starving = model.machine.threads.iter().filter(|thread| thread.role != Role::Other && starves(thread));
    for thread in starving.filter(|thread| thread.tid.is_none() || !told.contains(&thread.tid)) {
        let Some(wait) = &thread.wait_share else { continue };
        let subject = thread.vm.clone().unwrap_or_else(|| thread.name.clone());
        let index = hits.iter().position(|hit| hit.subject == subject).unwrap_or_else(|| {
            hits.push(Hit::new(&subject, Severity::High, ""));
            hits.len() - 1
        });
        let hit = std::mem::replace(&mut hits[index], Hit::new("", Severity::High, ""));
        hits[index] = hit.seen(sentence(model, thread), &wait.place);
        hits[index].cost.value = Some(hits[index].cost.value.unwrap_or(0.0) + wait.value);
        hits[index].cost.kind = CostKind::Measured;
        hits[index].cost.unit = "CPUs short".to_owned();
    }
    for hit in &mut hits {
        let waited = hit.cost.value.unwrap_or(0.0);
        hit.title =
            format!("{} of {} starved, {waited:.2} CPUs short", many(hit.evidence.len() as u64, "thread"), hit.subject);
        if let Some(plan) = model.proposal.better().first() {
            for (unit, _) in model.proposal.subjects.iter().enumerate().filter(|(_, subject)| subject.vm == hit.subject)
            {
                hit.changes.extend(model.proposal.changes(plan, unit));
            }
        } else {
            hit.fix.push("kvmscope check   # no better placement found: use fewer threads, or more CPUs".into());
        }
    }
    hits
}

/// What a thread ran and waited, and beside whom.
pub(super) fn sentence(model: &Model, thread: &Thread) -> String {
    let share = |fact: &Option<host::machine::Fact<f64>>| fact.as_ref().map_or(0.0, |fact| fact.value);
    let last = thread.last_cpu.as_ref();
    let last =
        last.map_or(String::new(), |cpu| format!(", last on CPU {}{}", cpu.value, beside(model, thread, cpu.value)));
    format!(
        "{} ({}) ran {} and waited {} of the span{last}",
        thread.role,
        thread.tid.map_or(thread.name.clone(), |tid| tid.to_string()),
        percent(share(&thread.run_share)),
        percent(share(&thread.wait_share)),
    )
}

/// Who else ran most on a CPU, as far as the last CPU tells.
fn beside(model: &Model, thread: &Thread, cpu: u32) -> String {
    let others = model.machine.threads.iter().filter(|other| other.tid != thread.tid);
    let here = others.filter(|other| other.last_cpu.as_ref().is_some_and(|last| last.value == cpu));
    let most = here.max_by(|a, b| {
        let run = |thread: &Thread| thread.run_share.as_ref().map_or(0.0, |run| run.value);
        run(a).total_cmp(&run(b))
    });
    most.filter(|other| other.run_share.as_ref().is_some_and(|run| run.value > FLOOR)).map_or(String::new(), |other| {
        let run = other.run_share.as_ref().map_or(0.0, |run| run.value);
        format!(" with {} {} ({})", other.vm.as_deref().unwrap_or(&other.name), other.role, percent(run))
    })
}
