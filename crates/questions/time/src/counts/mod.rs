//! What do sums say of exits, where somebody has no trace?
//!
//! Sums tell which exits there are, how many and how long, and never who waited for whom: the answer says what each of the largest
//! means, and what to record for the rest.

mod hints;

use base::number::{counted as counted_in_words, duration, list, many, percent, rate, thousands};
use base::{Cell, Section, Table, TableSpec, Unknown, shown, table};
use facts::counts::{Counted, Counter, Row};
use facts::{Answer, Case, Error};

/// Id of the Section.
pub const ID: &str = "counts";

/// The question this folder answers.
pub const QUESTION: &str = "Which exits and events did programs count, and what do they mean?";

/// What was counted.
pub const COUNTED: TableSpec = table! {
    counts.counted version 1: "How often one kind of exit or event was counted by one program, and how long it took where known.";
    key machine, key program, key path, key name, count count, share count_share, share time_share, f64("") per_second,
    f64("ns") min_ns, f64("ns") mean_ns, f64("ns") max_ns, text meaning;
    shown![
        "What programs counted", 24;
        machine, program, name, count, count_share: "of all", time_share: "of the time", per_second: "per second", min_ns: "min", mean_ns: "mean",
        max_ns: "max", meaning,
    ]
};

/// All tables, in reading order.
pub const TABLES: &[&TableSpec] = &[&COUNTED];

/// Rows that a sentence names.
const NAMED: usize = 3;

/// Answers it; `None` where nothing was counted.
///
/// # Errors
/// None so far.
pub fn answer(case: &Case) -> Result<Option<Answer>, Error> {
    let counts = &case.input().counts.list;
    if counts.is_empty() {
        return Ok(None);
    }
    let mut section = Section::new(ID, QUESTION);
    section.summary = counts
        .iter()
        .map(|counted| sentence(counted, &case.input().recording.on(&counted.machine)))
        .collect::<Vec<_>>()
        .join(" ");
    section.tables.push(counted(counts));
    section.unknown.push(Unknown {
        what: "events".into(),
        amount: None,
        unit: String::new(),
        text: "Sums do not show when, on which vCPU and for whom: who waited, who took a CPU, what nested guests cost."
            .into(),
    });
    section.next.push("kvmscope record --seconds 10 -o again   # on the host, while its guests run".into());
    Ok(Some(Answer { section, problems: Vec::new() }))
}

fn counted(counts: &[Counted]) -> Table {
    let mut table = Table::new(&COUNTED);
    for (counted, row) in counts.iter().flat_map(|counted| counted.rows.iter().map(move |row| (counted, row))) {
        let names = [counted.machine.as_str(), counted.by.name(), counted.path.as_str(), row.name.as_str()];
        let mut cells: Vec<Cell> = names.into_iter().map(Into::into).collect();
        cells.push(row.count.into());
        // The column is of all: a part of another row has its share in the sentence.
        let of_all = row.count_share.filter(|_| row.share_of.is_none());
        cells.extend([of_all, row.time_share, row.per_second, row.min_ns, row.mean_ns, row.max_ns].map(Cell::from));
        cells.push(hints::meaning(&row.name).map_or(Cell::Missing, Cell::from));
        table.push(cells);
    }
    table
}

/// `perf kvm stat counted 41,800 exits: HLT is 97.7 % of them and 99.7 % of the time, 29.4 us each (..).`
fn sentence(counted: &Counted, on: &str) -> String {
    // Each exit has an entry, which says nothing of its own; nor does the sum of all beside those by reason. Pages that are mapped
    // now did not happen so many times, and who sleeps (`halt_wait_ns`) takes nothing.
    let has_reasons =
        counted.rows.iter().any(|row| row.share_of.as_deref() == Some("kvm_exit") || row.name.starts_with("kvm_exit("));
    let tells = |row: &Row| {
        row.name != "kvm_entry"
            && !(has_reasons && row.name == "kvm_exit")
            && !row.name.contains("pages_")
            && row.name != "halt_wait_ns"
    };
    let mut largest: Vec<&Row> = counted.rows.iter().filter(|row| row.count > 0 && tells(row)).collect();
    let size = |row: &Row| (row.time_share.unwrap_or(0.0), row.count);
    largest.sort_by(|a, b| size(b).partial_cmp(&size(a)).unwrap_or(std::cmp::Ordering::Equal));
    let shown = counted.rows.iter().fold(0_u64, |sum, row| sum.saturating_add(row.count));
    let total = counted.total.map_or(shown, |total| total.count);
    let hidden = hidden(counted, shown).unwrap_or_default();
    let (what, path) = (if counted.is_of_exits() { "exit" } else { "event" }, &counted.path);
    let said: Vec<String> = largest.iter().take(NAMED).map(|row| told(row)).collect();
    // Tracepoints of one exit are several events: their sum is none of exits.
    let total = match counted.is_of_exits() {
        true => many(total, what),
        false => counted_in_words(counted.rows.len() as u64, "kind of event", "kinds of event"),
    };
    let ports = ports(counted).unwrap_or_default();
    let stopped = never_ran(counted).unwrap_or_default();
    format!("{}{on} counted {total} ({path}): {}.{hidden}{ports}{stopped}", counted.by.name(), list(&said))
}

/// What of all exits the rows leave out: by their sum against the program's own, else by their shares.
fn hidden(counted: &Counted, shown: u64) -> Option<String> {
    if counted.by != Counter::PerfKvmStat {
        return None;
    }
    let time: f64 = counted.rows.iter().filter_map(|row| row.time_share).sum();
    let rest = percent((1.0 - time).max(0.0));
    match counted.total {
        Some(total) if shown < total.count => {
            let missing = thousands(total.count - shown);
            Some(format!(" The rows of {missing} of them, with {rest} of the time, are not in the text."))
        }
        Some(_) => None,
        None => {
            let share: f64 = counted.rows.iter().filter_map(|row| row.count_share).sum();
            let missing = percent((1.0 - share).max(0.0));
            (share < WHOLE)
                .then(|| format!(" These are the rows that the text has: {missing} of all exits, with {rest} of the time, are in others."))
        }
    }
}

/// Shares of all rows together, each of which is rounded: our own threshold.
const WHOLE: f64 = 0.98;

/// What it means that KVM_RUN returned to the VMM, and that no exit was counted at all.
fn never_ran(counted: &Counted) -> Option<String> {
    let has = |name: &str| counted.rows.iter().any(|row| row.count > 0 && row.name.starts_with(name));
    let is_it = has("kvm_userspace_exit") && counted.rows.len() >= NAMED && !has("kvm_exit") && !has("kvm_entry");
    is_it.then(|| {
        " No kvm_exit and no kvm_entry is among them: unless somebody left them out, KVM_RUN returned without the guest having run \
         (KVM_EXIT_UNKNOWN, or EINTR), again and again."
            .to_owned()
    })
}

/// Part of all exits from which accesses to ports matter, and by which two counts of the same may differ: our own thresholds.
const MUCH: f64 = 0.1;
const ALIKE: f64 = 0.05;

/// What it means that about as many exits went on to the VMM as accessed a port.
fn ports(counted: &Counted) -> Option<String> {
    let size = |name: &str| {
        let row = counted.rows.iter().find(|row| row.name == name)?;
        Some(row.per_second.filter(|rate| *rate > 0.0).unwrap_or(row.count as f64))
    };
    if let Some((ports, exits)) = size("io_exits").zip(size("exits")).filter(|(ports, exits)| *ports > MUCH * exits) {
        let share = percent(ports / exits);
        return Some(format!(
            " {share} of all exits access ports of emulated devices; perf record -e kvm:kvm_pio names the port."
        ));
    }
    let (ports, exits, to_vmm) = (size("kvm_pio")?, size("kvm_exit")?, size("kvm_userspace_exit")?);
    let is_it = ports > MUCH * exits && (to_vmm - ports).abs() < ALIKE * ports;
    is_it.then(|| {
        let share = percent(ports / exits);
        format!(
            " {share} of all exits access a port, and as many go on to the VMM: the guest polls a device that the VMM emulates. Windows reads the time so, \
             from the ACPI timer, where it is not shown Hyper-V's clock; perf record -e kvm:kvm_pio names the port."
        )
    })
}

/// `HLT 40,833 times, 95.9 % of all and 99.7 % of the time, 29.4 us each: the guest has nothing to do`.
fn told(row: &Row) -> String {
    let is_time = row.name.ends_with("_ns");
    let mut words = vec![match is_time {
        true => format!("{} {}", row.name, duration(row.count as f64)),
        false => format!("{} {} times", row.name, thousands(row.count)),
    }];
    match (row.count_share, row.time_share) {
        (Some(count), Some(time)) => words.push(format!("{} of all and {} of the time", percent(count), percent(time))),
        (Some(count), None) => {
            words.push(format!("{} of {}", percent(count), row.share_of.as_deref().unwrap_or("all")));
        }
        _ => {}
    }
    words.extend(row.mean_ns.map(|ns| format!("{} each", duration(ns))));
    words.extend(row.per_second.map(|per_second| match is_time {
        true => format!("{:.2} CPUs all the time", per_second / 1e9),
        false => format!("{} per second", rate(per_second)),
    }));
    let meaning = hints::meaning(&row.name).map_or(String::new(), |meaning| format!(" ({meaning})"));
    format!("{}{meaning}", words.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use facts::counts::Total;

    #[test]
    fn a_sentence_names_what_takes_most_and_what_it_means() {
        let row = |name: &str, count, time_share, mean_ns| Row {
            name: name.into(),
            count,
            count_share: Some(count as f64 / 1_000.0),
            time_share,
            mean_ns,
            ..Row::default()
        };
        let counted = Counted {
            machine: "L0".into(),
            path: "t".into(),
            by: Counter::PerfKvmStat,
            rows: vec![row("MSR_WRITE", 900, Some(0.1), Some(1_000.0)), row("HLT", 100, Some(0.9), Some(29_410.0))],
            total: None,
            seconds: None,
        };
        let said = sentence(&counted, "");
        assert!(said.starts_with("perf kvm stat counted 1,000 exits (t): HLT 100 times, 10.0 % of all and 90.0 % of the time, 29.4 us each (the guest"), "{said}");
        assert!(said.contains("MSR_WRITE 900 times, 90.0 % of all and 10.0 % of the time"), "{said}");
        let cut = Counted { total: Some(Total { count: 2_000, ns: 1e9 }), ..counted };
        let said = sentence(&cut, "");
        assert!(said.contains("counted 2,000 exits") && said.contains("The rows of 1,000 of them"), "{said}");
    }
}
