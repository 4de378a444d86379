//! The results of benches in a recording.

use base::recording::{Emulator, PartKind, Recording};
use base::{Bench, Level, Problem};

/// Names of benches that are about the memory of guests, and what finds zeros in it.
pub const OF_MEMORY: &[&str] = &["zeropages", "memory"];

#[derive(Debug, Clone, Default)]
pub struct Benches {
    pub runs: Vec<BenchRun>,
    pub emulated: Option<Emulator>,
    /// Files that could not be read.
    pub unread: u64,
}

#[derive(Debug, Clone)]
pub struct BenchRun {
    pub machine: String,
    pub level: Level,
    pub bench: Bench,
}

impl Benches {
    /// Reads the benches of `recording`; what cannot be read becomes a problem.
    pub fn of(recording: &Recording) -> (Self, Vec<Problem>) {
        let mut benches = Self { emulated: recording.emulated, ..Self::default() };
        let mut problems = Vec::new();
        for part in recording.parts.iter().filter(|part| part.kind == PartKind::Bench) {
            match Bench::read(&recording.root.join(&part.path)) {
                Ok(bench) => {
                    let level = recording.level_of(&part.machine);
                    benches.runs.push(BenchRun { machine: part.machine.clone(), level, bench });
                }
                Err(error) => {
                    benches.unread += 1;
                    let file = part.path.display().to_string();
                    problems.push(Problem::at(file, None, "the result of a bench", "none", 0, error.to_string()));
                }
            }
        }
        (benches, problems)
    }

    /// Those that `wanted` is true of.
    pub fn those(&self, wanted: impl Fn(&Bench) -> bool) -> Self {
        let runs = self.runs.iter().filter(|run| wanted(&run.bench)).cloned().collect();
        Self { runs, emulated: self.emulated, unread: self.unread }
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }
}

impl BenchRun {
    /// One line on where a bench ran.
    pub fn about(&self) -> String {
        let said = |name: &str| self.bench.environment.get(name).map(String::as_str);
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
        format!("{}: bench {}, {cpu}, {kernel}{below}{policy}{disturbing}", self.machine, self.bench.bench)
    }
}

/// Nanoseconds of a tick of the time-stamp counter, where the bench has told.
pub fn ns_per_tick(bench: &Bench) -> Option<f64> {
    bench.environment.get(base::bench::NS_PER_TICK)?.parse().ok()
}
