//! A hog was put in the way of programs that measured: is it named, do the sums close, and does a script come to the same?

use base::figure::{Bin, Drawing, Histogram, Kind};
use base::recording::Recording;
use base::{Cell, Narrow, Span, Table};
use kvmscope_analysis::facts::attribution::{Attributed, FoundBy};
use kvmscope_analysis::facts::budget::{Budget, Judged, Verdict};
use kvmscope_analysis::facts::samples::Source;
use kvmscope_analysis::{Answers, Case, Given};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/hog-samples")
}

fn case(given: Given) -> Case {
    Case::new(kvmscope_analysis::open(Recording::open(&fixture()).unwrap()).unwrap(), given)
}

fn of(case: &Case, source: Source) -> &Attributed {
    case.attributed().iter().find(|one| one.source == source).unwrap()
}

#[test]
fn samples_with_times_name_the_hog_and_their_parts_are_their_lengths() {
    let case = case(Given::default());
    let one = of(&case, Source::Jitterdebugger);
    let FoundBy::Time(error) = one.by else { panic!("{:?}", one.by) };
    assert!(error.most_ns() < 1_000, "both counters were read at once: {error:?}");
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
    assert!(one.sums.samples > 0 && one.over.above_ns > 0, "the usual ones are left out");
    let causes = one.sums.most_first();
    assert_eq!(causes[0].0, "hog", "{causes:?}");
    let explained: u64 = causes.iter().map(|(_, part)| part.total_ns).sum();
    assert_eq!(explained + one.sums.unexplained.total_ns, one.sums.total_ns);
}

#[test]
fn who_made_samples_late_is_a_finding_of_both_programs_and_no_more() {
    let findings = |given: Given| kvmscope_analysis::latency::answer(&case(given)).unwrap().unwrap().section.findings;
    let found = findings(Given::default());
    let [hog] = &found[..] else { panic!("interrupts and compilers took little: {found:?}") };
    assert_eq!((hog.rule, hog.subject.as_str()), ("LAT-TASK", "L0/hog"));
    assert!(hog.title.ends_with("without it the longest would be 173.0 us instead of 4.1 ms"), "{}", hog.title);
    let programs: Vec<&str> =
        hog.evidence.iter().filter_map(|one| one.what.split_once(": ").map(|(program, _)| program)).collect();
    assert_eq!(programs, ["jitterdebugger", "cyclictest"]);
    // What breaks goals, these say.
    assert!(findings(with_budget()).iter().all(|finding| finding.rule != "LAT-TASK"));
}

/// The histogram of a program's samples.
fn by_length(case: &Case, source: Source) -> Histogram {
    let section = kvmscope_analysis::latency::answer(case).unwrap().unwrap().section;
    let title = format!("Samples of {} on L0 by length", source.name());
    let figure = section.figures.into_iter().find(|figure| figure.title == title).unwrap();
    let Drawing::Histogram(drawn) = figure.drawing else { panic!("{title}") };
    drawn
}

#[test]
fn samples_have_the_colour_of_what_took_most_of_them() {
    let case = case(Given::default());
    let text = std::fs::read_to_string(fixture().join("L0/samples/jitterdebugger.csv")).unwrap();
    let us: Vec<u64> = text.lines().map(|line| line.rsplit(';').next().unwrap().parse().unwrap()).collect();
    let drawn = by_length(&case, Source::Jitterdebugger);
    for bin in &drawn.bins {
        let inside = us.iter().filter(|us| (bin.from..bin.to).contains(&(**us as f64 * 1e3))).count() as u64;
        assert_eq!(bin.total(), inside, "no sample is lost by a colour: {bin:?}");
    }
    // The hog spins for milliseconds; without it no sample is as long as a fifth of one, and most are short.
    let is_hogs = |kind: &Kind| kind.hue == "wake_delay" && kind.label.contains("(hog");
    let hogs = drawn.kinds.iter().position(is_hogs).unwrap_or_else(|| panic!("{:?}", drawn.kinds));
    let long = drawn.bins.iter().filter(|bin| bin.from >= 500e3);
    assert!(long.clone().count() > 2 && long.clone().all(|bin| bin.counts[hogs] == bin.total()), "{drawn:?}");
    let short = drawn.bins.iter().filter(|bin| bin.to <= 100e3);
    assert!(short.clone().all(|bin| bin.counts[hogs] == 0), "{drawn:?}");

    let ranked = by_length(&case, Source::Cyclictest);
    let asked: u64 = of(&case, Source::Cyclictest).sums.samples;
    let plain: u64 = ranked.bins.iter().map(|bin| bin.counts[0]).sum();
    assert_eq!(ranked.kinds[0].label, "samples whose cause was not looked for");
    let total: u64 = ranked.bins.iter().map(Bin::total).sum();
    // Of each thread the longest one that is not asked for is looked at: it may be the longest of all without a cause of the others.
    assert!((asked..=asked + 2).contains(&(total - plain)), "{asked} asked, {plain} of {total} not");
    assert!(ranked.kinds.iter().any(is_hogs), "{:?}", ranked.kinds);
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

/// Two limits for timers, the second one of a share of what the hog took.
const BUDGET: &str = r#"schema = "kvmscope.budget/1"
name = "two"
[[goal]]
id = "mean"
metric = "timer_latency"
stat = "mean"
op = "<="
limit = "100us"
[[goal]]
id = "max"
metric = "timer_latency"
stat = "max"
op = "<="
limit = "2ms"
"#;

fn with_budget() -> Given {
    Given { budget: Some(Budget::read("two.toml", BUDGET).unwrap()), ..Given::default() }
}

/// The lengths that jitterdebugger printed, in ns.
fn printed() -> Vec<u64> {
    let text = std::fs::read_to_string(fixture().join("L0/samples/jitterdebugger.csv")).unwrap();
    text.lines().map(|line| line.rsplit(';').next().unwrap().parse::<u64>().unwrap() * 1_000).collect()
}

#[test]
fn with_a_budget_only_samples_over_each_limit_are_counted() {
    let case = case(with_budget());
    let all: Vec<&Attributed> = case.attributed().iter().filter(|one| one.source == Source::Jitterdebugger).collect();
    assert_eq!(all.iter().map(|one| one.over.limit_ns).collect::<Vec<_>>(), [Some(100_000), Some(2_000_000)]);
    for one in &all {
        let over: Vec<u64> = printed().into_iter().filter(|ns| Some(*ns) > one.over.limit_ns).collect();
        assert!(!over.is_empty());
        assert_eq!((one.sums.samples, one.sums.total_ns), (over.len() as u64, over.iter().sum::<u64>()));
        let explained: u64 = one.sums.causes.values().map(|part| part.total_ns).sum();
        assert_eq!(explained + one.sums.unexplained.total_ns, one.sums.total_ns);
        assert_eq!(one.sums.most_first()[0].0, "hog");
        assert_eq!(one.sums.max_ns(), printed().into_iter().max().unwrap());
    }
    let whole = self::case(Given::default());
    let without = of(&whole, Source::Jitterdebugger).sums.max_without_ns("hog");
    assert!(
        all.iter().all(|one| one.sums.max_without_ns("hog") == without),
        "shorter samples count for that: {without}"
    );
    let answers = Answers::of(&case);
    let rows = table(&answers, "attributed").rows();
    let limits: BTreeSet<u64> = rows
        .filter(|row| row.text("cause") == Some("unexplained") && row.text("source") == Some("jitterdebugger"))
        .map(|row| row.number("limit_ns").unwrap() as u64)
        .collect();
    assert_eq!(limits, BTreeSet::from([100_000, 2_000_000]));
    let summary = &answers.sections.iter().find(|section| section.id == "latency").unwrap().summary;
    assert!(
        summary.contains("over 2 ms of jitterdebugger add up to") && summary.contains("made late: hog "),
        "{summary}"
    );
    assert!(summary.contains("Without hog the longest would be"), "{summary}");
}

#[test]
fn by_rank_too_only_samples_over_each_limit_are_counted() {
    let case = case(with_budget());
    let samples =
        &case.results().list.iter().find(|file| file.samples[0].source == Source::Cyclictest).unwrap().samples;
    let limits: Vec<_> = case.attributed().iter().filter(|one| one.source == Source::Cyclictest).collect();
    assert_eq!(limits.len(), 2);
    for one in limits {
        let (low, high) = samples
            .iter()
            .map(|thread| thread.over(one.over.above_ns))
            .fold((0, 0), |sum, over| (sum.0 + over.0, sum.1 + over.1));
        assert!((low..=high).contains(&one.sums.samples), "{low} to {high}: {}", one.sums.samples);
        assert_eq!(one.by.clock_error(), None, "ranks need no clock");
    }
}

#[test]
fn a_joined_answer_states_its_clock_error_and_a_large_one_decides_nothing() {
    let judged = |error_ns: u64| {
        let mut recording = Recording::open(&fixture()).unwrap();
        recording.clock_pairs.iter_mut().for_each(|pair| pair.error_ns = error_ns);
        let case = Case::new(kvmscope_analysis::open(recording).unwrap(), with_budget());
        let of = |file: &str| {
            let is_max =
                |judged: &&Judged| judged.goal == 1 && judged.whose.file.as_ref().is_some_and(|own| own.contains(file));
            let judged = case.judged().iter().filter(is_max).min_by_key(|judged| judged.judgement.verdict).unwrap();
            (judged.judgement.verdict, judged.judgement.clock_error.map(|error| (error.low_ns, error.high_ns)))
        };
        (of("jitterdebugger"), of("cyclictest"), Answers::of(&case))
    };
    let (joined, alone, _) = judged(500_000);
    assert_eq!(joined, (Verdict::Fail, Some((500_000, 500_000))));
    assert_eq!(alone, (Verdict::Fail, None));
    let (joined, alone, answers) = judged(500_001);
    assert_eq!(joined.0, Verdict::Inconclusive, "more than a quarter of 2 ms");
    assert_eq!(alone, (Verdict::Fail, None), "a file without times is not joined by a clock");
    let is_joined = |row: &base::table::Row<'_>| row.text("file").is_some_and(|file| file.contains("jitterdebugger"));
    let goals: Vec<_> = table(&answers, "goals").rows().filter(is_joined).collect();
    assert!(goals.iter().all(|row| row.number("clock_error_low_ns") == Some(500_001.0)));
    let why = goals.iter().filter_map(|row| row.text("why")).collect::<String>();
    assert!(why.contains("clocks are off by up to 500.001 us, and 500 us are allowed"), "{why}");
    assert!(
        table(&answers, "attributed")
            .rows()
            .filter(is_joined)
            .all(|row| row.number("clock_error_high_ns") == Some(500_001.0))
    );
}
