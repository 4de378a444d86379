//! Figures of recorded migrations, against the tables of the same answer.

use base::figure::{Curve, Curves, Drawing, Form, On, Shape, SpanGroup, SpanRow};
use base::recording::Recording;
use base::{Cell, Section};
use kvmscope_analysis::{Answers, Case, Given};
use std::path::Path;

fn section(fixture: &str) -> Section {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").join(fixture);
    let case = Case::new(kvmscope_analysis::open(Recording::open(&path).unwrap()).unwrap(), Given::default());
    Answers::of(&case).sections.into_iter().find(|section| section.id == "migration").unwrap()
}

fn drawing<'s>(section: &'s Section, id: &str) -> &'s Drawing {
    &section.figures.iter().find(|figure| figure.id == id).unwrap_or_else(|| panic!("no figure {id}")).drawing
}

fn curves<'s>(section: &'s Section, id: &str) -> &'s Curves {
    let Drawing::Curves(curves) = drawing(section, id) else { panic!("{id} has curves") };
    curves
}

fn spans<'s>(section: &'s Section, id: &str) -> &'s [SpanGroup] {
    let Drawing::Spans(groups) = drawing(section, id) else { panic!("{id} has stretches") };
    groups
}

fn number(cell: Option<&Cell>) -> Option<f64> {
    match cell? {
        Cell::U64(value) => Some(*value as f64),
        Cell::I64(value) => Some(*value as f64),
        Cell::F64(value) => Some(*value),
        _ => None,
    }
}

/// Numbers of these columns, for each row of a run.
fn rows<const N: usize>(section: &Section, table: &str, run: u64, columns: [&str; N]) -> Vec<[Option<f64>; N]> {
    let table = section.table(table).unwrap();
    let of_run = (0..table.rows.len()).filter(|row| table.cell(*row, "run") == Some(&Cell::U64(run)));
    of_run.map(|row| columns.map(|column| number(table.cell(row, column)))).collect()
}

fn of_run(curves: &Curves, run: u64) -> &Curve {
    curves.curves.iter().find(|curve| curve.label == format!("run {run}")).unwrap()
}

fn length(row: &SpanRow) -> f64 {
    row.stretches.iter().map(|one| one.to.unwrap() - one.from).sum()
}

#[test]
fn steps_are_what_passes_left_and_the_limit_is_that_of_the_session() {
    let section = section("migrate-tcg");
    let drawn = curves(&section, "passes");
    assert_eq!(drawn.curves.len(), 3);
    for run in 0..3 {
        let passes = rows(&section, "passes", run, ["start_ns", "end_ns", "pages", "zero_pages", "dirty_pages"]);
        let [start, _, pages, zeros, _] = passes[0];
        let mut expected = vec![(start.unwrap(), pages.unwrap() + zeros.unwrap())];
        let left = passes.iter().map(|[_, end, .., dirty]| (end.unwrap(), dirty.unwrap()));
        // A logarithm has no place for nothing.
        expected.extend(left.filter(|(_, dirty)| *dirty > 0.0));
        assert_eq!(of_run(drawn, run).points, expected, "run {run}");
        assert!(expected.len() > 2 && expected[0].1 > 65_000.0, "{expected:?}");
    }
    // 50 ms at 200 MB/s, as the source was told.
    let [limit] = &drawn.limits[..] else { panic!("one limit for all runs: {:?}", drawn.limits) };
    assert_eq!((limit.on, limit.value), (On::Y, (0.05 * 200e6 / 4_104.0_f64).round()));
}

/// Definitions of dark time, as the table and the picture call them.
const DEFINITIONS: [(&str, &str); 5] = [
    ("vmm_reported", "QEMU's own account"),
    ("vmm_events", "QEMU's events"),
    ("vmm_checkpoints", "QEMU's trace"),
    ("guest", "the guest's heartbeat"),
    ("net", "the network"),
];

#[test]
fn bars_of_dark_time_are_as_long_as_their_rows_and_what_is_not_known_has_none() {
    let section = section("migrate-tcg");
    let groups = spans(&section, "dark");
    assert_eq!(groups.len(), 3);
    let table = section.table("downtimes").unwrap();
    for (run, group) in groups.iter().enumerate() {
        let labels: Vec<&str> = group.rows.iter().map(|row| row.label.as_str()).collect();
        assert_eq!(labels, DEFINITIONS.map(|(_, label)| label));
        for (row, (definition, _)) in group.rows.iter().zip(DEFINITIONS) {
            let is_row = |at: &usize| {
                table.cell(*at, "run") == Some(&Cell::U64(run as u64))
                    && table.cell(*at, "definition") == Some(&Cell::from(definition))
            };
            let value = (0..table.rows.len()).find(is_row).and_then(|at| number(table.cell(at, "value_ns")));
            match value {
                Some(value) => assert_eq!(length(row), value, "{row:?}"),
                None => assert!(row.stretches.is_empty() && row.value == "-" && !row.note.is_empty(), "{row:?}"),
            }
        }
    }
}

#[test]
fn devices_take_as_long_as_their_side_and_stand_where_they_were() {
    let section = section("migrate-logs");
    let [group] = spans(&section, "dark") else { panic!("one run") };
    let table = section.table("devices").unwrap();
    for side in ["source", "target"] {
        let of_side: Vec<usize> =
            (0..table.rows.len()).filter(|row| table.cell(*row, "side") == Some(&Cell::from(side))).collect();
        let total: f64 = of_side.iter().filter_map(|row| number(table.cell(*row, "total_ns"))).sum();
        let drawn: Vec<&SpanRow> = group.rows.iter().filter(|row| row.label.starts_with(side)).collect();
        assert_eq!(drawn.iter().map(|row| length(row)).sum::<f64>(), total, "{side}");
        let rng = drawn.iter().find(|row| row.label == format!("{side} virtio-rng")).unwrap();
        let own =
            of_side.iter().find(|row| table.cell(**row, "device") == Some(&Cell::from("0000:00:02.0/virtio-rng")));
        assert_eq!(Some(length(rng)), number(table.cell(*own.unwrap(), "total_ns")));
        // One behind the other: what a side did takes no time twice.
        let mut stretches: Vec<(f64, f64)> =
            drawn.iter().flat_map(|row| &row.stretches).map(|one| (one.from, one.to.unwrap())).collect();
        stretches.sort_by(|a, b| a.0.total_cmp(&b.0));
        assert!(stretches.windows(2).all(|pair| pair[0].1 <= pair[1].0), "{side}");
    }
    let begins = |label: &str| group.rows.iter().find(|row| row.label == label).unwrap().stretches[0].from;
    assert!(
        begins("source cpu") < begins("source virtio-net") && begins("source virtio-rng") < begins("target virtio-rng")
    );
    assert_eq!(begins("QEMU's trace"), 0.0);
}

#[test]
fn work_is_the_rate_of_each_phase_below_that_of_before() {
    let section = section("migrate-tcg");
    let drawn = curves(&section, "work");
    let mut most_lost = (0.0, 0);
    for run in 0..3 {
        let phases = rows(&section, "work", run, ["start_ns", "beats_per_s", "lost_ns", "end_ns"]);
        let points = &of_run(drawn, run).points;
        assert_eq!(points.len(), phases.len(), "all but `before`, and the end: run {run}");
        for ([start, rate, ..], point) in phases[1..].iter().zip(points) {
            assert_eq!((start.unwrap(), rate.unwrap()), *point, "run {run}");
        }
        assert_eq!(points.last().map(|point| point.0), phases.last().and_then(|phase| phase[3]));
        let lost: f64 = phases[1..phases.len() - 1].iter().filter_map(|phase| phase[2]).sum();
        most_lost = if lost > most_lost.0 { (lost, run) } else { most_lost };
    }
    let before = rows(&section, "work", most_lost.1, ["beats_per_s"])[0][0].unwrap();
    assert_eq!(drawn.curves[0].label, format!("run {}", most_lost.1));
    assert_eq!(drawn.curves[0].form, Form::StepsBelow(before));
    assert_eq!((drawn.limits[0].on, drawn.limits[0].value), (On::Y, before));
}

#[test]
fn intervals_dots_and_crosses_are_those_of_the_residuals() {
    let section = section("migrate-tcg");
    let groups = spans(&section, "said");
    let table = section.table("residuals").unwrap();
    for (group, what) in groups.iter().zip(["total", "downtime", "passes", "bytes"]) {
        assert_eq!(group.rows.len(), 3);
        for (run, row) in group.rows.iter().enumerate() {
            let is_row = |at: &usize| {
                table.cell(*at, "run") == Some(&Cell::U64(run as u64))
                    && table.cell(*at, "what") == Some(&Cell::from(what))
            };
            let at = (0..table.rows.len()).find(is_row).unwrap();
            let value = |column: &str| number(table.cell(at, column));
            let [stretch] = &row.stretches[..] else { panic!("{row:?}") };
            assert_eq!((Some(stretch.from), stretch.to), (value("predicted_low"), value("predicted_high")), "{what}");
            let sign = |shape| row.signs.iter().find(|sign| sign.shape == shape).map(|sign| sign.at);
            assert_eq!((sign(Shape::Dot), sign(Shape::Cross)), (value("actual"), value("naive")), "{what}");
            let is_inside = table.cell(at, "inside") == Some(&Cell::Bool(true));
            assert_eq!(row.note == "inside", is_inside, "{what} of run {run}");
        }
    }
}
