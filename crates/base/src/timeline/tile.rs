//! What does a window look like, pixel by pixel, in as few bytes as a browser can draw from?
//!
//! A server makes tiles of a timeline that it keeps, a page of an overview; of the same slices both are the same bytes.
//!
//! ```text
//! "KVTL" | version u16 | flags u16 | t0 u64 | t1 u64 | width u32 | tracks u16 | states u16        little-endian, packed
//! per track: lane u32 | cover u8[width][states] | present u32[width] | count u16[width] | longest u32[width]
//! ```
//! `cover` says how much of a pixel each state takes, 255 being all of it; what is missing to 255 lies before the lane's
//! first slice or after its last. A state shorter than 1/510 of a pixel rounds to nothing, and its bit in `present` tells
//! that it is there. Exact times never come from a tile but from `/states`.

use super::{Coverage, LaneId, Overview, Timeline, pixel_start};
use crate::Span;

/// The bytes `KVTL`.
const MAGIC: u32 = 0x4c54_564b;

/// Version of the layout above.
const VERSION: u16 = 1;

/// The most states: `present` has so many bits, and of further ones it says nothing.
pub const MOST_STATES: usize = 32;

const WHOLE: u64 = 255;

/// In `longest`: no slice.
const NONE: u32 = u32::MAX;

/// In the number of a track that is the mean of several lanes, together with the first of them.
pub(crate) const MEAN: u32 = 1 << 31;

/// Bytes of a tile.
pub fn length(lanes: usize, states: usize, width: u32) -> usize {
    32 + lanes * (4 + width as usize * (states + 10))
}

/// What `lanes` did in `window`, as a tile of `width` pixels.
pub fn of_window(timeline: &impl Timeline, lanes: &[LaneId], window: Span, width: u32) -> Vec<u8> {
    with_means(timeline, lanes, &[], window, width)
}

/// The same, and behind those tracks one for each of `means`: what its lanes did in the mean, each with an equal part of
/// the pixel. A group of hundreds of CPUs is drawn as one row, and its lanes need not be sent for that.
pub fn with_means(
    timeline: &impl Timeline,
    lanes: &[LaneId],
    means: &[Vec<LaneId>],
    window: Span,
    width: u32,
) -> Vec<u8> {
    let mut tracks: Vec<(u32, Coverage, u64)> =
        lanes.iter().map(|lane| (lane.0, timeline.coverage(*lane, window, width), 1)).collect();
    for some in means {
        let Some((first, others)) = some.split_first() else { continue };
        let mut sum = timeline.coverage(*first, window, width);
        for lane in others {
            let more = timeline.coverage(*lane, window, width);
            sum.time_ns.iter_mut().zip(more.time_ns).for_each(|(sum, ns)| *sum += ns);
            sum.count.iter_mut().zip(more.count).for_each(|(sum, count)| *sum = sum.saturating_add(count));
        }
        sum.longest.fill(None);
        tracks.push((MEAN | first.0, sum, some.len() as u64));
    }
    tile((window, width), timeline.states().len(), tracks.into_iter())
}

/// The first `lanes` lanes of `overview` at `zoom`, one of its zooms.
pub fn of_zoom(overview: &Overview, lanes: usize, zoom: u32) -> Vec<u8> {
    let window = overview.window(zoom);
    let tracks = (0..lanes.min(overview.lanes.len())).map(|lane| (lane as u32, overview.pixels(lane, zoom), 1));
    tile((window, overview.width(zoom)), overview.states.len(), tracks)
}

/// A tile of `tracks`, each a number, what it did in the pixels of the window, and of how many lanes that is the sum.
fn tile(
    (window, width): (Span, u32),
    states: usize,
    tracks: impl ExactSizeIterator<Item = (u32, Coverage, u64)>,
) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(length(tracks.len(), states, width));
    bytes.extend(MAGIC.to_le_bytes());
    bytes.extend(VERSION.to_le_bytes());
    bytes.extend(0u16.to_le_bytes());
    bytes.extend(window.from_ns.to_le_bytes());
    bytes.extend(window.to_ns.to_le_bytes());
    bytes.extend(width.to_le_bytes());
    bytes.extend((tracks.len() as u16).to_le_bytes());
    bytes.extend((states as u16).to_le_bytes());
    for (number, coverage, of) in tracks {
        bytes.extend(number.to_le_bytes());
        track(&coverage, of, window, &mut bytes);
    }
    bytes
}

fn track(coverage: &Coverage, of: u64, window: Span, bytes: &mut Vec<u8>) {
    let width = coverage.count.len() as u32;
    // Each pixel has its part, also where there is no state.
    let states = coverage.states;
    let pixels = || (0..width as usize).map(|pixel| &coverage.time_ns[pixel * states..][..states]);
    let mut shares = Vec::with_capacity(coverage.states + 1);
    for (pixel, times_ns) in (0..).zip(pixels()) {
        let length_ns = pixel_start(window, pixel + 1, width) - pixel_start(window, pixel, width);
        cover(times_ns, length_ns.saturating_mul(of), &mut shares, bytes);
    }
    for times_ns in pixels() {
        let bit = |(state, time_ns): (usize, &u64)| u32::from(*time_ns > 0) << state;
        let present = times_ns.iter().take(MOST_STATES).enumerate().map(bit).fold(0, |all, bit| all | bit);
        bytes.extend(present.to_le_bytes());
    }
    bytes.extend(coverage.count.iter().flat_map(|count| u16::try_from(*count).unwrap_or(u16::MAX).to_le_bytes()));
    bytes.extend(coverage.longest.iter().flat_map(|longest| longest.unwrap_or(NONE).to_le_bytes()));
}

/// Shares of a pixel in 255ths that sum to what they should: rounded down, and the rest goes to the largest remainders,
/// the first of equals. What no state fills takes part in it and is not written.
fn cover(times_ns: &[u64], length_ns: u64, shares: &mut Vec<(u64, u64)>, bytes: &mut Vec<u8>) {
    if length_ns == 0 {
        bytes.extend(times_ns.iter().map(|_| 0));
        return;
    }
    let known_ns: u64 = times_ns.iter().sum();
    let share = |time_ns: u64| {
        // 255 times a time fits 64 bits in any pixel below two years.
        match time_ns.checked_mul(WHOLE) {
            Some(product) => (product / length_ns, product % length_ns),
            None => {
                let product = u128::from(time_ns) * u128::from(WHOLE);
                ((product / u128::from(length_ns)) as u64, (product % u128::from(length_ns)) as u64)
            }
        }
    };
    shares.clear();
    shares.extend(times_ns.iter().map(|time_ns| if *time_ns == 0 { (0, 0) } else { share(*time_ns) }));
    shares.push(share(length_ns.saturating_sub(known_ns)));
    let given: u64 = shares.iter().map(|(share, _)| share).sum();
    for _ in given..WHOLE {
        let largest = shares.iter_mut().rev().max_by_key(|(_, remainder)| *remainder);
        if let Some((share, remainder)) = largest {
            *share += 1;
            *remainder = 0;
        }
    }
    bytes.extend(shares.iter().take(times_ns.len()).map(|(share, _)| *share as u8));
}

#[cfg(test)]
mod tests;
