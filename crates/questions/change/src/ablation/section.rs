//! What a trial by a budget found, as one Section.

use super::{ID, Trial, figure, tables};
use base::Section;
use base::number::{list, many, plain};
use facts::ablation::{Change, Effect, Ranked};
use facts::{Answer, Case, Error};

/// The question this folder answers.
pub const QUESTION: &str = "Which changes reduce what vCPUs lose?";

/// Answers it; `None` if no trial was made.
pub fn answer(case: &Case) -> Result<Option<Answer>, Error> {
    let trial = case.given().queries.get();
    Ok(trial.map(|trial| Answer { section: section(trial), problems: Vec::new() }))
}

fn section(trial: &Trial) -> Section {
    let mut section = Section::new(ID, QUESTION);
    let ranked = trial.ranked();
    section.about = vec![format!(
        "what vCPUs lose, by budget {}: {} without each change and as many with it, in turns",
        trial.budget.name,
        trial.runs_in_words()
    )];
    section.about.extend(trial.not_tried.iter().map(|(name, why)| format!("{name} was not tried: {why}")));
    section.summary = summary(trial, &ranked);
    section.figures.extend(figure::figure(trial, &ranked));
    section.tables = vec![tables::effects(trial, &ranked), tables::runs(trial)];
    if trial.kept.is_none() {
        let helped = ranked.iter().filter(|one| one.effect == Effect::Helped);
        section.next.extend(helped.map(|one| format!("kvmscope apply '{}'", one.name)));
    }
    section
}

fn summary(trial: &Trial, ranked: &[Ranked]) -> String {
    let of = |effect: Effect| ranked.iter().filter(move |one| one.effect == effect).collect::<Vec<_>>();
    let names = |all: &[&Ranked]| list(&all.iter().map(|one| one.name.clone()).collect::<Vec<_>>());
    let mut said = Vec::new();
    let helped = of(Effect::Helped);
    for (place, one) in helped.iter().enumerate() {
        let how = match (helped.len(), place) {
            (1, _) => "helped",
            (_, 0) => "helped most",
            _ => "helped as well",
        };
        said.push(format!("{} {how}: {}.", one.name, first_certain(one)));
    }
    for one in of(Effect::Harmed) {
        said.push(format!("{} made something worse: {}.", one.name, first_certain(one)));
    }
    let (none, few) = (of(Effect::NoneFound), of(Effect::TooFew));
    let runs = many(trial.runs() as u64, "run");
    if !none.is_empty() {
        let names = names(&none);
        said.push(format!(
            "No effect was found for {names}: in {runs} each way nothing differs by more than chance explains."
        ));
    }
    if !few.is_empty() {
        said.push(format!(
            "{runs} each way cannot show an effect of {} among so many numbers; use --runs.",
            names(&few)
        ));
    }
    if ranked.is_empty() {
        said.push("No change could be tried.".to_owned());
    }
    said.push(match &trial.kept {
        Some(name) => format!("{name} stays changed."),
        None => "Nothing stays changed.".to_owned(),
    });
    said.join(" ")
}

/// What changed for certain, the first of it.
fn first_certain(one: &Ranked) -> String {
    let change = one.changes.iter().find(|change| change.is_certain);
    change.map_or_else(String::new, described)
}

fn described(change: &Change) -> String {
    let Change { measure, before, after, chance, .. } = change;
    let ratio = if *before > 0.0 && *after > 0.0 { format!(", x{}", plain(after / before)) } else { String::new() };
    format!(
        "{} went from {} to {}{ratio} (p = {})",
        measure.name(),
        measure.shown(*before),
        measure.shown(*after),
        plain(*chance)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use facts::ablation::{Run, Tried, measures};
    use facts::budget::built_in;

    fn trial(tried: &[(&str, f64, f64)], runs: usize) -> Trial {
        let budget = built_in("kvm4nfv-2015").unwrap();
        let count = measures(&budget).len();
        let runs = |value: f64| (0..runs).map(|run| Run::for_tests(&vec![value + 0.01 * run as f64; count])).collect();
        let tried = tried.iter().map(|(name, before, after)| Tried {
            name: (*name).to_owned(),
            before: runs(*before),
            after: runs(*after),
        });
        let tried = tried.collect();
        Trial { budget, run_s: 0.5, tried, not_tried: Vec::new(), kept: None }
    }

    #[test]
    fn the_change_that_took_away_most_is_named_with_numbers_and_those_without_effect_as_well() {
        let tried = [("LAT-NOTHING@L0", 5.0, 5.0), ("LAT-SOME@L0", 5.0, 3.0), ("LAT-MOST@L0", 5.0, 0.5)];
        let section = section(&trial(&tried, 10));
        assert!(section.summary.starts_with("LAT-MOST@L0 helped most: breaches of "), "{}", section.summary);
        assert!(section.summary.contains(" went from 5.0 to 0.5, x0.108 (p = "), "{}", section.summary);
        assert!(section.summary.contains("LAT-SOME@L0 helped as well: "), "{}", section.summary);
        assert!(section.summary.contains("No effect was found for LAT-NOTHING@L0: in 10 runs each way"));
        assert!(section.summary.ends_with("Nothing stays changed."), "{}", section.summary);
        assert_eq!(section.next, ["kvmscope apply 'LAT-MOST@L0'", "kvmscope apply 'LAT-SOME@L0'"]);
        let count = measures(&trial(&tried, 10).budget).len();
        assert_eq!(section.tables[0].rows.len(), 3 * count);
        assert_eq!(section.tables[1].rows.len(), 3 * 2 * 10 * count);
        assert_eq!(section.figures.len(), 1);
    }

    #[test]
    fn too_few_runs_and_what_stays_are_said() {
        let few = section(&trial(&[("LAT-MOST@L0", 5.0, 0.5)], 2));
        assert!(
            few.summary.starts_with("2 runs each way cannot show an effect of LAT-MOST@L0 among"),
            "{}",
            few.summary
        );
        let kept = Trial { kept: Some("LAT-MOST@L0".to_owned()), ..trial(&[("LAT-MOST@L0", 5.0, 0.5)], 10) };
        let kept = section(&kept);
        assert!(
            kept.summary.starts_with("LAT-MOST@L0 helped: ") && kept.summary.ends_with("LAT-MOST@L0 stays changed.")
        );
        assert!(kept.next.is_empty(), "it is made already");
        let none = section(&trial(&[], 2));
        assert_eq!(none.summary, "No change could be tried. Nothing stays changed.");
        assert!(none.figures.is_empty());
    }
}
