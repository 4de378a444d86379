//! All of it as one Section: the worst moment in a sentence, tables, and what is not known.

use super::measure::{Measured, measure};
use super::{paths, summary, tables};
use crate::facts::ledger::asked;
use crate::{Answer, Case, Error, Given};
use base::number::{duration, percent};
use base::{Section, Unknown};

/// The question this folder answers.
pub const QUESTION: &str = "How much time did the host take from each vCPU, when, and who took it?";

/// Answers it; `None` where no vCPU was recorded, or none is wanted, which question `flow` says.
pub fn answer(case: &Case) -> Result<Option<Answer>, Error> {
    if case.input().parts.is_empty() || asked::check(case.ledger(), case.input(), case.given()).is_err() {
        return Ok(None);
    }
    let measured = measure(case);
    if measured.is_empty() {
        return Ok(None);
    }
    let mut section = Section::new("latency", QUESTION);
    section.about.extend(about(case, case.given()));
    section.summary = summary::of(&measured);
    section.tables = tables::tables(&measured, case);
    section.figures.extend(paths::figures(&measured, case.ledger().emulated.is_some()));
    section.unknown = unknown(&measured);
    section.unknown.extend(paths::unknown(&measured));
    Ok(Some(Answer { section, problems: Vec::new() }))
}

fn about(case: &Case, given: &Given) -> Vec<String> {
    let mut lines = vec![
        "Lost time: preempted, host interrupts, wake-up delay, blocked, and work on exits that the host caused."
            .to_owned(),
    ];
    if let Some(level) = given.narrow.level {
        lines.push(format!("--level {level}: losses are of vCPU threads, whatever level their guests run at."));
    }
    if let Some(emulator) = case.ledger().emulated {
        lines.push(format!("EMULATED by {}: counts and order are real, times are not.", emulator.name()));
    }
    lines
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
            "Whether {} of vCPU time ({}) was lost is unknown; high_ns counts it as lost.",
            duration(unknown_ns as f64),
            percent(unknown_ns as f64 / wall_ns.max(1) as f64)
        ),
    });
    let missing = [
        (
            measured.iter().any(|one| !one.part.has_switches),
            "no_switches",
            "Without sched_switch, preemption, wake-up delay and blocked time cannot be seen: losses are lower bounds.",
        ),
        (
            measured.iter().any(|one| !one.part.seen.exit),
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
