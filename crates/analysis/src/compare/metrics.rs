//! What of a recording is a number that can be held against another's?
//!
//! ```text
//! vcpus     share of wall time in each state, over all vCPUs       <state>, share
//! exits     count of each reason, by level, over wall time          <level> <reason>, exits/s
//! chains    median of L1's exits that an exit of L2 causes           <reason>, L1 exits per chain
//! bench/    repetitions of what is no test of a bench (throughput)    <name>, <unit>
//! ```

use crate::{Ask, Error, Input, Options, QUESTIONS};
use base::{Cell, Narrow, Section, Span, Table};
use std::collections::BTreeMap;

/// Windows of a recording: enough for a spread, few enough to hold many exits each.
pub(super) const WINDOWS: u64 = 8;

/// Each metric's values, one of each window or repetition.
pub(super) type Metrics = BTreeMap<String, Vec<f64>>;

/// The metrics of a recording.
///
/// # Errors
/// If its traces hold nothing that could be measured.
pub(super) fn of(input: &Input, options: &Options) -> Result<Metrics, Error> {
    let mut metrics = repetitions(input);
    if !input.parts.is_empty() {
        let section = flow(input, options)?;
        windows(input, options, &section, &mut metrics)?;
    }
    Ok(metrics)
}

fn windows(input: &Input, options: &Options, whole: &Section, metrics: &mut Metrics) -> Result<(), Error> {
    let wall = |section: &Section| {
        let rows = section.table("vcpus").map(|table| numbers(table, "wall_ns")).unwrap_or_default();
        rows.into_iter().fold(0.0, f64::max)
    };
    let (begin, span) =
        options.narrow.window.map_or((0, wall(whole) as u64), |window| (window.from_ns, window.length_ns()));
    let mut seen: Vec<BTreeMap<String, f64>> = Vec::new();
    for window in 0..WINDOWS {
        let edge = |number: u64| begin + span / WINDOWS * number;
        let part = Span { from_ns: edge(window), to_ns: edge(window + 1) };
        let narrow = Narrow { window: Some(part), ..options.narrow.clone() };
        match flow(input, &Options { narrow, ..options.clone() }) {
            Ok(section) => seen.push(one(&section)),
            // The whole has what was asked for, this window does not: nothing of it happened here.
            Err(Error::NoSuch(_)) => seen.push(BTreeMap::new()),
            Err(_) => {}
        }
    }
    // What a window does not have happened no time in it.
    let names: std::collections::BTreeSet<String> = seen.iter().flat_map(|window| window.keys().cloned()).collect();
    for name in names {
        let values = seen.iter().map(|window| window.get(&name).copied());
        // A median of nothing is unknown; a rate of nothing is 0.
        let values = if name.ends_with("per chain") {
            values.flatten().collect()
        } else {
            values.map(Option::unwrap_or_default).collect()
        };
        metrics.insert(name, values);
    }
    Ok(())
}

fn flow(input: &Input, options: &Options) -> Result<Section, Error> {
    let question = QUESTIONS.iter().find(|question| question.id == "flow");
    let question = question.ok_or_else(|| Error::NoEvents("there is no question `flow`".to_owned()))?;
    let answer = (question.answer)(&mut Ask { input, options, progress: &mut |_, _| {} })?;
    let nothing = || Error::NoEvents(format!("{} has no KVM trace", input.recording.title()));
    Ok(answer.ok_or_else(nothing)?.section)
}

/// The metrics of one answer.
fn one(section: &Section) -> BTreeMap<String, f64> {
    let mut found = BTreeMap::new();
    let Some(vcpus) = section.table("vcpus") else { return found };
    let wall: f64 = numbers(vcpus, "wall_ns").iter().sum();
    if wall <= 0.0 {
        return found;
    }
    let states = vcpus.columns.iter().filter(|column| column.name != "wall_ns");
    for column in states {
        if let Some(state) = column.name.strip_suffix("_ns") {
            found.insert(format!("{state}, share"), numbers(vcpus, &column.name).iter().sum::<f64>() / wall);
        }
    }
    // Rates are per second of the recording, not per vCPU second.
    let seconds = numbers(vcpus, "wall_ns").into_iter().fold(0.0, f64::max) / 1e9;
    if let Some(exits) = section.table("exits") {
        for (row, count) in numbers(exits, "count").into_iter().enumerate() {
            let name = format!("{} {}, exits/s", text(exits, row, "level"), text(exits, row, "reason"));
            *found.entry(name).or_default() += count / seconds;
        }
    }
    if let Some(chains) = section.table("chains") {
        for row in 0..chains.rows.len() {
            if let Some(exits) = number(chains.cell(row, "exits_p50")) {
                found.insert(format!("{}, L1 exits per chain", text(chains, row, "reason")), exits);
            }
        }
    }
    found
}

/// What was measured again and again as a whole; tests have a table of their own (`benches`).
fn repetitions(input: &Input) -> Metrics {
    let mut metrics = Metrics::new();
    for bench in super::benches::all(&input.recording) {
        for result in bench.results.into_iter().filter(|result| !super::benches::is_test(result)) {
            let metric = metrics.entry(format!("{}, {}", result.name, result.unit)).or_default();
            metric.extend(result.samples);
        }
    }
    metrics
}

fn numbers(table: &Table, column: &str) -> Vec<f64> {
    (0..table.rows.len()).filter_map(|row| number(table.cell(row, column))).collect()
}

fn number(cell: Option<&Cell>) -> Option<f64> {
    match cell? {
        Cell::U64(value) => Some(*value as f64),
        Cell::I64(value) => Some(*value as f64),
        Cell::F64(value) => Some(*value),
        _ => None,
    }
}

fn text(table: &Table, row: usize, column: &str) -> String {
    match table.cell(row, column) {
        Some(Cell::Text(text)) => text.clone(),
        _ => String::new(),
    }
}
