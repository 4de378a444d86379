//! What a data set keeps of one recording: its own tables, out of the facts of a case.

use super::dataset::{EXIT_HISTOGRAMS, NUMBERS, RECORDINGS, VERDICTS};
use base::recording::Emulator;
use base::{Cell, Histogram, Level, Table};
use facts::Case;
use facts::budget::exact;
use facts::ledger::measure::{Measures, measure};
use facts::ledger::witness::Witnesses;
use host::processor::Processor;
use std::collections::BTreeMap;
use walk::state::State;

/// The tables of one recording, and whose it is.
pub struct Stored {
    /// The host, as its outermost machine is called.
    pub host: String,
    /// Distributions, numbers and verdicts.
    pub tables: Vec<Table>,
    /// The recording's row, which is written last.
    pub recording: Table,
}

/// Exits of one level and reason: how many, and their costs.
type Exits = BTreeMap<(String, Level, String), (u64, Histogram)>;

/// What is kept of `case`, whose recording has this digest.
pub fn stored(case: &Case, digest: &str, schema: &str) -> Stored {
    let measures = measure(case.ledger(), case.given());
    let tables = vec![histograms(&measures), numbers(&measures), verdicts(case)];
    Stored { host: host(case), tables, recording: recording(case, &measures, digest, schema) }
}

/// What the recorded host is called: by its snapshot, else by the manifest, else as the recording is.
pub fn host(case: &Case) -> String {
    let input = case.input();
    let outermost = input.recording.machines.iter().min_by_key(|machine| machine.level);
    let snapshot = outermost.and_then(|machine| input.machines.of_machine(&machine.id)?.last());
    let by_snapshot = snapshot.and_then(|snapshot| snapshot.line("proc/sys/kernel/hostname"));
    let by_name = || outermost.and_then(|machine| machine.name.clone());
    by_snapshot.or_else(by_name).filter(|name| !name.is_empty()).unwrap_or_else(|| input.recording.title())
}

fn histograms(measures: &[Measures<'_>]) -> Table {
    let mut all = Exits::new();
    for (measure, vcpu) in measures.iter().flat_map(|measure| measure.vcpus.iter().map(move |vcpu| (measure, vcpu))) {
        for (level, reason, sums) in measure.exits_of(vcpu) {
            let own = all.entry((measure.part.machine.clone(), level, reason.name())).or_default();
            own.0 += sums.count;
            own.1.merge(&sums.cost_ns);
        }
    }
    let mut table = Table::new(&EXIT_HISTOGRAMS);
    for ((machine, level, reason), (count, costs)) in all {
        table.push(vec![
            machine.into(),
            level.to_string().into(),
            reason.into(),
            count.into(),
            costs.count().into(),
            costs.sum().into(),
            costs.max().into(),
            Cell::Bytes(costs.wire()),
        ]);
    }
    table
}

/// What hosts are compared by: of the outermost machine that was traced.
fn numbers(measures: &[Measures<'_>]) -> Table {
    let mut table = Table::new(&NUMBERS);
    let traced = measures.iter().filter(|measure| !measure.vcpus.is_empty());
    let Some(outermost) = traced.clone().map(|measure| measure.part.level).min() else { return table };
    let own: Vec<&Measures<'_>> = traced.filter(|measure| measure.part.level == outermost).collect();
    let machine = &own[0].part.machine;
    let sum = |of: &dyn Fn(&Measures<'_>) -> u64| own.iter().map(|measure| of(measure)).sum::<u64>() as f64;
    let wall_ns = sum(&|measure| measure.wall_ns);
    if wall_ns == 0.0 {
        return table;
    }
    let mut put = |what: &str, value: f64, unit: &str| {
        table.push(vec![machine.as_str().into(), what.into(), value.into(), unit.into()]);
    };
    let share = |wanted: &dyn Fn(State) -> bool| sum(&|measure| measure.state_ns(wanted)) / wall_ns;
    if own.iter().any(|measure| measure.part.has_switches) {
        put("waiting for a CPU", share(&|state| matches!(state, State::Preempted | State::WakeDelay)), "share");
    }
    let exits = sum(&|measure| measure.exits);
    if exits > 0.0 {
        put("KVM's work on exits", share(&|state| matches!(state, State::Handling(_))), "share");
        put("the VMM's work on exits", share(&|state| state == State::Userspace), "share");
        put("exits per second of a vCPU", exits * 1e9 / wall_ns, "exits per second");
    }
    let chains = own.iter().fold(Histogram::new(), |mut all, measure| {
        all.merge(&measure.chains.exits);
        all
    });
    if let Some(mean) = chains.mean() {
        put("exits per chain", mean, "exits per chain");
    }
    table
}

fn verdicts(case: &Case) -> Table {
    let mut table = Table::new(&VERDICTS);
    let Some(budget) = case.budget() else { return table };
    for judged in case.judged() {
        let (goal, whose) = (&budget.goals[judged.goal], &judged.whose);
        let words = [
            whose.machine.clone(),
            whose.vm.clone(),
            whose.vcpu.map(|vcpu| format!("vCPU {vcpu}")),
            whose.file.clone(),
            whose.thread.clone(),
            whose.run.map(|run| format!("migration {run}")),
        ];
        let metric = format!("{} {} {} {}", goal.metric.name(), goal.stat.name(), goal.op.name(), exact(goal.limit_ns));
        table.push(vec![
            budget.name.as_str().into(),
            goal.id.as_str().into(),
            words.into_iter().flatten().collect::<Vec<_>>().join(" ").into(),
            metric.into(),
            judged.judgement.verdict.name().into(),
            judged.judgement.bounds.map(|bounds| bounds.value_ns).into(),
            goal.limit_ns.into(),
        ]);
    }
    table
}

fn recording(case: &Case, measures: &[Measures<'_>], digest: &str, schema: &str) -> Table {
    let input = case.input();
    let recording = &input.recording;
    let outermost = recording.machines.iter().min_by_key(|machine| machine.level);
    let snapshot = outermost.and_then(|machine| input.machines.of_machine(&machine.id)?.last());
    let cpu_model = snapshot.and_then(|snapshot| Some(Processor::of(snapshot)?.name)).filter(|name| !name.is_empty());
    let traced = measures.iter().min_by_key(|measure| measure.part.level);
    let by_snapshot = snapshot.and_then(|snapshot| snapshot.line("proc/sys/kernel/osrelease"));
    let kernel = by_snapshot.or_else(|| traced.and_then(|measure| measure.part.kernel.as_deref().map(release)));
    let wall_ns = measures.iter().map(|measure| measure.part.window.length_ns()).max();
    let witnesses = Witnesses::of(measures, None);
    let mut table = Table::new(&RECORDINGS);
    table.push(vec![
        recording.title().into(),
        recording.created.clone().into(),
        recording.tool.clone().into(),
        concat!("kvmscope ", env!("CARGO_PKG_VERSION")).into(),
        cpu_model.into(),
        kernel.into(),
        recording.emulated.map(Emulator::name).into(),
        (recording.machines.len() as u64).into(),
        // The outermost witness has all of them; a guest's own trace shows some once more.
        measures
            .iter()
            .filter(|measure| witnesses.is_told(measure))
            .map(|measure| measure.vcpus.len() as u64)
            .sum::<u64>()
            .into(),
        wall_ns.into(),
        (case.problems().count() as u64).into(),
        digest.into(),
        schema.into(),
    ]);
    table
}

/// The release in what `uname` prints: `Linux host 6.12.1 x86_64`.
fn release(uname: &str) -> String {
    let looks_like_one = |word: &&str| word.starts_with(|first: char| first.is_ascii_digit()) && word.contains('.');
    uname.split_whitespace().find(looks_like_one).unwrap_or(uname).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_is_found_in_what_uname_prints() {
        assert_eq!(release("Linux 10-web 6.12.117-amd64 x86_64"), "6.12.117-amd64");
        assert_eq!(release("5.14.0-503.el9"), "5.14.0-503.el9");
        assert_eq!(release("plan9"), "plan9");
    }
}
