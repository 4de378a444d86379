//! Zooms of a timeline that has no server to ask: which there are, and how fine they may become.
//!
//! ```text
//! coarsest   [ 2,000 pixels or fewer, 2^k ns each                    ]
//! the next   [ the same time, 4 times as many                        ]      and so on
//! ```
//! Pixels begin at multiples of their own length from the timeline's start, so every pixel is four whole ones of the next zoom.

use super::WIDEST;
use crate::Span;

/// Pixels of the coarsest zoom.
const COARSEST: u64 = 2_000;

/// Each zoom has this many times the pixels of the one above, as a power of two.
const FINER: u32 = 2;

/// Pixels shorter than this show nothing more: the fastest exits take about half a microsecond.
const SHORTEST_NS: u64 = 512;

/// Bytes that a tile of all lanes may have before it is packed; a recording of many vCPUs is zoomed into with a server.
const MOST_BYTES: u64 = 16 << 20;

/// Bytes that a tile has for each pixel of a lane beside one for each state.
const PIXEL_BYTES: u64 = 10;

/// The zooms of a timeline from 0 to its end. A zoom is called by the logarithm of its pixels' length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Zooms {
    end_ns: u64,
    coarsest: u32,
}

impl Zooms {
    /// Of a timeline that ends at `end_ns`.
    pub fn of(end_ns: u64) -> Self {
        let end_ns = end_ns.max(1);
        let coarsest = (0..63).find(|shift| pixels(end_ns, *shift) <= COARSEST).unwrap_or(63);
        Self { end_ns, coarsest }
    }

    /// The finest one that may be, however few lanes and states there are.
    pub fn finest(&self) -> u32 {
        self.finest_of(0, 0)
    }

    /// The finest one of a tile of so many states and lanes.
    pub fn finest_of(&self, states: usize, lanes: usize) -> u32 {
        let bytes = (states as u64 + PIXEL_BYTES).saturating_mul(lanes as u64);
        let fits = |shift: u32| {
            let pixels = pixels(self.end_ns, shift);
            1 << shift >= SHORTEST_NS && pixels <= u64::from(WIDEST) && pixels.saturating_mul(bytes) <= MOST_BYTES
        };
        let mut shift = self.coarsest;
        while shift >= FINER && fits(shift - FINER) {
            shift -= FINER;
        }
        shift
    }

    /// The zooms from the coarsest to `finest`.
    pub(crate) fn down_to(&self, finest: u32) -> impl Iterator<Item = u32> {
        let coarsest = self.coarsest;
        (0..=coarsest.saturating_sub(finest) / FINER).map(move |step| coarsest - step * FINER)
    }

    /// What the pixels of zoom `shift` cover: the timeline, rounded outwards.
    pub fn window(&self, shift: u32) -> Span {
        Span { from_ns: 0, to_ns: pixels(self.end_ns, shift).saturating_mul(1 << shift) }
    }

    /// How many they are: no more than [`WIDEST`] of a zoom that may be.
    pub fn width(&self, shift: u32) -> u32 {
        pixels(self.end_ns, shift).min(u64::from(WIDEST)) as u32
    }
}

/// Pixels of 2^shift ns that touch a timeline from 0 to `end_ns`.
fn pixels(end_ns: u64, shift: u32) -> u64 {
    ((end_ns - 1) >> shift) + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zooms_cover_the_timeline_with_pixels_that_are_four_of_the_next() {
        let zooms = Zooms::of(77_789_345);
        let shifts: Vec<u32> = zooms.down_to(zooms.finest_of(2, 1)).collect();
        assert_eq!(shifts, [16, 14, 12]);
        for shift in shifts {
            let window = zooms.window(shift);
            assert!(window.to_ns >= 77_789_345 && window.to_ns < 77_789_345 + (1 << shift));
            assert_eq!(window.to_ns, u64::from(zooms.width(shift)) << shift);
        }
        assert!(u64::from(zooms.width(16)) <= COARSEST && zooms.width(12) <= WIDEST);
    }

    #[test]
    fn many_lanes_and_states_have_fewer_zooms_and_never_none() {
        let zooms = Zooms::of(3_600_000_000_000);
        let finest = |lanes| zooms.finest_of(20, lanes);
        assert!(finest(1) < finest(64) && finest(64) < finest(1_000));
        assert_eq!(finest(1_000_000), zooms.coarsest);
        assert_eq!(zooms.finest(), zooms.finest_of(0, 0));
        assert_eq!(Zooms::of(0).down_to(Zooms::of(0).finest()).count(), 1);
    }
}
