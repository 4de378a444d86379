//! What of a recording is a number that can be held against another's?
//!
//! ```text
//! states    share of wall time in each state, over all vCPUs       <state>, share
//! exits     count of each reason, by level, over wall time          <level> <reason>, exits/s
//! chains    median of L1's exits that an exit of L2 causes           <reason>, L1 exits per chain
//! tasks     share of the time that a task ran, or was runnable       <name> runs, share; <name> waits, share
//! bench/    repetitions of what is no test of a bench (throughput)    <name>, <unit>
//! samples/  maximum over threads, mean of their medians and p99      <program> <statistic>, ns
//! migrations  total and dark times, passes, what was sent             migration <what>, <unit>
//! ```

use base::{Histogram, Level};
use facts;
use facts::ledger::levels;
use facts::ledger::measure::{Measures, measure};
use facts::ledger::witness::Witnesses;
use facts::migrations::Migration;
use facts::samples::Samples;
use facts::windows::{VcpuWindow, Window};
use facts::{Case, Error, WINDOWS};
use std::collections::BTreeMap;
use walk::events::Reason;
use walk::state::STATES;
use walk::state::State;

/// What is measured; its text is its name with its unit.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Metric {
    /// Of all vCPUs' time: the share of a state, by its column's name.
    State(String),
    /// Exits a second of guests at a level.
    ExitRate(Level, String),
    /// Median of L1's exits in a chain of this reason.
    ChainExits(String),
    /// Share of the time in which tasks of that name ran.
    TaskRuns(String),
    /// Share of the time in which they were runnable while others ran.
    TaskWaits(String),
    /// Whatever a bench or an experiment repeated as a whole, by its name and unit.
    Named(String),
}

impl std::fmt::Display for Metric {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Metric::State(state) => write!(f, "{state}, share"),
            Metric::ExitRate(level, reason) => write!(f, "{level} {reason}, exits/s"),
            Metric::ChainExits(reason) => write!(f, "{reason}, L1 exits per chain"),
            Metric::TaskRuns(task) => write!(f, "{task} runs, share"),
            Metric::TaskWaits(task) => write!(f, "{task} waits, share"),
            Metric::Named(text) => f.write_str(text),
        }
    }
}

impl Metric {
    /// True for a metric of a task: one that had nothing to do before has the largest ratio and says the least.
    pub(crate) fn is_of_task(&self) -> bool {
        matches!(self, Metric::TaskRuns(_) | Metric::TaskWaits(_))
    }

    /// Its name without its unit, as people say it: `VMREAD of L1`, `L2 guest`.
    pub fn label(&self) -> String {
        match self {
            Metric::State(state) => state_in_words(state),
            Metric::ExitRate(level, reason) => format!("{reason} of {level}"),
            Metric::ChainExits(reason) => format!("{reason} of L2"),
            Metric::TaskRuns(task) => format!("{task} ran"),
            Metric::TaskWaits(task) => format!("{task} waited"),
            Metric::Named(text) => text.rsplit_once(", ").map_or(text.as_str(), |(name, _)| name).to_owned(),
        }
    }

    /// The state or level that decides its colour, or empty.
    pub fn hue(&self) -> String {
        match self {
            Metric::State(state) => state.clone(),
            Metric::ExitRate(level, _) => level.to_string(),
            Metric::ChainExits(_) => Level::At(1).to_string(),
            Metric::TaskRuns(_) | Metric::TaskWaits(_) | Metric::Named(_) => String::new(),
        }
    }

    /// True if a recording that shows the other would show this one as well.
    pub(super) fn is_alike(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }

    /// True if what was not seen in a window, or a recording, happened there 0 times; a median of nothing, and what nobody
    /// measured, is unknown.
    pub(super) fn is_zero_unseen(&self) -> bool {
        match self {
            Metric::State(_) | Metric::ExitRate(..) | Metric::TaskRuns(_) | Metric::TaskWaits(_) => true,
            Metric::ChainExits(_) | Metric::Named(_) => false,
        }
    }
}

/// A state's column as people call it, whatever machine recorded it.
fn state_in_words(name: &str) -> String {
    if let Some(level) = name.strip_prefix("handling_") {
        let level = if level == "unknown_level" { "an unknown level".to_owned() } else { level.to_uppercase() };
        return format!("work on exits of {level}");
    }
    let states = (0..STATES).map(State::of_index);
    let known = states.into_iter().find(|state| levels::name(Level::L0, *state) == name);
    known.map_or_else(|| name.replace('_', " "), |state| levels::title(Level::L0, state))
}

/// Each metric's values, one of each window or repetition.
pub(super) type Metrics = BTreeMap<Metric, Vec<f64>>;

/// The metrics of a recording.
///
/// # Errors
/// If the recording does not hold what the user asked for, or nothing that could be measured.
pub(super) fn of(case: &Case) -> Result<Metrics, Error> {
    if case.input().parts.is_empty() {
        return Ok(repetitions(case));
    }
    // Asked for first: the one reading that they take gives what all else needs.
    let windows = case.windows();
    let mut metrics = repetitions(case);
    let whole = facts::ledger::asked::check(case.ledger(), case.input(), case.given());
    if let Err(error) = &whole
        && error.is_of_what_was_asked()
    {
        return whole.map(|()| metrics);
    }
    let seen: Vec<BTreeMap<Metric, f64>> = (0..WINDOWS).map(|number| window(case, windows, number)).collect();
    let names: std::collections::BTreeSet<Metric> = seen.iter().flat_map(|window| window.keys().cloned()).collect();
    for metric in names {
        let values = seen.iter().map(|window| window.get(&metric).copied());
        let values = if metric.is_zero_unseen() {
            values.map(Option::unwrap_or_default).collect()
        } else {
            values.flatten().collect()
        };
        metrics.insert(metric, values);
    }
    match whole {
        Err(error) if metrics.is_empty() => Err(error),
        _ => Ok(metrics),
    }
}

fn window(case: &Case, windows: &[Vec<Window>], number: usize) -> BTreeMap<Metric, f64> {
    let mut sums = Sums::default();
    let mut found = BTreeMap::new();
    let measures = measure(case.ledger(), case.given());
    let witnesses = Witnesses::of(&measures, case.given().narrow.witness);
    for measure in &measures {
        let place = case.ledger().parts.iter().position(|part| std::ptr::eq(part, measure.part));
        let Some(window) = place.and_then(|place| windows.get(place)?.get(number)) else { continue };
        sums.add(measure, window, witnesses);
        let level = if measure.part.level == Level::L0 { String::new() } else { format!("{} ", measure.part.level) };
        let length_ns = window.span.length_ns() as f64;
        for (name, times) in window.tasks.iter().flatten().filter(|_| length_ns > 0.0) {
            let name = format!("{level}{name}");
            found.insert(Metric::TaskRuns(name.clone()), times.runs_ns as f64 / length_ns);
            found.insert(Metric::TaskWaits(name), times.waits_ns as f64 / length_ns);
        }
    }
    found.extend(sums.metrics());
    found
}

/// Sums over all vCPUs in one window.
#[derive(Default)]
struct Sums {
    wall_ns: u64,
    longest_ns: u64,
    states_ns: BTreeMap<String, u64>,
    exits: BTreeMap<(Level, String), u64>,
    chains: BTreeMap<String, Histogram>,
}

impl Sums {
    fn add(&mut self, measure: &Measures<'_>, window: &Window, witnesses: Witnesses) {
        for sums in measure.vcpus.iter().filter_map(|vcpu| window.vcpus.get(&vcpu.tid)) {
            self.add_vcpu(measure, sums, witnesses);
        }
    }

    fn add_vcpu(&mut self, measure: &Measures<'_>, sums: &VcpuWindow, witnesses: Witnesses) {
        let level = measure.part.level;
        if witnesses.has_exits(measure) {
            self.longest_ns = self.longest_ns.max(sums.wall_ns());
        }
        if witnesses.has_states(measure) {
            self.wall_ns += sums.wall_ns();
            for state in (0..STATES).map(State::of_index) {
                let ns = sums.states_ns[state.index()];
                *self.states_ns.entry(levels::name(level, state)).or_default() += ns;
            }
        }
        let wanted = |(key, count): (&(walk::TracedLevel, Reason), &u64)| {
            let level = levels::level_of(level, key.0);
            measure.wants(level).then(|| ((level, key.1.name()), *count))
        };
        let exits = sums.exits.iter().filter(|_| witnesses.has_exits(measure)).filter_map(wanted);
        exits.for_each(|(key, count)| *self.exits.entry(key).or_default() += count);
        if witnesses.has_chains(measure) && measure.wants(measure.level_above(2)) {
            let chains = sums.chains.iter();
            chains.for_each(|(reason, exits)| self.chains.entry(reason.name()).or_default().merge(exits));
        }
    }

    fn metrics(self) -> BTreeMap<Metric, f64> {
        let mut found = BTreeMap::new();
        if self.wall_ns == 0 {
            return found;
        }
        let share = |ns: u64| ns as f64 / self.wall_ns as f64;
        found.extend(self.states_ns.into_iter().map(|(state, ns)| (Metric::State(state), share(ns))));
        // Rates are per second of the recording, not per vCPU second.
        let seconds = self.longest_ns as f64 / 1e9;
        let rate = |((level, reason), count): ((Level, String), u64)| {
            (Metric::ExitRate(level, reason), count as f64 / seconds)
        };
        found.extend(self.exits.into_iter().map(rate));
        let median = |(reason, exits): (String, Histogram)| {
            exits.quantile(0.5).map(|median| (Metric::ChainExits(reason), median as f64))
        };
        found.extend(self.chains.into_iter().filter_map(median));
        found
    }
}

/// What was measured again and again as a whole; tests have a table of their own (`benches`).
fn repetitions(case: &Case) -> Metrics {
    let mut metrics = Metrics::new();
    for run in &case.benches().runs {
        for result in run.bench.results.iter().filter(|result| !super::benches::is_test(result)) {
            let metric = metrics.entry(Metric::Named(format!("{}, {}", result.name, result.unit))).or_default();
            metric.extend(&result.samples);
        }
    }
    // Threads differ by their CPUs: they are no repetitions of each other, so that a recording gives one value.
    let mut by_program: BTreeMap<&str, Vec<&Samples>> = BTreeMap::new();
    for (_, samples) in case.results().each() {
        by_program.entry(samples.source.name()).or_default().push(samples);
    }
    for (program, threads) in by_program {
        let mean = |of: &dyn Fn(&Samples) -> Option<u64>| {
            let values: Vec<f64> = threads.iter().filter_map(|samples| Some(of(samples)? as f64)).collect();
            (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
        };
        let longest = threads.iter().filter_map(|samples| samples.extremes_ns().1).max();
        let several = threads.len() > 1;
        let of_several = |one: &'static str, all: &'static str| if several { all } else { one };
        let told = [
            (of_several("median", "mean of threads' medians"), mean(&|samples| samples.quantile_ns(0.5))),
            (of_several("p99", "mean of threads' p99"), mean(&|samples| samples.quantile_ns(0.99))),
            (of_several("maximum", "maximum over threads"), longest.map(|ns| ns as f64)),
        ];
        for (name, ns) in told.into_iter().filter_map(|(name, ns)| Some((name, ns?))) {
            metrics.entry(Metric::Named(format!("{program} {name}, ns"))).or_default().push(ns);
        }
    }
    for migration in &case.input().migrations.list {
        for (name, value) in of_migration(migration) {
            metrics.entry(Metric::Named(name.to_owned())).or_default().push(value);
        }
    }
    metrics
}

/// How long a guest took to move, how long it was dark by each who can tell, and what was sent.
fn of_migration(migration: &Migration) -> impl Iterator<Item = (&'static str, f64)> {
    let reported_ns = migration.last(|poll| poll.downtime_ms).map(|ms| ms.saturating_mul(1_000_000));
    let heartbeat_ns = migration.by_heartbeat().and_then(Result::ok);
    let packets_ns = migration.train.as_ref().and_then(|train| train.dark_ns().ok());
    let sent = migration.last(|poll| poll.transferred_bytes);
    let ms = |ns: Option<u64>| ns.map(|ns| ns as f64 / 1e6);
    let told = [
        ("migration total, ms", ms(migration.total_ns())),
        ("migration dark as reported, ms", ms(reported_ns)),
        ("migration dark by events, ms", ms(migration.by_events())),
        ("migration dark by checkpoints, ms", ms(migration.by_checkpoints())),
        ("migration dark by heartbeat, ms", ms(heartbeat_ns)),
        ("migration dark by packets, ms", ms(packets_ns)),
        ("migration sent, MB", sent.map(|bytes| bytes as f64 / 1e6)),
        ("migration passes", (!migration.passes.is_empty()).then_some(migration.passes.len() as f64)),
    ];
    let is_known = migration.is_completed();
    told.into_iter().filter_map(move |(name, value)| Some((name, value.filter(|_| is_known)?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_metric_is_named_as_people_read_it() {
        let texts = [
            Metric::State("guest_l1".into()),
            Metric::ExitRate(Level::At(1), "CPUID".into()),
            Metric::ChainExits("CPUID".into()),
            Metric::TaskWaits("vhost".into()),
        ]
        .map(|metric| metric.to_string());
        let expected = ["guest_l1, share", "L1 CPUID, exits/s", "CPUID, L1 exits per chain", "vhost waits, share"];
        assert_eq!(texts, expected);
    }
}
