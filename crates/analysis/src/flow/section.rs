//! All of it as one Section: facts about the recording, the sentence said aloud, findings, figures, tables.

use super::advise::advise;
use super::tables::tables;
use super::{head, summary, unknowns};
use crate::facts::ledger::measure::{Measures, measure};
use crate::facts::ledger::model::{Flow, PartFlow};
use crate::{Answer, Ask, Error, Options};
use base::recording::Emulator;
use base::{Level, Problem, Section};

/// The question this folder answers.
pub const QUESTION: &str = "Where did the time of every vCPU go, by level, and why?";

/// Answers it.
pub fn answer(ask: &mut Ask<'_>) -> Result<Option<Answer>, Error> {
    if ask.input.parts.is_empty() {
        return Ok(None);
    }
    let flow = crate::facts::ledger::build::build(ask)?;
    check_events(&flow, &ask.input.problems)?;
    crate::facts::ledger::asked::check(&flow, ask.input, ask.options)?;
    let problems = flow.parts.iter().flat_map(|part| part.problems.iter().cloned()).collect();
    Ok(Some(Answer { section: section(&flow, ask.options), problems }))
}

/// Damaged input is answered as long as one event could be read.
fn check_events(flow: &Flow, opening: &[Problem]) -> Result<(), Error> {
    if flow.parts.iter().any(|part| part.events > 0) {
        return Ok(());
    }
    let path = flow.parts.first().map_or("the recording", |part| part.path.as_str());
    let problems = opening.iter().chain(flow.parts.iter().flat_map(|part| &part.problems));
    // What has a place in the file is damage; the rest, such as a clock that is not described, would not hide all events.
    let problem = problems.min_by_key(|problem| problem.offset.is_none());
    let because = problem.map_or(String::new(), |problem| format!(": {}", problem.text));
    Err(Error::NoEvents(format!("no event could be read from {path}{because}")))
}

/// The Section of a flow.
pub fn section(flow: &Flow, options: &Options) -> Section {
    let measures = measure(flow, options);
    let mut section = Section::new("flow", QUESTION);
    let mut sentences = Vec::new();
    for measure in &measures {
        let findings = advise(measure, flow.emulated);
        section.about.push(head::about(measure));
        sentences.extend(summary::of(measure, &findings));
        section.findings.extend(findings);
        section.figures.extend(super::figure::where_the_time_went(measure));
        section.unknown.extend(unknowns::of(measure));
    }
    section.about.extend(flow.parts.iter().filter_map(head::twin));
    section.about.extend(head::narrowed(options));
    if let Some(emulator) = flow.emulated {
        let name = emulator.name();
        section.about.push(format!("EMULATED by {name}: counts and order are real, times are not."));
    }
    section.findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    section.summary = sentences.join("\n\n");
    section.tables = tables(&measures, options);
    section.next = next(&measures);
    section
}

/// The mark that every cost from an emulated recording carries.
pub fn mark(emulator: Emulator) -> String {
    format!("emulated by {}", emulator.name())
}

/// A sentence about a trace, which says so where it is not the host's.
pub(super) fn said_of(part: &PartFlow, text: &str) -> String {
    if part.level == Level::L0 { text.to_owned() } else { format!("In the trace of {}: {text}", part.machine) }
}

fn next(measures: &[Measures<'_>]) -> Vec<String> {
    if measures.iter().all(|measure| measure.vcpus.is_empty()) {
        return vec![
            "kvmscope record --seconds 10 -o again   # on the host, while its guests run".into(),
            "kvmscope report again".into(),
        ];
    }
    Vec::new()
}
