//! Tasks that made most of a program's samples late, and what keeps them from doing so again.

use base::number::{duration, many, percent};
use base::{About, Cost, CostKind, Evidence, Severity};
use facts::Case;
use facts::attribution::Attributed;
use facts::ledger::model::PartFlow;
use facts::losses::LostIn;
use facts::rule::Hit;
use std::collections::BTreeMap;

/// Who took a smaller share of the samples' time, or of the longest one, is in the table alone: our own limit.
pub(in crate::latency) const LATE_SHARE: f64 = 0.5;

/// Who took no more than this from any sample disturbs what has a strict budget, and nothing else: our own limit.
pub(in crate::latency) const LATE_NS: u64 = 100_000;

/// Threads of one name that are listed.
const MOST_LISTED: usize = 5;

/// One finding for each task, whatever the number of programs that it made wait. With a budget its goals say who broke them.
pub(crate) fn late(case: &Case) -> Vec<Hit> {
    if case.budget().is_some() {
        return Vec::new();
    }
    let mut by_task: BTreeMap<(usize, &str), Vec<&Attributed>> = BTreeMap::new();
    for one in case.attributed() {
        if let Some(task) = task(case, one) {
            by_task.entry((one.part, task)).or_default().push(one);
        }
    }
    by_task.into_iter().map(|((part, task), all)| hit(&case.ledger().parts[part], task, &all)).collect()
}

/// The task that took most of the time of these samples, if one did: neither an interrupt, nor KVM, nor what is unknown.
fn task<'c>(case: &Case, one: &'c Attributed) -> Option<&'c str> {
    let (name, taken) = *one.sums.most_first().first()?;
    let in_state =
        |state: &LostIn| one.sums.by_state.get(state).and_then(|names| names.get(name)).copied().unwrap_or(0);
    let waited_ns: u64 = [LostIn::Preempted, LostIn::WakeDelay].iter().map(in_state).sum();
    let is_most = |ns: u64, of_ns: u64| ns as f64 >= LATE_SHARE * of_ns as f64;
    let is_late = is_most(taken.total_ns, one.sums.total_ns) && is_most(taken.max_ns, one.sums.max_ns());
    let is_task = is_most(waited_ns, taken.total_ns) && !threads(&case.ledger().parts[one.part], name).is_empty();
    (is_late && is_task).then_some(name)
}

/// The threads that the trace calls so.
fn threads(part: &PartFlow, name: &str) -> Vec<i32> {
    let mut tids: Vec<i32> = part.comms.iter().filter(|(_, comm)| *comm == name).map(|(tid, _)| *tid).collect();
    tids.sort_unstable();
    tids.retain(|tid| *tid > 0);
    tids
}

fn hit(part: &PartFlow, task: &str, all: &[&Attributed]) -> Hit {
    let taken = |one: &Attributed| one.sums.causes[task];
    let worst = all.iter().max_by_key(|one| taken(one).max_ns).expect("a task is named by a program");
    let (program, longest_ns) = (worst.source.name(), worst.sums.max_ns());
    let tids = threads(part, task);
    let severity = if taken(worst).max_ns > LATE_NS { Severity::Medium } else { Severity::Info };
    let title = format!(
        "{task} took up to {} from a sample of {program}: without it the longest would be {}{} instead of {}",
        duration(taken(worst).max_ns as f64),
        if worst.sums.is_bound() { "at most " } else { "" },
        duration(worst.sums.max_without_ns(task) as f64),
        duration(longest_ns as f64)
    );
    let mut hit = Hit::new(format!("{}/{task}", part.machine), severity, title);
    hit.level = Some(part.level);
    let share = taken(worst).total_ns as f64 / worst.sums.total_ns.max(1) as f64;
    hit.cost = Cost::of(CostKind::Measured, share, format!("share of the samples of {program}"));
    for one in all {
        let taken = taken(one);
        let what = format!(
            "{}: {} of {}, {} of their time",
            one.source.name(),
            duration(taken.total_ns as f64),
            many(one.sums.samples, "sample"),
            percent(taken.total_ns as f64 / one.sums.total_ns.max(1) as f64)
        );
        let seen = Evidence::in_table(what, "latency.attributed").key("source", one.source.name());
        hit.evidence.push(seen.key("cause", task).key("file", one.path.as_str()));
    }
    let running: Vec<String> = tids.iter().filter(|tid| !part.gone.contains(tid)).map(ToString::to_string).collect();
    let ended = tids.len() - running.len();
    let mut threads = format!("{} of that name", many(tids.len() as u64, "thread"));
    if ended > 0 {
        threads += &format!(", {ended} ended meanwhile");
    }
    let only = <[i32; 1]>::try_from(tids).ok();
    hit.evidence.push(Evidence::new(threads, "sched_switch").about(only.map(|[tid]| About::Thread { tid })));
    if !running.is_empty() {
        let listed = running[..running.len().min(MOST_LISTED)].join(",");
        hit.fix.push(format!(
            "ps -L -o tid,psr,cls,rtprio,args -p {listed}   # on {}: where it runs, and with which priority",
            part.machine
        ));
    }
    hit.fix.push("kvmscope check   # shows which CPUs it shares, and with whom".to_owned());
    hit
}
