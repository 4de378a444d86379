//! What benches measured: exits, clock reads and whole programs, as tables of section `nesting`.
//!
//! ```text
//! <machine>/bench/*.json --> Benches --exits-->   table `exits`:  a row per test, over all launches
//!                                         --clocks-->  table `clocks`: a row per clock
//!                                         --ladder-->  table and figure `ladder`: both beside published numbers
//!                                         --programs-->  tables `programs`, `program_runs`: what whole programs took
//! ```
//! Intervals come from the spread between launches (`statistics/spread.rs`). Numbers of an emulated machine stay marked: counts
//! in them are real, cycles are the emulator's.

pub(crate) mod clocks;
pub mod exits;
pub(crate) mod ladder;
pub(crate) mod programs;

use base::Section;
use facts::benches::{BenchRun, Benches, ns_per_tick};

/// Adds what was measured to the answer.
pub fn add(benches: &Benches, section: &mut Section) {
    section.about.extend(benches.runs.iter().map(BenchRun::about));
    if benches.emulated.is_some() && !benches.is_empty() {
        let mark = "EMULATED: exits per operation are real; cycles are the emulator's and not comparable to hardware.";
        section.about.push(mark.to_owned());
    }
    let rows = exits::rows(benches);
    let mut sentences = Vec::new();
    if !rows.is_empty() {
        sentences.extend(exits::summary(&rows));
        section.tables.push(exits::table(&rows));
        section.unknown.extend(exits::unknown(&rows));
    }
    let rows = clocks::rows(benches);
    if !rows.is_empty() {
        sentences.extend(clocks::summary(&rows));
        section.tables.push(clocks::table(&rows));
    }
    if let Some((table, figure)) = ladder::ladder(benches) {
        section.tables.push(table);
        section.figures.push(figure);
    }
    let programs = programs::programs(benches);
    if !programs.is_empty() {
        sentences.extend(programs::summary(&programs));
        section.tables.push(programs::table(&programs));
        section.tables.push(programs::runs(&programs));
    }
    if benches.emulated.is_some() && !sentences.is_empty() {
        sentences.push("These cycles are the emulator's, not those of hardware.".to_owned());
    }
    if !section.summary.is_empty() && !sentences.is_empty() {
        section.summary.push_str("\n\n");
    }
    section.summary.push_str(&sentences.join(" "));
    let notes = benches.runs.iter().flat_map(|run| run.bench.notes.iter());
    section.about.extend(notes.cloned());
}

#[cfg(test)]
mod tests;
