//! How long does a tile take of 12.5 million slices, against a scan of all of them?
//!
//! 8 lanes, 2,000 pixels, 8 states; slices of 0.5 to 10 us, which is how exits come. Prints the median of several runs of
//! each, in one thread: building, the bytes of the index, and tiles of the full range, a tenth and a hundredth of it. The
//! scan computes the same times per pixel and state by walking through every slice, and is checked to agree.
//!
//! `cargo run --release -p kvmscope-base --example tiles [MILLIONS OF SLICES]`

use kvmscope_base::Span;
use kvmscope_base::timeline::tile::of_window;
use kvmscope_base::timeline::{Columns, Lane, LaneId, LaneKind, State, StateId, Timeline, pixel_start};
use std::hint::black_box;
use std::time::{Duration, Instant};

const LANES: u32 = 8;
const STATES: u64 = 8;
const WIDTH: u32 = 2_000;
const RUNS: usize = 5;

/// Why guests stop: a few reasons take turns.
const REASONS: [&str; 5] = ["VMREAD", "VMWRITE", "CPUID", "VMRESUME", "MSR_WRITE"];

/// A slice: start, state. The last of a lane is its end.
type Track = Vec<(u64, u8)>;

fn main() {
    let millions: f64 = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(12.5);
    let each = (millions * 1e6) as usize / LANES as usize;
    let tracks: Vec<Track> = (0..LANES).map(|lane| track(u64::from(lane) + 1, each)).collect();
    let slices = each * LANES as usize;
    println!("{slices} slices, {LANES} lanes, {WIDTH} px, {STATES} states; median of {RUNS}");

    let mut built = None;
    let build = median(|| built = Some(build(&tracks, &[])));
    let with_details = median(|| drop(black_box(self::build(&tracks, &REASONS))));
    let Some(columns) = built else { return };
    let per_slice = columns.index_bytes() as f64 / slices as f64;
    println!(
        "  build              {build:>9.1?}   {with_details:.1?} where half of the slices have one of five reasons"
    );
    println!("  index              {per_slice:>6.2} B per slice");

    let lanes: Vec<LaneId> = (0..LANES).map(LaneId).collect();
    let all = columns.span();
    for (name, share) in [("full range", 1.0), ("a tenth", 0.1), ("a hundredth", 0.01)] {
        let length = (all.length_ns() as f64 * share) as u64;
        let from_ns = (all.length_ns() - length) / 2;
        let window = Span { from_ns, to_ns: from_ns + length };
        let indexed = median(|| drop(black_box(of_window(&columns, &lanes, window, WIDTH))));
        let scanned = median(|| tracks.iter().for_each(|track| drop(black_box(scan(track, window)))));
        let ratio = scanned.as_secs_f64() / indexed.as_secs_f64();
        println!("  {name:<12}       {indexed:>9.1?}   scan {scanned:.1?}, {ratio:.1} times as long");
        for (lane, track) in lanes.iter().zip(&tracks) {
            assert_eq!(columns.coverage(*lane, window, WIDTH).time_ns, scan(track, window), "{name}: the scan differs");
        }
    }
}

/// Slices whose lengths and states follow a xorshift generator.
fn track(seed: u64, slices: usize) -> Track {
    let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut at_ns = 0;
    let mut next = || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random
    };
    let slice = |_| {
        let start_ns = at_ns;
        let drawn = next();
        at_ns += 500 + drawn % 9_500;
        (start_ns, ((drawn >> 40) % STATES) as u8)
    };
    (0..=slices).map(slice).collect()
}

fn build(tracks: &[Track], reasons: &[&str]) -> Columns {
    let state = |number| State { name: format!("state {number}"), title: String::new() };
    let mut columns = Columns::new((0..STATES).map(state).collect());
    for track in tracks {
        let lane =
            columns.add_lane(Lane { kind: LaneKind::Vcpu, group: String::new(), title: String::new(), tid: None });
        let Some(((end_ns, _), slices)) = track.split_last() else { continue };
        for (start_ns, state) in slices {
            let detail = if state & 1 == 0 { reasons.get(*start_ns as usize % REASONS.len()) } else { None };
            columns.push(lane, *start_ns, StateId(*state), detail.unwrap_or(&""));
        }
        columns.end(lane, *end_ns);
    }
    columns
}

/// Time per pixel and state, by walking through every slice.
fn scan(track: &[(u64, u8)], window: Span) -> Vec<u64> {
    let states = STATES as usize;
    let mut times_ns = vec![0; WIDTH as usize * states];
    let (mut pixel, mut end_ns) = (0, pixel_start(window, 1, WIDTH));
    for slice in track.windows(2) {
        let (mut from_ns, to_ns) = (slice[0].0.max(window.from_ns), slice[1].0.min(window.to_ns));
        while from_ns < to_ns {
            while end_ns <= from_ns {
                pixel += 1;
                end_ns = pixel_start(window, pixel + 1, WIDTH);
            }
            let part_ns = to_ns.min(end_ns);
            times_ns[pixel as usize * states + usize::from(slice[0].1)] += part_ns - from_ns;
            from_ns = part_ns;
        }
    }
    times_ns
}

fn median(mut work: impl FnMut()) -> Duration {
    let mut times: Vec<Duration> = (0..RUNS)
        .map(|_| {
            let since = Instant::now();
            work();
            since.elapsed()
        })
        .collect();
    times.sort_unstable();
    times[RUNS / 2]
}
