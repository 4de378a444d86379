//! The timeline at several zooms, for a page that has no server to ask.
//!
//! ```text
//! level 0   [ 2,000 pixels or fewer, 2^k ns each                    ]   one tile
//! level 1   [ 8 times as many           ][                          ]   tiles of 8,192 pixels at most
//! level 2   [            ][            ][            ][             ]
//! ```
//! Pixels of all levels start at multiples of their own length, so every pixel is eight whole ones of the next level.
//! Levels end where pixels are about as short as slices, or where the page would hold too much.

use super::tile;
use base::Span;
use base::timeline::Timeline;

/// Pixels of the coarsest level.
const COARSEST: u64 = 2_000;

/// Each level has this many times the pixels of the one above, as a power of two.
const FINER: u32 = 3;

/// Pixels shorter than this show nothing more: the fastest exits take about half a microsecond.
const SHORTEST_NS: u64 = 512;

/// Bytes that a level may have; a longer recording is zoomed into with a server.
const MOST_BYTES: u64 = 24 << 20;

/// One tile.
pub struct Tile {
    /// Its window.
    pub window: Span,
    /// Its pixels.
    pub width: u32,
    /// As [`tile::encode`] has them.
    pub bytes: Vec<u8>,
}

/// All levels, coarse to fine, each as its tiles from left to right.
pub fn levels(timeline: &dyn Timeline) -> Vec<Vec<Tile>> {
    let span = timeline.span();
    if span.length_ns() == 0 {
        return Vec::new();
    }
    let mut shift = (0..63).find(|shift| pixels(span, *shift) <= COARSEST).unwrap_or(63);
    let pixel_bytes = (timeline.states().len() as u64 + 10) * timeline.lanes().len() as u64;
    let mut levels = vec![level(timeline, span, shift)];
    while shift >= FINER && 1 << (shift - FINER) >= SHORTEST_NS {
        shift -= FINER;
        if pixels(span, shift).saturating_mul(pixel_bytes) > MOST_BYTES {
            break;
        }
        levels.push(level(timeline, span, shift));
    }
    levels
}

/// Pixels of 2^shift ns that touch `span`.
fn pixels(span: Span, shift: u32) -> u64 {
    ((span.to_ns - 1) >> shift) - (span.from_ns >> shift) + 1
}

fn level(timeline: &dyn Timeline, span: Span, shift: u32) -> Vec<Tile> {
    let (first, all) = (span.from_ns >> shift, pixels(span, shift));
    let starts = (0..all).step_by(tile::WIDEST as usize);
    let tile = |start: u64| {
        let width = (all - start).min(u64::from(tile::WIDEST)) as u32;
        let from_ns = (first + start) << shift;
        let window = Span { from_ns, to_ns: from_ns.saturating_add(u64::from(width) << shift) };
        Tile { window, width, bytes: tile::encode(timeline, window, width) }
    };
    starts.map(tile).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::timeline::{Columns, Lane, State, StateId};

    #[test]
    fn levels_cover_the_span_with_aligned_pixels() {
        let state = |name: &str| State { name: name.into(), title: name.into() };
        let mut timeline = Columns::new(vec![state("a"), state("b")]);
        let lane = timeline.add_lane(Lane { group: "vm".into(), title: "vCPU 0".into() });
        for index in 0..1_000u64 {
            timeline.push(lane, 12_345 + index * 77_777, StateId((index % 2) as u8), "");
        }
        timeline.end(lane, 77_789_345);
        let levels = levels(&timeline);
        assert_eq!(levels.len(), 3, "65,536, 8,192 and 1,024 ns");
        for (level, pixel_ns) in levels.iter().zip([65_536, 8_192, 1_024]) {
            assert!(level[0].window.from_ns <= 12_345 && level.last().unwrap().window.to_ns >= 77_789_345);
            assert!(level.windows(2).all(|pair| pair[0].window.to_ns == pair[1].window.from_ns));
            assert!(level.iter().all(|tile| tile.window.length_ns() == u64::from(tile.width) * pixel_ns));
            assert!(level.iter().all(|tile| tile.window.from_ns % pixel_ns == 0 && tile.width <= tile::WIDEST));
        }
        assert!(levels[0].len() == 1 && u64::from(levels[0][0].width) <= COARSEST);
    }

    #[test]
    fn an_empty_timeline_has_no_levels() {
        assert!(levels(&Columns::new(Vec::new())).is_empty());
    }
}
