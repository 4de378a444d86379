//! The pictures of a comparison draw what the report of each side has, to the last nanosecond and sample.

use base::figure::{Curves, Drawing, Figure, Histogram};
use base::recording::{Named, Recording};
use base::table::Row;
use base::{Cell, Section};
use kvmscope_analysis::facts::budget::built_in;
use kvmscope_analysis::{Case, Given, Input, compare, latency};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").join(name)
}

fn trace(name: &str) -> Recording {
    Recording::open(&fixture(name)).unwrap()
}

fn samples(name: &str) -> Recording {
    Recording::of_files(&[Named::at_l0(fixture("samples").join(name))], None).unwrap()
}

fn case(recording: Recording, budget: Option<&str>) -> Case {
    let given = Given { budget: budget.and_then(built_in), ..Given::default() };
    Case::new(Input::open(recording).unwrap(), given)
}

fn compared(before: Recording, after: Recording, budget: Option<&str>) -> Section {
    let case = case(after, budget).compared_with(self::case(before, budget));
    compare::answer(&case).unwrap().unwrap().section
}

fn reported(recording: Recording, budget: Option<&str>) -> Section {
    latency::answer(&case(recording, budget)).unwrap().unwrap().section
}

fn figure<'s>(section: &'s Section, id: &str) -> &'s Figure {
    section.figures.iter().find(|figure| figure.id == id).unwrap_or_else(|| panic!("no figure {id}"))
}

fn curves<'s>(section: &'s Section, id: &str) -> &'s Curves {
    let Drawing::Curves(drawn) = &figure(section, id).drawing else { panic!("{id} has no curves") };
    drawn
}

fn histogram<'s>(section: &'s Section, id: &str) -> &'s Histogram {
    let Drawing::Histogram(drawn) = &figure(section, id).drawing else { panic!("{id} is no histogram") };
    drawn
}

fn number(row: &Row<'_>, column: &str) -> u64 {
    match row.cell(column) {
        Some(Cell::U64(value)) => *value,
        other => panic!("{column}: {other:?}"),
    }
}

const SIDES: [&str; 2] = ["nested-vmx-shadow-off-hog", "svm-linux"];

#[test]
fn each_side_has_the_worst_windows_of_its_own_report() {
    let section = compared(trace(SIDES[0]), trace(SIDES[1]), None);
    let drawn = &curves(&section, "losses").curves;
    assert_eq!(drawn.iter().map(|curve| curve.label.as_str()).collect::<Vec<_>>(), ["before", "after"]);
    for (curve, name) in drawn.iter().zip(SIDES) {
        let mut worst: BTreeMap<u64, u64> = BTreeMap::new();
        for row in reported(trace(name), None).table("windows").unwrap().rows() {
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
        let vcpus = own.losses().iter().flat_map(|part| &part.vcpus);
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
        section.figures.iter().map(|figure| (figure.id.clone(), figure.in_terminals)).collect()
    };
    let section = compared(trace(SIDES[0]), trace(SIDES[1]), None);
    assert_eq!(shown(&section), [("losses".to_owned(), false), ("pauses".to_owned(), false)]);
    let section = compared(trace(SIDES[0]), trace(SIDES[1]), Some("kvm4nfv-2015"));
    assert_eq!(shown(&section), [("losses".to_owned(), true), ("pauses".to_owned(), true)]);
    let limit = &curves(&section, "losses").limits[0];
    assert_eq!((limit.value, limit.until), (20e3, Some(1e6)));
    let section = compared(samples("cyclictest.json"), samples("oslat.json"), Some("kvm4nfv-2015"));
    assert!(section.figures.is_empty(), "two programs are not compared");
}
