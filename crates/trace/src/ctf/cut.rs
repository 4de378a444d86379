//! A smaller trace: the events of a stretch of time, in a directory of the same shape.
//!
//! ```text
//! | header, context | e e e e e e e e e | padding |      the bytes of events are copied as they are;
//! | header, context | e e e e |                          sizes and times in the context are written anew
//! ```
//! The metadata is copied. An event keeps its bytes only if it keeps its place modulo the largest alignment of its
//! stream, so a packet may start with a few events before the stretch. Streams whose time stamps need all that came
//! before (short stamps and no begin in the packet context) are cut at their end only.

use super::model::Role;
use super::packet::Packet;
use super::stream::Reader;
use super::{CtfTrace, Stream};
use crate::{Batch, Error, Request};
use base::Problem;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What a cut has written.
#[derive(Debug, Clone, Default)]
pub struct Cut {
    /// Events, those before the stretch included that alignment made it keep.
    pub events: u64,
    /// Packets.
    pub packets: u64,
    /// Bytes of stream files.
    pub bytes: u64,
    /// Time of the earliest of them since the original's first event.
    pub from_ns: u64,
    /// What was wrong with the original.
    pub problems: Vec<Problem>,
}

/// One event: where it starts and ends in its packet (bits), and when it was.
#[derive(Debug, Clone, Copy)]
struct Place {
    start: u64,
    end: u64,
    ticks: u64,
    time_ns: u64,
}

/// Writes the events of `[from_ns, to_ns)`, counted from the trace's first event, as a trace into the directory `out`.
///
/// # Errors
/// If `path` is no CTF trace, a file of `out` is there already or cannot be written, or a packet's sizes are stored in
/// a way that does not let them be changed.
pub fn cut(path: &Path, out: &Path, from_ns: u64, to_ns: u64) -> Result<Cut, Error> {
    let trace = CtfTrace::open(path)?;
    let mut cut = Cut { problems: trace.facts.problems.clone(), ..Cut::default() };
    let nothing = Request::default();
    let selections: Vec<_> =
        trace.kinds.iter().map(|kind| Arc::new(kind.select(&nothing, &trace.facts.event_types))).collect();
    let reader = |stream: usize| {
        let stream = &trace.streams[stream];
        trace.reader(stream, Arc::clone(&selections[stream.kind]), None)
    };
    let firsts = (0..trace.streams.len()).filter_map(|stream| first_event_ns(&reader(stream)));
    let origin = firsts.min().unwrap_or(0);
    let stretch = origin.saturating_add(from_ns)..origin.saturating_add(to_ns);
    let root = if path.is_file() { path.parent().unwrap_or(path) } else { path };
    for directory in &trace.directories {
        let from = directory.join("metadata");
        let bytes = base::files::read(&from, super::metadata::MOST_BYTES)
            .map_err(|source| Error::Io { file: from.clone(), source })?;
        create(&below(out, root, &from))?.put(&bytes)?;
    }
    let mut files: BTreeMap<usize, Output> = BTreeMap::new();
    let mut earliest_ns = stretch.start;
    for (number, stream) in trace.streams.iter().enumerate() {
        let mut writer = Writer { reader: reader(number), before: None, earliest_ns: &mut earliest_ns, cut: &mut cut };
        writer.stream(stream, &stretch, |file, bytes| {
            let output = match files.entry(file) {
                Entry::Occupied(entry) => entry.into_mut(),
                Entry::Vacant(entry) => entry.insert(create(&below(out, root, &trace.files[file].path))?),
            };
            output.put(bytes)
        })?;
    }
    cut.from_ns = earliest_ns.saturating_sub(origin);
    Ok(cut)
}

fn below(out: &Path, root: &Path, file: &Path) -> PathBuf {
    out.join(file.strip_prefix(root).unwrap_or(file))
}

/// A file being written.
struct Output {
    path: PathBuf,
    file: File,
}

fn create(path: &Path) -> Result<Output, Error> {
    let refused = |source| Error::Io { file: path.to_owned(), source };
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(refused)?;
    }
    let file = OpenOptions::new().write(true).create_new(true).open(path).map_err(refused)?;
    Ok(Output { path: path.to_owned(), file })
}

impl Output {
    fn put(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.file.write_all(bytes).map_err(|source| Error::Io { file: self.path.clone(), source })
    }
}

/// Events of a packet up to the first that cannot be read.
fn places(reader: &Reader<'_>, index: usize, ticks: &mut u64) -> Vec<Place> {
    let packet = &reader.packets[index];
    let mut batch = Batch::default();
    batch.clear(reader.event_types);
    let mut places = Vec::new();
    let Ok(mut machine) = reader.opened(packet, &mut batch) else { return places };
    machine.ticks = packet.begin.unwrap_or(*ticks);
    while machine.at < machine.end {
        let start = machine.at;
        if reader.event(&mut machine, 0, &mut batch).is_err() || machine.at == start {
            break;
        }
        *ticks = machine.ticks;
        places.push(Place { start, end: machine.at, ticks: *ticks, time_ns: reader.clock.ns(*ticks) });
    }
    places
}

fn first_event_ns(reader: &Reader<'_>) -> Option<u64> {
    let mut ticks = 0;
    (0..reader.packets.len()).find_map(|index| places(reader, index, &mut ticks).first().map(|place| place.time_ns))
}

/// What a stream had counted before its first packet in the stretch.
#[derive(Debug, Clone, Copy)]
struct Before {
    lost: u64,
    /// Packets: a stream whose first packet has another number than 0 would look like one that begins too late.
    packets: u64,
}

/// Cuts one stream.
struct Writer<'t> {
    reader: Reader<'t>,
    /// What the stream had counted before the stretch; counts start from there.
    before: Option<Before>,
    /// Time of the earliest event of all streams that was kept.
    earliest_ns: &'t mut u64,
    cut: &'t mut Cut,
}

impl Writer<'_> {
    fn stream(
        &mut self,
        stream: &Stream,
        stretch: &Range<u64>,
        mut put: impl FnMut(usize, &[u8]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let from_ns = if stream.stands_alone(self.reader.kind) { stretch.start } else { 0 };
        // Empty packets are kept if they stand between others, so that their numbers stay without gaps.
        let mut held_back = Vec::new();
        let mut ticks = 0;
        for index in 0..self.reader.packets.len() {
            let places = places(&self.reader, index, &mut ticks);
            let inside = |place: &Place| (from_ns..stretch.end).contains(&place.time_ns);
            let (first, last) = (places.iter().position(inside), places.iter().rposition(inside));
            if let (Some(first), Some(last)) = (first, last) {
                for index in held_back.drain(..) {
                    self.packet(index, &[], 0..0, &mut put)?;
                }
                self.packet(index, &places, first..last + 1, &mut put)?;
            } else if self.before.is_some() {
                held_back.push(index);
            }
        }
        Ok(())
    }

    /// Copies a packet with those of its events that are `wanted`, and those before them that alignment demands.
    fn packet(
        &mut self,
        index: usize,
        places: &[Place],
        wanted: Range<usize>,
        put: &mut impl FnMut(usize, &[u8]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let reader = &self.reader;
        let packet = &reader.packets[index];
        let data = reader.bytes_of(packet);
        // The index holds only packets whose header and context can be read.
        let Ok(machine) = reader.opened(packet, &mut Batch::default()) else { return Ok(()) };
        let start = |at: u64| at.next_multiple_of(u64::from(reader.kind.header_align));
        let align = u64::from(reader.kind.largest_align.max(8));
        let behind_context = start(machine.at);
        let fits = |place: &Place| start(place.start) % align == behind_context % align;
        let movable = behind_context.is_multiple_of(8);
        let first = (0..=wanted.start).rev().find(|at| *at > 0 && movable && places.get(*at).is_some_and(fits));
        let first = first.unwrap_or(0);
        let kept = &places[first..wanted.end];
        let (mut bytes, content_bits) = match (kept.first(), kept.last()) {
            (Some(from), Some(to)) if first > 0 => {
                let from = start(from.start);
                let tail = &data[(from / 8) as usize..to.end.div_ceil(8) as usize];
                ([&data[..(behind_context / 8) as usize], tail].concat(), to.end - from + behind_context)
            }
            (_, Some(to)) => (data[..to.end.div_ceil(8) as usize].to_vec(), to.end),
            _ => (data[..machine.at.div_ceil(8) as usize].to_vec(), machine.at),
        };
        let packet_bits = bytes.len() as u64 * 8;
        let mut set = |role, value| match (machine.role(role), machine.place(role)) {
            (None, _) => Ok(()),
            (Some(_), Some((at, shape))) => {
                shape.write(&mut bytes, at, value);
                Ok(())
            }
            (Some(_), None) => Err(Error::Unsupported {
                file: reader.files[packet.file].path.clone(),
                reason: format!("the {role:?} of its packets has no fixed length, so the trace cannot be cut"),
            }),
        };
        set(Role::ContentSize, content_bits)?;
        set(Role::PacketSize, packet_bits)?;
        if let Some(from) = kept.first().filter(|_| first > 0) {
            set(Role::Begin, from.ticks)?;
        }
        if let Some(to) = kept.last().filter(|_| wanted.end < places.len()) {
            set(Role::End, to.ticks)?;
        }
        let before = *self.before.get_or_insert_with(|| {
            let lost = |packet: &Packet| packet.discarded.map_or(0, |(lost, _)| lost);
            let earlier = index.checked_sub(1).map_or(0, |earlier| lost(&reader.packets[earlier]));
            // What was lost before a packet that starts later now was lost before the stretch.
            let lost = if first > 0 { lost(packet) } else { earlier };
            Before { lost, packets: packet.sequence.map_or(0, |(number, _)| number) }
        });
        if let Some((lost, _)) = packet.discarded {
            set(Role::Discarded, lost.wrapping_sub(before.lost))?;
        }
        if let Some((number, _)) = packet.sequence {
            set(Role::Sequence, number.wrapping_sub(before.packets))?;
        }
        if let Some(from) = kept.first() {
            *self.earliest_ns = from.time_ns.min(*self.earliest_ns);
        }
        self.cut.events += kept.len() as u64;
        self.cut.packets += 1;
        self.cut.bytes += bytes.len() as u64;
        put(packet.file, &bytes)
    }
}
