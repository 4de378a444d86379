//! A hog was put in the way of programs that measured: is it named, do the sums close, and does a script come to the same?

use base::recording::Recording;
use base::{Cell, Narrow, Span, Table};
use kvmscope_analysis::facts::attribution::{Attributed, FoundBy};
use kvmscope_analysis::facts::samples::Source;
use kvmscope_analysis::{Answers, Case, Given, Input};
use std::path::{Path, PathBuf};

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/hog-samples")
}

fn case(given: Given) -> Case {
    Case::new(Input::open(Recording::open(&fixture()).unwrap()).unwrap(), given)
}

fn of(case: &Case, source: Source) -> &Attributed {
    case.attributed().iter().find(|one| one.source == source).unwrap()
}

#[test]
fn samples_with_times_name_the_hog_and_their_parts_are_their_lengths() {
    let case = case(Given::default());
    let one = of(&case, Source::Jitterdebugger);
    let FoundBy::Time { error_ns } = one.by else { panic!("{:?}", one.by) };
    assert!(error_ns < 1_000, "both counters were read at once: {error_ns} ns");
    let text = std::fs::read_to_string(fixture().join("L0/samples/jitterdebugger.csv")).unwrap();
    let us: u64 = text.lines().map(|line| line.rsplit(';').next().unwrap().parse::<u64>().unwrap()).sum();
    let causes = one.sums.most_first();
    let explained: u64 = causes.iter().map(|(_, part)| part.total_ns).sum();
    assert_eq!((one.sums.samples, one.sums.total_ns), (text.lines().count() as u64, us * 1_000));
    assert_eq!(explained + one.sums.unexplained.total_ns, one.sums.total_ns);
    assert_eq!(causes[0].0, "hog", "{causes:?}");
    assert!(one.sums.unexplained.total_ns > 0, "no attribution is complete");
    assert_eq!(one.sums.outside, 0);
    assert!(causes.iter().all(|(_, part)| part.count <= one.sums.samples), "a sample counts once: {causes:?}");
}

#[test]
fn samples_without_times_name_the_hog_by_their_rank() {
    let case = case(Given::default());
    let one = of(&case, Source::Cyclictest);
    assert_eq!(one.by, FoundBy::Rank);
    assert!(one.sums.samples > 0 && one.above_ns > 0, "the usual ones are left out");
    let causes = one.sums.most_first();
    assert_eq!(causes[0].0, "hog", "{causes:?}");
    let explained: u64 = causes.iter().map(|(_, part)| part.total_ns).sum();
    assert_eq!(explained + one.sums.unexplained.total_ns, one.sums.total_ns);
}

fn table<'a>(answers: &'a Answers, name: &str) -> &'a Table {
    answers.sections.iter().find(|section| section.id == "latency").unwrap().table(name).unwrap()
}

#[test]
fn a_window_holds_the_samples_that_ended_in_it_and_files_without_times_stay_whole() {
    let count = |given: Given, source: &str| -> u64 {
        let answers = Answers::of(&case(given));
        let rows = table(&answers, "samples").rows().filter(|row| row.text("source") == Some(source));
        rows.map(|row| row.number("count").unwrap() as u64).sum()
    };
    let window = |from_ns, to_ns| {
        let narrow = Narrow { window: Some(Span { from_ns, to_ns }), ..Narrow::default() };
        Given { narrow, ..Given::default() }
    };
    let middle_ns = 300_000_000;
    let (early, late) = (window(0, middle_ns), window(middle_ns, u64::MAX));
    let all = count(Given::default(), "jitterdebugger");
    let parts = [count(early.clone(), "jitterdebugger"), count(late, "jitterdebugger")];
    assert!(parts.iter().all(|part| *part > 0), "{parts:?}");
    assert_eq!(parts.iter().sum::<u64>(), all);
    assert_eq!(count(early, "cyclictest"), count(Given::default(), "cyclictest"));
}

#[test]
fn the_table_has_the_unexplained_rest_and_what_would_be_without_the_hog() {
    let answers = Answers::of(&case(Given::default()));
    let rows: Vec<_> = table(&answers, "attributed").rows().collect();
    let of = |cause: &str| {
        let named = |row: &&base::table::Row<'_>| {
            row.text("cause") == Some(cause) && row.text("source") == Some("jitterdebugger")
        };
        *rows.iter().find(named).unwrap_or_else(|| panic!("no row {cause}"))
    };
    let (hog, rest) = (of("hog"), of("unexplained"));
    assert!(hog.number("max_without_ns") < rest.number("max_without_ns"), "without it the maximum is lower");
    assert!(matches!(hog.cell("clock_error_ns"), Some(Cell::U64(_))));
}
