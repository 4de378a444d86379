//! The answer.

use super::model::stages::Stage;
use super::plan::Plan;
use super::predict::{Predicted, predict};
use super::rules::{self, Planned};
use super::{break_even, controls, figures, memory, polling, published, tables};
use base::number::{list, many, packets_per_s};
use base::{Section, Unknown};
use facts::validation::step;
use facts::{Answer, Case, Error};

pub const QUESTION: &str = "How many packets does a datapath carry, what binds it, and what does it cost?";

/// What every prediction leaves out.
const LIMITS: &[(&str, &str)] = &[
    (
        "steady_flows",
        "Steady flows are assumed: a new flow costs the switch 10,000 to 100,000 cycles, and the model has no input for that.",
    ),
    (
        "quiet_cores",
        "Cores that poll are assumed to have nothing else to do; what pre-empts them is in a recording, not in this model.",
    ),
];

/// Answers it; `None` if nobody asks, and the recording has no plan.
///
/// # Errors
/// If the plan of the recording cannot be set as the user wants it; what is missing for a prediction is part of the answer.
pub fn answer(case: &Case) -> Result<Option<Answer>, Error> {
    let carried = case.input().plan.as_ref().and_then(|carried| polling::stated_of(carried.value.as_ref()));
    let section = match (case.given().queries.get::<Plan>(), carried) {
        (Some(plan), _) => planned(plan),
        (None, Some(carried)) => {
            let stated = controls::set(carried, &case.given().controls);
            let plan = stated.plan().map_err(Error::NoSuch)?;
            Section { controls: controls::of(&stated), ..planned(&plan) }
        }
        (None, None) => return Ok(None),
    };
    Ok(Some(Answer { section, problems: Vec::new() }))
}

/// Whether a chain of the plan misses its target, by the model, in every design that keeps to its constraints.
pub fn misses_target(plan: &Plan) -> bool {
    rules::misses_target(&Planned { plan, rates: &predict(plan) })
}

fn planned(plan: &Plan) -> Section {
    let rates = predict(plan);
    let of = Planned { plan, rates: &rates };
    let mut section = Section::new("datapath", QUESTION);
    section.summary = summary(&rates);
    section.findings = rules::findings(&of);
    section.figures = figures::figures(plan, &rates);
    let answers = break_even::answers(plan, &rates);
    let card = |one: &Predicted<'_>| plan.cards.get(one.chain.card).map_or("", |card| card.model.as_str());
    let with_card: Vec<(Predicted<'_>, &str)> = rates.iter().map(|one| (one.clone(), card(one))).collect();
    // Of a search, only the best of each chain and size: what would move the others is no reason to take them.
    let is_best = |one: &Predicted<'_>| {
        let best = rules::allowed(&rates, one).first().copied();
        plan.search_up_to.is_none() || best.is_some_and(|best| best.design == one.design && best.cores == one.cores)
    };
    let moved: Vec<_> = with_card.iter().filter(|(one, _)| is_best(one)).cloned().collect();
    section.tables = vec![
        tables::rates(&with_card),
        tables::break_even(&answers),
        tables::stages(&with_card),
        tables::sensitivity(&moved, plan),
        tables::memory(&memory::sizes(plan)),
        tables::assumptions(&plan.assumptions),
    ];
    let unknown = |(what, text): &(&str, &str)| Unknown {
        what: (*what).to_owned(),
        amount: None,
        unit: String::new(),
        text: (*text).to_owned(),
    };
    section.unknown = LIMITS.iter().map(unknown).collect();
    section.next.extend(polling::of_rates(&rates).map(|cpus| {
        format!("kvmscope check --pmd-cores {cpus}   # which CPUs should poll, next to the vCPUs of the host, and the command with its undo")
    }));
    section.next.push(step(&published::comparisons()));
    section
}

/// Rates that differ by less are one: they are printed with three digits.
const EQUAL: f64 = 0.999;

/// The best design of each chain and size, and what binds it.
fn summary(rates: &[Predicted<'_>]) -> String {
    const MOST: usize = 4;
    let asked: Vec<&Predicted<'_>> = rules::asked(rates).collect();
    let sentence = |one: &&Predicted<'_>| {
        let subject = rules::subject(one);
        let allowed = rules::allowed(rates, one);
        let Some(best) = allowed.first().copied() else {
            return format!("{subject}: no design has more than a bound.");
        };
        let pps = best.rate.chain_pps().unwrap_or_default();
        let bound = best.rate.bound().map_or("nothing", |stage: &Stage| stage.resource.name());
        let then = best.rate.runner_up().map_or(String::new(), |stage| {
            format!("; {} would limit at {}", stage.resource.name(), packets_per_s(stage.capacity_pps))
        });
        let each = if best.chain.pattern == base::datapath::Traffic::NorthSouth { " for each VM" } else { "" };
        let cores =
            best.pmd_cores.map_or(String::new(), |cores| format!(" with {}", many(u64::from(cores), "polling CPU")));
        let mut most: Vec<String> = Vec::new();
        for design in allowed.iter().filter(|other| other.rate.chain_pps() >= Some(pps * EQUAL)) {
            let shape = design.design.shape();
            if !most.contains(&shape) {
                most.push(shape);
            }
        }
        let carry = if most.len() == 1 { "carries" } else { "carry" };
        format!(
            "{subject}: of the designs that are calibrated, {} {carry} most: {}{each}{cores}, limited by {bound}{then}.",
            list(&most),
            packets_per_s(pps)
        )
    };
    let mut sentences: Vec<String> = asked.iter().take(MOST).map(sentence).collect();
    if asked.len() > MOST {
        sentences.push("Further sizes and lengths are in the table of rates.".to_owned());
    }
    sentences.push("This is modelled, not measured.".to_owned());
    sentences.join(" ")
}
