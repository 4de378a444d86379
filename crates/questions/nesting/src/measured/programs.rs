//! Tables `programs` and `program_runs`: what whole programs took.
//!
//! Wall time, user time and system time stay apart: exits that get cheaper can make a program use less CPU and yet take
//! longer, because there are more of them. Fewer than three runs are shown, and nothing is concluded from them.

use base::number::{amount, duration, many};
use base::{Cell, Table, TableSpec, shown, table};
use facts::benches::Benches;
use facts::statistics::spread;

/// Fewer runs give no verdict.
const FEWEST: usize = 3;

/// The quantities of a run, in the order of their columns.
const QUANTITIES: &[&str] =
    &["real", "user", "sys", "max_rss", "voluntary_switches", "involuntary_switches", "kvm_exits"];

/// Medians of each command.
pub(crate) const PROGRAMS: TableSpec = table! {
    nesting.programs version 2: "What one command took over all runs: medians, and the interval of the wall time.";
    key machine, key command, count runs, f64("ns") real_ns, f64("ns") user_ns, f64("ns") sys_ns,
    f64("bytes") max_rss_bytes, f64("count") voluntary_switches, f64("count") involuntary_switches,
    f64("count") kvm_exits, f64("ns") real_low_ns, f64("ns") real_high_ns, f64("count") cpus;
    shown![
        "What programs took", 40;
        command, runs, real_ns: "real", real_low_ns: "from", real_high_ns: "to", user_ns: "user", sys_ns: "sys",
        max_rss_bytes: "memory", kvm_exits: "exits",
    ]
};

pub(crate) const PROGRAM_RUNS: TableSpec = table! {
    nesting.program_runs version 2: "What one run of one command took.";
    key machine, key command, key_u64("") run, f64("ns") real_ns, f64("ns") user_ns, f64("ns") sys_ns,
    f64("bytes") max_rss_bytes, f64("count") voluntary_switches, f64("count") involuntary_switches,
    f64("count") kvm_exits;
};

/// One command on one machine, over all runs.
#[derive(Debug, Clone)]
pub(crate) struct Program {
    pub machine: String,
    pub command: String,
    /// Each quantity's value in each run, in the order of [`QUANTITIES`].
    runs: Vec<Vec<f64>>,
}

impl Program {
    pub(crate) fn median(&self, name: &str) -> Option<f64> {
        spread::median(self.values(name))
    }

    pub(crate) fn interval(&self, name: &str) -> Option<(f64, f64)> {
        spread::interval(self.values(name))
    }

    /// How often it ran.
    pub(crate) fn count(&self) -> usize {
        self.values("real").len()
    }

    fn values(&self, name: &str) -> &[f64] {
        let at = QUANTITIES.iter().position(|known| *known == name);
        at.map_or(&[], |at| &self.runs[at])
    }
}

pub(crate) fn programs(benches: &Benches) -> Vec<Program> {
    let mut programs: Vec<Program> = Vec::new();
    for run in benches.runs.iter().filter(|run| run.bench.bench == "macro") {
        for measured in &run.bench.results {
            let Some(command) = &measured.params.command else { continue };
            let Some(at) = QUANTITIES.iter().position(|name| *name == measured.name) else { continue };
            let known = programs.iter().position(|one| one.machine == run.machine && one.command == *command);
            let program = known.unwrap_or_else(|| {
                let runs = vec![Vec::new(); QUANTITIES.len()];
                programs.push(Program { machine: run.machine.clone(), command: command.clone(), runs });
                programs.len() - 1
            });
            programs[program].runs[at].extend(&measured.samples);
        }
    }
    programs
}

/// Table [`PROGRAMS`].
pub(crate) fn table(programs: &[Program]) -> Table {
    let mut table = Table::new(&PROGRAMS);
    for program in programs {
        let mut row: Vec<Cell> =
            vec![program.machine.as_str().into(), program.command.as_str().into(), (program.count() as u64).into()];
        row.extend(QUANTITIES.iter().map(|name| Cell::from(program.median(name))));
        let (low, high) = program.interval("real").unzip();
        row.extend([low.into(), high.into(), cpus(program).into()]);
        table.push(row);
    }
    table
}

/// Table [`PROGRAM_RUNS`].
pub(crate) fn runs(programs: &[Program]) -> Table {
    let mut table = Table::new(&PROGRAM_RUNS);
    for program in programs {
        for run in 0..program.count() {
            let mut row: Vec<Cell> =
                vec![program.machine.as_str().into(), program.command.as_str().into(), (run as u64).into()];
            row.extend(program.runs.iter().map(|values| Cell::from(values.get(run).copied())));
            table.push(row);
        }
    }
    table
}

fn cpus(program: &Program) -> Option<f64> {
    let busy = program.median("user")? + program.median("sys")?;
    Some((busy / program.median("real")? * 100.0).round() / 100.0)
}

/// The answer in sentences.
pub(crate) fn summary(programs: &[Program]) -> Vec<String> {
    let sentence = |program: &Program| {
        let real = duration(program.median("real")?);
        let between = match program.interval("real") {
            Some((low, high)) => format!(
                "{} to {} over {} runs, {}",
                duration(low),
                duration(high),
                program.count(),
                spread::coverage(program.count())
            ),
            None => format!(
                "{}; fewer than {FEWEST} runs give no interval and no verdict",
                many(program.count() as u64, "run")
            ),
        };
        let busy = cpus(program).map_or(String::new(), |cpus| format!(" and kept {} busy", amount(cpus, "CPUs")));
        let exits = program.median("kvm_exits").map_or(String::new(), |exits| {
            format!("; VMs of this host had {} meanwhile", many(exits.round() as u64, "exit"))
        });
        Some(format!("`{}` took {real} ({between}){busy}{exits}.", program.command))
    };
    programs.iter().filter_map(sentence).collect()
}
