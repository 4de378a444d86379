//! Events whose fields stay in their packet: the quick way through what nearly all events of real traces look like.
//!
//! ```text
//! packet  .. | id | time | field field .. | id | time | field ..
//!                        '-- a row points here; `crate::in_place` finds the fields
//! ```
//! One loop for events of fixed layout with the least significant byte first. It stops before the first event that is
//! none, or stands so near the packet's end that a window would reach behind it: the steps read that one.

use super::fast::{Header, LittleHeader, window};
use super::kind::{DENSE_IDS, EventKind, Steps};
use super::machine::{Machine, extended};
use crate::Batch;
use crate::batch::{Kind, NO_TID, Row, STORED};
use crate::in_place::InPlace;
use crate::load::Load;
use base::Clock;
use std::sync::Arc;

/// Events of one kind of stream that can be read so.
pub(super) struct InPlaceEvents {
    header: LittleHeader,
    /// By event id, below [`DENSE_IDS`].
    events: Vec<Option<Entry>>,
    layouts: Arc<[InPlace]>,
}

/// One kind of event.
#[derive(Clone, Copy)]
struct Entry {
    /// Alignment of what follows the header, less one.
    align: u64,
    bits: u64,
    /// Position in `Facts::event_types`.
    event_type: usize,
    kind: Kind,
    /// Position in the layouts; [`STORED`]: the event is only counted.
    layout: u16,
    tid: Load,
}

impl InPlaceEvents {
    /// Those among `events`, of which `steps` tell what is wanted; `None` if the header is none that can be read so.
    pub(super) fn of(header: Option<&Header>, events: &[EventKind], steps: &[Steps]) -> Option<Self> {
        let header = header?.little()?;
        let mut found = Self { header, events: Vec::new(), layouts: Arc::default() };
        let mut layouts = Vec::new();
        for (event, steps) in events.iter().zip(steps).filter(|(event, _)| event.id < DENSE_IDS) {
            let id = event.id as usize;
            if found.events.len() <= id {
                found.events.resize(id + 1, None);
            }
            found.events[id] = Entry::of(steps, &mut layouts);
        }
        found.layouts = layouts.into();
        Some(found)
    }

    /// Where fields lie in the events that were read so.
    pub(super) fn layouts(&self) -> Arc<[InPlace]> {
        self.layouts.clone()
    }

    /// Reads at most `most` events, and leaves `machine` behind the last of them; returns how many they were. Rows give
    /// places from the packet's start.
    pub(super) fn read(
        &self,
        machine: &mut Machine<'_>,
        most: u64,
        (clock, cpu): (&Clock, u32),
        batch: &mut Batch,
    ) -> u64 {
        let (data, end) = (machine.data(), machine.end);
        let (mut at, mut ticks) = (machine.at, machine.ticks);
        let Batch { rows, tally, .. } = batch;
        let (room, tally) = (rows.room(most as usize), &mut tally[..]);
        let (mut read, mut wanted, mut first, mut last) = (0, 0, u64::MAX, 0);
        while read < most {
            let Some((id, time, body)) = self.header.read(data, at) else { break };
            let Some(Some(entry)) = self.events.get(id as usize) else { break };
            let body = body.saturating_add(entry.align) & !entry.align;
            let behind = body.saturating_add(entry.bits);
            let Some(window) = window(data, body).filter(|_| behind <= end && behind > at) else { break };
            let Some(count) = tally.get_mut(entry.event_type) else { break };
            *count += 1;
            (at, ticks, read) = (behind, extended(ticks, time, self.header.time_bits), read + 1);
            (first, last) = (first.min(ticks), last.max(ticks));
            if entry.layout != STORED
                && let Some(row) = room.get_mut(wanted)
            {
                wanted += 1;
                let Entry { kind, layout, .. } = *entry;
                let tid = if entry.tid.is_absent() { NO_TID } else { entry.tid.value::<false>(window) as i32 };
                *row = Row { time_ns: ticks, kind, cpu, tid, start: (body >> 3) as u32, layout };
            }
        }
        // By itself, so that the values of each loop fit into registers.
        room[..wanted].iter_mut().for_each(|row| row.time_ns = clock.ns(row.time_ns));
        rows.advance(wanted);
        if read > 0 {
            batch.saw_time(clock.ns(first));
            batch.saw_time(clock.ns(last));
        }
        (machine.at, machine.ticks) = (at, ticks);
        read
    }
}

impl Entry {
    fn of(steps: &Steps, layouts: &mut Vec<InPlace>) -> Option<Self> {
        let fast = steps.fast.as_ref()?;
        let (align, bits) = fast.extent();
        let mut entry = Entry { align, bits, event_type: steps.event_type, kind: 0, layout: STORED, tid: Load::ABSENT };
        if let Some(kind) = steps.kind {
            let (in_place, tid) = fast.in_place()?;
            (entry.kind, entry.tid) = (kind, tid);
            entry.layout = u16::try_from(layouts.len()).ok().filter(|layout| *layout != STORED)?;
            layouts.push(in_place);
        }
        Some(entry)
    }
}

#[cfg(test)]
mod tests {
    use super::super::CtfTrace;
    use super::super::kind::Selection;
    use super::super::stream::InOrder;
    use super::STORED;
    use crate::batch::LOST;
    use crate::lane::Sequence;
    use crate::{Batch, FieldKind, Request};
    use std::fs;
    use std::path::{Path, PathBuf};
    use std::sync::Arc;

    /// What both ways must agree on.
    #[derive(Debug, Default, PartialEq)]
    struct Told {
        /// Time, kind, CPU, thread, fields.
        events: Vec<(u64, u16, u32, i32, Vec<String>)>,
        tally: Vec<u64>,
        spans_ns: Vec<(u64, u64)>,
        problems: Vec<String>,
    }

    /// What `trace` tells, and how many of its events were left in place; `quickly`: if they can be.
    fn told(trace: &CtfTrace, quickly: bool) -> (Told, usize) {
        let types = &trace.facts.event_types;
        let request = Request::everything(&trace.facts);
        let (mut told, mut in_place) = (Told { tally: vec![0; types.len()], ..Told::default() }, 0);
        for stream in &trace.streams {
            let Selection { steps, in_place: quick } = trace.kinds[stream.kind].select(&request, types);
            let selection = Selection { steps, in_place: quick.filter(|_| quickly) };
            let mut sequence = InOrder::new(trace.reader(stream, Arc::new(selection), None));
            let mut batch = Batch::default();
            batch.clear(types.len());
            while sequence.decode_next(&mut batch) {
                in_place += batch.rows.iter().filter(|row| row.layout != STORED).count();
                for row in batch.rows.iter() {
                    let fields = batch.fields(row);
                    let shown = |(place, kind)| match kind {
                        FieldKind::Text | FieldKind::Bytes => format!("{:?}", fields.content(place)),
                        _ => format!("{:?}", fields.get(place)),
                    };
                    let kinds: Vec<FieldKind> = match row.kind {
                        LOST => vec![FieldKind::Unsigned; 2],
                        kind => types[usize::from(kind)].fields.iter().map(|field| field.kind).collect(),
                    };
                    let shown = kinds.into_iter().enumerate().map(shown).collect();
                    told.events.push((row.time_ns, row.kind, row.cpu, row.tid, shown));
                }
                told.tally.iter_mut().zip(&batch.tally).for_each(|(sum, count)| *sum += u64::from(*count));
                told.spans_ns.extend(batch.span_ns);
                told.problems.extend(batch.problems.iter().map(|problem| problem.text.clone()));
                batch.clear(types.len());
            }
        }
        (told, in_place)
    }

    /// Copies the files of the bundled cut to `to`, each changed by `change`.
    fn copy(to: &Path, change: impl Fn(&str, Vec<u8>) -> Vec<u8>) {
        let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/lttng-svm-l0/L0/ctf");
        let files = fs::read_dir(&fixture).unwrap().map(|entry| entry.unwrap().path());
        for path in files.filter(|path: &PathBuf| path.is_file()) {
            let name = path.file_name().unwrap().to_str().unwrap();
            fs::write(to.join(name), change(name, fs::read(&path).unwrap())).unwrap();
        }
    }

    #[test]
    fn events_left_in_their_packet_tell_what_the_steps_tell() {
        let directory = tempfile::tempdir().unwrap();
        copy(directory.path(), |_, bytes| bytes);
        let trace = CtfTrace::open(directory.path()).unwrap();
        let ((quick, in_place), (stepwise, none)) = (told(&trace, true), told(&trace, false));
        assert_eq!(none, 0);
        assert!(in_place * 2 > quick.events.len(), "{in_place} of {} events", quick.events.len());
        assert!(quick == stepwise, "{} events, {} by steps", quick.events.len(), stepwise.events.len());
    }

    #[test]
    fn damaged_and_broken_off_packets_tell_the_same_both_ways() {
        let directory = tempfile::tempdir().unwrap();
        for round in 0..24_usize {
            copy(directory.path(), |name, mut bytes| {
                if name != "metadata" {
                    let (length, mut state) = (bytes.len(), round as u64 + 1);
                    for _ in 0..round {
                        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                        bytes[(state >> 20) as usize % length] = (state >> 56) as u8;
                    }
                    bytes.truncate(length - round * 37);
                }
                bytes
            });
            let trace = CtfTrace::open(directory.path()).unwrap();
            let (quick, stepwise) = (told(&trace, true).0, told(&trace, false).0);
            assert!(!quick.events.is_empty());
            assert!(quick == stepwise, "round {round}: {:?} and {:?}", quick.problems, stepwise.problems);
        }
    }
}
