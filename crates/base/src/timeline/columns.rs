//! A timeline in columns, with sums by which any window is answered without walking through it.
//!
//! ```text
//! starts   | 0 7 9 ... | 812 ... | 1633 ...      8 bytes per slice; a slice ends where the next one starts
//! states   | 2 0 2 ... |   1 ... |    2 ...      1 byte per slice
//! sums     | 0 0 0     | 70 9 733| ...           per block of 64 slices: time in each of the lane's states before it
//! longest  |   63      |   70    | ...           and the block's longest slice, with its length
//! details  | 0 VMREAD, 2 CPUID, ...               8 bytes per slice of which more is known; each text is kept once
//! ```
//! The time in a state up to an instant is its block's sum and a walk of at most 64 slices; a pixel's time is the
//! difference of two of them, exact to the nanosecond. The pixels of a window touch each block once or twice, so the
//! longest slice needs no tree above the blocks. One cursor sweeps over a window: where a pixel ends, the next begins,
//! so the slice there is looked up once, and from the last one on.

use super::{Coverage, Lane, LaneId, Marker, Slice, SliceId, Slices, State, StateId, Timeline, WIDEST, pixel_start};
use crate::Span;
use std::collections::HashMap;
use std::ops::Range;

/// Slices per block: with 8 states in a lane sums and longest slices add 1.25 bytes to the 9 of each slice.
const BLOCK: usize = 64;

/// A timeline that is filled slice by slice.
#[derive(Debug, Clone, Default)]
pub struct Columns {
    states: Vec<State>,
    lanes: Vec<Lane>,
    tracks: Vec<Track>,
    /// What is known of slices, each text once.
    details: Details,
    /// Named instants, in time order.
    pub markers: Vec<Marker>,
}

/// The slices of one lane.
#[derive(Debug, Clone, Default)]
struct Track {
    starts: Vec<u64>,
    /// Positions in `kinds`.
    states: Vec<u8>,
    /// The states that occur in this lane: few of all, so sums are of these alone.
    kinds: Vec<u8>,
    /// For every state of the timeline its position in `kinds`.
    places: Vec<Option<u8>>,
    /// Where the last slice ends.
    end_ns: u64,
    /// Time in each of `kinds` before each block.
    sums: Vec<u64>,
    /// Time in each of `kinds` before the last slice.
    so_far: Vec<u64>,
    /// The longest slice of each block and how long it is, as far as its slices have ended.
    longest: Vec<(u64, u32)>,
    /// What is known of some slices, by position: a number of [`Details`].
    details: Vec<(u32, u32)>,
}

/// Texts, each once.
#[derive(Debug, Clone)]
struct Details {
    texts: Vec<String>,
    numbers: HashMap<String, u32>,
    /// The one asked for last of each length and end: a few reasons take turns, and to compare one is quicker than to
    /// look it up.
    recent: [u32; RECENT],
}

/// Places for texts asked for lately.
const RECENT: usize = 64;

impl Default for Details {
    fn default() -> Self {
        Self { texts: Vec::new(), numbers: HashMap::new(), recent: [0; RECENT] }
    }
}

impl Details {
    fn number(&mut self, text: &str) -> u32 {
        let end = text.as_bytes().last().copied().unwrap_or(0);
        let recent = &mut self.recent[(text.len() * 8 + usize::from(end)) % RECENT];
        if self.texts.get(*recent as usize).is_none_or(|known| known != text) {
            *recent = self.numbers.get(text).copied().unwrap_or_else(|| {
                let number = self.texts.len() as u32;
                self.texts.push(text.to_owned());
                self.numbers.insert(text.to_owned(), number);
                number
            });
        }
        *recent
    }
}

impl Columns {
    /// An empty timeline over these states.
    ///
    /// # Panics
    /// If there are more than 256: a mistake in the program.
    pub fn new(states: Vec<State>) -> Self {
        assert!(states.len() <= 256, "a state's number has 8 bits");
        Self { states, ..Self::default() }
    }

    /// Adds a lane.
    pub fn add_lane(&mut self, lane: Lane) -> LaneId {
        self.lanes.push(lane);
        self.tracks.push(Track { places: vec![None; self.states.len()], ..Track::default() });
        LaneId(self.tracks.len() as u32 - 1)
    }

    /// From `at_ns` on, `lane` is in `state`, until the next call says otherwise; `detail` says more, or is empty.
    ///
    /// Of two states at one instant the later call wins. A time before the last one counts as the last one: a clock
    /// that ran backwards does not make time vanish.
    ///
    /// # Panics
    /// If the lane or the state was not declared: a mistake in the program.
    pub fn push(&mut self, lane: LaneId, at_ns: u64, state: StateId, detail: &str) -> SliceId {
        assert!(usize::from(state.0) < self.states.len(), "state {} was not declared", state.0);
        let track = &mut self.tracks[lane.0 as usize];
        let replaces = track.push(at_ns, state.0);
        let index = track.states.len() as u32 - 1;
        if replaces {
            track.details.pop_if(|(of, _)| *of == index);
        }
        if !detail.is_empty() {
            track.details.push((index, self.details.number(detail)));
        }
        SliceId { lane, index }
    }

    /// The last slice of `lane` ends at `at_ns`.
    ///
    /// # Panics
    /// If the lane was not declared: a mistake in the program.
    pub fn end(&mut self, lane: LaneId, at_ns: u64) {
        let track = &mut self.tracks[lane.0 as usize];
        track.end_ns = track.end_ns.max(at_ns);
    }

    /// Bytes that the sums and longest slices take, beyond the slices themselves.
    pub fn index_bytes(&self) -> usize {
        let of = |track: &Track| size_of_val(&track.sums[..]) + size_of_val(&track.longest[..]);
        self.tracks.iter().map(of).sum()
    }

    fn track(&self, lane: LaneId) -> Option<&Track> {
        self.tracks.get(lane.0 as usize)
    }
}

impl Track {
    /// Adds a slice; true if it took the place of the last one.
    #[inline]
    fn push(&mut self, at_ns: u64, state: u8) -> bool {
        let state = self.places[usize::from(state)].unwrap_or_else(|| self.meet(state));
        if let (Some(start), Some(last)) = (self.starts.last().copied(), self.states.last_mut()) {
            if at_ns <= start {
                *last = state;
                return true;
            }
            let length = at_ns - start;
            self.so_far[usize::from(*last)] += length;
            if let Some(longest) = self.longest.last_mut().filter(|(longest, _)| length > *longest) {
                *longest = (length, self.starts.len() as u32 - 1);
            }
        }
        if self.starts.len().is_multiple_of(BLOCK) {
            self.sums.extend(&self.so_far);
            self.longest.push((0, self.starts.len() as u32));
        }
        self.starts.push(at_ns);
        self.states.push(state);
        self.end_ns = self.end_ns.max(at_ns);
        false
    }

    /// A state that the lane did not have so far: the sums get a column more.
    #[cold]
    fn meet(&mut self, state: u8) -> u8 {
        let before = self.kinds.len();
        let place = before as u8; // There are no more states than that has values.
        self.places[usize::from(state)] = Some(place);
        self.kinds.push(state);
        self.so_far.push(0);
        let mut sums = Vec::with_capacity(self.longest.len() * self.kinds.len());
        for block in 0..self.longest.len() {
            sums.extend(&self.sums[block * before..][..before]);
            sums.push(0);
        }
        self.sums = sums;
        place
    }

    fn slice_end(&self, index: usize) -> u64 {
        self.starts.get(index + 1).copied().unwrap_or(self.end_ns)
    }

    fn length(&self, index: usize) -> u64 {
        self.slice_end(index) - self.starts[index]
    }

    /// How many slices start before `at_ns`; it is known that `least` do.
    fn started(&self, at_ns: u64, least: usize) -> usize {
        // Leaps of doubling length, because pixels are narrow against the track; then the last leap is searched.
        let (mut from, mut leap) = (least, 1);
        while self.starts.get(from + leap - 1).is_some_and(|start| *start < at_ns) {
            from += leap;
            leap *= 2;
        }
        let to = (from + leap - 1).min(self.starts.len());
        from + self.starts[from..to].partition_point(|start| *start < at_ns)
    }

    /// The time in each state before `at_ns`, into `sums`; `started` slices start before it.
    fn time_before(&self, at_ns: u64, started: usize, sums: &mut [u64]) {
        let Some(last) = started.checked_sub(1) else { return sums.fill(0) };
        let block = last / BLOCK;
        sums.copy_from_slice(&self.sums[block * sums.len()..][..sums.len()]);
        let (starts, states) = (&self.starts[block * BLOCK..=last], &self.states[block * BLOCK..last]);
        for (touching, state) in starts.windows(2).zip(states) {
            sums[usize::from(*state)] += touching[1] - touching[0];
        }
        sums[usize::from(self.states[last])] += at_ns.min(self.slice_end(last)) - self.starts[last];
    }

    /// The slices that share at least a nanosecond with `window`; so many start before its ends.
    fn touching(&self, window: Span, started: Range<usize>) -> Range<usize> {
        if window.length_ns() == 0 || self.end_ns <= window.from_ns {
            return 0..0;
        }
        // A slice that starts where the window does is its first; else the one before reaches into it.
        let starts_there = self.starts.get(started.start) == Some(&window.from_ns);
        let first = if starts_there { started.start } else { started.start.saturating_sub(1) };
        // A slice that has not ended yet has no time in it.
        let after = started.end;
        let after = if after > 0 && self.length(after - 1) == 0 { after - 1 } else { after };
        first..after.max(first)
    }

    /// The longest of `slices`, the first of equals. Blocks that lie inside whole answer with their own longest.
    fn longest_of(&self, slices: Range<usize>) -> Option<u32> {
        let mut best: Option<(u64, u32)> = None;
        let mut take = |length: u64, index: u32| {
            if best.is_none_or(|(longest, _)| length > longest) {
                best = Some((length, index));
            }
        };
        let mut index = slices.start;
        while index < slices.end {
            // The last block's longest may still be open, so it is walked through.
            if index.is_multiple_of(BLOCK) && index + BLOCK <= slices.end && index + BLOCK < self.starts.len() {
                let (length, longest) = self.longest[index / BLOCK];
                take(length, longest);
                index += BLOCK;
            } else {
                take(self.length(index), index as u32);
                index += 1;
            }
        }
        best.map(|(_, index)| index)
    }

    fn coverage(&self, window: Span, width: u32, states: usize) -> Coverage {
        let pixels = width as usize;
        let mut coverage = Coverage {
            states,
            time_ns: Vec::with_capacity(pixels * states),
            longest: Vec::with_capacity(pixels),
            count: Vec::with_capacity(pixels),
        };
        let (mut before, mut after) = (vec![0; self.kinds.len()], vec![0; self.kinds.len()]);
        let mut from_ns = window.from_ns;
        let mut begun = self.starts.partition_point(|start| *start < from_ns);
        self.time_before(from_ns, begun, &mut before);
        for pixel in 0..width {
            let to_ns = pixel_start(window, pixel + 1, width);
            let started = self.started(to_ns, begun);
            self.time_before(to_ns, started, &mut after);
            let pixel = coverage.time_ns.len();
            coverage.time_ns.resize(pixel + states, 0);
            for ((after, before), kind) in after.iter().zip(&before).zip(&self.kinds) {
                coverage.time_ns[pixel + usize::from(*kind)] = after - before;
            }
            std::mem::swap(&mut before, &mut after);
            let slices = self.touching(Span { from_ns, to_ns }, begun..started);
            coverage.count.push(slices.len() as u32);
            coverage.longest.push(self.longest_of(slices));
            (from_ns, begun) = (to_ns, started);
        }
        coverage
    }
}

impl Timeline for Columns {
    fn states(&self) -> &[State] {
        &self.states
    }

    fn lanes(&self) -> &[Lane] {
        &self.lanes
    }

    fn markers(&self) -> &[Marker] {
        &self.markers
    }

    fn span(&self) -> Span {
        let filled = || self.tracks.iter().filter(|track| !track.starts.is_empty());
        Span {
            from_ns: filled().map(|track| track.starts[0]).min().unwrap_or(0),
            to_ns: filled().map(|track| track.end_ns).max().unwrap_or(0),
        }
    }

    fn slices(&self, lane: LaneId, window: Span, most: usize) -> Slices {
        let touching = self.track(lane).map_or(0..0, |track| {
            let started = |at_ns| track.starts.partition_point(|start| *start < at_ns);
            track.touching(window, started(window.from_ns)..started(window.to_ns))
        });
        let found = touching.len();
        let ids = touching.take(most).map(|index| SliceId { lane, index: index as u32 });
        let slices: Vec<Slice> = ids.filter_map(|id| self.detail(id)).map(|(slice, _)| slice).collect();
        Slices { left_out: (found - slices.len()) as u64, slices }
    }

    fn coverage(&self, lane: LaneId, window: Span, width: u32) -> Coverage {
        match self.track(lane) {
            Some(track) => track.coverage(window, width.min(WIDEST), self.states.len()),
            None => Track::default().coverage(window, width.min(WIDEST), self.states.len()),
        }
    }

    fn detail(&self, id: SliceId) -> Option<(Slice, &str)> {
        let track = self.track(id.lane)?;
        let index = id.index as usize;
        let span = Span { from_ns: *track.starts.get(index)?, to_ns: track.slice_end(index) };
        let known = track.details.binary_search_by_key(&id.index, |(of, _)| *of).ok();
        let detail = known.map_or("", |at| self.details.texts[track.details[at].1 as usize].as_str());
        Some((Slice { id, span, state: StateId(track.kinds[usize::from(track.states[index])]) }, detail))
    }
}

mod known;
#[cfg(test)]
mod tests;
