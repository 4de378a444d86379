//! Table `exits`: what each kind of exit costs, how many exits it takes, and who handles it.
//!
//! ```text
//! (sample - control) / operations     cycles of one operation; control: as many empty ones, in the same guest
//! growth of `exits` / operations      0: nobody at this level saw it    1: this KVM did
//! ```
//! Both together tell what neither tells alone: CPUID with 0 exits and 2,600 cycles was answered by an outer hypervisor.

use base::number::{counted, list, plain, thousands};
use base::{Cell, Histogram, Measured, Shown, Table, TableSpec, Unknown, shown, table};
use facts::benches::{BenchRun, Benches};
use facts::statistics::launches::{self, EMPTY, GRAIN};
use facts::statistics::spread;

/// A turn of an empty loop that takes longer is interpreted, not run.
const INTERPRETED: f64 = 100.0;
/// Half an exit: less was not one each time.
const SOME: f64 = 0.5;

/// The note of a test that was.
const DISTURBED: &str = "disturbed";

/// One test over all launches.
#[derive(Debug, Clone)]
pub struct Row {
    pub machine: String,
    pub name: String,
    /// `here` or `guest`.
    pub place: String,
    pub ring: Option<u8>,
    /// Processes that measured it.
    pub launches: u64,
    /// Hundredths of cycles of an operation.
    samples: Histogram,
    /// The median of each launch, in cycles.
    pub medians: Vec<f64>,
    /// Exits of an operation, as KVM counted them.
    pub exits_per_op: Option<f64>,
    /// Who handled it: `native`, `kernel`, `MMU`, `VMM`, `outer level`, `emulated`.
    pub handled_by: Option<&'static str>,
    /// What else must be said.
    pub note: String,
}

impl Row {
    /// Cycles of an operation below which a share `q` of all samples lies.
    pub fn cycles(&self, q: f64) -> Option<f64> {
        self.samples.quantile(q).map(|value| value as f64 / GRAIN)
    }

    /// What one launch with one sample measured.
    #[cfg(test)]
    pub(crate) fn of_one_launch(name: &str, place: &str, cycles: u64, exits: f64, handled_by: &'static str) -> Self {
        let mut samples = Histogram::new();
        samples.record(cycles * GRAIN as u64);
        Self {
            machine: "L0".to_owned(),
            name: name.to_owned(),
            place: place.to_owned(),
            ring: Some(0),
            launches: 1,
            samples,
            medians: Vec::new(),
            exits_per_op: Some(exits),
            handled_by: Some(handled_by),
            note: String::new(),
        }
    }

    /// Median cycles of an operation.
    pub fn p50(&self) -> Option<f64> {
        self.cycles(0.5)
    }

    /// The interval of the median, out of the spread between launches.
    pub fn interval(&self) -> Option<(f64, f64)> {
        spread::interval(&self.medians)
    }
}

/// All tests of all benches of exits, in the order in which they were measured; behind them those without a number, which
/// a page leaves to [`unknown`].
pub fn rows(benches: &Benches) -> Vec<Row> {
    let runs = benches.runs.iter().filter(|run| run.bench.bench == "exits");
    let mut rows: Vec<Row> = runs.flat_map(rows_of).collect();
    if benches.emulated.is_some() {
        // There is no hypervisor below that could answer: the emulator carries out every instruction.
        for row in rows.iter_mut().filter(|row| row.place == "here" && row.handled_by.is_some()) {
            row.handled_by = Some("emulated");
        }
    }
    rows.sort_by_key(|row| row.launches == 0);
    rows
}

fn rows_of(run: &BenchRun) -> Vec<Row> {
    let mut groups: Vec<Vec<&Measured>> = Vec::new();
    let key = |measured: &Measured| (measured.name.clone(), measured.params.place.clone(), measured.params.ring);
    for measured in &run.bench.results {
        match groups.iter_mut().find(|group| key(group[0]) == key(measured)) {
            Some(group) => group.push(measured),
            None => groups.push(vec![measured]),
        }
    }
    let below = run.bench.environment.get("hypervisor below").is_some_and(|said| said == "yes");
    let mut rows: Vec<Row> = groups.iter().map(|group| row(run, group, below)).collect();
    let interpreted: Vec<(String, Option<u8>)> = rows
        .iter()
        .filter(|row| row.name == EMPTY && row.p50().is_some_and(|turn| turn > INTERPRETED))
        .map(|row| (row.place.clone(), row.ring))
        .collect();
    for row in rows.iter_mut().filter(|row| row.handled_by.is_some()) {
        if interpreted.contains(&(row.place.clone(), row.ring)) {
            row.handled_by = Some("emulated");
            say(&mut row.note, "emulated by KVM, not run by the processor");
        }
    }
    rows
}

/// One test: all of its launches together.
fn row(run: &BenchRun, group: &[&Measured], below: bool) -> Row {
    let first = group[0];
    let measured: Vec<&&Measured> = group.iter().filter(|one| one.skipped.is_none()).collect();
    let mut row = Row {
        machine: run.machine.clone(),
        name: first.name.clone(),
        place: first.params.place.clone(),
        ring: first.params.ring,
        launches: measured.len() as u64,
        samples: Histogram::new(),
        medians: Vec::new(),
        exits_per_op: None,
        handled_by: None,
        note: String::new(),
    };
    for one in &measured {
        let own = launches::distribution(one);
        row.medians.extend(own.quantile(SOME).map(|value| value as f64 / GRAIN));
        row.samples.merge(&own);
    }
    let per_operation = |counter: &str| {
        let counted: u64 = measured.iter().filter_map(|one| one.params.counted).sum();
        let grown: u64 = measured.iter().filter_map(|one| one.counters.get(counter)).sum();
        (counted > 0).then(|| grown as f64 / counted as f64)
    };
    // An interrupt of the host takes the vCPU out of the guest as well, whatever the guest does.
    row.exits_per_op =
        per_operation("exits").zip(per_operation("irq_exits")).map(|(all, interrupts)| (all - interrupts).max(0.0));
    if let Some(why) = first.skipped.as_ref().filter(|_| measured.is_empty()) {
        row.note.clone_from(why);
        return row;
    }
    let most = |counter| per_operation(counter).is_some_and(|each| each >= SOME);
    row.handled_by = match (row.place.as_str(), row.exits_per_op, first.params.expected_exits) {
        // CPUID is the one instruction of ours that a hypervisor cannot leave to the processor (Intel SDM volume 3, 26.1.2).
        ("here", ..) if row.name == "cpuid" && below => Some("outer level"),
        ("here", ..) => Some("native"),
        (_, Some(exits), Some((1.., _))) if exits < SOME => Some("outer level"),
        (_, Some(exits), _) if exits < SOME => Some("native"),
        (_, Some(_), _) if most("userspace") => Some("VMM"),
        (_, Some(_), _) if most("pf_fixed") => Some("MMU"),
        (_, Some(_), _) => Some("kernel"),
        (_, None, _) => None,
    };
    match (row.exits_per_op, first.params.expected_exits) {
        (Some(exits), Some((1.., _))) if exits < SOME => {
            say(&mut row.note, "no exit at this level: a hypervisor below handles it");
        }
        (Some(exits), Some((_, most))) if exits > f64::from(most) + SOME => {
            say(&mut row.note, &format!("more exits than the {most} that VMX or SVM needs"));
        }
        (None, Some(_)) => say(&mut row.note, "KVM has no exit counters here (KVM_GET_STATS_FD, since Linux 5.14)"),
        _ => {}
    }
    if let Some(exits) =
        per_operation("partner_exits").filter(|_| measured.iter().any(|one| one.counters.contains_key("partner_exits")))
    {
        say(&mut row.note, &format!("the other vCPU: {} exits per operation", plain((exits * 100.0).round() / 100.0)));
    }
    let dirty: Vec<&String> = measured.iter().filter_map(|one| one.interference.first()).collect();
    if let Some(such) = dirty.first() {
        say(&mut row.note, &format!("{DISTURBED} in {} of {} launches: {such}", dirty.len(), measured.len()));
    }
    row
}

fn say(note: &mut String, more: &str) {
    if !note.is_empty() {
        note.push_str("; ");
    }
    note.push_str(more);
}

/// The costs of operations.
pub const EXITS: TableSpec = table! {
    nesting.exits version 2:
    "What one test of `bench exits` cost in one place over all launches, how many exits it took, and who handled it.";
    key machine, key name, key where, key_u64("") ring, count samples, f64("cycles") min_cycles,
    f64("cycles") p50_cycles, f64("cycles") p99_cycles, f64("count") exits_per_op, text handled_by, text note,
    count launches, f64("cycles") p50_low_cycles, f64("cycles") p50_high_cycles, f64("cycles") mean_cycles,
    f64("cycles") p10_cycles, f64("cycles") p90_cycles, f64("cycles") p999_cycles, f64("cycles") max_cycles,
    f64("cycles") mad_cycles, count far_samples;
    shown![
        "Cost of an operation, in TSC cycles", usize::MAX;
        name: "test", where, min_cycles: "least", p50_cycles: "median", p50_low_cycles: "from", p50_high_cycles: "to",
        exits_per_op: "exits/op", handled_by: "by",
    ]
};

/// Table [`EXITS`]; people see the rows with numbers.
pub fn table(rows: &[Row]) -> Table {
    let mut table = Table::new(&EXITS);
    for row in rows {
        let (low, high) = row.interval().unzip();
        let (mad, far) = spread::deviation(&row.samples).unzip();
        let rounded = |value: Option<f64>| Cell::from(value.map(|value| (value * GRAIN).round() / GRAIN));
        table.push(vec![
            row.machine.as_str().into(),
            row.name.as_str().into(),
            row.place.as_str().into(),
            row.ring.map(u64::from).into(),
            row.samples.count().into(),
            row.cycles(0.0).into(),
            row.p50().into(),
            row.cycles(0.99).into(),
            row.exits_per_op.map(|exits| (exits * 1e4).round() / 1e4).into(),
            row.handled_by.into(),
            if row.note.is_empty() { Cell::Missing } else { row.note.as_str().into() },
            row.launches.into(),
            rounded(low),
            rounded(high),
            rounded(row.samples.mean().map(|mean| mean / GRAIN)),
            row.cycles(0.1).into(),
            row.cycles(0.9).into(),
            row.cycles(0.999).into(),
            row.cycles(1.0).into(),
            mad.map(|mad| mad as f64 / GRAIN).into(),
            far.into(),
        ]);
    }
    let most_rows = rows.iter().filter(|row| row.launches > 0).count();
    table.shown = table.shown.map(|shown| Shown { most_rows, ..shown });
    table
}

/// The answer in sentences.
pub fn summary(rows: &[Row]) -> Vec<String> {
    let find = |name: &str, place: &str| rows.iter().find(|row| row.name == name && row.place == place);
    let mut sentences = Vec::new();
    let cost = |row: &Row| {
        let p50 = row.p50()?;
        let between = row.interval().map_or(String::new(), |(low, high)| {
            format!(" ({} to {} over {} launches)", whole(low), whole(high), row.launches)
        });
        Some(format!("{} cycles{between}", whole(p50)))
    };
    let guest = find("cpuid", "guest").and_then(|row| Some((row, cost(row)?)));
    let here = find("cpuid", "here").and_then(cost).map(|cost| format!("{cost} where the bench ran"));
    let takes: Vec<String> =
        guest.iter().map(|(_, cost)| format!("{cost} in a guest of this machine")).chain(here).collect();
    if !takes.is_empty() {
        let who = match guest.as_ref().and_then(|(row, _)| row.handled_by) {
            Some("outer level") => "; a hypervisor below handles it, this KVM does not see it",
            _ => "",
        };
        sentences.push(format!("A CPUID takes {}{who}.", list(&takes)));
    }
    let pair = |name: &str| find(name, "guest").and_then(Row::p50);
    if let Some((kernel, user)) = pair("inl_from_kernel").zip(pair("inl_from_qemu")) {
        sentences.push(format!(
            "A port access handled by KVM takes {} cycles, one handled by the VMM {}, {} times as many.",
            whole(kernel),
            whole(user),
            plain((user / kernel * 10.0).round() / 10.0)
        ));
    }
    sentences.extend(find("vmread", "guest").and_then(shadowing));
    sentences
}

/// Whether VMREAD of a hypervisor inside the guest is an exit, and what follows.
fn shadowing(row: &Row) -> Option<String> {
    let exits = row.exits_per_op?;
    if exits < SOME {
        let active = "the processor executes it, and VMCS shadowing is active for guests of this KVM";
        return Some(format!("A VMREAD in a guest needs no exit: {active}."));
    }
    let exits = plain((exits * 100.0).round() / 100.0);
    let off = "this KVM emulates it, and VMCS shadowing is not active for its guests (enable_shadow_vmcs of kvm_intel)";
    Some(format!("A VMREAD in a guest exits ({exits} each): {off}."))
}

/// What has no number, and what was disturbed.
pub fn unknown(rows: &[Row]) -> Vec<Unknown> {
    let mut unknown = Vec::new();
    let without: Vec<&Row> = rows.iter().filter(|row| row.launches == 0).collect();
    let mut reasons: Vec<&str> = without.iter().map(|row| row.note.as_str()).collect();
    reasons.sort_unstable();
    reasons.dedup();
    for reason in reasons {
        let names: Vec<String> = without.iter().filter(|row| row.note == reason).map(|row| row.name.clone()).collect();
        let rings = rings(&without, reason);
        let count = counted(names.len() as u64, &format!("test of {rings} was"), &format!("tests of {rings} were"));
        let text = format!("{count} not run, {reason}: {}.", list(&names));
        unknown.push(Unknown {
            what: "not_measured".to_owned(),
            amount: Some(names.len() as f64),
            unit: "tests".to_owned(),
            text,
        });
    }
    let disturbed = rows.iter().filter(|row| row.note.contains(DISTURBED)).count();
    if disturbed > 0 {
        let tests = rows.len() - without.len();
        let text = format!("Tests disturbed while they ran: {disturbed} of {tests}; column `note` shows by what.");
        let (what, unit) = ("disturbed".to_owned(), "tests".to_owned());
        unknown.push(Unknown { what, amount: Some(disturbed as f64), unit, text });
    }
    unknown
}

/// The privilege levels of the tests that were left out for that reason.
fn rings(rows: &[&Row], reason: &str) -> String {
    let mut rings: Vec<String> =
        rows.iter().filter(|row| row.note == reason).flat_map(|row| row.ring).map(|ring| ring.to_string()).collect();
    rings.sort_unstable();
    rings.dedup();
    format!("ring {}", list(&rings))
}

fn whole(cycles: f64) -> String {
    thousands(cycles.round() as u64)
}
