//! Tables `programs` and `program_runs`: what whole programs took.
//!
//! Wall time, user time and system time stay apart: exits that get cheaper can make a program use less CPU and yet take
//! longer, because there are more of them. Fewer than three runs are shown, and nothing is concluded from them.

use crate::facts::benches::Benches;
use crate::statistics::spread;
use base::number::{amount, duration, many};
use base::table::Shown;
use base::{Cell, Column, ColumnType, Table};

/// Fewer runs give no verdict.
const FEWEST: usize = 3;

/// The quantities of a run, by the names of their columns, with their units.
const QUANTITIES: &[(&str, &str, &str)] = &[
    ("real", "real_ns", "ns"),
    ("user", "user_ns", "ns"),
    ("sys", "sys_ns", "ns"),
    ("max_rss", "max_rss_bytes", "bytes"),
    ("voluntary_switches", "voluntary_switches", "count"),
    ("involuntary_switches", "involuntary_switches", "count"),
    ("kvm_exits", "kvm_exits", "count"),
];

/// One command on one machine, over all runs.
#[derive(Debug, Clone)]
pub struct Program {
    /// The machine.
    pub machine: String,
    /// Its words.
    pub command: String,
    /// Each quantity's value in each run, in the order of [`QUANTITIES`].
    runs: Vec<Vec<f64>>,
}

impl Program {
    /// The median of a quantity.
    pub fn median(&self, name: &str) -> Option<f64> {
        spread::median(self.values(name))
    }

    /// The interval of that median.
    pub fn interval(&self, name: &str) -> Option<(f64, f64)> {
        spread::interval(self.values(name))
    }

    /// How often it ran.
    pub fn count(&self) -> usize {
        self.values("real").len()
    }

    fn values(&self, name: &str) -> &[f64] {
        let at = QUANTITIES.iter().position(|(known, ..)| *known == name);
        at.map_or(&[], |at| &self.runs[at])
    }
}

/// All commands of all benches.
pub fn programs(benches: &Benches) -> Vec<Program> {
    let mut programs: Vec<Program> = Vec::new();
    for run in benches.runs.iter().filter(|run| run.bench.bench == "macro") {
        for measured in &run.bench.results {
            let Some(command) = &measured.params.command else { continue };
            let Some(at) = QUANTITIES.iter().position(|(name, ..)| *name == measured.name) else { continue };
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

/// A row for each command: medians, and the interval of the wall time.
pub fn table(programs: &[Program]) -> Table {
    let mut columns =
        vec![Column::key("command"), Column::key("machine"), Column::value("runs", "count", ColumnType::U64)];
    columns.extend(QUANTITIES.iter().map(|(_, column, unit)| Column::value(column, unit, ColumnType::F64)));
    columns.push(Column::value("real_low_ns", "ns", ColumnType::F64));
    columns.push(Column::value("real_high_ns", "ns", ColumnType::F64));
    columns.push(Column::value("cpus", "count", ColumnType::F64));
    let mut table = Table::new("programs", columns);
    for program in programs {
        let mut row: Vec<Cell> =
            vec![program.command.as_str().into(), program.machine.as_str().into(), (program.count() as u64).into()];
        row.extend(QUANTITIES.iter().map(|(name, ..)| Cell::from(program.median(name))));
        let (low, high) = program.interval("real").unzip();
        row.extend([low.into(), high.into(), cpus(program).into()]);
        table.push(row);
    }
    let shown = [
        ("command", "command"),
        ("runs", "runs"),
        ("real_ns", "real"),
        ("real_low_ns", "from"),
        ("real_high_ns", "to"),
        ("user_ns", "user"),
        ("sys_ns", "sys"),
        ("max_rss_bytes", "memory"),
        ("kvm_exits", "exits"),
    ];
    table.shown = Some(Shown {
        title: "What programs took".to_owned(),
        columns: shown.map(|(name, heading)| (name.to_owned(), heading.to_owned())).into(),
        most_rows: 40,
        ..Shown::default()
    });
    table
}

/// A row for each run.
pub fn runs(programs: &[Program]) -> Table {
    let mut columns = vec![Column::key("command"), Column::key("machine"), Column::key_of("run", ColumnType::U64)];
    columns.extend(QUANTITIES.iter().map(|(_, column, unit)| Column::value(column, unit, ColumnType::F64)));
    let mut table = Table::new("program_runs", columns);
    for program in programs {
        for run in 0..program.count() {
            let mut row: Vec<Cell> =
                vec![program.command.as_str().into(), program.machine.as_str().into(), (run as u64).into()];
            row.extend(program.runs.iter().map(|values| Cell::from(values.get(run).copied())));
            table.push(row);
        }
    }
    table
}

/// CPUs that it kept busy.
fn cpus(program: &Program) -> Option<f64> {
    let busy = program.median("user")? + program.median("sys")?;
    Some((busy / program.median("real")? * 100.0).round() / 100.0)
}

/// The answer in sentences.
pub fn summary(programs: &[Program]) -> Vec<String> {
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
