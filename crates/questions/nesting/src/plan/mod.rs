//! What would a change of the nested setup save?
//!
//! In:  rates of exits, given or recorded; what nesting adds to an exit, given or recorded. Out: a Section with CPU now and
//! after each change, with a band, and every assumption.
//! ```text
//! bench exits           --benched--> c1, D, costs
//! --c1 --d --rate ...   --of_stated-->     Inputs --predict--> CPU now -> after, each change and together
//! exits of the traces   --of_recording-->         \--tables--> what the exits cost, what was assumed
//! published records     --validate, calibrations, consistency--> docs/formats/validation.md
//! ```

pub mod benched;
pub(crate) mod calibrations;
pub(crate) mod consistency;
pub mod effects;
mod figures;
pub(crate) mod inputs;
pub mod model;
pub(crate) mod predict;
mod tables;
pub(crate) mod validate;

pub use inputs::{Inputs, Rate, Stated};
pub use predict::Wanted;
pub use tables::TABLES;
pub use validate::validation;

use base::figure::Standing;
use base::number::{list, percent};
use base::recording::Emulator;
use base::{Level, Section, Unknown};
use facts::estimate::Estimate;
use facts::traced_exits::TracedExits;
use facts::validation::step;
use facts::{Answer, Case, Error};
use predict::Predicted;

pub const QUESTION: &str = "What would a change of the nested setup save?";

/// What every prediction leaves out.
const LIMITS: &[(&str, &str)] = &[
    (
        "d_differs",
        "The cost of nesting varies three- to fourfold between processors, kernels and mitigations; only a \
                   measurement on the host itself counts.",
    ),
    (
        "cold_caches",
        "The model does not include cold caches and TLBs after an exit, nor page faults that were not recorded.",
    ),
    ("more_work", "A faster guest may do more work, and exit more often than before."),
];

/// Share of the CPU now from which on a change is worth naming: below, the figures before and after read the same.
const LEAST_SAVED: f64 = 0.01;

/// What the user asks the model.
#[derive(Debug, Clone, Default)]
pub struct Asked {
    /// Costs and rates by the user, or by a bench.
    pub stated: Stated,
    pub emulated: Option<Emulator>,
    /// The instruction set is SVM; where this is not said, the traces tell.
    pub svm: Option<bool>,
    /// Hyper-V runs the guest hypervisor.
    pub hyperv: bool,
    /// Ids of the changes to combine; the usual ones if empty.
    pub with: Vec<String>,
}

/// Answers it; `None` if nobody asks, or if there are traces without an exit.
///
/// # Errors
/// None today: what is missing for a prediction is part of the answer.
pub fn answer(case: &Case) -> Result<Option<Answer>, Error> {
    let Some(asked) = case.given().queries.get::<Asked>() else { return Ok(None) };
    let of = |section: Section| Some(Answer { section, problems: Vec::new() });
    let inputs = if case.input().recording.parts.is_empty() {
        Some(Inputs::of_stated(&asked.stated))
    } else {
        of_recording(case, &asked.stated)
    };
    let emulated = case.input().recording.emulated.or(asked.emulated);
    let section = |inputs: Inputs| {
        let svm = asked.svm.unwrap_or_else(|| is_svm(&inputs));
        let wanted = Wanted { svm, hyperv: asked.hyperv, with: asked.with.clone() };
        section(&inputs, &wanted, emulated)
    };
    Ok(inputs.map(section).and_then(of))
}

/// What a recording tells: the exits of its traces, and the features that its snapshots found on. With costs `stated` its rates
/// alone are taken; without, its times too, which L1's own trace does not have.
fn of_recording(case: &Case, stated: &Stated) -> Option<Inputs> {
    let exits = TracedExits::of(case)?;
    let on = super::build::build(case.machines());
    let host = on.machines.iter().filter(|machine| machine.level == Level::L0);
    let on = host.flat_map(|machine| &machine.features).filter(|row| row.state == Standing::On);
    let on: Vec<String> = on.map(|row| row.feature.to_owned()).collect();
    if stated.c1.is_none() && !exits.from_guest {
        return Some(Inputs::of_recording(exits, on));
    }
    let rate = |(reason, per_second, userspace)| Rate { level: 2, reason, per_second, userspace };
    let rates = exits.rates().into_iter().map(rate).collect();
    let inputs = Inputs::of_stated(&Stated { rates, ..stated.clone() });
    Some(Inputs { on, observed: (!exits.from_guest).then_some(exits), ..inputs })
}

/// The instruction set of what was seen: SVM's guest hypervisors execute VMRUN.
fn is_svm(inputs: &Inputs) -> bool {
    inputs.observed.as_ref().is_some_and(|observed| observed.of_reasons(&["VMRUN"]).0 > 0)
}

/// The answer; `emulated` marks it where the recording's times are not those of hardware.
fn section(inputs: &Inputs, wanted: &Wanted, emulated: Option<Emulator>) -> Section {
    let mut section = Section::new("plan", QUESTION);
    if let Some(emulator) = emulated {
        let name = emulator.name();
        section.about.push(format!(
            "EMULATED by {name}: counts are real, times are not, so no CPU share here applies to hardware."
        ));
    }
    let rows = if inputs.shares.is_empty() { Vec::new() } else { predict::predict(inputs, wanted) };
    section.summary = summary(inputs, &rows);
    section.figures = figures::figure(&rows).into_iter().collect();
    section.tables = vec![tables::plan(&rows)];
    if !rows.is_empty() {
        section.tables.push(tables::exits(inputs));
        section.tables.push(tables::assumptions(inputs));
        section.tables.push(tables::effects_known(wanted));
    }
    let missing = inputs.missing.iter().map(|text| ("missing", format!("No prediction is possible without {text}.")));
    let limits = LIMITS.iter().filter(|_| !rows.is_empty()).map(|(what, text)| (*what, (*text).to_owned()));
    let unknown = |(what, text): (&str, String)| Unknown { what: what.into(), amount: None, unit: String::new(), text };
    section.unknown = missing.chain(limits).map(unknown).collect();
    section.next.push(step(&validate::comparisons()));
    section
}

fn summary(inputs: &Inputs, rows: &[Predicted]) -> String {
    let Some(first) = rows.first() else {
        return "Nothing can be predicted yet; the missing inputs are listed below.".to_owned();
    };
    // A recording's own times have no band.
    let between = |value: Estimate| {
        let ends = format!(", from {} to {}", percent(value.low), percent(value.high));
        if value.low == value.high { String::new() } else { ends }
    };
    let now = first.now;
    let mut sentences = Vec::new();
    let nested: f64 = inputs.shares.iter().map(|share| share.nested.mid).sum();
    // Only what is sure to save something: changes without a published figure can save nothing as well.
    let mid = |row: &Predicted| row.saved.map_or(0.0, |saved| saved.mid);
    let saves =
        |row: &&Predicted| row.saved.is_some_and(|saved| saved.low > 0.0) && mid(row) >= LEAST_SAVED * row.now.mid;
    let usual = |row: &&Predicted| effects::effect(&row.change).is_some_and(|effect| effect.usual);
    let best = rows.iter().filter(saves).filter(usual).max_by(|a, b| mid(a).total_cmp(&mid(b)));
    sentences.push(match best.and_then(|row| Some((row, row.saved?, row.after?))) {
        Some((row, saved, after)) => format!(
            "Of the usual changes with a known effect, {} saves the most: {} of one CPU per vCPU{}, which leaves {}{}. This is modelled, not \
             measured.",
            row.title,
            percent(saved.mid),
            between(saved),
            percent(after.mid),
            between(after)
        ),
        None => format!("None of the usual changes with a known effect would save {} of what exits and the guest take.", percent(LEAST_SAVED)),
    });
    sentences.push(format!("Exits and the guest now take {} of one CPU per vCPU{}.", percent(now.mid), between(now)));
    if nested > 0.0 {
        sentences.push(format!("Nesting accounts for {} of it.", percent(nested)));
    }
    let least = best.map_or(0.0, mid);
    let single = rows.iter().filter(|row| row.change != predict::TOGETHER);
    let more = single.filter(saves).filter(|other| !usual(other) && mid(other) > least);
    let more: Vec<String> = more.map(|other| other.title.to_string()).collect();
    if !more.is_empty() {
        sentences.push(format!("Where it applies, {} would save more.", list(&more)));
    }
    sentences.join(" ")
}
