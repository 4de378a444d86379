//! All of it as one Section: the worst moment in a sentence, tables, and what is not known.

use super::goals::{self, Verdicts};
use super::measure::{Measured, measure};
use super::rules::{OF_SAMPLES, RULES};
use super::{figures, lacking, paths, results, summary, tables, truth};
use base::number::{duration, percent};
use base::{Finding, Section, Unknown, in_order};
use facts::ledger::asked;
use facts::ledger::witness::told_levels;
use facts::{Answer, Case, Error, Given};

/// The question this folder answers.
pub const QUESTION: &str = "How much time did the host take from each vCPU, when, and who took it?";

/// Answers it; `None` where no vCPU was recorded, or none is wanted, which question `flow` says, and no program measured anything. A
/// budget is judged all the same: that nothing measures its goals is a verdict.
pub fn answer(case: &Case) -> Result<Option<Answer>, Error> {
    let is_traced = !case.input().parts.is_empty();
    if is_traced && asked::check(case.ledger(), case.input(), case.given()).is_err() {
        return Ok(None);
    }
    let mut measured = if is_traced { measure(case) } else { Vec::new() };
    if measured.is_empty() && case.results().is_empty() && case.budget().is_none() {
        return Ok(None);
    }
    // Several levels may have seen the same time: it is told once, and listed for each.
    let told = told_levels(case);
    measured.sort_by_key(|one| !told.contains(&one.part.level));
    let seen = &measured[..measured.iter().filter(|one| told.contains(&one.part.level)).count()];
    let mut section = Section::new("latency", QUESTION);
    section.about.extend(about(case, case.given(), !measured.is_empty()));
    let verdicts = goals::verdicts(case);
    let judged = case.budget().map(|budget| goals::summary(&budget.name, &verdicts));
    let losses = (!seen.is_empty()).then(|| summary::of(seen, case.budget().is_some()));
    let sentences =
        judged.into_iter().chain(losses).chain(results::sentences(case)).chain(truth::sentences(seen, case));
    section.summary = sentences.collect::<Vec<_>>().join("\n\n");
    section.findings = findings(&verdicts, case);
    section.figures.extend(figures::of_losses(seen, case));
    section.tables = tables::tables(&measured, case);
    section.figures.extend(paths::figures(seen, case));
    section.figures.extend(figures::of_samples(case));
    section.unknown = unknown(seen);
    section.unknown.extend(paths::unknown(seen));
    section.unknown.extend(results::unknown(case));
    section.next = lacking::next(case);
    Ok(Some(Answer { section, problems: Vec::new() }))
}

fn findings(verdicts: &[Verdicts<'_>], case: &Case) -> Vec<Finding> {
    let level = case.ledger().host();
    let hits =
        RULES.iter().flat_map(|rule| (rule.check)(verdicts).into_iter().map(move |hit| rule.finding(hit, level)));
    let of_samples =
        OF_SAMPLES.iter().flat_map(|rule| (rule.check)(case).into_iter().map(move |hit| rule.finding(hit, level)));
    let mut findings: Vec<Finding> = hits.chain(of_samples).collect();
    if let Some(emulator) = case.input().recording.emulated {
        let costs = findings.iter_mut().map(|finding| &mut finding.cost).filter(|cost| cost.value.is_some());
        costs.for_each(|cost| cost.unit = format!("{}, {}", cost.unit, goals::mark(emulator)));
    }
    in_order(findings)
}

fn about(case: &Case, given: &Given, has_vcpus: bool) -> Vec<String> {
    let lost = "Lost: preempted, host interrupts, wake-ups, blocked, exits that the host caused.";
    let mut lines: Vec<String> = has_vcpus.then(|| lost.to_owned()).into_iter().collect();
    if let Some(recorded) = case.recorded_budget() {
        let (name, path) = (&recorded.value.name, &recorded.path);
        lines.push(match &given.budget {
            None => {
                format!("Judged by budget {name} of the recording ({path}); --budget judges by another.")
            }
            Some(asked) => format!("Judged by budget {}; the recording has budget {name} ({path}).", asked.name),
        });
    }
    if let Some(level) = given.narrow.level {
        lines.push(format!("--level {level}: losses are of vCPU threads, whatever level their guests run at."));
    }
    if let Some(emulator) = case.input().recording.emulated {
        lines.push(format!("EMULATED by {}: counts and order are real, times are not.", emulator.name()));
    }
    lines
}

/// `, 148.0 ms of it before a guest ran or after it ended`.
fn outside(measured: &[Measured<'_>]) -> String {
    match measured.iter().map(|one| one.losses.outside_ns).sum::<u64>() {
        0 => String::new(),
        ns => format!(", {} of it before a guest ran or after it ended", duration(ns as f64)),
    }
}

/// How much nothing shows to be lost or not, and which losses nothing could show.
fn unknown(measured: &[Measured<'_>]) -> Vec<Unknown> {
    let unknown_ns: u64 = measured.iter().map(Measured::unknown_ns).sum();
    let wall_ns: u64 = measured.iter().map(|one| one.losses.span.length_ns()).sum();
    let time = (unknown_ns > 0).then(|| Unknown {
        what: "unknown_time".into(),
        amount: Some(unknown_ns as f64),
        unit: "ns".into(),
        text: format!(
            "Whether {} of vCPU time ({}) was lost is unknown{}.",
            duration(unknown_ns as f64),
            percent(unknown_ns as f64 / wall_ns.max(1) as f64),
            outside(measured)
        ),
    });
    let missing = [
        (
            measured.iter().any(|one| !one.part.has_switches),
            "no_switches",
            "Without sched_switch, preemption, wake-up delay and blocked time cannot be seen: losses are lower bounds.",
        ),
        (
            measured.iter().any(|one| one.part.lacks_exits()),
            "no_exits",
            "Without kvm_exit, work on exits that the host caused cannot be seen: losses are lower bounds.",
        ),
    ];
    let missing = missing.into_iter().filter(|(holds, ..)| *holds);
    let missing = missing.map(|(_, what, text)| Unknown {
        what: what.into(),
        amount: None,
        unit: String::new(),
        text: text.into(),
    });
    time.into_iter().chain(missing).collect()
}
