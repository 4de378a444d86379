//! The timeline at several zooms, for a page that has no server to ask.
//!
//! Each level is one tile of the whole recording, at one of the zooms that [`base::timeline::Zooms`] allows. Levels end where
//! pixels are about as short as slices, or where the page would hold too much; the chains on the page have their slices in full.

use base::Span;
use base::timeline::{Overview, tile};

pub(super) struct Level {
    /// Its window, the recording's rounded outwards to whole pixels.
    pub window: Span,
    pub width: u32,
    /// As [`tile`] has them.
    pub bytes: Vec<u8>,
}

/// All levels of the first `lanes` lanes, coarse to fine.
pub(super) fn levels(overview: &Overview, lanes: usize) -> Vec<Level> {
    let level = |zoom: u32| {
        let bytes = tile::of_zoom(overview, lanes, zoom);
        Level { window: overview.window(zoom), width: overview.width(zoom), bytes }
    };
    overview.zooms(lanes).into_iter().map(level).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_timeline_has_no_levels() {
        assert!(levels(&Overview::default(), 0).is_empty());
    }
}
