//! All of it as one Section: facts about the recording, the sentence said aloud, findings, figures, tables.

use super::advise::advise;
use super::tables::tables;
use super::{figures, head, summary, unknowns};
use base::channel::BENCH;
use base::in_order;
use base::recording::{Emulator, EndedBy};
use base::shell::printable;
use base::{Level, Problem, Section};
use facts::ledger::asked;
use facts::ledger::measure::{Measures, measure};
use facts::ledger::model::{Flow, PartFlow};
use facts::ledger::witness::Witnesses;
use facts::{Answer, Case, Error, Given};

/// The question this folder answers.
pub const QUESTION: &str = "Where did the time of every vCPU go, by level, and why?";

/// Answers it; `None` without a trace, or with one that was recorded beside a bench of the channel and has no vCPU in it.
pub fn answer(case: &Case) -> Result<Option<Answer>, Error> {
    let (input, given) = (case.input(), case.given());
    if input.parts.is_empty() {
        return Ok(None);
    }
    let flow = case.ledger();
    asked::check(flow, input, given)?;
    // It is there for the gaps of that bench, and has the switches of two CPUs alone.
    let is_of_channel = case.benches().runs.iter().any(|run| run.bench.bench == BENCH);
    if is_of_channel && flow.parts.iter().all(|part| part.vcpus.is_empty()) {
        return Ok(None);
    }
    let mut section = section(flow, given);
    let ended = input.recording.ended.as_ref();
    section.about.extend(ended.map(|ended| format!("kept by a flight recorder, ended by {}", printable(&ended.text))));
    if let Some(breach) = ended.filter(|ended| ended.by == EndedBy::Breach) {
        section.summary = format!("Ended by {}.\n\n{}", printable(&breach.text).trim_end_matches('.'), section.summary);
    }
    Ok(Some(Answer { section, problems: swapped(flow).into_iter().collect() }))
}

pub fn section(flow: &Flow, given: &Given) -> Section {
    let measures = measure(flow, given);
    let mut section = Section::new("flow", QUESTION);
    let mut sentences = Vec::new();
    let witnesses = Witnesses::of(&measures, given.narrow.witness);
    for measure in &measures {
        let mut findings = advise(measure, flow.emulated);
        section.about.push(head::about(measure));
        if witnesses.is_told(measure) {
            section.figures.extend(figures::of(measure, &findings));
        } else {
            // It is a share of time that counts as another level's.
            findings.iter_mut().for_each(|finding| finding.gives_back = None);
        }
        sentences.extend(summary::of(measure, &findings).map(|text| (witnesses.is_told(measure), text)));
        section.findings.extend(findings);
        section.unknown.extend(unknowns::of(measure));
    }
    section.about.extend(flow.parts.iter().filter_map(head::twin));
    section.about.extend(head::witness(&measures, witnesses));
    section.about.extend(head::narrowed(given));
    if let Some(emulator) = flow.emulated {
        let name = emulator.name();
        section.about.push(format!("EMULATED by {name}: counts and order are real, times are not."));
    }
    section.findings = in_order(section.findings);
    // An answer begins with who is believed.
    sentences.sort_by_key(|(is_told, _)| !is_told);
    section.summary = sentences.into_iter().map(|(_, text)| text).collect::<Vec<_>>().join("\n\n");
    section.tables = tables(&measures, given);
    section.next = next(&measures);
    section
}

/// Traces whose levels contradict what is in them: a guest that runs a hypervisor with guests of its own, on a host that sees none of
/// that hypervisor's instructions.
fn swapped(flow: &Flow) -> Option<Problem> {
    let parts = || flow.parts.iter().filter(|part| part.twin_of.is_none() && part.seen.exit);
    let runs_hypervisor = |part: &PartFlow| !part.seen.nothing_nested();
    let has_exits = |part: &PartFlow| part.vcpus.iter().any(|vcpu| vcpu.sums.exit_count() > 0);
    let (above, below) = parts().filter(|part| runs_hypervisor(part)).find_map(|above| {
        let Level::At(depth) = above.level else { return None };
        let is_below = |part: &&PartFlow| depth.checked_sub(1).map(Level::At) == Some(part.level);
        let seen = parts().filter(is_below).any(|below| runs_hypervisor(below) || !has_exits(below));
        parts().find(is_below).filter(|_| !seen).map(|below| (above, below))
    })?;
    let text = format!(
        "The levels look swapped: {} has the instructions of a hypervisor and is given as {}, {} has none and is given as {}. Try \
         --part {}={} --part {}={}.",
        above.path, above.level, below.path, below.level, below.level, above.path, above.level, below.path
    );
    Some(Problem::at(above.path.clone(), None, below.level.to_string(), above.level.to_string(), 0, text))
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
