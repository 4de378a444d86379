//! Is a timeline that is added up while the trace is read the one that is drawn of everything, and what is kept meanwhile?

use super::inside::Inside;
use super::keeper::{Bounds, Pace, kept};
use super::lanes::Look;
use super::overview::added_up;
use super::passing::{Passing, Take, Whose};
use super::{draw, draw_first};
use crate::chain_plan::NO_PLAN;
use crate::chains;
use crate::ledger::build;
use crate::ledger::model::Flow;
use crate::{Given, Input};
use base::recording::{Named, Recording};
use base::timeline::{
    COLUMNS, COLUMNS_BESIDE, ChainRanks, ChainRequest, ChainSums, LaneId, LaneKind, Overview, Timeline,
};
use base::{Narrow, Span};
use generate::scenario::{self, ALL};
use generate::{Scenario, Target, huge};
use rustc_hash::FxHashSet;
use std::path::Path;
use trace::format::Endian;
use trace::write::tracedat::Compression;

/// Traces of each format, nested ones, ones of two machines.
const FIXTURES: [&str; 8] = [
    "nested-svm-toy",
    "nested-vmx-shadow-on",
    "nested-vmx-shadow-off-hog",
    "svm-linux",
    "vmx-linux-shadow-on",
    "lttng-svm-l0",
    "two-tracers",
    "seed-vhost",
];

const PLAIN: Target = Target::TraceDat7 { endian: Endian::Little, long_bytes: 8, compression: Compression::None };

/// Told on after every few changes, however long a CPU has to wait.
const OFTEN: Pace = Pace { chunk: 97, waits: u32::MAX };

fn opened(recording: Recording) -> (Input, Flow) {
    let (input, given) = (Input::open(recording, NO_PLAN).unwrap(), Given::default());
    let flow = build::build(&input, &given, &mut |_, _| {});
    (input, flow)
}

fn fixture(name: &str) -> Recording {
    Recording::open(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").join(name)).unwrap()
}

/// Added up at `pace`, a recording's timeline and chains are those that are drawn.
fn is_the_one_that_is_drawn(recording: Recording, pace: Pace, case: &str) {
    let ((input, flow), given) = (opened(recording), Given::default());
    let drawn = draw(&input, &given, &flow, &mut |_, _| {});
    let mut told: Vec<(ChainRequest, String, u64, Option<u64>, bool)> = Vec::new();
    let mut hear = |chain: &ChainSums<'_>| {
        let wanted = ChainRequest { lane: chain.lane, nth: chain.nth, span: chain.span, lead_ns: 1_000 };
        told.push((wanted, chain.reason.to_owned(), chain.exits, chain.cost_ns, chain.is_undisturbed));
    };
    let mut nothing = Inside::new(&[], 0);
    let seen = added_up(&input, (&given, pace), &flow, (&mut nothing, &mut hear), &mut |_, _| {});
    let timeline = &drawn.timeline;
    let lanes: Vec<_> = seen.lanes.iter().map(|of| of.lane.clone()).collect();
    assert_eq!((lanes.as_slice(), &seen.vcpus), (timeline.lanes(), &drawn.vcpus), "{case}");
    assert_eq!((seen.span(), seen.states.as_slice()), (timeline.span(), timeline.states()), "{case}");
    assert_eq!((&seen.notes, seen.markers.as_slice()), (&drawn.notes, timeline.markers()), "{case}");
    for (place, of) in seen.lanes.iter().enumerate() {
        let (lane, case) = (LaneId(place as u32), format!("{case}, {:?}", of.lane));
        let columns = if of.lane.kind == LaneKind::Vcpu { COLUMNS } else { COLUMNS_BESIDE };
        assert_eq!(seen.columns(place), timeline.coverage(lane, timeline.span(), columns), "{case}");
        assert_eq!(seen.totals_ns(place), timeline.coverage(lane, timeline.span(), 1).time_ns, "{case}");
        let slices = timeline.slices(lane, timeline.span(), 0).left_out;
        let chains = drawn.chains.iter().filter(|chain| chain.lane == lane).count();
        assert_eq!((u64::from(of.sums.slices()), of.chains), (slices, chains as u64), "{case}");
        let lanes = if place < seen.vcpus.len() { seen.vcpus.len() } else { seen.lanes.len() };
        for zoom in seen.zooms(lanes) {
            let window = seen.window(zoom);
            let expected = timeline.coverage(lane, window, (window.to_ns >> zoom) as u32);
            assert_eq!(seen.pixels(place, zoom), expected, "{case}, pixels of 2^{zoom} ns");
        }
    }
    // The walk that fills the ledger ranks the chains that this one tells.
    let mut ranks = ChainRanks::default();
    for (wanted, reason, exits, cost_ns, is_undisturbed) in &told {
        let ChainRequest { lane, nth, span, .. } = *wanted;
        let (reason, exits, cost_ns, is_undisturbed) = (reason, *exits, *cost_ns, *is_undisturbed);
        ranks.add(&ChainSums { lane, nth, reason, span, exits, cost_ns, is_undisturbed });
    }
    let (_, ranked) = chains::build(&input, &given, &mut |_, _| {});
    assert_eq!(ranked.wanted(), ranks.on_lanes(Some, |at_ns| at_ns).wanted(), "{case}");
    told.sort_by_key(|(wanted, ..)| (wanted.lane, wanted.nth));
    assert_eq!(told.len(), drawn.chains.len(), "{case}");
    for ((wanted, reason, exits, cost_ns, undisturbed), chain) in told.iter().zip(&drawn.chains) {
        assert_eq!((wanted.lane, wanted.span, reason), (chain.lane, chain.span, &chain.reason), "{case}");
        assert_eq!((*exits, *cost_ns, *undisturbed), (chain.exits, chain.cost_ns, chain.is_undisturbed()), "{case}");
    }
    let (wanted, chains): (Vec<ChainRequest>, Vec<_>) =
        told.iter().map(|told| told.0).zip(&drawn.chains).step_by(told.len().div_ceil(50).max(1)).unzip();
    let mut inside = Inside::new(&wanted, 30);
    let again = added_up(&input, (&given, pace), &flow, (&mut inside, &mut |_| {}), &mut |_, _| {});
    let found = inside.found(&again);
    assert_eq!(found.len(), wanted.len(), "{case}");
    for (found, chain) in found.iter().zip(chains) {
        assert_eq!(&found.chain, chain, "{case}");
        let touches = |span: Span| span.from_ns < chain.span.to_ns && span.to_ns > chain.span.from_ns;
        let here: Vec<_> = found.slices.iter().filter(|(slice, _)| touches(slice.span)).collect();
        let expected = timeline.slices(chain.lane, chain.span, 30);
        assert_eq!(here.iter().map(|(slice, _)| *slice).collect::<Vec<_>>(), expected.slices, "{case}");
        assert_eq!(found.left_out, expected.left_out, "{case}");
        for (slice, detail) in here {
            assert_eq!(timeline.detail(slice.id).unwrap().1, detail, "{case}");
        }
    }
}

#[test]
fn an_overview_of_a_bundled_recording_is_the_one_that_is_drawn() {
    for name in FIXTURES {
        is_the_one_that_is_drawn(fixture(name), OFTEN, name);
        is_the_one_that_is_drawn(fixture(name), Pace::default(), name);
    }
}

#[test]
fn an_overview_of_a_story_is_the_one_that_is_drawn() {
    let directory = tempfile::tempdir().unwrap();
    let known = ALL.iter().map(|scenario| scenario.run(1));
    for (number, story) in known.chain((0..12).map(scenario::random)).enumerate() {
        for target in [PLAIN, Target::Ctf1 { endian: Endian::Little, lttng: true }] {
            let own = directory.path().join(format!("{number}-{}", target.name()));
            std::fs::create_dir(&own).unwrap();
            let path = story.write(target, &own).unwrap();
            let recording = Recording::of_files(&[Named::at_l0(&path)], None).unwrap();
            is_the_one_that_is_drawn(recording, OFTEN, &format!("story {number} as {}", target.name()));
        }
    }
}

/// A CPU that does not wait says so, and is right in everything else; vCPUs do not change.
#[test]
fn what_a_cpu_did_not_wait_for_is_unknown_there_and_stated() {
    let mut unknown = 0;
    for name in ["svm-linux", "nested-vmx-shadow-off-hog"] {
        let ((input, flow), given) = (opened(fixture(name)), Given::default());
        let at =
            |pace| added_up(&input, (&given, pace), &flow, (&mut Inside::new(&[], 0), &mut |_| {}), &mut |_, _| {});
        let (whole, hasty) = (at(OFTEN), at(Pace { chunk: 1, waits: 0 }));
        let of_kind = |seen: &Overview, kind: LaneKind| -> Vec<Vec<u64>> {
            let lanes = (0..seen.lanes.len()).filter(|place| seen.lanes[*place].lane.kind == kind);
            lanes.map(|place| seen.totals_ns(place)).collect()
        };
        assert_eq!(of_kind(&hasty, LaneKind::Vcpu), of_kind(&whole, LaneKind::Vcpu), "{name}");
        let state = whole.states.iter().position(|state| state.name == "unknown").unwrap();
        let mut missing = 0;
        for (hasty, whole) in of_kind(&hasty, LaneKind::Cpu).iter().zip(of_kind(&whole, LaneKind::Cpu)) {
            assert_eq!(hasty.iter().sum::<u64>(), whole.iter().sum::<u64>(), "{name}: all time is somewhere");
            let others = hasty.iter().zip(&whole).enumerate().filter(|(place, _)| *place != state);
            others.for_each(|(_, (hasty, whole))| assert!(hasty <= whole, "{name}"));
            missing += hasty[state] - whole[state];
        }
        assert_eq!((missing > 0, whole.bounds.len()), (!hasty.bounds.is_empty(), 0), "{name}: {:?}", hasty.bounds);
        unknown += missing;
    }
    assert!(unknown > 0);
}

struct Nothing;

impl Take for Nothing {
    fn piece(&mut self, _: Whose, _: u64, _: Look, _: &str) {}
    fn chain(&mut self, _: i32, _: &walk::thread::Chain) {}
}

/// A trace of so many pages, in which the scenario happens again and again.
fn long(scenario: &str, bytes: u64, directory: &Path) -> (Input, Flow) {
    let path = directory.join(format!("{scenario}-{bytes}.dat"));
    huge::write(&Scenario::named(scenario).unwrap().run(7), bytes, Compression::None, &path).unwrap();
    opened(Recording::of_files(&[Named::at_l0(&path)], None).unwrap())
}

/// What is kept while a trace is told on does not grow with the trace: not for vCPUs, CPUs or other threads.
#[test]
fn ten_times_the_trace_keeps_no_more() {
    let directory = tempfile::tempdir().unwrap();
    for scenario in ["vmx-no-shadowing", "interrupts", "halts", "hogs", "losses"] {
        let most_kept = |bytes: u64| {
            let (input, flow) = long(scenario, bytes, directory.path());
            let workers: FxHashSet<i32> = flow.parts[0].comms.keys().copied().collect();
            let mut nothing = Nothing;
            let mut passing = Passing::new(&flow.parts[0], &workers, &mut nothing);
            let bounds = Bounds { pace: Pace { chunk: 1_000, ..Pace::default() }, ..Bounds::default() };
            kept(&input.parts[0], &flow.parts[0], (&Given::default(), bounds), Some(&mut passing), &mut |_, _| {});
            passing.most_kept
        };
        let (short, long) = (most_kept(1 << 20), most_kept(10 << 20));
        assert!(short > 0 && long <= short.max(1_000) * 2, "{scenario}: {short} kept of 1 MB, {long} of 10 MB");
    }
}

/// What lies before a window is not kept, however late it begins.
#[test]
fn a_late_window_keeps_no_more_than_an_early_one() {
    let directory = tempfile::tempdir().unwrap();
    for scenario in ["vmx-no-shadowing", "hogs"] {
        let (input, flow) = long(scenario, 8 << 20, directory.path());
        let length_ns = flow.parts[0].span.length_ns();
        let kept_of = |from_ns: u64| {
            let window = Some(Span { from_ns, to_ns: from_ns + length_ns / 20 });
            let bounds = Bounds { window, ..Bounds::default() };
            let part = (&input.parts[0], &flow.parts[0]);
            let (walk, _) = kept(part.0, part.1, (&Given::default(), bounds), None, &mut |_, _| {});
            assert_eq!(walk.sink.full, None);
            walk.sink.count() as f64
        };
        let (early, late) = (kept_of(length_ns / 20), kept_of(length_ns * 9 / 10));
        assert!(late < 1.5 * early + 100_000.0, "{scenario}: {early} early, {late} late");
        // Changes before the window do not count as drawn.
        let window = Some(Span { from_ns: length_ns * 9 / 10, to_ns: length_ns });
        let given = Given { narrow: Narrow { window, ..Narrow::default() }, ..Given::default() };
        let drawn = draw_first(&input, &given, &flow, 10_000, &mut |_, _| {});
        let cut = drawn.cut.map_or(length_ns, |cut| cut.at_ns);
        assert!(cut > length_ns * 9 / 10, "{scenario}: cut at {cut} of {length_ns} ns");
    }
}

/// The window of a bounded drawing says what one of everything says of it.
#[test]
fn a_window_is_drawn_as_the_whole_shows_it() {
    for name in FIXTURES {
        let (input, flow) = opened(fixture(name));
        let whole = draw(&input, &Given::default(), &flow, &mut |_, _| {});
        let length_ns = whole.timeline.span().length_ns();
        let window = Span { from_ns: length_ns / 2, to_ns: length_ns * 3 / 4 };
        let given = Given { narrow: Narrow { window: Some(window), ..Narrow::default() }, ..Given::default() };
        let part = draw_first(&input, &given, &flow, u64::MAX, &mut |_, _| {});
        for (place, lane) in part.timeline.lanes().iter().enumerate() {
            let of_whole = whole.timeline.lanes().iter().position(|known| known == lane).unwrap();
            let rows = |drawn: &base::timeline::Drawn, place: usize| {
                let slices = drawn.timeline.slices(LaneId(place as u32), window, usize::MAX).slices;
                let row = |slice: base::timeline::Slice| {
                    let span = Span {
                        from_ns: slice.span.from_ns.max(window.from_ns),
                        to_ns: slice.span.to_ns.min(window.to_ns),
                    };
                    let detail = drawn.timeline.detail(slice.id).unwrap().1.to_owned();
                    (span, drawn.timeline.states()[usize::from(slice.state.0)].name.clone(), detail)
                };
                slices.into_iter().map(row).collect::<Vec<_>>()
            };
            assert_eq!(rows(&part, place), rows(&whole, of_whole), "{name}, {lane:?}");
        }
    }
}
