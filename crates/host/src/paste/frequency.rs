//! How fast CPUs run and how deep they sleep: turbostat's columns, and `cpupower frequency-info`.
//!
//! ```text
//! Core  CPU  Avg_MHz  Busy%  Bzy_MHz  TSC_MHz  SMI  C1%  C6%        a row for all CPUs, then one for each
//! analyzing CPU 1:
//!   current policy: frequency should be within 1000 MHz and 2.20 GHz.
//! ```
//! Sources: turbostat(8), Linux 6.12; cpupower-frequency-info(1).

use super::{Pasted, Text};

/// Rows of CPUs that are shown: the columns of the others are in the row of all.
const MOST_ROWS: usize = 64;

/// The head of turbostat and its rows.
pub(super) fn turbostat(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    let header: Vec<&str> = text.at(at).split_whitespace().collect();
    let column = |name: &str| header.iter().position(|known| *known == name);
    if column("Bzy_MHz").or(column("Busy%")).or(column("Avg_MHz")).is_none() {
        return 0;
    }
    let place = ["Package", "Die", "Node", "Core", "CPU"];
    let mut end = at + 1;
    loop {
        let cells: Vec<&str> = text.at(end).split_whitespace().collect();
        let is_cell = |cell: &&str| *cell == "-" || cell.parse::<f64>().is_ok();
        // A core's and a package's values stand in the row of its first CPU alone.
        if cells.is_empty() || cells.len() > header.len() || !cells.iter().all(is_cell) {
            break;
        }
        let subject = match column("CPU").and_then(|column| cells.get(column)) {
            Some(cpu) if *cpu != "-" => format!("CPU {cpu}"),
            _ => "all CPUs".to_owned(),
        };
        let told = header.iter().zip(&cells).filter(|(name, _)| !place.contains(name));
        if end - at <= MOST_ROWS {
            told.for_each(|(name, cell)| pasted.quote(name, &subject, cell, text.place(end)));
        } else {
            pasted.leave_out("rows of turbostat beyond the first", MOST_ROWS);
        }
        end += 1;
    }
    if end == at + 1 { 0 } else { end - at }
}

/// `analyzing CPU 1:` and what is said of it: a name and a value, or the rest of the sentence before.
pub(super) fn cpupower(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    let Some(cpu) = text.at(at).strip_prefix("analyzing CPU").map(|rest| rest.trim().trim_end_matches(':')) else {
        return 0;
    };
    let cpu = format!("CPU {cpu}");
    let (mut end, mut told): (usize, Vec<(usize, String, String)>) = (at + 1, Vec::new());
    while text.lines.get(end).is_some_and(|line| line.starts_with([' ', '\t'])) && !text.at(end).is_empty() {
        let line = text.at(end);
        match line.split_once(':') {
            Some((name, value)) => told.push((end, name.trim().to_owned(), value.trim().to_owned())),
            None => match told.last_mut() {
                Some((_, _, value)) => value.push_str(&format!(" {line}")),
                None => break,
            },
        }
        end += 1;
    }
    for (line, name, value) in told.iter().filter(|(.., value)| !value.is_empty()) {
        pasted.quote(name, &cpu, value, text.place(*line));
    }
    if told.is_empty() { 0 } else { end - at }
}
