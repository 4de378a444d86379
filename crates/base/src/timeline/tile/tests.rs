//! A tile, decoded by hand, against a scan that walks through every slice for every pixel.

use super::*;
use crate::timeline::{Columns, Condensed, Grid, Lane, LaneKind, LaneSums, State, StateId, Zooms};
use proptest::prelude::*;

const STATES: usize = 5;

/// A slice of the truth: state, span.
type Truth = Vec<(u8, Span)>;

fn filled(lanes: &[(u64, Vec<(u8, u64)>)]) -> (Columns, Vec<Truth>) {
    let state = |n| State { name: format!("s{n}"), title: String::new() };
    let mut columns = Columns::new((0..STATES).map(state).collect());
    let mut truths = Vec::new();
    for (first_ns, slices) in lanes {
        let lane =
            columns.add_lane(Lane { kind: LaneKind::Vcpu, group: "web".into(), title: "vCPU".into(), tid: None });
        let (mut at, mut truth) = (*first_ns, Truth::new());
        for (state, length) in slices {
            columns.push(lane, at, StateId(*state), "");
            truth.push((*state, Span { from_ns: at, to_ns: at + length }));
            at += length;
        }
        columns.end(lane, at);
        truths.push(truth);
    }
    (columns, truths)
}

/// Reads from the front of `bytes`.
fn take<const N: usize>(bytes: &mut &[u8]) -> [u8; N] {
    let (first, rest) = bytes.split_first_chunk::<N>().expect("the tile ends too early");
    *bytes = rest;
    *first
}

proptest! {
    #[test]
    fn a_tile_says_what_a_scan_of_all_slices_finds(
        lanes in prop::collection::vec(
            (0..200u64, prop::collection::vec((0..STATES as u8, 1..60u64), 0..150)), 1..4),
        from in 0..3_000u64,
        length in 1..6_000u64,
        width in 1..70u32,
    ) {
        let (columns, truths) = filled(&lanes);
        let window = Span { from_ns: from, to_ns: from + length };
        let asked: Vec<LaneId> = (0..lanes.len() as u32).rev().map(LaneId).collect();
        let bytes = of_window(&columns, &asked, window, width);
        let mut rest = &bytes[..];
        prop_assert_eq!(&take::<4>(&mut rest), b"KVTL");
        prop_assert_eq!((u16::from_le_bytes(take(&mut rest)), u16::from_le_bytes(take(&mut rest))), (1, 0));
        prop_assert_eq!((u64::from_le_bytes(take(&mut rest)), u64::from_le_bytes(take(&mut rest))), (from, from + length));
        prop_assert_eq!(u32::from_le_bytes(take(&mut rest)), width);
        prop_assert_eq!(u16::from_le_bytes(take(&mut rest)), asked.len() as u16);
        prop_assert_eq!(u16::from_le_bytes(take(&mut rest)), STATES as u16);
        for lane in asked {
            prop_assert_eq!(u32::from_le_bytes(take(&mut rest)), lane.0);
            let cover: Vec<[u8; STATES]> = (0..width).map(|_| take(&mut rest)).collect();
            let present: Vec<u32> = (0..width).map(|_| u32::from_le_bytes(take(&mut rest))).collect();
            let count: Vec<u16> = (0..width).map(|_| u16::from_le_bytes(take(&mut rest))).collect();
            let longest: Vec<u32> = (0..width).map(|_| u32::from_le_bytes(take(&mut rest))).collect();
            for pixel in 0..width {
                let (begin, end) = (pixel_start(window, pixel, width), pixel_start(window, pixel + 1, width));
                let mut times = [0u64; STATES];
                let mut touched = Vec::new();
                for (index, (state, span)) in truths[lane.0 as usize].iter().enumerate() {
                    let inside = span.to_ns.min(end).saturating_sub(span.from_ns.max(begin));
                    times[usize::from(*state)] += inside;
                    if inside > 0 {
                        touched.push((span.length_ns(), std::cmp::Reverse(index)));
                    }
                }
                let place = pixel as usize;
                prop_assert_eq!(usize::from(count[place]), touched.len());
                let expected = touched.iter().max().map_or(u32::MAX, |(_, index)| index.0 as u32);
                prop_assert_eq!(longest[place], expected);
                for (state, time) in times.iter().enumerate() {
                    prop_assert_eq!(present[place] >> state & 1 == 1, *time > 0);
                    let off = f64::from(cover[place][state]) - 255.0 * *time as f64 / (end - begin).max(1) as f64;
                    prop_assert!(off.abs() < 1.0, "a share is off by {off}");
                }
                let sum: u32 = cover[place].iter().map(|share| u32::from(*share)).sum();
                let known: u64 = times.iter().sum();
                prop_assert!(sum <= 255);
                prop_assert!(begin == end || known < end - begin || sum == 255, "a full pixel sums to {sum}");
            }
        }
        prop_assert!(rest.is_empty());
        prop_assert_eq!(bytes.len(), super::length(lanes.len(), STATES, width));
    }
}

/// The overview of `columns`, added up slice by slice as a walk adds it up.
fn added_up(columns: &Columns) -> Overview {
    let (span, zooms) = (columns.span(), Zooms::of(columns.span().to_ns));
    let zoom = zooms.finest_of(STATES, columns.lanes().len());
    let lane = |(place, lane): (usize, &Lane)| {
        let grid = Grid::new(zooms.window(zoom), zooms.width(zoom));
        let mut sums = Condensed::new(Grid::new(Span { from_ns: 0, ..span }, 10), grid);
        let slices = columns.slices(LaneId(place as u32), span, usize::MAX).slices;
        slices.iter().for_each(|slice| sums.push(slice.span.from_ns, slice.state.0));
        sums.end(slices.last().map_or(0, |last| last.span.to_ns));
        let states = (0..STATES as u8).map(StateId).collect();
        LaneSums { lane: lane.clone(), sums, states, chains: 0 }
    };
    let lanes = columns.lanes().iter().enumerate().map(lane).collect();
    Overview { states: columns.states().to_vec(), lanes, end_ns: span.to_ns, ..Overview::default() }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn a_page_and_a_server_make_the_same_bytes_of_the_same_slices(
        lanes in prop::collection::vec(
            (0..100_000u64, prop::collection::vec((0..STATES as u8, 1..200_000u64), 1..100)), 1..4),
    ) {
        let (columns, _) = filled(&lanes);
        let overview = added_up(&columns);
        let all: Vec<LaneId> = (0..lanes.len() as u32).map(LaneId).collect();
        let zooms = overview.zooms(lanes.len());
        prop_assert!(!zooms.is_empty());
        for zoom in zooms {
            let (window, width) = (overview.window(zoom), overview.width(zoom));
            prop_assert!(of_zoom(&overview, lanes.len(), zoom) == of_window(&columns, &all, window, width), "{zoom}");
        }
    }
}

#[test]
fn shares_round_by_largest_remainder() {
    let cover = |times: &[u64], length| {
        let (mut shares, mut bytes) = (Vec::new(), Vec::new());
        cover(times, length, &mut shares, &mut bytes);
        bytes
    };
    assert_eq!(cover(&[1, 1, 1], 3), [85, 85, 85]);
    assert_eq!(cover(&[1, 1], 2), [128, 127], "of equals the first");
    assert_eq!(cover(&[999, 1], 1_000), [255, 0], "too short to be seen, which is what `present` is for");
    assert_eq!(cover(&[0, 5], 10), [0, 128], "what nothing fills takes its share behind the states");
    assert_eq!(cover(&[u64::MAX - 1, 1], u64::MAX), [255, 0]);
    assert_eq!(cover(&[0, 0], 0), [0, 0]);
}

#[test]
fn a_mean_has_an_equal_part_of_each_of_its_lanes() {
    let (columns, _) = filled(&[(0, vec![(0, 100)]), (0, vec![(1, 50), (2, 50)]), (0, vec![(1, 100)])]);
    let window = Span { from_ns: 0, to_ns: 100 };
    let mean = vec![LaneId(1), LaneId(2)];
    let bytes = with_means(&columns, &[LaneId(0)], &[mean], window, 2);
    assert_eq!(bytes.len(), length(2, STATES, 2));
    let track = &bytes[32 + (4 + 2 * (STATES + 10))..];
    assert_eq!(track[..4], (MEAN | 1).to_le_bytes());
    assert_eq!(track[4..4 + 2 * STATES], [0, 255, 0, 0, 0, 0, 128, 127, 0, 0]);
}

#[test]
fn a_tile_of_a_timeline_without_states_is_as_long_as_its_header_says() {
    let mut columns = Columns::new(Vec::new());
    let lane = columns.add_lane(Lane { kind: LaneKind::Vcpu, group: "web".into(), title: "vCPU".into(), tid: None });
    let tile = of_window(&columns, &[lane], Span { from_ns: 0, to_ns: 1 }, 600);
    assert_eq!(tile.len(), length(1, 0, 600));
}
