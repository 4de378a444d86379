//! What do the pieces of a text say together, that none of them says alone?
//!
//! ```text
//! machines (placements) ---\
//! what programs measured ---> Scene --rules--> findings: who is full, what the firmware took, which clock a guest reads, what a commit waits for,
//! what programs counted ---/                             which limit binds, whose work a guest's exits are
//! who took CPUs (a trace) -/
//! ```
//! A rule looks at what was told, and says nothing where it was not.

mod checks;
mod rules;

pub use rules::words;

use crate::placements::{Model, placements};
use base::recording::Recording;
use base::{Finding, Level, Section, in_order};
use facts::counts::Counted;
use facts::ledger::measure::measure;
use facts::samples::SampleFile;
use facts::{Answer, Case, Error};
use tongue::translated;

pub const QUESTION: &str = "What do these pieces point to together?";

/// All that was told.
pub(crate) struct Scene<'a> {
    pub(crate) models: &'a [Model],
    pub(crate) results: &'a [SampleFile],
    pub(crate) counts: &'a [Counted],
    pub(crate) recording: &'a Recording,
    pub(crate) preemptors: Vec<Preemptor>,
}

/// Who took the CPU from a vCPU, by a host's trace.
pub(crate) struct Preemptor {
    pub(crate) name: String,
    pub(crate) tid: i32,
    pub(crate) vcpu: u32,
    pub(crate) count: u64,
    pub(crate) total_ns: u64,
    pub(crate) longest_ns: u64,
}

impl Scene<'_> {
    /// A file, as the user names it.
    pub(crate) fn named(&self, path: &str) -> String {
        self.recording.as_named(path).into_owned()
    }
}

/// Answers it; `None` where no rule has anything to say.
///
/// # Errors
/// None: what cannot be read is a problem of another question.
pub fn answer(case: &Case) -> Result<Option<Answer>, Error> {
    let placements = placements(case);
    let input = case.input();
    let scene = Scene {
        models: &placements.0,
        results: &case.results().list,
        counts: &input.counts.list,
        recording: &input.recording,
        preemptors: preemptors(case),
    };
    let findings = findings(&scene);
    let Some(first) = findings.first() else { return Ok(None) };
    let mut section = Section::new("signs", QUESTION);
    section.summary = format!("{}.", capital(&first.title));
    section.findings = findings;
    Ok(Some(Answer { section, problems: Vec::new() }))
}

/// Those of all vCPUs; none where nothing was traced.
fn preemptors(case: &Case) -> Vec<Preemptor> {
    if case.input().parts.is_empty() {
        return Vec::new();
    }
    let measures = measure(case.ledger(), case.given());
    let hosts = measures.iter().filter(|measure| measure.part.level == Level::L0);
    let vcpus = hosts.flat_map(|measure| measure.vcpus.iter().map(move |vcpu| (measure, vcpu)));
    let taken = vcpus.flat_map(|(measure, vcpu)| {
        let known = vcpu.sums.preemptors.iter().filter_map(|(tid, sums)| Some(((*tid).filter(|tid| *tid != 0)?, sums)));
        known.map(|(tid, sums)| Preemptor {
            name: measure.task_name(tid),
            tid,
            vcpu: vcpu.vcpu,
            count: sums.count,
            total_ns: sums.total_ns,
            longest_ns: sums.max_ns,
        })
    });
    taken.collect()
}

fn findings(scene: &Scene<'_>) -> Vec<Finding> {
    let of = |rule: &'static rules::Rule| {
        let hits = (rule.check)(scene).into_iter();
        hits.map(move |hit| {
            let level = hit.level.unwrap_or(Level::Unknown);
            let mut finding = rule.finding(hit, level);
            // In the words of whoever manages the VMs there.
            if let Some(model) = scene.models.iter().find(|model| model.level == level) {
                translated(&model.machine, &mut finding);
            }
            finding
        })
    };
    in_order(rules::RULES.iter().flat_map(of).collect())
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    // Names of threads, VMs and programs stay as they are.
    let is_word = ["the ", "a ", "an ", "firmware", "thread ", "interrupt ", "softirq ", "one ", "disk "]
        .iter()
        .any(|article| text.starts_with(article));
    match letters.next().filter(|_| is_word) {
        Some(first) => first.to_uppercase().chain(letters).collect(),
        None => text.to_owned(),
    }
}
