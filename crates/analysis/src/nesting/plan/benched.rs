//! What did `bench exits` measure of this host? The two points that the model starts from.
//!
//! In: table `exits` of a Section `nesting`. Out: c1, what nesting adds, and what other exits cost at L1.
//! ```text
//! bench at L0, whose tiny L1 ran an L2    cpuid of the guest, l2_cpuid     D is a lower bound: that L1 does next to nothing
//! bench in L1                             cpuid here, cpuid of the guest   D as real hypervisors have it
//! ```
//! A CPUID that this KVM did not see (0 exits an operation) was answered by somebody else and is no point of either.

use super::inputs::Given;
use super::model::Estimate;
use base::{Cell, Section, Table};

/// From this on an operation exited each time.
const ONE_EXIT: f64 = 0.5;

/// Tests of `bench exits` and the reasons, as table `exits` of `flow` calls them, whose cost at L1 they are.
const TESTS: &[(&str, &[&str])] = &[
    ("inl_from_kernel", &["IO", "IOIO"]),
    ("rd_tsc_adjust_msr", &["MSR"]),
    ("vmcall", &["VMCALL", "VMMCALL"]),
    ("touch_4k", &["EPT_VIOLATION", "NPF"]),
    ("ud2", &["EXCEPTION_NMI", "UD_EXCP"]),
    ("tscdeadline_immed", &["TSC_DEADLINE"]),
];

/// Adds what was measured to what the user gave; what the user gave stays. The text says where D comes from.
pub fn add(given: &mut Given, section: &Section) -> Option<&'static str> {
    let table = section.table("exits")?;
    let guest =
        |name: &str| row(table, name, "guest").filter(|at| number(table, *at, "exits_per_op") >= Some(ONE_EXIT));
    let l1 = guest("cpuid").and_then(|at| cost(table, at));
    let (c1, c2, how) = match guest("l2_cpuid").and_then(|at| cost(table, at)) {
        Some(c2) => (l1?, c2, "measured with a minimal L1, which does next to nothing: a lower bound"),
        None => {
            let below = row(table, "cpuid", "here").filter(|at| text(table, *at, "handled_by") == "outer level");
            (below.and_then(|at| cost(table, at))?, l1?, "measured in L1 and in its guest")
        }
    };
    if guest("l2_cpuid").is_some() {
        let measured = |(test, reasons): &(&str, &'static [&'static str])| Some((*reasons, cost(table, guest(test)?)?));
        for (reasons, cost) in TESTS.iter().filter_map(measured) {
            let new = reasons.iter().filter(|reason| given.costs.iter().all(|(known, _)| known != **reason));
            let new: Vec<_> = new.map(|reason| ((*reason).to_owned(), cost)).collect();
            given.costs.extend(new);
        }
    }
    given.c1.get_or_insert(c1);
    given.d.get_or_insert(c2.less(c1));
    Some(how)
}

fn row(table: &Table, name: &str, place: &str) -> Option<usize> {
    (0..table.rows.len()).find(|at| text(table, *at, "name") == name && text(table, *at, "where") == place)
}

/// The median, with the interval between launches where there were several.
fn cost(table: &Table, at: usize) -> Option<Estimate> {
    let mid = number(table, at, "p50_cycles")?;
    let end = |name: &str| number(table, at, name).unwrap_or(mid);
    Some(Estimate { low: end("p50_low_cycles").min(mid), mid, high: end("p50_high_cycles").max(mid) })
}

fn number(table: &Table, at: usize, name: &str) -> Option<f64> {
    match table.cell(at, name)? {
        Cell::F64(value) => Some(*value),
        Cell::U64(value) => Some(*value as f64),
        _ => None,
    }
}

fn text<'a>(table: &'a Table, at: usize, name: &str) -> &'a str {
    if let Some(Cell::Text(text)) = table.cell(at, name) { text } else { "" }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{Column, ColumnType};

    fn section(rows: &[(&str, &str, f64, f64, &str)]) -> Section {
        let columns = vec![
            Column::key("name"),
            Column::key("where"),
            Column::value("p50_cycles", "cycles", ColumnType::F64),
            Column::value("exits_per_op", "count", ColumnType::F64),
            Column::value("handled_by", "", ColumnType::Text),
        ];
        let mut table = Table::new("exits", columns);
        for (name, place, cycles, exits, by) in rows {
            table.push(vec![(*name).into(), (*place).into(), (*cycles).into(), (*exits).into(), (*by).into()]);
        }
        Section { tables: vec![table], ..Section::new("nesting", "?") }
    }

    #[test]
    fn two_points_come_from_a_tiny_l1_or_from_a_bench_inside_l1() {
        let mut given = Given::default();
        let tiny = section(&[
            ("cpuid", "here", 120.0, 0.0, "native"),
            ("cpuid", "guest", 1_200.0, 1.0, "kernel"),
            ("l2_cpuid", "guest", 9_200.0, 5.0, "kernel"),
            ("inl_from_kernel", "guest", 1_900.0, 1.0, "kernel"),
        ]);
        assert!(add(&mut given, &tiny).unwrap().contains("lower bound"));
        assert_eq!((given.c1.unwrap().mid, given.d.unwrap().mid), (1_200.0, 8_000.0));
        assert_eq!(given.costs[0], ("IO".to_owned(), Estimate::exact(1_900.0)));
        let mut inside = Given { c1: Some(Estimate::exact(1_000.0)), ..Given::default() };
        let l1 =
            section(&[("cpuid", "here", 1_350.0, 0.0, "outer level"), ("cpuid", "guest", 20_700.0, 1.0, "kernel")]);
        assert!(add(&mut inside, &l1).is_some());
        assert_eq!((inside.c1.unwrap().mid, inside.d.unwrap().mid), (1_000.0, 19_350.0));
    }

    #[test]
    fn an_exit_that_somebody_else_answered_is_no_point() {
        let mut given = Given::default();
        let pvm =
            section(&[("cpuid", "here", 2_600.0, 0.0, "outer level"), ("cpuid", "guest", 2_675.0, 0.0, "outer level")]);
        assert_eq!((add(&mut given, &pvm), given), (None, Given::default()));
    }
}
