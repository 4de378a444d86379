//! A drawn flow for ui.perfetto.dev: Perfetto's TrackEvent format.
//!
//! ```text
//! process  VM                 counters: exits per second, share of each level
//!   thread   vCPU 0
//!     track    chains         a slice from a nested guest's exit until it runs again, with the exits it cost
//!     track    L2, L1         guests, the deepest first
//!     track    L0             KVM and interrupts; the slice of an exit is called by its reason
//!     track    VMM, off CPU, unknown
//! process  host CPUs          a track for each CPU; likewise threads of the VMM's side, and guests' own traces; categories
//!                             of their slices begin with the kind of lane, as in `cpu.guest_l2`
//! track    lost events        an instant for each gap
//! ```
//! Arrows (flows) lead from an exit to its handling and its re-entry. Times are ns since the recording's first event. A
//! process has the lowest thread id of its vCPUs as its id: traces of KVM do not tell the VMM's.

mod counters;
mod flows;
mod messages;
mod stream;

use crate::picture::{Fit, Kind, Picture, Piece, Row};
use base::Span;
use base::timeline::{Chain, LaneId, Timeline};
use counters::Counters;
use messages::{EXPLICIT, EventType, ProcessDescriptor, ThreadDescriptor, TrackDescriptor, TrackEvent};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use stream::{Said, Stream};

/// More slices make a file that the viewer opens slowly or not at all: with two events of some 20 bytes each they make
/// 100 MB.
pub const MOST_SLICES: u64 = 2_500_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    pub slices: u64,
    pub chains: u64,
}

/// Writes what `picture` shows of `fit`; returns what was written, counted there.
///
/// # Errors
/// If `out` refuses.
pub fn write<'p>(out: &'p mut dyn Write, picture: &'p Picture<'p>, fit: &Fit) -> io::Result<Written> {
    let mut file = File { stream: Stream::new(out), picture, kinds: picture.kinds(), window: fit.window, chains: 0 };
    for (vm, lanes) in picture.vms() {
        let pid = lanes.iter().map(|lane| picture.drawn.vcpus[lane.0 as usize].tid).min().unwrap_or(0);
        let process_name = picture.vm_title(vm);
        let process = Some(ProcessDescriptor { pid, process_name });
        let parent = file.stream.track(TrackDescriptor { process, ..TrackDescriptor::default() })?;
        let mut counters = Counters::new(file.window);
        for lane in &lanes {
            file.vcpu(*lane, (pid, parent), &mut counters)?;
        }
        counters.write(&mut file.stream, picture, (parent, &lanes))?;
    }
    // They have no process of their own; numbers of real ones end far below (`PID_MAX_LIMIT`, include/linux/threads.h).
    for ((group, lanes), pid) in picture.beside().into_iter().zip((0..i32::MAX).rev()) {
        let process = Some(ProcessDescriptor { pid, process_name: picture.vm_title(group) });
        let parent = file.stream.track(TrackDescriptor { process, ..TrackDescriptor::default() })?;
        for (lane, rank) in lanes.into_iter().zip(0..) {
            file.beside(lane, (parent, rank))?;
        }
    }
    file.markers()?;
    Ok(Written { chains: file.chains, slices: file.stream.finish()? })
}

struct File<'p> {
    stream: Stream<'p>,
    picture: &'p Picture<'p>,
    kinds: Vec<Kind>,
    window: Span,
    chains: u64,
}

impl File<'_> {
    fn vcpu(&mut self, lane: LaneId, (pid, process): (i32, u64), counters: &mut Counters) -> io::Result<()> {
        let tid = self.picture.drawn.vcpus[lane.0 as usize].tid;
        let thread_name = self.picture.drawn.timeline.lanes()[lane.0 as usize].title.clone();
        let thread = self.stream.track(TrackDescriptor {
            thread: Some(ThreadDescriptor { pid, tid, thread_name }),
            parent_uuid: Some(process),
            child_ordering: Some(EXPLICIT),
            ..TrackDescriptor::default()
        })?;
        let pieces = self.picture.pieces(lane, self.window);
        counters.count(&pieces);
        let chains: Vec<_> = self.picture.chains(lane, self.window).collect();
        if !chains.is_empty() {
            let track = self.child("chains".to_owned(), thread, 0)?;
            chains.iter().try_for_each(|(_, chain)| self.chain(track, chain))?;
        }
        let rows: BTreeSet<Row> = pieces.iter().map(|piece| self.row(piece)).collect();
        let mut tracks = BTreeMap::new();
        for (row, rank) in rows.into_iter().zip(1..) {
            tracks.insert(row, self.child(self.picture.row_title(row), thread, rank)?);
        }
        let flows = flows::flows(&pieces, &self.kinds, chains.into_iter());
        for (place, piece) in pieces.iter().enumerate() {
            let ends = flows.get(&place).cloned().unwrap_or_default();
            let arrows =
                TrackEvent { flow_ids: ends.through, terminating_flow_ids: ends.last, ..TrackEvent::default() };
            self.slice(tracks[&self.row(piece)], piece, arrows)?;
        }
        Ok(())
    }

    /// A lane that is one track: what a CPU ran, what a thread did.
    fn beside(&mut self, lane: LaneId, (parent, rank): (u64, i32)) -> io::Result<()> {
        let timeline = &self.picture.drawn.timeline;
        let track = self.child(timeline.lanes()[lane.0 as usize].title.clone(), parent, rank)?;
        for piece in self.picture.pieces(lane, self.window) {
            let state = &timeline.states()[usize::from(piece.state.0)];
            // Of its own, so that whoever sums a state over slices sums vCPUs alone: this is their time once more.
            let category = format!("{}.{}", timeline.lanes()[lane.0 as usize].kind.name(), state.name);
            let name = match piece.why {
                "" => state.title.clone(),
                why if state.name == "task" => why.to_owned(),
                why => format!("{}: {why}", state.title),
            };
            let said =
                Said { kind: EventType::SliceBegin, track, at_ns: piece.span.from_ns, name: Some((&name, &category)) };
            self.stream.event(&said)?;
            self.end(track, piece.span.to_ns)?;
        }
        Ok(())
    }

    fn row(&self, piece: &Piece<'_>) -> Row {
        self.kinds[usize::from(piece.state.0)].row
    }

    fn child(&mut self, name: String, parent: u64, rank: i32) -> io::Result<u64> {
        let (name, parent_uuid, sibling_order_rank) = (Some(name), Some(parent), Some(rank));
        self.stream.track(TrackDescriptor { name, parent_uuid, sibling_order_rank, ..TrackDescriptor::default() })
    }

    fn slice(&mut self, track: u64, piece: &Piece<'_>, arrows: TrackEvent) -> io::Result<()> {
        let category = &self.picture.drawn.timeline.states()[usize::from(piece.state.0)].name;
        let name = Some((self.picture.name(piece), category.as_str()));
        let begin = Said { kind: EventType::SliceBegin, track, at_ns: piece.span.from_ns, name };
        self.stream.event_with(&begin, arrows)?;
        self.end(track, piece.span.to_ns)
    }

    fn end(&mut self, track: u64, at_ns: u64) -> io::Result<()> {
        self.stream.event(&Said { kind: EventType::SliceEnd, track, at_ns, name: None })
    }

    /// A chain whose end was not seen is an instant.
    fn chain(&mut self, track: u64, chain: &Chain) -> io::Result<()> {
        let Some(cost_ns) = chain.cost_ns else {
            let name = format!("{}, end not recorded", chain.reason);
            let name = Some((name.as_str(), "chain"));
            return self.stream.event(&Said { kind: EventType::Instant, track, at_ns: chain.span.from_ns, name });
        };
        let debug_annotations = vec![
            self.stream.number("exits", chain.exits),
            self.stream.number("cost_ns", cost_ns),
            self.stream.words("sequence", chain.sequence.join(" ")),
        ];
        self.chains += 1;
        let name = Some((chain.reason.as_str(), "chain"));
        let begin = Said { kind: EventType::SliceBegin, track, at_ns: chain.span.from_ns, name };
        self.stream.event_with(&begin, TrackEvent { debug_annotations, ..TrackEvent::default() })?;
        self.end(track, chain.span.to_ns.min(self.window.to_ns))
    }

    fn markers(&mut self) -> io::Result<()> {
        let inside = |at_ns: u64| self.window.from_ns <= at_ns && at_ns <= self.window.to_ns;
        let markers: Vec<_> =
            self.picture.drawn.timeline.markers().iter().filter(|marker| inside(marker.at_ns)).collect();
        if markers.is_empty() {
            return Ok(());
        }
        let name = Some("lost events".to_owned());
        let track = self.stream.track(TrackDescriptor { name, ..TrackDescriptor::default() })?;
        for marker in markers {
            let name = Some((marker.label.as_str(), "lost"));
            self.stream.event(&Said { kind: EventType::Instant, track, at_ns: marker.at_ns, name })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
