//! Numbers over time of each VM: exits per second, and each level's share of its vCPUs' time.
//!
//! The window is cut into equal stretches. Exits are slices that say why, at the stretch in which they begin; shares are
//! exact times out of the timeline's coverage. A number is said where it changes.

use super::messages::{CounterDescriptor, EventType, TrackDescriptor, TrackEvent};
use super::stream::{Said, Stream};
use crate::picture::{Picture, Piece, Row};
use base::Span;
use base::timeline::{LaneId, Timeline, pixel_start};
use std::collections::BTreeMap;
use std::io;

/// Stretches of a window: more than a screen tells apart are not needed, and each in which a number changes costs some 40 bytes.
const STRETCHES: u32 = 1_000;

/// Shorter stretches hold too few exits for a rate.
const SHORTEST_NS: u64 = 100_000;

/// Sums over a VM's lanes.
pub(super) struct Counters {
    window: Span,
    width: u32,
    exits: Vec<u64>,
}

impl Counters {
    pub(super) fn new(window: Span) -> Self {
        let width = (window.length_ns() / SHORTEST_NS).clamp(1, u64::from(STRETCHES)) as u32;
        Self { window, width, exits: vec![0; width as usize] }
    }

    /// Counts the exits of a lane that begin in the window.
    pub(super) fn count(&mut self, pieces: &[Piece<'_>]) {
        let exits = pieces.iter().filter(|piece| !piece.why.is_empty() && piece.began_ns >= self.window.from_ns);
        let mut stretch = 0;
        for piece in exits {
            while stretch + 1 < self.width && piece.began_ns >= self.start(stretch + 1) {
                stretch += 1;
            }
            self.exits[stretch as usize] += 1;
        }
    }

    /// Writes all counters of the VM whose track is `parent`.
    pub(super) fn write(
        &self,
        stream: &mut Stream<'_>,
        picture: &Picture<'_>,
        (parent, lanes): (u64, &[LaneId]),
    ) -> io::Result<()> {
        let seconds = |stretch: u32| self.length_ns(stretch) as f64 / 1e9;
        let rates = self.exits.iter().zip(0..).map(|(exits, stretch)| *exits as f64 / seconds(stretch));
        self.counter(stream, parent, ("exits per second", "exits/s"), rates)?;
        for (row, time_ns) in self.shares(picture, lanes) {
            let title = format!("share of {}", picture.row_title(row));
            let all_ns = |stretch: u32| self.length_ns(stretch) as f64 * lanes.len() as f64;
            let shares = time_ns.iter().zip(0..).map(|(ns, stretch)| 100.0 * *ns as f64 / all_ns(stretch));
            self.counter(stream, parent, (&title, "%"), shares)?;
        }
        Ok(())
    }

    /// Time of each row that has some, per stretch.
    fn shares(&self, picture: &Picture<'_>, lanes: &[LaneId]) -> BTreeMap<Row, Vec<u64>> {
        let kinds = picture.kinds();
        let mut rows: BTreeMap<Row, Vec<u64>> = BTreeMap::new();
        for lane in lanes {
            let coverage = picture.drawn.timeline.coverage(*lane, self.window, self.width);
            // A window of no length has no states to have been in.
            for (stretch, states) in coverage.time_ns.chunks(coverage.states.max(1)).enumerate() {
                for (kind, ns) in kinds.iter().zip(states).filter(|(_, ns)| **ns > 0) {
                    rows.entry(kind.row).or_insert_with(|| vec![0; self.exits.len()])[stretch] += ns;
                }
            }
        }
        rows
    }

    fn counter(
        &self,
        stream: &mut Stream<'_>,
        parent: u64,
        (title, unit): (&str, &str),
        values: impl Iterator<Item = f64>,
    ) -> io::Result<()> {
        let track = stream.track(TrackDescriptor {
            name: Some(title.to_owned()),
            parent_uuid: Some(parent),
            counter: Some(CounterDescriptor { unit_name: unit.to_owned() }),
            ..TrackDescriptor::default()
        })?;
        let mut last = None;
        // A value stands until the next one: what most VMs of a large host do most of the time costs nothing.
        for (value, stretch) in values.zip(0..).filter(|(value, _)| last.replace(*value) != Some(*value)) {
            let said = Said { kind: EventType::Counter, track, at_ns: self.start(stretch), name: None };
            stream.event_with(&said, TrackEvent { double_counter_value: Some(value), ..TrackEvent::default() })?;
        }
        Ok(())
    }

    fn start(&self, stretch: u32) -> u64 {
        pixel_start(self.window, stretch, self.width)
    }

    fn length_ns(&self, stretch: u32) -> u64 {
        (self.start(stretch + 1) - self.start(stretch)).max(1)
    }
}
