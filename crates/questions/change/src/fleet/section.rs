//! All of it as one Section.

use super::classes::{Host, hosts};
use super::kernels::Kernel;
use super::model::Fleet;
use super::outliers::Outlier;
use super::ranked::Ranked;
use super::{ID, breaches, costs, drift, figure, kernels, outliers, ranked, rules, tables};
use base::number::{amount, many, plain};
use base::{Section, Table, Unknown};
use facts::{Answer, Case, Error};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The question this folder answers.
pub const QUESTION: &str = "Over all hosts: what costs most, which hosts stand out, and what would help how many?";

/// Answers it; `None` where no fleet is asked about.
///
/// # Errors
/// None so far; questions may.
pub fn answer(case: &Case) -> Result<Option<Answer>, Error> {
    let fleet = case.given().queries.get::<Arc<Fleet>>();
    Ok(fleet.map(|fleet| Answer { section: section(fleet), problems: Vec::new() }))
}

fn section(fleet: &Fleet) -> Section {
    let hosts = hosts(fleet);
    let (outliers, alone) = outliers::outliers(&hosts);
    let kernels = kernels::kernels(&hosts);
    let ranked = ranked::ranked(fleet, &hosts);
    let breaches = breaches::breaches(&hosts);
    let (drift, series) = drift::drift(&hosts);
    let mut section = Section::new(ID, QUESTION);
    section.about = about(fleet, &hosts);
    section.summary = summary(fleet, (&hosts, alone), (&outliers, &kernels, &ranked));
    section.findings = rules::of_kernels(&kernels);
    section.findings.extend(rules::of_breaches(&breaches));
    section.findings.extend(rules::of_outliers(&outliers));
    section.findings.extend(rules::of_drift(&drift));
    let all = [
        tables::outliers(&outliers),
        tables::kernels(&kernels),
        tables::ranked(&ranked, hosts.len()),
        tables::breaches(&breaches),
        tables::drift(&drift),
        tables::exit_costs(&costs::costs(fleet)),
        tables::hosts(&hosts, &outliers),
        tables::failures(fleet),
    ];
    section.tables = all.into_iter().filter(|table: &Table| !table.rows.is_empty()).collect();
    let figures = [figure::outliers(&outliers), figure::ranked(&ranked, hosts.len()), figure::kernels(&kernels)];
    section.figures.extend(figures.into_iter().flatten());
    section
        .next
        .extend(ranked.first().map(|first| format!("kvmscope explain {}   # why, and what to run there", first.rule)));
    section.unknown = unknown(fleet, alone, series, &hosts);
    section
}

fn about(fleet: &Fleet, hosts: &[Host<'_>]) -> Vec<String> {
    let times: BTreeSet<&str> = fleet.recordings.values().filter_map(|one| one.created.as_deref()).collect();
    let distinct =
        |of: fn(&Host<'_>) -> Option<String>| hosts.iter().filter_map(of).collect::<BTreeSet<_>>().len() as u64;
    let models = distinct(|host| host.class().cpu_model.clone());
    let kernels = distinct(|host| host.class().kernel.clone());
    let mut about = vec![format!(
        "{} of {}, {}, {}",
        many(fleet.recordings.len() as u64, "recording"),
        many(hosts.len() as u64, "host"),
        many(models, "CPU model"),
        many(kernels, "kernel"),
    )];
    if let (Some(first), Some(last)) = (times.first(), times.last()) {
        about.push(format!("made from {first} to {last}"));
    }
    let emulated = fleet.recordings.values().filter(|one| one.emulated.is_some()).count();
    if emulated > 0 {
        let all = many(fleet.recordings.len() as u64, "recording");
        about.insert(0, format!("EMULATED: {emulated} of {all}; their counts are real, their times are not"));
    }
    let versions: BTreeSet<&str> = fleet.recordings.values().filter_map(|one| one.analysed_by.as_deref()).collect();
    if !versions.is_empty() {
        about.push(format!("analysed by {}", versions.into_iter().collect::<Vec<_>>().join(", ")));
    }
    about
}

/// Which hosts stand out, of those that could be judged: nothing judged is not nothing found.
fn outstanding(hosts: usize, alone: usize, outliers: &[Outlier]) -> String {
    let names: BTreeSet<&str> = outliers.iter().map(|one| one.host.as_str()).collect();
    let names: Vec<&str> = names.into_iter().collect();
    let least = outliers::LEAST_HOSTS;
    if alone == hosts {
        return format!("No host could be judged: it takes {least} with the same CPU model and kernel.");
    }
    let judged = many((hosts - alone) as u64, "host");
    let rest = match alone {
        0 => String::new(),
        1 => format!(" 1 more could not be judged: fewer than {least} are alike."),
        alone => format!(" {alone} more could not be judged: fewer than {least} are alike."),
    };
    match names.len() {
        0 => format!("None of {judged} stands out.{rest}"),
        1 => format!("1 of {judged} stands out: {}.{rest}", names[0]),
        several => format!("{several} of {judged} stand out: {}.{rest}", rules::named(&names, "host")),
    }
}

fn summary(
    fleet: &Fleet,
    (hosts, alone): (&[Host<'_>], usize),
    found: (&[Outlier], &[Kernel], &[Ranked<'_>]),
) -> String {
    let (outliers, kernels, ranked) = found;
    let mut said = Vec::new();
    if let Some(first) = ranked.first() {
        let (rule, severity, of_all) = (first.rule, first.severity.name(), many(hosts.len() as u64, "host"));
        let on = first.hosts.len();
        let whose = if on == 1 { "it" } else { "them, in the median," };
        let cost = first.cost.map(|(value, unit, _)| format!(", and costs {whose} {}", amount(value, unit)));
        let cost = cost.unwrap_or_default();
        said.push(format!("{rule} ({severity}) is worst: it is on {on} of {of_all}{cost}."));
        said.extend(first.example.map(|one| format!("On {}: {}.", one.of.host, one.title)));
    }
    said.push(outstanding(hosts.len(), alone, outliers));
    if !outliers.is_empty() {
        // Who stands out is news; what many have comes after.
        said.rotate_right(1);
    }
    for one in kernels.iter().filter(|one| one.costs_more) {
        said.push(format!(
            "Under kernel {} exits cost {} times what they cost under the others on {}.",
            one.kernel,
            plain(one.ratio),
            one.cpu_model
        ));
    }
    if !fleet.failures.is_empty() {
        said.push(format!("{} could not be added.", many(fleet.failures.len() as u64, "recording")));
    }
    said.join(" ")
}

fn unknown(fleet: &Fleet, alone: usize, series: usize, hosts: &[Host<'_>]) -> Vec<Unknown> {
    let unknown = |what: &str, amount: usize, unit: &str, text: String| Unknown {
        what: what.to_owned(),
        amount: Some(amount as f64),
        unit: unit.to_owned(),
        text,
    };
    let mut all = Vec::new();
    if alone > 0 {
        let text = format!(
            "Whether {} stand out: fewer than {} hosts have the same CPU model and kernel.",
            many(alone as u64, "host"),
            outliers::LEAST_HOSTS
        );
        all.push(unknown("hosts_alone", alone, "hosts", text));
    }
    let unclassed = hosts.iter().filter(|host| host.class().cpu_model.is_none()).count();
    if unclassed > 0 {
        let text = format!(
            "The CPU model of {}: their recordings have no snapshot of the host; kvmscope record takes one.",
            many(unclassed as u64, "host")
        );
        all.push(unknown("cpu_model", unclassed, "hosts", text));
    }
    if series == 0 && !fleet.is_empty() {
        let text =
            "Whether anything drifts: it takes six recordings of a host, or 30 of all, that say when they were made.";
        all.push(unknown("drift", fleet.len(), "recordings", text.to_owned()));
    }
    if !fleet.failures.is_empty() {
        let text = format!(
            "What is in {} that could not be read: table failures.",
            many(fleet.failures.len() as u64, "recording")
        );
        all.push(unknown("failures", fleet.failures.len(), "recordings", text));
    }
    all
}
