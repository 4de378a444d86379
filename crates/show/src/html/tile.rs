//! A window of lanes as bytes: what a drawing program needs for each pixel, and no more.
//!
//! ```text
//! u32 magic "KVTL" | u16 version | u16 flags | u64 t0_ns | u64 t1_ns | u32 width | u16 tracks | u16 states
//! per track: u32 lane | u8 cover[width][states] | u32 present[width] | u16 count[width] | u32 longest[width]
//! ```
//! Little-endian, nothing between the arrays. `cover` is a state's share of the pixel, 255 for all of it, rounded by
//! largest remainder, so that a pixel that is known whole sums to exactly 255; bit s of `present` is set if state s
//! occurs at all, also where its share rounds to nothing.

use base::timeline::{Overview, pixel_start};

/// `KVTL` as the bytes stand in the file.
const MAGIC: [u8; 4] = *b"KVTL";
const VERSION: u16 = 1;

/// No slice.
const NONE: u32 = u32::MAX;

/// The tile of the first `lanes` lanes of `overview` at `zoom`, `width` pixels wide.
pub fn encode(overview: &Overview, lanes: usize, zoom: u32, width: u32) -> Vec<u8> {
    let window = overview.window(zoom);
    let (lanes, states) = (lanes.min(overview.lanes.len()) as u16, overview.states.len() as u16);
    let mut out = Vec::new();
    out.extend(MAGIC);
    out.extend(VERSION.to_le_bytes());
    out.extend(0u16.to_le_bytes());
    out.extend(window.from_ns.to_le_bytes());
    out.extend(window.to_ns.to_le_bytes());
    out.extend(width.to_le_bytes());
    out.extend(lanes.to_le_bytes());
    out.extend(states.to_le_bytes());
    for lane in 0..u32::from(lanes) {
        let coverage = overview.pixels(lane as usize, zoom);
        let pixels = || coverage.time_ns.chunks_exact(usize::from(states).max(1)).zip(0..width);
        out.extend(lane.to_le_bytes());
        for (times, pixel) in pixels() {
            let length_ns = pixel_start(window, pixel + 1, width) - pixel_start(window, pixel, width);
            out.extend(shares(times, length_ns));
        }
        for (times, _) in pixels() {
            let bits = times.iter().take(32).enumerate().filter(|(_, ns)| **ns > 0);
            out.extend(bits.fold(0u32, |bits, (state, _)| bits | 1 << state).to_le_bytes());
        }
        for count in &coverage.count {
            out.extend(u16::try_from(*count).unwrap_or(u16::MAX).to_le_bytes());
        }
        for longest in &coverage.longest {
            out.extend(longest.unwrap_or(NONE).to_le_bytes());
        }
    }
    out
}

/// Shares of `length_ns` in 255ths, by largest remainder: what is lost by rounding down goes to those that lost most.
fn shares(times: &[u64], length_ns: u64) -> Vec<u8> {
    let length = u128::from(length_ns.max(1));
    let exact = |ns: u64| u128::from(ns) * 255;
    let mut shares: Vec<u8> = times.iter().map(|ns| (exact(*ns) / length).min(255) as u8).collect();
    let whole: u128 = times.iter().map(|ns| exact(*ns)).sum::<u128>();
    let wanted = ((whole + length / 2) / length).min(255);
    let given: u128 = shares.iter().map(|share| u128::from(*share)).sum();
    let mut order: Vec<usize> = (0..times.len()).collect();
    order.sort_by_key(|state| (std::cmp::Reverse(exact(times[*state]) % length), *state));
    for state in order.into_iter().take(wanted.saturating_sub(given) as usize) {
        shares[state] += 1;
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Span;
    use base::timeline::{Condensed, Grid, Lane, LaneKind, LaneSums, State, StateId};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_pixel_that_is_known_whole_sums_to_255(times in prop::collection::vec(0u64..1_000_000_007, 1..20)) {
            let whole: u64 = times.iter().sum();
            prop_assume!(whole > 0);
            let shares = shares(&times, whole);
            prop_assert_eq!(shares.iter().map(|share| u32::from(*share)).sum::<u32>(), 255);
            for (share, ns) in shares.iter().zip(&times) {
                prop_assert!((f64::from(*share) - 255.0 * *ns as f64 / whole as f64).abs() <= 1.0);
            }
        }
    }

    #[test]
    fn the_bytes_are_those_of_the_description() {
        let state = |name: &str| State { name: name.into(), title: name.into() };
        let lane = Lane { kind: LaneKind::Vcpu, group: "vm".into(), title: "vCPU 0".into(), tid: None };
        let window = Span { from_ns: 0, to_ns: 2 << 14 };
        let mut sums = Condensed::new(Grid::new(window, 1), Grid::new(window, 2));
        sums.push(0, 0);
        sums.push((1 << 14) - 1, 1);
        sums.end(1 << 14);
        let states = vec![state("a"), state("b")];
        let lane = LaneSums { lane, sums, states: [StateId(0), StateId(1)].into(), chains: 0 };
        let overview = Overview { states, lanes: vec![lane], end_ns: 2 << 14, ..Overview::default() };
        let tile = encode(&overview, 1, 14, 2);
        let mut wanted = b"KVTL\x01\0\0\0".to_vec();
        wanted.extend([0u64, 2 << 14].map(u64::to_le_bytes).concat());
        wanted.extend([2, 0, 0, 0, 1, 0, 2, 0]);
        wanted.extend([0, 0, 0, 0]); // lane
        wanted.extend([255, 0, 0, 0]); // cover: b is too short for a 255th, and the second pixel is not known
        wanted.extend([3, 0, 0, 0, 0, 0, 0, 0]); // present: b occurs
        wanted.extend([2, 0, 0, 0]); // count
        wanted.extend([0, 0, 0, 0, 255, 255, 255, 255]); // longest
        assert_eq!(tile, wanted);
    }
}
