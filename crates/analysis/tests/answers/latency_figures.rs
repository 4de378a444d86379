//! The pictures of section `latency` draw what its tables have, to the last nanosecond and sample.

use crate::fixtures::{figure, fixture, number};
use base::figure::{BarGroup, Drawing, Figure, Heat, Histogram};
use base::recording::{Named, Recording};
use base::{Cell, Section};
use kvmscope_analysis::facts::budget::built_in;
use kvmscope_analysis::{Case, Given, latency};

fn section(recording: Recording, budget: Option<&str>) -> Section {
    let given = Given { budget: budget.and_then(built_in), ..Given::default() };
    latency::answer(&Case::new(kvmscope_analysis::open(recording).unwrap(), given)).unwrap().unwrap().section
}

fn of_traces(name: &str, budget: Option<&str>) -> Section {
    section(Recording::open(&fixture(name)).unwrap(), budget)
}

fn of_samples(name: &str, budget: Option<&str>) -> Section {
    let file = fixture("samples").join(name);
    section(Recording::of_files(&[Named::at_l0(file)], None).unwrap(), budget)
}

fn histogram(figure: &Figure) -> &Histogram {
    let Drawing::Histogram(drawn) = &figure.drawing else { panic!("{figure:?}") };
    drawn
}

fn heat(figure: &Figure) -> &Heat {
    let Drawing::Heat(drawn) = &figure.drawing else { panic!("{figure:?}") };
    drawn
}

fn bars(figure: &Figure) -> &[BarGroup] {
    let Drawing::Bars(groups) = &figure.drawing else { panic!("{figure:?}") };
    groups
}

const TRACES: [&str; 4] = ["nested-vmx-shadow-off-hog", "svm-linux", "vmx-linux-shadow-on", "nested-svm-toy"];

#[test]
fn pictures_of_losses_sum_to_what_the_tables_have() {
    for name in TRACES {
        let section = of_traces(name, None);
        // What L1 saw of the same time is in the tables and in no picture.
        let of_host = |row: &base::table::Row<'_>| row.cell("machine") == Some(&Cell::from("L0"));
        let sum = |table: &str, column: &str| {
            let rows = section.table(table).unwrap().rows().filter(of_host);
            rows.map(|row| number(&row, column)).sum::<u64>()
        };
        let total_ns = sum("culprits", "total_ns") as f64;
        let groups = bars(figure(&section, "culprits"));
        let drawn: f64 = groups.iter().flat_map(|group| &group.bars).map(|bar| bar.value).sum();
        assert_eq!((drawn, groups.iter().map(|group| group.total).sum()), (total_ns, total_ns), "{name}");
        let cells = section.figures.iter().filter(|figure| figure.id.starts_with("over-time")).map(heat);
        let cells: Vec<_> = cells.flat_map(|heat| &heat.rows).flat_map(|row| &row.cells).collect();
        assert_eq!(cells.iter().filter_map(|cell| **cell).sum::<f64>(), total_ns, "{name}: nothing lost is hatched");
        let rows = section.table("definitions").unwrap().rows();
        let losses = rows.filter(|row| row.cell("definition") == Some(&Cell::from("involuntary"))).filter(of_host);
        let losses: u64 = losses.map(|row| number(&row, "count")).sum();
        let bins = &histogram(figure(&section, "pauses")).bins;
        assert_eq!(bins.iter().map(base::figure::Bin::total).sum::<u64>(), losses, "{name}");
        assert!(bins.windows(2).all(|pair| pair[0].to == pair[1].from), "{name}");
        for group in bars(figure(&section, "moments")) {
            let (span, lost) = (group.span.unwrap(), group.bars.iter().map(|bar| bar.value).sum::<f64>());
            assert_eq!(lost, group.total, "{name}");
            let at = section.table("moments").unwrap().rows().filter(|row| number(row, "at_ns") == span.from_ns);
            assert!(at.map(|row| number(&row, "loss_ns")).sum::<u64>() as f64 >= lost, "{name}: a link leads there");
        }
    }
}

#[test]
fn time_of_which_nothing_is_known_is_hatched() {
    let section = of_traces("nested-vmx-shadow-off-hog", None);
    let rows = &heat(figure(&section, "over-time-L0")).rows;
    let known: Vec<bool> = rows[0].cells.iter().map(Option::is_some).collect();
    let (first, last) =
        (known.iter().position(|known| *known).unwrap(), known.iter().rposition(|known| *known).unwrap());
    // The vCPU's first KVM event comes after 34 ms of 638, its last one before the end.
    assert!(first >= 3 && last < 59 && known.len() == 60, "{known:?}");
}

#[test]
fn only_what_is_held_against_a_limit_is_drawn_in_a_terminal() {
    let unasked = |budget| -> Vec<String> {
        let section = of_traces("nested-vmx-shadow-off-hog", budget);
        section.figures.iter().filter(|figure| figure.in_terminals).map(|figure| figure.id.clone()).collect()
    };
    assert_eq!(unasked(None), Vec::<String>::new());
    assert_eq!(unasked(Some("kvm4nfv-2015")), ["losses", "pauses"]);
    let section = of_traces("nested-vmx-shadow-off-hog", Some("kvm4nfv-2015"));
    let Drawing::Curves(curves) = &figure(&section, "losses").drawing else { panic!() };
    let limit = &curves.limits[0];
    assert_eq!((limit.value, limit.until, curves.limits.len()), (20e3, Some(1e6), 1));
    let pauses = histogram(figure(&section, "pauses"));
    assert_eq!((pauses.limits[0].value, pauses.limits.len()), (10e3, 1));
    assert!(pauses.bins.iter().any(|bin| bin.from == 10_001.0), "10 us keep to the limit, 10.001 us break it");
    let over: u64 = pauses.bins.iter().filter(|bin| bin.from > 10e3).map(base::figure::Bin::total).sum();
    assert!(figure(&section, "pauses").caption.contains(&format!("{over} over the limit of 10 us")));
}

/// The histogram that KVM4NFV published: 7 us three times, 8 us 11,757,562 times, ...
#[test]
fn the_published_histogram_is_drawn_as_it_was_published() {
    let section = of_samples("kvm4nfv-after.txt", Some("kvm4nfv-2015"));
    let drawn = histogram(figure(&section, "lengths-0"));
    let bins: Vec<(f64, u64)> = drawn.bins.iter().map(|bin| (bin.from / 1e3, bin.total())).collect();
    let published = [3, 11_757_562, 67_812_652, 159_222, 69_100, 11_004, 379, 207, 49, 5];
    assert_eq!(bins, (7..).map(f64::from).zip(published).collect::<Vec<_>>());
    assert!(figure(&section, "lengths-0").caption.contains("5 to 54 over the limit of 15 us (timer-max)"));
    let Drawing::Curves(curves) = &figure(&section, "percentiles-0").drawing else { panic!() };
    let points = &curves.curves[0].points;
    assert_eq!((points[0], *points.last().unwrap()), ((1.0, 7e3), (79_810_183.0, 16e3)));
    // One in 79,810,183 / 5 is 16 us long, one in 79,810,183 / 54 is 15.
    assert!(
        [(5.0, 16e3), (54.0, 15e3)].iter().all(|(rest, ns)| points.contains(&(79_810_183.0 / rest, *ns))),
        "{points:?}"
    );
    assert!(points.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 <= pair[1].1));
}

#[test]
fn every_sample_of_every_program_is_in_one_bin() {
    for file in std::fs::read_dir(fixture("samples")).unwrap() {
        let name = file.unwrap().file_name().into_string().unwrap();
        if name == "README.md" || name == "pqos.csv" {
            continue;
        }
        for budget in [None, Some("kvm4nfv-2015")] {
            let section = of_samples(&name, budget);
            let Some(figure) = section.figures.iter().find(|figure| figure.id == "lengths-0") else { continue };
            let bins = &histogram(figure).bins;
            // With a budget the table has a row for each limit.
            let mut threads = std::collections::BTreeMap::new();
            for row in section.table("samples").unwrap().rows() {
                threads.insert(format!("{:?}{:?}", row.cell("thread"), row.cell("cpu")), number(&row, "count"));
            }
            let samples: u64 = threads.values().sum();
            assert_eq!(bins.iter().map(base::figure::Bin::total).sum::<u64>(), samples, "{name}");
            assert!(bins.windows(2).all(|pair| pair[0].to == pair[1].from && pair[0].from < pair[0].to), "{name}");
        }
    }
}
