//! The pictures of a comparison draw what the report of each side has, to the last nanosecond and sample.

use crate::fixtures::{figure, fixture, number};
use base::figure::{Curves, Drawing, DumbbellGroup, Histogram, Mark, Sure};
use base::recording::{Named, Recording};
use base::table::Row;
use base::{Cell, Section};
use kvmscope_analysis::facts::budget::built_in;
use kvmscope_analysis::{Case, Given, compare, latency};
use std::collections::BTreeMap;

fn trace(name: &str) -> Recording {
    Recording::open(&fixture(name)).unwrap()
}

fn samples(name: &str) -> Recording {
    Recording::of_files(&[Named::at_l0(fixture("samples").join(name))], None).unwrap()
}

fn case(recording: Recording, budget: Option<&str>) -> Case {
    let given = Given { budget: budget.and_then(built_in), ..Given::default() };
    Case::new(kvmscope_analysis::open(recording).unwrap(), given)
}

fn compared(before: Recording, after: Recording, budget: Option<&str>) -> Section {
    let case = case(after, budget).compared_with(self::case(before, budget));
    compare::answer(&case).unwrap().unwrap().section
}

fn reported(recording: Recording, budget: Option<&str>) -> Section {
    latency::answer(&case(recording, budget)).unwrap().unwrap().section
}

fn curves<'s>(section: &'s Section, id: &str) -> &'s Curves {
    let Drawing::Curves(drawn) = &figure(section, id).drawing else { panic!("{id} has no curves") };
    drawn
}

fn histogram<'s>(section: &'s Section, id: &str) -> &'s Histogram {
    let Drawing::Histogram(drawn) = &figure(section, id).drawing else { panic!("{id} is no histogram") };
    drawn
}

const SIDES: [&str; 2] = ["nested-vmx-shadow-off-hog", "svm-linux"];

#[test]
fn each_side_has_the_worst_windows_of_its_own_report() {
    let section = compared(trace(SIDES[0]), trace(SIDES[1]), None);
    let drawn = &curves(&section, "losses").curves;
    assert_eq!(drawn.iter().map(|curve| curve.label.as_str()).collect::<Vec<_>>(), ["before", "after"]);
    for (curve, name) in drawn.iter().zip(SIDES) {
        let mut worst: BTreeMap<u64, u64> = BTreeMap::new();
        let report = reported(trace(name), None);
        let of_host = |row: &base::table::Row<'_>| row.cell("machine") == Some(&base::Cell::from("L0"));
        for row in report.table("windows").unwrap().rows().filter(of_host) {
            let most = worst.entry(number(&row, "window_ns")).or_default();
            *most = number(&row, "max_loss_ns").max(*most);
        }
        let told: Vec<(f64, f64)> = worst.into_iter().map(|(at, loss)| (at as f64, loss as f64)).collect();
        assert!(told.len() > 10 && told.last().unwrap().1 > 0.0, "{name}: {told:?}");
        assert_eq!(curve.points, told, "{name}");
    }
}

#[test]
fn each_side_has_the_rate_of_its_own_losses() {
    let section = compared(trace(SIDES[0]), trace(SIDES[1]), Some("kvm4nfv-2015"));
    for (curve, name) in curves(&section, "pauses").curves.iter().zip(SIDES) {
        let report = reported(trace(name), Some("kvm4nfv-2015"));
        let bins = &histogram(&report, "pauses").bins;
        let longer = |than: f64| bins.iter().filter(|bin| bin.from > than).map(base::figure::Bin::total).sum::<u64>();
        let own = case(trace(name), None);
        // What L1 saw of the same time is drawn nowhere.
        let parts = own.ledger().parts.iter().zip(own.losses());
        let vcpus = parts.filter(|(part, _)| part.level == base::Level::L0).flat_map(|(_, part)| &part.vcpus);
        let known = vcpus.map(|one| one.span.length_ns() - one.unknown.iter().map(base::Span::length_ns).sum::<u64>());
        let seconds = known.sum::<u64>() as f64 / 1e9;
        let (all, over) = (longer(-1.0), longer(10_000.0));
        let at = |length: f64| curve.points.iter().rfind(|point| point.0 <= length).unwrap_or(&curve.points[0]).1;
        assert!(
            (curve.points[0].1 * seconds - all as f64).abs() < 0.5 && over > 0,
            "{name}: {all}, {over} over, {seconds} s"
        );
        assert!((at(10_000.0) * seconds - over as f64).abs() < 0.5, "{name}: {} of {over}", at(10_000.0) * seconds);
        let falls = |pair: &[(f64, f64)]| pair[0].0 < pair[1].0 && pair[0].1 > pair[1].1;
        assert!(curve.points.windows(2).all(falls), "{name}: {:?}", curve.points);
        assert_eq!(curve.points.last().unwrap().1, 0.0, "{name}: nothing is longer than the longest");
    }
}

#[test]
fn each_side_has_the_percentiles_of_its_own_samples() {
    let names = ["cyclictest-histogram.txt", "kvm4nfv-after.txt"];
    let section = compared(samples(names[0]), samples(names[1]), Some("kvm4nfv-2015"));
    let drawn = curves(&section, "samples-0");
    assert_eq!((drawn.limits.len(), drawn.limits[0].value), (1, 15e3), "the limit on the longest sample");
    assert!(figure(&section, "samples-0").in_terminals);
    let [first, published] = [&drawn.curves[0].points, &drawn.curves[1].points];
    assert_eq!(published, &curves(&reported(samples(names[1]), None), "percentiles-0").curves[0].points);
    assert!(figure(&section, "samples-0").caption.contains("after 79,810,183 samples, the longest 16.0 us"));
    let report = reported(samples(names[0]), None);
    let counts = report.table("samples").unwrap().rows().map(|row| number(&row, "count")).sum::<u64>();
    assert_eq!(first.last().unwrap().0, counts as f64, "all threads together");
}

#[test]
fn only_what_is_held_against_a_limit_is_drawn_in_a_terminal_and_only_what_both_sides_have() {
    let shown = |section: &Section| -> Vec<(String, bool)> {
        let curves = section.figures.iter().filter(|figure| matches!(figure.drawing, Drawing::Curves(_)));
        curves.map(|figure| (figure.id.clone(), figure.in_terminals)).collect()
    };
    let section = compared(trace(SIDES[0]), trace(SIDES[1]), None);
    let ids: Vec<&str> = section.figures.iter().map(|figure| figure.id.as_str()).collect();
    assert_eq!(ids, ["dumbbells", "causes", "per-work-0", "lost", "losses", "pauses"], "what changed stands first");
    assert_eq!(shown(&section), [("losses".to_owned(), false), ("pauses".to_owned(), false)]);
    let section = compared(trace(SIDES[0]), trace(SIDES[1]), Some("kvm4nfv-2015"));
    assert_eq!(shown(&section), [("losses".to_owned(), true), ("pauses".to_owned(), true)]);
    let limit = &curves(&section, "losses").limits[0];
    assert_eq!((limit.value, limit.until), (20e3, Some(1e6)));
    let section = compared(samples("cyclictest.json"), samples("oslat.json"), Some("kvm4nfv-2015"));
    assert!(section.figures.is_empty(), "two programs are not compared");
}

fn real(row: &Row<'_>, column: &str) -> f64 {
    match row.cell(column) {
        Some(Cell::F64(value)) => *value,
        other => panic!("{column}: {other:?}"),
    }
}

fn dumbbells(section: &Section) -> &[DumbbellGroup] {
    let Drawing::Dumbbells(groups) = &figure(section, "dumbbells").drawing else { panic!("no dumbbells") };
    groups
}

#[test]
fn pairs_are_rows_of_the_table_and_one_recording_a_side_never_says_that_it_changed() {
    let section = compared(trace(SIDES[0]), trace(SIDES[1]), None);
    let change = section.table("change").unwrap();
    let rows: Vec<(f64, f64)> = change.rows().map(|row| (real(&row, "before"), real(&row, "after"))).collect();
    let drawn: Vec<_> = dumbbells(&section).iter().flat_map(|group| &group.rows).collect();
    assert!(drawn.len() > 10, "{} pairs", drawn.len());
    for pair in drawn {
        assert!(rows.contains(&(pair.before, pair.after)), "{pair:?}");
        assert_ne!(pair.sure, Sure::Changed, "two runs say nothing of others: {pair:?}");
        assert!(pair.interval.is_none_or(|(low, high)| low <= pair.after && pair.after <= high), "{pair:?}");
    }
}

#[test]
fn what_the_emulator_counted_is_real_and_how_long_it_took_is_not() {
    let section = compared(trace("nested-vmx-shadow-off-hog"), trace("nested-vmx-shadow-on"), None);
    for group in dumbbells(&section) {
        let expected =
            if group.title.starts_with("Exits of L1 that one exit") { Mark::Measured } else { Mark::Emulated };
        assert!(group.rows.iter().all(|row| row.mark == expected), "{}", group.title);
    }
    let first = section.summary.split("\n\n").next().unwrap();
    assert!(
        first.starts_with("One exit of L2 for CPUID causes 3 exits of L1, down from 15. Of emulated time: "),
        "{first}"
    );
}

/// Each step begins where the one above ends, and the last one ends at the sum after.
#[test]
fn steps_lead_from_the_sum_before_to_the_sum_after() {
    let section = compared(trace("nested-vmx-shadow-off-hog"), trace("nested-vmx-shadow-on"), None);
    for (id, table, [before, after]) in [
        ("causes", "causes", ["before", "after"]),
        ("per-work-0", "per_work", ["before_ns", "after_ns"]),
        ("lost", "losses", ["before", "after"]),
    ] {
        let Drawing::Spans(groups) = &figure(&section, id).drawing else { panic!("{id} has no steps") };
        let rows = &groups[0].rows;
        let all = section.table(table).unwrap().rows().next().unwrap();
        let ends = |row: &base::figure::SpanRow| (row.stretches[0].from, row.stretches[0].to.unwrap());
        let near = |one: f64, two: f64| (one - two).abs() <= 1e-9 * one.abs().max(two.abs()).max(1e-9);
        let mut at = ends(&rows[0]).1;
        assert!(near(at, real(&all, before)), "{id}");
        for row in &rows[1..rows.len() - 1] {
            let (from, to) = ends(row);
            // What rounds to nothing has no sign in words.
            let begins = match row.value.chars().next() {
                Some('-') => near(at, to),
                Some('+') => near(at, from),
                _ => near(at, from) || near(at, to),
            };
            assert!(begins, "{id}: {row:?} begins at {at}");
            at = if near(at, from) { to } else { from };
        }
        assert!(near(at, real(&all, after)) && near(ends(rows.last().unwrap()).1, at), "{id} ends at {at}");
    }
}
