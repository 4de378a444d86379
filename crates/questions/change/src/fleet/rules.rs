//! The rules about fleets, and the findings that they make.

use super::breaches::Breaches;
use super::drift::{self, Drift};
use super::kernels::{self, Kernel};
use super::outliers::{self, Outlier};
use base::number::{list, many, percent, plain};
use base::rule::{Limit, Words, limit};
use base::{Cost, CostKind, Evidence, Finding, Level, Needs, Severity};
use facts::rule::{Hit, Rule};
use facts::statistics::holm::CHANCE;

const DOCUMENT: &str = "docs/use/compare.md, \"Answers\"";

const OUTLIER: Rule<()> = Rule {
    id: "FLT-OUTLIER",
    per: "host",
    looks_at: "Whether a number of a host is far above that of the other hosts with the same CPU model and kernel.",
    limits: OUTLIER_LIMITS,
    why: "Hosts with one CPU model, one kernel and one kind of load differ little; one that does is set up differently, or something else runs on it.",
    fix: &[
        "kvmscope report RECORDING   # of that host",
        "kvmscope compare RECORDING_OF_ANOTHER_HOST RECORDING   # what is set up differently",
    ],
    source: DOCUMENT,
    ..Rule::checked_by(())
};

const OUTLIER_LIMITS: &[Limit] = &[
    limit("the distance from the median, in spreads", outliers::LEAST_SCORE, "spreads"),
    limit("the value in relation to the median", outliers::LEAST_RATIO, "x"),
    limit("the difference of two shares", outliers::LEAST_SHARE, "share"),
    limit("the chance of one false claim or more among all hosts and numbers, at most", CHANCE, "share"),
    limit("similar hosts", outliers::LEAST_HOSTS as f64, "hosts"),
];

const KERNEL: Rule<()> = Rule {
    id: "FLT-KERNEL",
    per: "kernel",
    looks_at: "Whether the same exits cost more under one kernel than under the others on hosts with the same CPU model.",
    requires: &[],
    limits: KERNEL_LIMITS,
    check: (),
    why: "Kernels take different ways through an exit, and mitigations differ; the same exits on the same CPU cost the same otherwise.",
    fix: &[
        "kvmscope compare RECORDING_OF_OTHER_KERNEL RECORDING   # what else is set up differently",
        "boot those hosts with the kernel that costs less",
    ],
    undo: &["boot the kernel that runs now"],
    needs: Needs::Reboot,
    source: DOCUMENT,
};

const KERNEL_LIMITS: &[Limit] = &[
    limit("the cost in relation to that under other kernels", kernels::LEAST_RATIO, "x"),
    limit("the chance of one false claim or more among all kernels, at most", CHANCE, "share"),
    limit("hosts of a kernel, and of the others", kernels::LEAST_HOSTS as f64, "hosts"),
];

const BUDGET: Rule<()> = Rule {
    id: "FLT-BUDGET",
    per: "goal",
    looks_at: "Whether a goal of the latency budget is FAIL on a host in any recording.",
    why: "What these hosts did to the vCPUs is more than the budget accepts; the reports of the recordings name who took the time.",
    fix: &["kvmscope report RECORDING --budget BUDGET   # of the worst host"],
    source: "docs/read/latency.md",
    ..Rule::checked_by(())
};

const DRIFT: Rule<()> = Rule {
    id: "FLT-DRIFT",
    per: "number",
    looks_at: "Whether a number changed its level over time, on one host or on all, for the worse.",
    limits: DRIFT_LIMITS,
    why: "Something was changed at that time, or grew until then: an update, a setting, more guests.",
    fix: &["kvmscope history RECORDINGS   # of that host: what was set up differently since then"],
    source: DOCUMENT,
    ..Rule::checked_by(())
};

const DRIFT_LIMITS: &[Limit] = &[
    limit("the level in relation to the one before", drift::LEAST_RATIO, "x"),
    limit("the chance of one false claim or more among all series, at most", CHANCE, "share"),
];

/// Hosts that a title names.
const NAMED: usize = 5;

/// What the rules say of themselves.
pub fn words() -> Vec<Words> {
    vec![OUTLIER.words(), KERNEL.words(), BUDGET.words(), DRIFT.words()]
}

/// A value with its unit, as a sentence has it.
pub(super) fn amount(value: f64, unit: &str) -> String {
    match unit {
        "share" => percent(value),
        "x" => format!("x{}", plain(value)),
        unit => format!("{} {unit}", plain(value)),
    }
}

/// The first few names, and how many more.
pub(super) fn named(names: &[&str], noun: &str) -> String {
    let mut told: Vec<String> = names.iter().take(NAMED).map(|name| (*name).to_owned()).collect();
    if names.len() > NAMED {
        told.push(format!("{} more", many((names.len() - NAMED) as u64, noun)));
    }
    list(&told)
}

pub(super) fn of_outliers(all: &[Outlier]) -> Vec<Finding> {
    let mut hosts: Vec<&str> = Vec::new();
    all.iter().for_each(|one| {
        if !hosts.contains(&one.host.as_str()) {
            hosts.push(&one.host);
        }
    });
    hosts.into_iter().map(|host| of_host(host, all.iter().filter(|one| one.host == host).collect())).collect()
}

fn of_host(host: &str, own: Vec<&Outlier>) -> Finding {
    let worst = own[0];
    let emulated =
        worst.emulated.as_ref().map_or(String::new(), |by| format!(" (emulated by {by}: times are not real)"));
    let title = format!(
        "{host}: {} {}, median of {} alike {}{emulated}",
        worst.what,
        amount(worst.value, &worst.unit),
        many(worst.compared as u64, "host"),
        amount(worst.median, &worst.unit),
    );
    let mut hit = Hit::new(host, Severity::Medium, title);
    for one in &own {
        let seen = format!(
            "{}: {}, median {} of {} of {}, {} spreads above",
            one.what,
            amount(one.value, &one.unit),
            amount(one.median, &one.unit),
            many(one.compared as u64, "host"),
            one.class,
            plain(one.score),
        );
        hit.evidence.push(Evidence::in_table(seen, "fleet.outliers").key("host", host).key("what", one.what.as_str()));
    }
    if !worst.why.is_empty() {
        let seen = format!("few similar hosts have {}", list(&worst.why));
        hit.evidence.push(Evidence::in_table(seen, "fleet.outliers").key("host", host));
    }
    OUTLIER.finding(hit, Level::L0)
}

/// One finding for each kernel that costs more.
pub(super) fn of_kernels(all: &[Kernel]) -> Vec<Finding> {
    let of = |one: &Kernel| {
        let subject = format!("{} on {}", one.kernel, one.cpu_model);
        let title = format!(
            "Kernel {}: exits cost {} times what they cost under other kernels on {}",
            one.kernel,
            plain(one.ratio),
            one.cpu_model
        );
        let hosts = [one.hosts, one.others].map(|count| many(count as u64, "host"));
        let seen = format!(
            "{} with it, {} with others; ranks this different by chance: {}",
            hosts[0],
            hosts[1],
            plain(one.chance)
        );
        let seen = Evidence::in_table(seen, "fleet.kernels")
            .key("kernel", one.kernel.as_str())
            .key("cpu_model", one.cpu_model.as_str());
        let hit = Hit {
            cost: Cost::of(CostKind::Measured, one.ratio - 1.0, "share more time in exits"),
            ..Hit::new(subject, Severity::High, title)
        };
        KERNEL.finding(hit.with(seen), Level::L0)
    };
    all.iter().filter(|one| one.costs_more).map(of).collect()
}

/// One finding for each goal that hosts break.
pub(super) fn of_breaches(all: &[Breaches<'_>]) -> Vec<Finding> {
    let of = |one: &Breaches<'_>| {
        let judged = one.failed.len() + one.passed + one.open;
        let title = format!(
            "{} of {} break goal {} of {}: {}",
            one.failed.len(),
            many(judged as u64, "host"),
            one.goal,
            one.budget,
            named(&one.failed, "host")
        );
        let worst = one.worst.map_or_else(String::new, |(worst_ns, host)| {
            format!("; the worst is {} on {host}", base::number::amount(worst_ns as f64, "ns"))
        });
        let seen = format!("{}{worst}", one.metric);
        let seen = Evidence::in_table(seen, "fleet.breaches").key("goal", one.goal).key("budget", one.budget);
        let subject = format!("{} of {}", one.goal, one.budget);
        let hit = Hit::new(subject, Severity::High, title).with(seen).filling("BUDGET", one.budget);
        BUDGET.finding(hit, Level::L0)
    };
    all.iter().filter(|one| !one.failed.is_empty()).map(of).collect()
}

/// One finding for each level that rose.
pub(super) fn of_drift(all: &[Drift]) -> Vec<Finding> {
    let of = |one: &Drift| {
        let place = one.host.as_deref().unwrap_or("all hosts");
        let title = format!("{place}: {}: x{} since {}", one.what, plain(one.ratio), one.since);
        let counted = if one.host.is_some() { "recordings" } else { "groups of recordings" };
        let seen = format!(
            "{} before and {} after, over {} and {} {counted}",
            plain(one.before),
            plain(one.after),
            one.recordings_before,
            one.recordings_after
        );
        let seen = Evidence::in_table(seen, "fleet.drift");
        let seen = seen.key("what", one.what.as_str()).key("since", one.since.as_str());
        let hit = Hit::new(format!("{} of {place} since {}", one.what, one.since), Severity::Medium, title);
        DRIFT.finding(hit.with(seen), Level::L0)
    };
    all.iter().filter(|one| one.ratio > 1.0).map(of).collect()
}
