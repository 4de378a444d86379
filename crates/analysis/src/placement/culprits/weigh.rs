//! How much does it matter that threads may be in each other's way? As much as one of them was seen to wait.
//!
//! ```text
//! measured, a thread of the VM is starved   as the rule says; at most low where that has a cause of another kind
//! measured, none is                         info, and no command: nothing is to be gained
//! not measured                              at most medium, and the finding says so
//! ```

use super::{Reporter, Verdict, starves};
use crate::placement::model::Model;
use crate::rule::Hit;
use base::number::{many, percent};
use base::{Evidence, Severity};
use host::machine::{Role, Thread};

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
    // Who floats is in the way of others.
    let all = rule == "PLC-FLOAT";
    let concerned = |thread: &&Thread| match &thread.vm {
        Some(vm) => thread.role != Role::Other && (all || *vm == hit.subject),
        None => false,
    };
    let threads: Vec<&Thread> = model.machine.threads.iter().filter(concerned).collect();
    let measured = !threads.is_empty() && threads.iter().all(|thread| thread.wait_share.is_some());
    if measured && !threads.iter().any(|thread| starves(thread)) {
        hit.severity = Severity::Info;
        hit.cost = base::Cost::none();
        hit.changes.clear();
        hit.undo.clear();
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
    let elsewhere = |verdict: &Verdict| {
        use Reporter::{Bed, Irq, Isolation, Overcommit, Pmd, Quota};
        matches!(verdict.reporter, Overcommit | Isolation | Quota | Bed | Irq | Pmd)
    };
    let mut victims =
        model.verdicts.all.iter().filter(|verdict| concerned(&&model.machine.threads[verdict.victim])).peekable();
    if measured && hit.severity < Severity::High && victims.peek().is_some() && victims.all(elsewhere) {
        hit.severity = hit.severity.min(Severity::Low);
    }
    if !measured {
        hit.severity = hit.severity.min(Severity::Medium);
        return hit.seen("whether a thread is starved is unknown: the evidence has no waiting times", "unknown");
    }
    hit
}
