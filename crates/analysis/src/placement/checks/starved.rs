//! Threads that waited for a CPU.
//!
//! Where another rule has found whom they share it with (PLC-OVERLAP, PLC-STACKED), the waiting stands there as evidence and
//! not here once more.

use super::{overlap, pins};
use crate::facts::starvation::{FLOOR, UNIT, is_starved};
use crate::placement::model::Model;
use crate::rule::Hit;
use base::number::{list, many, percent};
use base::shell::printable;
use base::{Cost, CostKind, Severity};
use host::machine::{Role, Thread};

/// Whether a thread's waiting was measured, and is too much.
pub(super) fn starves(thread: &Thread) -> bool {
    let shares = thread.run_share.as_ref().zip(thread.wait_share.as_ref());
    shares.is_some_and(|(run, wait)| is_starved(run.value, wait.value))
}

/// Starved threads whose cause no other rule tells, one finding for each VM.
pub fn starved(model: &Model) -> Vec<Hit> {
    let told: Vec<Option<i32>> = overlap::told(model).chain(pins::told(model)).map(|thread| thread.tid).collect();
    let starving = model.machine.threads.iter().filter(|thread| thread.role != Role::Other && starves(thread));
    let mut starved: Vec<(&str, Vec<&Thread>)> = Vec::new();
    for thread in starving.filter(|thread| thread.tid.is_none() || !told.contains(&thread.tid)) {
        let subject = thread.vm.as_deref().unwrap_or(&thread.name);
        match starved.iter_mut().find(|(known, _)| *known == subject) {
            Some((_, threads)) => threads.push(thread),
            None => starved.push((subject, vec![thread])),
        }
    }
    starved.into_iter().map(|(subject, threads)| hit(model, subject, &threads)).collect()
}

fn hit(model: &Model, subject: &str, threads: &[&Thread]) -> Hit {
    let waits = || threads.iter().filter_map(|thread| thread.wait_share.as_ref());
    let waited: f64 = waits().map(|wait| wait.value).sum();
    let mut foreign: Vec<(&Thread, u32)> = threads.iter().filter_map(|thread| beside(model, thread)).collect();
    foreign.retain(|(other, _)| other.vm.as_deref() != Some(subject));
    foreign.dedup_by_key(|(other, _)| other.tid);
    let names: Vec<String> = foreign.iter().take(2).map(|(other, _)| name(other)).collect();
    let while_ran = if names.is_empty() { String::new() } else { format!(" while {} ran", list(&names)) };
    let count = many(threads.len() as u64, "thread");
    let title = format!("{count} of {subject} starved, {waited:.2} CPUs short{while_ran}");
    let mut hit = Hit::new(subject, Severity::High, title);
    for (thread, wait) in threads.iter().zip(waits()) {
        hit = hit.seen(sentence(model, thread), &wait.place);
    }
    hit.cost = Cost::of(CostKind::Measured, waited, UNIT);
    hit.changes = model.proposal.part(|_, of| of.vm == subject);
    if hit.changes.is_empty() {
        let programs = foreign.iter().filter(|(other, _)| other.vm.is_none() && other.role == Role::Other);
        let away = |(other, cpu): &(&Thread, u32)| {
            let tid = other.tid?;
            Some(format!(
                "taskset -cp CPUS {tid}   # CPUs without a vCPU for {}, which ran on CPU {cpu}",
                printable(&other.name)
            ))
        };
        hit.fix.extend(programs.filter_map(away).take(2));
        hit.fix.push(model.proposal.why_none());
    }
    hit
}

/// What a thread ran and waited, and beside whom.
pub(super) fn sentence(model: &Model, thread: &Thread) -> String {
    let share = |fact: &Option<host::machine::Fact<f64>>| fact.as_ref().map_or(0.0, |fact| fact.value);
    let company = beside(model, thread).map_or(String::new(), |(other, _)| {
        format!(" beside {}, which ran {}", name(other), percent(share(&other.run_share)))
    });
    let last = thread.last_cpu.as_ref().map_or(String::new(), |cpu| format!(", last on CPU {}{company}", cpu.value));
    format!(
        "{} ({}) ran {} and waited {} of the span{last}",
        thread.role,
        thread.tid.map_or(thread.name.clone(), |tid| tid.to_string()),
        percent(share(&thread.run_share)),
        percent(share(&thread.wait_share)),
    )
}

/// Who else ran most on the CPU that a thread was last seen on, and that CPU, as far as the last CPU of the others tells.
fn beside<'a>(model: &'a Model, thread: &Thread) -> Option<(&'a Thread, u32)> {
    let cpu = thread.last_cpu.as_ref()?.value;
    let run = |other: &Thread| other.run_share.as_ref().map_or(0.0, |run| run.value);
    let others = model.machine.threads.iter().filter(|other| other.tid != thread.tid && run(other) > FLOOR);
    let here = others.filter(|other| other.last_cpu.as_ref().is_some_and(|last| last.value == cpu));
    here.max_by(|a, b| run(a).total_cmp(&run(b))).map(|other| (other, cpu))
}

/// `vcpu 1 of web (4711)`; a thread of no VM by its own name: `make (4712)`.
fn name(thread: &Thread) -> String {
    let name = thread.vm.as_ref().map_or_else(|| thread.name.clone(), |vm| format!("{} of {vm}", thread.role));
    thread.tid.map_or(name.clone(), |tid| format!("{name} ({tid})"))
}
