//! The answer.

use super::blocked;
use super::memory::rules::Seen;
use super::memory::{self, Survey};
use super::model::scan::Scan;
use super::predict::{Asked, Interval, Order, Prediction};
use super::rules::{Planned, RULES};
use super::{Looked, figures, goals, methods, published, tables, to_file};
use base::number::{bytes, decimals, duration, percent};
use base::{Finding, Level, Section, Unknown, in_order};
use facts::validation::step;
use facts::{Answer, Case, Error};

pub const QUESTION: &str = "Does a live migration end, how long does it take, and how long is the guest dark?";

/// Answers it; `None` if nobody asks.
///
/// # Errors
/// None today.
pub fn answer(case: &Case) -> Result<Option<Answer>, Error> {
    let given = case.given();
    let moved = given.queries.get::<Asked>().map(|asked| section(case, asked));
    let section = moved.or_else(|| given.queries.get().map(to_file::section));
    Ok(section.map(|section| Answer { section, problems: Vec::new() }))
}

fn section(case: &Case, asked: &Asked) -> Section {
    let nothing_known = Looked::default();
    let looked = case.given().queries.get().unwrap_or(&nothing_known);
    let model = Prediction::of(asked);
    let said = looked.history.corrected(model.clone());
    let mut section = Section::new("migration", QUESTION);
    section.about = vec![about(asked)];
    let budget = case.budget();
    let judged = budget.map_or_else(Vec::new, |budget| goals::modelled(&said, budget, case.given().workload));
    let verdicts = budget.and_then(|budget| goals::sentence(&budget.name, &judged));
    let scan = Scan::of(asked);
    section.summary = std::iter::once(summary(asked, &said))
        .chain(scan.as_ref().and_then(|scan| scan.sentence(asked)))
        .chain(looked.history.sentence(&model))
        .chain(verdicts)
        .collect::<Vec<_>>()
        .join(" ");
    section.findings = findings(Planned { asked, said: &said });
    section.findings.extend(memory::rules::findings(Seen { looked, asked: Some(asked) }));
    section.findings.extend(looked.guest.iter().flat_map(|guest| blocked::findings(guest, Level::L0)));
    section.findings = in_order(section.findings);
    section.figures = figures::figures(asked, &model, &said, looked.survey.as_ref());
    section.tables = vec![
        tables::prediction(
            &model.kept(asked).said.into_iter().chain(scan.as_ref().map(Scan::said)).collect::<Vec<_>>(),
        ),
        methods::table(asked, &said, looked),
        tables::ways_out(&said),
        tables::working_set(&asked.setting.working_set),
        tables::memory(&asked.setting.memory),
    ];
    let of_history = [looked.history.corrections(&model, asked), looked.history.table()];
    section.tables.splice(1..1, of_history.into_iter().filter(|table| !table.rows.is_empty()));
    section.tables.extend((!judged.is_empty()).then(|| goals::table(&judged, "modelled")));
    looked.survey.iter().for_each(|survey| add(survey, &mut section));
    section.unknown = unknown(asked);
    if looked.guest.as_ref().is_some_and(|guest| guest.is_unasked) {
        section.unknown.push(Unknown {
            what: "blocked_reasons".into(),
            amount: None,
            unit: String::new(),
            text: "QEMU was not asked whether it can migrate the guest: it has no free monitor.".into(),
        });
    }
    section.next.push(step(&published::comparisons()));
    section
}

/// What was measured of the guest's memory takes the place of what a plan states of it.
fn add(survey: &Survey, section: &mut Section) {
    section.about.push(format!("Measured: {}", memory::summary(survey).join(" ")));
    let measured = [memory::tables::memory(survey), memory::tables::working_set(survey)];
    for measured in measured.into_iter().filter(|table| !table.rows.is_empty()) {
        if let Some(stated) = section.tables.iter_mut().find(|table| table.spec == measured.spec) {
            *stated = measured;
        }
    }
    section.tables.push(memory::tables::compression(survey));
}

fn findings(planned: Planned<'_>) -> Vec<Finding> {
    let hits = RULES.iter().filter_map(|rule| Some(rule.finding((rule.check)(planned)?, Level::L0)));
    in_order(hits.collect())
}

fn about(asked: &Asked) -> String {
    let setting = &asked.setting;
    format!(
        "{} of memory on the wire at {}/s, downtime limit {}.",
        bytes(setting.memory.sent_bytes()),
        bytes(setting.bytes_per_s),
        duration(setting.limit_s * 1e9)
    )
}

fn summary(asked: &Asked, said: &Prediction) -> String {
    let time = |seconds: f64| duration(seconds * 1e9);
    let mut sentences = Vec::new();
    match (said.total_s.low, said.total_s.high) {
        (Some(low), Some(high)) => {
            let passes = between(said.passes, |count| decimals(count, 0));
            sentences.push(format!(
                "The migration ends: {}, after {passes} {} before the final one, and the guest is dark for {}.",
                if time(low) == time(high) {
                    format!("in {}", time(low))
                } else {
                    format!("in {} to {}", time(low), time(high))
                },
                if passes == "1" { "pass" } else { "passes" },
                dark(asked, said.downtime_s),
            ));
        }
        (Some(low), None) => sentences.push(format!(
            "Whether the migration ends depends on when dirty bits are cleared: in {} at best, never at worst.",
            time(low)
        )),
        (None, _) => sentences.push(format!(
            "The migration never ends: each pass leaves pages for another {} of sending, and the limit is {}.",
            time(said.fixed_point_s),
            time(asked.setting.limit_s)
        )),
    }
    if let Some(ways) = said.ways_out {
        let mut ways_out =
            vec![format!("a downtime limit of {}", time(ways.limit_s)), format!("{}/s", bytes(ways.bytes_per_s))];
        ways_out.extend(ways.throttle.map(|throttle| format!("taking {} of the guest's time", percent(throttle))));
        sentences.push(format!("It would end for certain with {}.", ways_out.join(" or ")));
    }
    sentences.push(match said.total_s.naive {
        Some(naive) => format!("A model without a working set says {}.", time(naive)),
        None => "A model without a working set predicts that it never ends.".to_owned(),
    });
    sentences.push("This is modelled, not measured.".to_owned());
    sentences.join(" ")
}

/// `up to 50.0 ms`, or one time where nothing else is possible.
fn dark(asked: &Asked, interval: Interval) -> String {
    let time = |seconds: f64| duration(seconds * 1e9);
    match (asked.order, interval.high) {
        (_, Some(0.0)) => "no time".to_owned(),
        (Order::Unknown, Some(high)) if asked.devices_s == [0.0; 2] => format!("up to {}", time(high)),
        _ => between(interval, time),
    }
}

/// `2 to 11`, or one number where both read the same.
fn between(interval: Interval, print: impl Fn(f64) -> String) -> String {
    let (low, high) = (interval.low.map(&print), interval.high.map(&print));
    match (low, high) {
        (Some(low), Some(high)) if low != high => format!("{low} to {high}"),
        (Some(one), _) | (_, Some(one)) => one,
        (None, None) => "never".to_owned(),
    }
}

fn unknown(asked: &Asked) -> Vec<Unknown> {
    let devices = (asked.devices_s == [0.0; 2]).then_some((
        "devices",
        "What saving and loading devices takes is not included; --devices adds it to the dark time.",
    ));
    let order = (asked.order == Order::Unknown).then_some((
        "dirty_bits",
        "When dirty bits are cleared, as passes begin or as pages are sent, depends on accelerator and kernel; the interval has both.",
    ));
    let others = [
        (
            "network",
            "The network may be dark longer than the guest: its switches learn of the new place by an announcement.",
        ),
        ("same_rate", "The guest is assumed to write during the migration as it did before."),
    ];
    let lines = devices.into_iter().chain(order).chain(others);
    lines
        .map(|(what, text)| Unknown { what: what.into(), amount: None, unit: String::new(), text: text.into() })
        .collect()
}
