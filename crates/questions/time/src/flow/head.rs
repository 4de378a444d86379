//! The lines above an answer: what was read, and how much of it was looked at.

use base::number::{duration, list, many, thousands};
use facts::Given;
use facts::ledger::measure::Measures;
use facts::ledger::model::PartFlow;
use facts::ledger::witness::Witnesses;
use walk::events::reasons::Isa;

pub(super) fn about(measure: &Measures<'_>) -> String {
    let part = measure.part;
    let kernel = part.kernel.as_deref().and_then(release).map_or(String::new(), |release| format!("Linux {release}, "));
    let isa = match measure.isa() {
        Some(Isa::Vmx) => "VMX",
        Some(Isa::Svm) => "SVM",
        Some(Isa::Arm64) => "arm64",
        Some(Isa::Other(_) | Isa::Printed(_)) => "neither VMX nor SVM",
        None => "no KVM exits",
    };
    let lost = thousands(part.lost_events());
    let lost = match part.damaged_places() {
        0 => format!("{lost} lost"),
        places => format!("{lost} lost by the recorder, damaged in {}", many(places, "place")),
    };
    format!(
        "{}: recorded at {} ({kernel}{isa}, {}), {}, {lost}, {}",
        short_path(&part.path),
        part.level,
        part.format,
        many(part.events, "event"),
        length(part)
    )
}

/// How long the trace is, and how much of it was looked at. Events are counted in all of it.
fn length(part: &PartFlow) -> String {
    let (window_ns, all_ns) = (part.window.length_ns(), part.span.length_ns());
    let all = duration(all_ns as f64);
    if window_ns == all_ns { all } else { format!("window of {} out of {all}", duration(window_ns as f64)) }
}

/// A trace that another one of its machine answers for.
pub(super) fn twin(part: &PartFlow) -> Option<String> {
    let answering = part.twin_of.as_ref()?;
    Some(format!(
        "{}: a second trace of the same machine ({}, {}); {} is used instead, so that nothing counts twice",
        short_path(&part.path),
        part.format,
        many(part.events, "event"),
        short_path(answering)
    ))
}

/// Whose record is drawn and summed up, where several levels recorded the same time.
pub(super) fn witness(measures: &[Measures<'_>], witnesses: Witnesses) -> Option<String> {
    let name = |measure: &&Measures<'_>| measure.part.machine.clone();
    let (told, others): (Vec<_>, Vec<_>) = measures.iter().partition(|measure| witnesses.is_told(measure));
    let (told, others): (Vec<String>, Vec<String>) =
        (told.iter().map(name).collect(), others.iter().map(name).collect());
    let other = measures.iter().find(|measure| !witnesses.is_told(measure))?.part.level;
    Some(format!(
        "Pictures and sums are of what {} recorded; what {} recorded of the same time is in the tables (--witness {other} turns \
         that round).",
        list(&told),
        list(&others)
    ))
}

/// What the question is narrowed to, and what of the answer is not.
pub(super) fn narrowed(given: &Given) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(level) = given.narrow.level {
        lines.push(format!(
            "--level {level}: exits, chains and the findings about them are of {level} only; time by state, waiting \
             and all other findings are of all levels."
        ));
    }
    let whose: Vec<String> = [
        given.narrow.vm.as_ref().map(|vm| format!("--vm {vm}")),
        given.narrow.vcpu.map(|vcpu| format!("--vcpu {vcpu}")),
    ]
    .into_iter()
    .flatten()
    .collect();
    if !whose.is_empty() {
        lines.push(format!(
            "{}: events, losses, damage, the fit of clocks and vhost threads are of the whole recording.",
            whose.join(" ")
        ));
    }
    if given.narrow.window.is_some() {
        lines.push(
            "--from, --to: events, losses, damage, samples, and everything from a guest's own trace combined with its \
             host's, are of the whole recording."
                .to_owned(),
        );
    }
    lines
}

/// The release in `Linux (none) 6.1.0-56-amd64 x86_64`, or in a bare `6.1.0-56-amd64`.
fn release(uname: &str) -> Option<&str> {
    uname.split_whitespace().find(|word| word.starts_with(|first: char| first.is_ascii_digit()))
}

/// The last two names of a path: many recordings hold a `trace.dat` per machine.
fn short_path(path: &str) -> &str {
    let path = path.trim_end_matches('/');
    let last = path.rfind('/').unwrap_or(0);
    path[..last].rfind('/').map_or(path, |above| &path[above + 1..])
}
