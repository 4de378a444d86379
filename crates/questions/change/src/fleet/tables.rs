//! The tables of an answer about a fleet.

use super::breaches::Breaches;
use super::classes::Host;
use super::costs::Cost;
use super::dataset::{EXIT_HISTOGRAMS, FAILURES, NUMBERS, RECORDINGS, VERDICTS};
use super::drift::Drift;
use super::kernels::Kernel;
use super::model::Fleet;
use super::outliers::Outlier;
use super::ranked::Ranked;
use base::{Cell, Shown, Table, TableSpec, shown, table};

/// All tables: those of the answer in reading order, then those that a data set has of each recording.
pub const TABLES: &[&TableSpec] = &[
    &OUTLIERS,
    &KERNELS,
    &RANKED,
    &BREACHES,
    &DRIFT,
    &EXIT_COSTS,
    &HOSTS,
    &FAILURES,
    &RECORDINGS,
    &EXIT_HISTOGRAMS,
    &NUMBERS,
    &VERDICTS,
];

pub(super) const OUTLIERS: TableSpec = table! {
    fleet.outliers version 1:
    "One host that differs by one number from the other hosts with its CPU model and kernel: the number, their median, the distance from it in spreads, how likely a distance like this is by chance, and the rules whose findings few others have.";
    key host, key what, f64("") value, f64("") median, text unit, f64("") score, f64("") chance, count hosts_compared,
    text class, text why;
    Shown {
        whole: &["host"],
        leads: true,
        ..shown![
            "Hosts that stand out", 40;
            host, what: "by", value, median: "median of similar hosts", score: "spreads from it",
            why: "findings that few others have",
        ]
    }
};

/// Kernels, compared on each CPU model.
pub(super) const KERNELS: TableSpec = table! {
    fleet.kernels version 1:
    "One kernel on one CPU model: what exits cost on its hosts in relation to the hosts with other kernels, exit by exit, and how likely ranks as different as these are by chance.";
    key cpu_model, key kernel, count hosts, count other_hosts, f64("x") ratio, f64("") chance, flag costs_more;
    shown![
        "Kernels", 40;
        cpu_model: "CPU model", kernel, hosts, ratio: "cost of exits to other kernels", costs_more: "costs more",
    ]
};

/// Findings over all hosts.
pub(super) const RANKED: TableSpec = table! {
    fleet.ranked version 1:
    "One rule with findings in the newest recordings of hosts: the worst severity, how many hosts it would help, and what it costs a host (median over the hosts, where all state the same unit). Severity first, then hosts.";
    key rule, text section, text severity, count hosts, share hosts_share, count findings, f64("") cost, text cost_unit,
    text cost_kind, text title, text example_host, text fix;
    shown![
        "Findings by the hosts they would help", 25;
        rule: "finding", severity, hosts, hosts_share: "of all", cost: "cost of a host", cost_unit: "unit",
        title: "as on one of them", example_host: "host",
    ]
};

/// Goals of budgets over all hosts.
pub(super) const BREACHES: TableSpec = table! {
    fleet.breaches version 1:
    "One goal of a latency budget: how many hosts break it in any recording, how many pass in all, how many are open, and the worst of all.";
    key budget, key goal, text metric, count hosts_failed, count hosts_passed, count hosts_open, ns limit_ns,
    ns worst_ns, text worst_host, text failed;
    shown![
        "Latency budgets", 30;
        budget, goal, hosts_failed: "hosts that fail", hosts_passed: "pass", hosts_open: "open", limit_ns: "limit",
        worst_ns: "worst", worst_host: "on",
    ]
};

pub(super) const DRIFT: TableSpec = table! {
    fleet.drift version 1:
    "One change of the level of one number, on one host or (host missing) on all: when it began, the medians before and after up to the next change, of how many recordings (of all hosts: groups of recordings, each relative to similar hosts), and how likely a split like this is by chance.";
    key host, key what, key since, f64("") before, f64("") after, f64("x") ratio, count points_before,
    count points_after, f64("") chance;
    shown!["Drift over time", 25; host, what, since, before, after, ratio]
};

/// What exits cost, by CPU model and kernel.
pub(super) const EXIT_COSTS: TableSpec = table! {
    fleet.exit_costs version 1:
    "The exits from one level for one reason on all hosts with one CPU model and kernel; percentiles are those of the merged histograms, which are those of all exits.";
    key cpu_model, key kernel, key level, key reason, count recordings, count count, ns total_ns, ns p50_ns, ns p90_ns,
    ns p99_ns, ns max_ns;
    Shown {
        largest_first: Some("total_ns"),
        ..shown![
            "Exits by CPU model and kernel", 25;
            cpu_model: "CPU model", kernel, level, reason, count: "exits", total_ns: "total", p50_ns: "p50",
            p99_ns: "p99", max_ns: "max",
        ]
    }
};

pub(super) const HOSTS: TableSpec = table! {
    fleet.hosts version 1:
    "One host: its newest recording, its CPU model and kernel, and how many findings and outliers it has.";
    key host, text cpu_model, text kernel, count recordings, text newest, count vcpus, count findings, count outliers,
    text emulated;
    Shown {
        in_terminals: false,
        largest_first: Some("outliers"),
        ..shown![
            "Hosts", 60;
            host, cpu_model: "CPU model", kernel, recordings, newest, findings, outliers: "numbers that stand out",
        ]
    }
};

pub(super) fn outliers(all: &[Outlier]) -> Table {
    let mut table = Table::new(&OUTLIERS);
    for one in all {
        table.push(vec![
            one.host.as_str().into(),
            one.what.as_str().into(),
            one.value.into(),
            one.median.into(),
            one.unit.as_str().into(),
            one.score.into(),
            one.chance.into(),
            (one.compared as u64).into(),
            one.class.as_str().into(),
            one.why.join(", ").into(),
        ]);
    }
    table
}

pub(super) fn kernels(all: &[Kernel]) -> Table {
    let mut table = Table::new(&KERNELS);
    for one in all {
        table.push(vec![
            one.cpu_model.as_str().into(),
            one.kernel.as_str().into(),
            (one.hosts as u64).into(),
            (one.others as u64).into(),
            one.ratio.into(),
            one.chance.into(),
            one.costs_more.into(),
        ]);
    }
    table
}

pub(super) fn ranked(all: &[Ranked<'_>], hosts: usize) -> Table {
    let mut table = Table::new(&RANKED);
    for one in all {
        let cost = one.cost;
        let example = one.example;
        table.push(vec![
            one.rule.into(),
            example.map(|example| example.section.as_str()).into(),
            one.severity.name().into(),
            (one.hosts.len() as u64).into(),
            (one.hosts.len() as f64 / hosts.max(1) as f64).into(),
            (one.findings as u64).into(),
            cost.map(|(cost, ..)| cost).into(),
            cost.map(|(_, unit, _)| unit).into(),
            cost.map(|(.., kind)| kind).into(),
            example.map(|example| example.title.as_str()).into(),
            example.map(|example| example.of.host.as_str()).into(),
            example.map(|example| example.fix.as_str()).into(),
        ]);
    }
    table
}

pub(super) fn breaches(all: &[Breaches<'_>]) -> Table {
    let mut table = Table::new(&BREACHES);
    for one in all {
        table.push(vec![
            one.budget.into(),
            one.goal.into(),
            one.metric.into(),
            (one.failed.len() as u64).into(),
            (one.passed as u64).into(),
            (one.open as u64).into(),
            one.limit_ns.into(),
            one.worst.map(|(worst_ns, _)| worst_ns).into(),
            one.worst.map(|(_, host)| host).into(),
            one.failed.join(" ").into(),
        ]);
    }
    table
}

pub(super) fn drift(all: &[Drift]) -> Table {
    let mut table = Table::new(&DRIFT);
    for one in all {
        table.push(vec![
            one.host.as_deref().into(),
            one.what.as_str().into(),
            one.since.as_str().into(),
            one.before.into(),
            one.after.into(),
            one.ratio.into(),
            (one.recordings_before as u64).into(),
            (one.recordings_after as u64).into(),
            one.chance.into(),
        ]);
    }
    table
}

pub(super) fn exit_costs(all: &[Cost<'_>]) -> Table {
    let mut table = Table::new(&EXIT_COSTS);
    for one in all {
        let exits = one.exits;
        let mut row: Vec<Cell> = vec![
            exits.class.cpu_model.as_deref().into(),
            exits.class.kernel.as_deref().into(),
            exits.level.as_str().into(),
            exits.reason.as_str().into(),
            one.costs.recordings.into(),
            one.costs.count.into(),
            one.costs.cost_ns.sum().into(),
        ];
        row.extend(one.quantiles_ns.map_or([const { Cell::Missing }; 3], |values| values.map(Cell::from)));
        row.push((one.costs.cost_ns.count() > 0).then(|| one.costs.cost_ns.max()).into());
        table.push(row);
    }
    table
}

pub(super) fn hosts(all: &[Host<'_>], outliers: &[Outlier]) -> Table {
    let mut table = Table::new(&HOSTS);
    for host in all {
        let newest = host.newest();
        table.push(vec![
            host.name.into(),
            newest.class.cpu_model.as_deref().into(),
            newest.class.kernel.as_deref().into(),
            (host.recordings.len() as u64).into(),
            newest.created.as_deref().into(),
            newest.vcpus.into(),
            (newest.findings.len() as u64).into(),
            (outliers.iter().filter(|one| one.host == host.name).count() as u64).into(),
            newest.emulated.as_deref().into(),
        ]);
    }
    table
}

pub(super) fn failures(fleet: &Fleet) -> Table {
    let mut table = Table::new(&FAILURES);
    for (source, error) in &fleet.failures {
        table.push(vec![source.as_str().into(), error.as_str().into()]);
    }
    table
}
