//! What benches measured: exits, clock reads and whole programs, as tables of section `nesting`.
//!
//! ```text
//! <machine>/bench/*.json --> Measurements --exits-->   table `exits`:  a row per test, over all launches
//!                                         --clocks-->  table `clocks`: a row per clock
//!                                         --ladder-->  table and figure `ladder`: both beside published numbers
//!                                         --programs-->  tables `programs`, `program_runs`: what whole programs took
//! ```
//! Intervals come from the spread between launches (`shared/spread.rs`). Numbers of an emulated machine stay marked: counts
//! in them are real, cycles are the emulator's.

pub mod clocks;
pub mod exits;
pub mod ladder;
pub mod programs;

use base::recording::{Emulator, PartKind, Recording};
use base::{Bench, Level, Problem, Section};

/// The benches of a recording.
#[derive(Debug, Clone, Default)]
pub struct Measurements {
    /// Each file.
    pub runs: Vec<Run>,
    /// What emulated the machines.
    pub emulated: Option<Emulator>,
}

/// One bench on one machine.
#[derive(Debug, Clone)]
pub struct Run {
    /// The machine's id.
    pub machine: String,
    /// Its level.
    pub level: Level,
    /// What was measured there.
    pub bench: Bench,
}

impl Measurements {
    /// Reads the benches of `recording`; what cannot be read becomes a problem.
    pub fn of(recording: &Recording) -> (Self, Vec<Problem>) {
        let mut measurements = Self { runs: Vec::new(), emulated: recording.emulated };
        let mut problems = Vec::new();
        for part in recording.parts.iter().filter(|part| part.kind == PartKind::Bench) {
            match Bench::read(&recording.root.join(&part.path)) {
                Ok(bench) => {
                    let level = recording.level_of(&part.machine);
                    measurements.runs.push(Run { machine: part.machine.clone(), level, bench });
                }
                Err(error) => {
                    let file = part.path.display().to_string();
                    problems.push(Problem::at(file, None, "the result of a bench", "none", 0, error.to_string()));
                }
            }
        }
        (measurements, problems)
    }

    /// True if there is nothing to tell.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Adds what was measured to the answer.
    pub fn tell(&self, section: &mut Section) {
        section.about.extend(self.runs.iter().map(about));
        if self.emulated.is_some() && !self.is_empty() {
            let mark =
                "EMULATED: exits per operation are real; cycles are the emulator's and not comparable to hardware.";
            section.about.push(mark.to_owned());
        }
        let rows = exits::rows(self);
        let mut sentences = Vec::new();
        if !rows.is_empty() {
            sentences.extend(exits::summary(&rows));
            section.tables.push(exits::table(&rows));
            section.unknown.extend(exits::unknown(&rows));
        }
        let rows = clocks::rows(self);
        if !rows.is_empty() {
            sentences.extend(clocks::summary(&rows));
            section.tables.push(clocks::table(&rows));
        }
        if let Some((table, figure)) = ladder::ladder(self) {
            section.tables.push(table);
            section.figures.push(figure);
        }
        let programs = programs::programs(self);
        if !programs.is_empty() {
            sentences.extend(programs::summary(&programs));
            section.tables.push(programs::table(&programs));
            section.tables.push(programs::runs(&programs));
        }
        if !section.summary.is_empty() && !sentences.is_empty() {
            section.summary.push_str("\n\n");
        }
        section.summary.push_str(&sentences.join(" "));
        let notes = self.runs.iter().flat_map(|run| run.bench.notes.iter());
        section.about.extend(notes.cloned());
    }
}

/// Nanoseconds of a tick of the time-stamp counter, where the bench has told.
fn ns_per_tick(bench: &Bench) -> Option<f64> {
    bench.environment.get(base::bench::NS_PER_TICK)?.parse().ok()
}

/// One line on where a bench ran.
fn about(run: &Run) -> String {
    let said = |name: &str| run.bench.environment.get(name).map(String::as_str);
    let cpu = said("cpu").unwrap_or("unknown processor");
    let kernel = said("kernel").map_or("unknown kernel".to_owned(), |kernel| format!("Linux {kernel}"));
    let below = match (said("hypervisor below"), said(base::bench::HYPERVISOR)) {
        (Some("yes"), Some(name)) if name != "none visible" => format!(", under {name}"),
        (Some("yes"), _) => ", under a hypervisor".to_owned(),
        (Some("no"), _) => ", on bare metal".to_owned(),
        _ => String::new(),
    };
    let policy = said(base::bench::POLICY).filter(|policy| *policy != "SCHED_OTHER");
    let policy = policy.map_or(String::new(), |policy| format!(", by {policy}"));
    let disturbing = said(base::bench::DISTURBING).filter(|said| *said == "yes");
    let disturbing = disturbing.map_or("", |_| ", with tests that may affect the whole host");
    format!("{}: bench {}, {cpu}, {kernel}{below}{policy}{disturbing}", run.machine, run.bench.bench)
}

#[cfg(test)]
mod tests;
