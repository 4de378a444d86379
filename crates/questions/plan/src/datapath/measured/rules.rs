//! What is worth saying of trials beside their rates.

use base::datapath::{DatapathRun, Poller};
use base::number::{many, percent};
use base::rule::{Words, limit};
use base::{Cost, CostKind, Evidence, Finding, Severity};
use facts::datapaths::Bed;
use facts::rule::{Hit, Rule};

/// The share of a window that a polling thread waited for its CPU, from which on the rate is that of a disturbed bed.
pub(super) const LEAST_WAIT: f64 = 0.05;

type Check = fn(&Bed, &[String]) -> Option<Hit>;

const RULES: &[Rule<Check>] = &[Rule {
    id: "DTP-PREEMPTED",
    per: "machine",
    looks_at: "How long threads that poll were ready and did not run within the windows of trials.",
    limits: &[limit("share of a window", LEAST_WAIT, "share")],
    why: "A polling thread that waits for its CPU moves no packets, and its rings fill up. What the datapath would carry otherwise, and what \
          would limit it, is unknown.",
    fix: &[
        "kvmscope check --realtime   # what may run on the CPUs of polling threads: keep it off them",
        "kvmscope lab ovs -o again   # the same trials on a quiet host",
    ],
    source: "/proc/PID/schedstat, Documentation/scheduler/sched-stats.rst, Linux 6.12",
    ..Rule::checked_by(preempted as Check)
}];

pub(in crate::datapath) fn words() -> impl Iterator<Item = Words> {
    RULES.iter().map(Rule::words)
}

/// Findings about the trials of all beds; `told` is what traces say of who took the CPUs.
pub(super) fn findings(beds: &[Bed], told: &[String]) -> Vec<Finding> {
    let of = |rule: &'static Rule<Check>| {
        let hits = beds.iter().filter_map(|bed| Some((bed.level, (rule.check)(bed, told)?)));
        hits.map(|(level, hit)| rule.finding(hit, level)).collect::<Vec<_>>()
    };
    RULES.iter().flat_map(of).collect()
}

/// Whether a polling thread of the trial waited so long that its rate is no measure of the datapath.
pub(super) fn is_disturbed(run: &DatapathRun) -> bool {
    run.pollers.iter().any(|poller| poller.wait_share >= LEAST_WAIT)
}

fn preempted(bed: &Bed, told: &[String]) -> Option<Hit> {
    let runs = &bed.runs.runs;
    let disturbed = runs.iter().filter(|run| is_disturbed(run)).count();
    let pollers = || runs.iter().flat_map(|run| run.pollers.iter().map(move |poller| (run, poller)));
    let (run, worst) = pollers().max_by(|(_, one), (_, other)| one.wait_share.total_cmp(&other.wait_share))?;
    if disturbed == 0 {
        return None;
    }
    let title = format!(
        "Polling threads waited for their CPUs in {disturbed} of {}, {} for {} of the window: rates are those of a disturbed bed",
        many(runs.len() as u64, "trial"),
        worst.name,
        percent(worst.wait_share)
    );
    let severity = match worst.wait_share {
        share if share >= 0.25 => Severity::High,
        share if share >= 0.10 => Severity::Medium,
        _ => Severity::Low,
    };
    let mut hit = Hit::new(bed.machine.as_str(), severity, title);
    hit.evidence = told.iter().map(|told| Evidence::new(told.clone(), "table gaps")).collect();
    hit.evidence.push(waited(run, worst));
    hit.cost = Cost::of(CostKind::Measured, worst.wait_share, "share of a polling thread's window");
    Some(hit)
}

fn waited(run: &DatapathRun, poller: &Poller) -> Evidence {
    let seen = format!(
        "{} on CPU {} ran for {} of the window of {} at {} bytes and was ready for {}",
        poller.name,
        poller.cpu,
        percent(poller.run_share),
        many(u64::from(run.vnfs), "VNF"),
        run.size_bytes,
        percent(poller.wait_share)
    );
    Evidence::in_table(seen, "datapath.pollers").key("thread", poller.name.as_str())
}
