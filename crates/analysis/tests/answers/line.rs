//! Does a window mean the same moments at every level?

use base::recording::{ClockPair, Moment, Named, Recording};
use base::timeline::{LaneId, Timeline};
use base::{Narrow, Span};
use generate::Target;
use generate::scenario::ALL;
use kvmscope_analysis::facts::ledger::begin::{self, Known};
use kvmscope_analysis::facts::ledger::{build, model::PartFlow};
use kvmscope_analysis::facts::timeline::{draw, overview, whole_span};
use kvmscope_analysis::{Case, Given};
use std::ops::ControlFlow;
use std::path::Path;
use trace::format::Endian;
use trace::request::Wanted;
use trace::write::tracedat::Compression;
use trace::{Request, Totals};

fn parts(recording: &Path, window: Option<Span>) -> Vec<PartFlow> {
    let input = kvmscope_analysis::open(Recording::open(recording).unwrap()).unwrap();
    let given = Given { narrow: Narrow { window, ..Narrow::default() }, ..Given::default() };
    build::build(&input, &given, &mut |_, _| {}).parts
}

/// How much later L1's recording begins. Its file gives its clock no scale, so cutting it counts ticks, of which there are 2.25
/// in a nanosecond.
const LATE_L1_TICKS: u64 = 1_000_000_000;
const LATE_L1_NS: u64 = 444_444_444;

/// L0 was recorded from the beginning, L1 only for a while.
fn l1_recorded_late() -> tempfile::TempDir {
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/svm-linux");
    let recording = tempfile::tempdir().unwrap();
    for directory in ["L0", "L1"] {
        std::fs::create_dir(recording.path().join(directory)).unwrap();
    }
    for file in ["recording.json", "L0/trace.dat"] {
        std::fs::copy(fixture.join(file), recording.path().join(file)).unwrap();
    }
    let ticks = Span { from_ns: LATE_L1_TICKS, to_ns: 2 * LATE_L1_TICKS };
    trace::tracedat::cut(&fixture.join("L1/trace.dat"), &recording.path().join("L1/trace.dat"), ticks).unwrap();
    recording
}

/// What L0 reflected in a window is what L1's own trace has there, but for what the edges cut.
#[test]
fn exits_of_l1_in_a_window_are_those_that_l0_handed_up_in_it() {
    let recording = l1_recorded_late();
    let whole = parts(recording.path(), None);
    let (outermost, lies) = whole[1].aligned.as_ref().unwrap().lies.clone().unwrap();
    assert_eq!(outermost, "L0");
    assert!(lies.from_ns.abs_diff(LATE_L1_NS) < LATE_L1_NS / 10 && lies.length_ns() > LATE_NS / 2, "{lies:?}");
    for (from, to) in [(0, 3), (1, 2), (2, 3)] {
        let at = |third: u64| lies.from_ns + lies.length_ns() * third / 3;
        let narrowed = parts(recording.path(), Some(Span { from_ns: at(from), to_ns: at(to) }));
        let handed_up: u64 =
            narrowed[0].vcpus.iter().flat_map(|vcpu| vcpu.sums.chains.values()).map(|sums| sums.count).sum();
        let own: u64 = narrowed[1].vcpus.iter().map(|vcpu| vcpu.sums.exit_count()).sum();
        assert!(own > 10 && own.abs_diff(handed_up) <= 2, "{from} to {to}: {own} of {handed_up}");
    }
    let before = parts(recording.path(), Some(Span { from_ns: 0, to_ns: lies.from_ns }));
    assert_eq!(before[1].vcpus.iter().map(|vcpu| vcpu.sums.exit_count()).sum::<u64>(), 0, "nothing of L1 lies there");
}

/// Times of the exits of trace `place` on the axis, at most so many of them.
fn exits(case: &Case, place: usize, most: usize) -> (Vec<u64>, Totals) {
    let request = Request { events: vec![Wanted { names: vec!["kvm_exit".into()], fields: Vec::new() }] };
    let mut times = Vec::new();
    let totals = case.events(place, &request, |event, at_ns| {
        assert!(event.is_loss() || event.kind == 0);
        times.push(at_ns);
        if times.len() == most { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    (times, totals)
}

#[test]
fn events_of_a_guest_lie_where_its_alignment_puts_its_trace() {
    let recording = l1_recorded_late();
    let case =
        Case::new(kvmscope_analysis::open(Recording::open(recording.path()).unwrap()).unwrap(), Given::default());
    let (_, lies) = case.ledger().parts[1].aligned.as_ref().unwrap().lies.clone().unwrap();
    let (times, totals) = exits(&case, 1, usize::MAX);
    assert!(times.len() > 100 && times.is_sorted());
    assert!(times.iter().all(|at_ns| (lies.from_ns..=lies.to_ns).contains(at_ns)), "{lies:?} {:?}", times.first());
    let (first, last) = totals.span_ns.unwrap();
    assert!(times.last().unwrap() - times[0] <= (last - first) * 101 / 100, "as long by both clocks");
    assert_eq!(exits(&case, 1, 3).0, times[..3], "it ends when nobody wants more");
    let (below, totals) = exits(&case, 0, usize::MAX);
    let (first, last) = totals.span_ns.unwrap();
    assert!(below[0] < lies.from_ns && *below.last().unwrap() <= last - first, "the axis is that of L0");
}

/// How much later the second host began.
const LATE_NS: u64 = 5_000_000;

/// The same happened on two hosts, one after the other; their traces have different clocks, and what was read of all clocks
/// tells how they lie to each other, if `known`.
fn two_hosts(directory: &Path, known: bool) -> Recording {
    const HZ: u64 = 2_000_000_000;
    const REALTIME_NS: u64 = 1_700_000_000_000_000_000;
    let target = Target::TraceDat7 { endian: Endian::Little, long_bytes: 8, compression: Compression::None };
    let story = ALL[0].run(1);
    let mut files = Vec::new();
    for (name, story) in [("a", story.clone()), ("b", story.on_tsc(HZ, true))] {
        std::fs::create_dir(directory.join(name)).unwrap();
        let path = story.write(target, &directory.join(name)).unwrap();
        files.push(Named { level: 0, name: (name == "b").then(|| name.to_owned()), path });
    }
    let mut recording = Recording::of_files(&files, None).unwrap();
    let pair = |machine: &str, at, passed_ns: u64, late_ns: u64, monotonic_ns: u64, error_ns| ClockPair {
        machine: machine.into(),
        at,
        realtime_ns: REALTIME_NS + late_ns + passed_ns,
        monotonic_ns: monotonic_ns + passed_ns,
        tsc: Some(passed_ns * (HZ / 1_000_000_000)),
        error_ns,
        utc_error_ns: None,
    };
    // CLOCK_MONOTONIC of the second is another one; its trace counts the time-stamp counter.
    let pairs = [
        pair("L0", Moment::Begin, 0, 0, 0, 50),
        pair("L0", Moment::End, 1_000_000_000, 0, 0, 40),
        pair("L0-b", Moment::Begin, 0, LATE_NS, 77_000_000_000, 30),
        pair("L0-b", Moment::End, 1_000_000_000, LATE_NS, 77_000_000_000, 35),
    ];
    recording.clock_pairs = pairs.into_iter().filter(|_| known).collect();
    recording
}

fn of(recording: Recording, window: Option<Span>) -> Vec<PartFlow> {
    let given = Given { narrow: Narrow { window, ..Narrow::default() }, ..Given::default() };
    build::build(&kvmscope_analysis::open(recording).unwrap(), &given, &mut |_, _| {}).parts
}

#[test]
fn two_hosts_lie_on_one_axis_by_their_wall_clocks_and_the_error_is_said() {
    let directory = tempfile::tempdir().unwrap();
    let recording = two_hosts(directory.path(), true);
    let whole = of(recording.clone(), None);
    assert_eq!(whole[0].begin.at_ns, 0);
    assert!(whole[1].begin.at_ns.abs_diff(LATE_NS) <= 1, "{:?}", whole[1].begin);
    assert_eq!(whole[1].begin.known, Known::WallClock { first: "L0".into(), error_ns: 85 });
    assert_eq!(begin::sentence(&whole[0]), None);
    let said = begin::sentence(&whole[1]).unwrap();
    assert!(said.contains("begins 5.0 ms after that of L0") && said.contains("read within 85 ns"), "{said}");
    // A window is one of the axis: each host has in it what it did then.
    let exits = |parts: &[PartFlow], place: usize| -> u64 {
        parts[place].vcpus.iter().map(|vcpu| vcpu.sums.exit_count()).sum()
    };
    let half_ns = whole[0].span.length_ns() / 2;
    let from = |from_ns: u64| Some(Span { from_ns, to_ns: from_ns + half_ns });
    let late_ns = whole[1].begin.at_ns;
    let (early, late) = (of(recording.clone(), from(0)), of(recording.clone(), from(late_ns)));
    assert!(exits(&early, 0) > 0 && exits(&early, 0) < exits(&whole, 0), "{}", exits(&early, 0));
    assert_eq!(exits(&late, 1), exits(&early, 0), "the same half of the same story");
    let before = Some(Span { from_ns: 0, to_ns: late_ns });
    assert_eq!(exits(&of(recording, before), 1), 0, "the second had not begun");
}

#[test]
fn two_hosts_are_drawn_on_one_axis() {
    let directory = tempfile::tempdir().unwrap();
    for (known, late_ns) in [(true, LATE_NS), (false, 0)] {
        let own = directory.path().join(known.to_string());
        std::fs::create_dir(&own).unwrap();
        let (input, given) = (kvmscope_analysis::open(two_hosts(&own, known)).unwrap(), Given::default());
        let flow = build::build(&input, &given, &mut |_, _| {});
        let drawn = draw(&input, &given, &flow, &mut |_, _| {});
        let spans: Vec<(String, Span)> = (0..drawn.timeline.lanes().len())
            .filter_map(|lane| {
                let slices = drawn.timeline.slices(LaneId(lane as u32), drawn.timeline.span(), usize::MAX).slices;
                let (first, last) = (slices.first()?, slices.last()?);
                let title = drawn.timeline.lanes()[lane].title.clone();
                Some((title, Span { from_ns: first.span.from_ns, to_ns: last.span.to_ns }))
            })
            .collect();
        let length_ns = flow.parts[0].span.length_ns();
        let ends = |at_ns: u64| spans.iter().filter(|(_, span)| span.to_ns.abs_diff(at_ns) <= 2).count();
        assert!(ends(length_ns) > 0 && ends(length_ns + late_ns) > 0, "{known}: {spans:?}");
        if known {
            assert_eq!(ends(length_ns), ends(length_ns + late_ns), "each lane of one is one of the other: {spans:?}");
        }
        assert_eq!(ends(length_ns) + if known { ends(length_ns + late_ns) } else { 0 }, spans.len(), "{spans:?}");
        let note = drawn.notes.iter().find(|note| note.contains("L0-b") && note.contains("clock")).unwrap();
        let words = if known { "by the CLOCK_REALTIME of both" } else { "counts from its own first event" };
        assert!(note.to_lowercase().contains(&words.to_lowercase()), "{note}");
        assert!(whole_span(&flow).to_ns.abs_diff(length_ns + late_ns) <= 2);
        let (added, _) = overview(&input, &given, &flow, (&[], 0), &mut |_| {}, &mut |_, _| {});
        assert!(added.notes.contains(note) && added.end_ns.abs_diff(length_ns + late_ns) <= 2, "{:?}", added.notes);
    }
}
