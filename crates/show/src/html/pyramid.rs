//! The timeline at several zooms, for a page that has no server to ask.
//!
//! ```text
//! level 0   [ 2,000 pixels or fewer, 2^k ns each                    ]
//! level 1   [ the same window, 4 times as many                      ]
//! level 2   [ 16 times as many                                      ]
//! ```
//! Each level is one tile of the whole recording. Pixels of all levels start at multiples of their own length, so every
//! pixel is four whole ones of the next level. Levels end where a lane's coverage does, where pixels are about as short
//! as slices, or where the page would hold too much; the chains on the page have their slices in full.

use super::tile;
use base::Span;
use base::timeline::{Timeline, WIDEST};

/// Pixels of the coarsest level.
const COARSEST: u64 = 2_000;

/// Each level has this many times the pixels of the one above, as a power of two.
const FINER: u32 = 2;

/// Pixels shorter than this show nothing more: the fastest exits take about half a microsecond.
const SHORTEST_NS: u64 = 512;

/// Bytes that a level may have before it is packed; a recording of many vCPUs is zoomed into with a server.
const MOST_BYTES: u64 = 16 << 20;

/// One level.
pub struct Level {
    /// Its window, the recording's rounded outwards to whole pixels.
    pub window: Span,
    /// Its pixels.
    pub width: u32,
    /// As [`tile::encode`] has them.
    pub bytes: Vec<u8>,
}

/// All levels of the first `lanes` lanes, coarse to fine.
pub fn levels(timeline: &dyn Timeline, lanes: usize) -> Vec<Level> {
    let span = timeline.span();
    if span.length_ns() == 0 {
        return Vec::new();
    }
    let mut shift = (0..63).find(|shift| pixels(span, *shift) <= COARSEST).unwrap_or(63);
    let pixel_bytes = (timeline.states().len() as u64 + 10) * lanes as u64;
    let mut levels = vec![level(timeline, lanes, span, shift)];
    while shift >= FINER && 1 << (shift - FINER) >= SHORTEST_NS {
        shift -= FINER;
        let pixels = pixels(span, shift);
        if pixels > u64::from(WIDEST) || pixels.saturating_mul(pixel_bytes) > MOST_BYTES {
            break;
        }
        levels.push(level(timeline, lanes, span, shift));
    }
    levels
}

/// Pixels of 2^shift ns that touch `span`.
fn pixels(span: Span, shift: u32) -> u64 {
    ((span.to_ns - 1) >> shift) - (span.from_ns >> shift) + 1
}

fn level(timeline: &dyn Timeline, lanes: usize, span: Span, shift: u32) -> Level {
    let (from_ns, pixels) = ((span.from_ns >> shift) << shift, pixels(span, shift));
    let window = Span { from_ns, to_ns: from_ns.saturating_add(pixels.saturating_mul(1 << shift)) };
    // No more than WIDEST, which fits.
    Level { window, width: pixels as u32, bytes: tile::encode(timeline, lanes, window, pixels as u32) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::timeline::{Columns, Lane, LaneKind, State, StateId};

    #[test]
    fn levels_cover_the_span_with_aligned_pixels() {
        let state = |name: &str| State { name: name.into(), title: name.into() };
        let mut timeline = Columns::new(vec![state("a"), state("b")]);
        let lane =
            timeline.add_lane(Lane { kind: LaneKind::Vcpu, group: "vm".into(), title: "vCPU 0".into(), tid: None });
        for index in 0..1_000u64 {
            timeline.push(lane, 12_345 + index * 77_777, StateId((index % 2) as u8), "");
        }
        timeline.end(lane, 77_789_345);
        let levels = levels(&timeline, 1);
        assert_eq!(levels.len(), 3);
        for (level, pixel_ns) in levels.iter().zip([65_536, 16_384, 4_096]) {
            assert!(level.window.from_ns <= 12_345 && level.window.to_ns >= 77_789_345);
            assert_eq!(level.window.length_ns(), u64::from(level.width) * pixel_ns);
            assert_eq!(level.window.from_ns % pixel_ns, 0);
        }
        assert!(u64::from(levels[0].width) <= COARSEST && levels[2].width <= WIDEST);
    }

    #[test]
    fn an_empty_timeline_has_no_levels() {
        assert!(levels(&Columns::new(Vec::new()), 0).is_empty());
    }
}
