//! How much does it matter that threads may be in each other's way? As much as one of them was seen to wait.
//!
//! ```text
//! measured, a thread of the VM is starved   as the rule says; at most low where that has a cause of another kind
//! measured, none is                         info, and no command: nothing is to be gained
//! of some it is unknown, none is            at most medium, and the finding says so, or what the kernel's sums say
//! ```
//! A cause of another kind explains the finding where all that starve do so by this one alone.

use super::{Verdict, starves};
use crate::placement::model::Model;
use base::number::{many, percent};
use base::{Evidence, Severity};
use facts::rule::Hit;
use host::Machine;
use host::machine::{Gauge, GaugeKind, Role, Thread};
use std::collections::BTreeSet;

/// What vCPUs of a VM wait for together counts from so many CPUs and such a part of what they want on: our own limits.
const TOGETHER: f64 = 0.5;
const PART: f64 = 0.1;

/// A wait below so many CPUs, or a manager's below such a part of what its VM wants, does little harm: our own limits.
const HARM: f64 = 0.05;

fn wish(thread: &Thread) -> Option<(f64, f64)> {
    let (run, wait) = (thread.run_share.as_ref()?.value, thread.wait_share.as_ref()?.value);
    Some((run + wait, wait))
}

/// vCPUs that wait for much together with the others of their VM, however little that is for each of them.
pub(super) fn waits_with_others(machine: &Machine, thread: &Thread) -> bool {
    let is_vcpu = |thread: &&Thread| matches!(thread.role, Role::Vcpu(_));
    let counts = |(wanted, waited): (f64, f64), least: f64| waited >= least && waited >= PART * wanted;
    let Some(vm) = thread.vm.as_deref().filter(|_| is_vcpu(&thread)) else { return false };
    let of_vm = machine.threads_of(vm).filter(is_vcpu).filter_map(wish);
    wish(thread).is_some_and(|own| counts(own, HARM))
        && counts(of_vm.fold((0.0, 0.0), |all, one| (all.0 + one.0, all.1 + one.1)), TOGETHER)
}

/// Whether what these threads wait for costs next to nothing, however large a part it is of what they want: starved they are, and who
/// only manages a VM is no loss of it.
pub(in crate::placement) fn is_harmless<'a>(machine: &Machine, victims: impl Iterator<Item = &'a Thread>) -> bool {
    let (mut short, mut of_managers, mut wanted) = (0.0, 0.0, 0.0);
    for thread in victims {
        let waited = thread.wait_share.as_ref().map_or(0.0, |wait| wait.value);
        short += waited;
        if let (Role::Emulator, Some(vm)) = (thread.role, thread.vm.as_deref()) {
            of_managers += waited;
            wanted += machine.threads_of(vm).filter_map(wish).map(|(wish, _)| wish).sum::<f64>();
        }
    }
    short > 0.0 && (short < HARM || of_managers == short && short < HARM * wanted)
}

/// Rules about pins that cost something where a thread waits, and nothing where none does.
const ABOUT_WAITING: &[&str] = &[
    "PLC-OVERLAP",
    "PLC-STACKED",
    "PLC-WORKERS",
    "PLC-ISOL",
    "PLC-HOUSEKEEPING",
    "PLC-FLOAT",
    "PLC-LATE",
    "PLC-ESCAPE",
];

/// The hit with the severity that the measurement leaves it.
pub(in crate::placement) fn weighed(model: &Model, rule: &str, mut hit: Hit) -> Hit {
    if !ABOUT_WAITING.contains(&rule) {
        return hit;
    }
    let threads: Vec<&Thread> =
        model.machine.threads.iter().filter(|thread| is_about(rule, &hit.subject, thread)).collect();
    // One that starves is enough; that none does takes all of them.
    let victims: Vec<&Thread> =
        model.verdicts.all.iter().map(|verdict| &model.machine.threads[verdict.victim]).collect();
    let victims: Vec<&Thread> = victims.into_iter().filter(|thread| is_about(rule, &hit.subject, thread)).collect();
    let starve = !victims.is_empty() || threads.iter().any(|thread| starves(thread));
    let measured = starve || !threads.is_empty() && threads.iter().all(|thread| thread.wait_share.is_some());
    if measured && !starve {
        hit.severity = Severity::Info;
        hit.cost = base::Cost::none();
        hit.changes.clear();
        hit.undo.clear();
        hit.nothing_to_change = true;
        hit.fix = vec![
            "kvmscope check   # under the load that matters: this costs something only once threads wait".to_owned(),
        ];
        let most = threads.iter().filter_map(|thread| thread.starvation()).fold(0.0, f64::max);
        let what = match threads.len() {
            1 => format!("measured: the thread is not starved, it waited for {} of its runnable time", percent(most)),
            count => format!(
                "measured: none of {} is starved, the worst waited for {} of its runnable time",
                many(count as u64, "thread"),
                percent(most)
            ),
        };
        return hit.with(Evidence::in_table(what, "placement.threads"));
    }
    let elsewhere = all_starve(model, rule, &hit.subject, |verdict| verdict.reporter.is_beyond_pins());
    if measured && (hit.severity < Severity::High && elsewhere || is_harmless(&model.machine, victims.into_iter())) {
        hit.severity = hit.severity.min(Severity::Low);
    }
    if !measured {
        hit.severity = hit.severity.min(Severity::Medium);
        let known = threads.iter().filter(|thread| thread.wait_share.is_some()).count();
        let sums = threads.iter().filter_map(|thread| sums(&model.machine, thread));
        return match sums.max_by(|a, b| a.value.total_cmp(&b.value)) {
            Some(sum) => {
                let (words, _) = sum.kind.words();
                hit.seen(format!("{}: {words}, {}", sum.subject, percent(sum.value)), &sum.place)
            }
            None if known == 0 => {
                hit.seen("whether a thread is starved is unknown: the evidence has no waiting times", "unknown")
            }
            None => {
                let what = format!(
                    "none of the {} whose waiting was measured is starved; of {} more it is unknown",
                    many(known as u64, "thread"),
                    threads.len() - known
                );
                hit.with(Evidence::in_table(what, "placement.threads"))
            }
        };
    }
    hit
}

/// What a thread waited by sums that the kernel or libvirt keeps of it: since it began, or between two copies.
pub(in crate::placement) fn sums<'m>(machine: &'m Machine, thread: &Thread) -> Option<&'m Gauge> {
    let names = [
        match (thread.role, &thread.vm) {
            (Role::Vcpu(vcpu), Some(vm)) => format!("vCPU {vcpu} of {vm}"),
            _ => String::new(),
        },
        thread.tid.map_or(String::new(), |tid| format!("thread {tid}")),
        // A name is that of one thread only where no other has it.
        match machine.threads.iter().filter(|other| other.name == thread.name).count() {
            1 => thread.name.clone(),
            _ => String::new(),
        },
    ];
    let is_sum = |gauge: &&Gauge| matches!(gauge.kind, GaugeKind::Waited | GaugeKind::WaitedBetween);
    machine.gauges.iter().filter(is_sum).find(|gauge| !gauge.subject.is_empty() && names.contains(&gauge.subject))
}

/// Whether a thread's waiting decides what such a finding costs: one of that VM's, and of any VM's where somebody floats, who is
/// in the way of others.
fn is_about(rule: &str, subject: &str, thread: &Thread) -> bool {
    let vm = thread.vm.as_deref().filter(|_| thread.role != Role::Other);
    vm.is_some_and(|vm| rule == "PLC-FLOAT" || vm == subject)
}

/// Whether threads that such a finding is about starve, and all that do by a cause of which this holds.
fn all_starve(model: &Model, rule: &str, subject: &str, by: impl Fn(&Verdict) -> bool) -> bool {
    let threads = &model.machine.threads;
    let mut victims =
        model.verdicts.all.iter().filter(|verdict| is_about(rule, subject, &threads[verdict.victim])).peekable();
    victims.peek().is_some() && victims.all(by)
}

/// Ids that findings about pins would have whose victims are all among these: what starves them is why pins cost anything there.
pub(in crate::placement) fn explained(model: &Model, victims: &[&Verdict]) -> Vec<String> {
    if victims.is_empty() {
        return Vec::new();
    }
    let these: BTreeSet<usize> = victims.iter().map(|verdict| verdict.victim).collect();
    let by_these = |rule: &str, vm: &str| all_starve(model, rule, vm, |verdict| these.contains(&verdict.victim));
    let vms = model.machine.domains.iter().map(|domain| domain.name.as_str());
    vms.flat_map(|vm| ABOUT_WAITING.iter().map(move |rule| (*rule, vm)))
        .filter(|(rule, vm)| by_these(rule, vm))
        .map(|(rule, vm)| format!("{rule}@{vm}"))
        .collect()
}
