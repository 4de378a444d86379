//! What happened, according to a CTF trace (Common Trace Format 1.8 and 2)?
//!
//! In: a directory that holds `metadata` and stream files, or holds such directories. Out: a [`Trace`].
//! ```text
//! find -> metadata -> tsdl (1.8) --+
//!                  \-> json (2) ---+-> model -> compile -> program
//! stream files -> packet (index) ------------> stream: machine runs the program -> Batch
//! ```
//! Sources: CTF 1.8.3 (diamon.org/ctf/v1.8.3), CTF2-SPEC-2.0, CTF2-FS-1.0, CTF2-PMETA-1.0; LTTng's headers and names
//! as lttng-modules 2.13 writes them.
//!
//! Fields of structures are called `outer.inner`, fields of contexts come after the payload's (as `context.name` where
//! the payload has that name too). Arrays, and variants whose options differ in kind, are text in printed form:
//! `[ 1, 2 ]`, `[ { a = 1, b = "x" } ]`; other variants have the value of the selected option. An absent optional field
//! is absent. Text of fixed or counted length ends at its first NUL. A name's first underscore is CTF 1.8's, not ours.
//!
//! What packets state as lost stands as a loss record before their events, and once more as a sum per stream in
//! [`Facts::losses`]: count one of the two.

pub mod bits;
mod compile;
mod coverage;
mod cut;
mod fast;
mod find;
mod in_place;
mod json;
mod kind;
mod machine;
mod metadata;
mod model;
mod packet;
mod program;
mod stream;
mod tsdl;

pub use cut::{Cut, cut};

use crate::facts::StatedLoss;
use crate::mapped::MappedFile;
use crate::{Error, Facts, Format, Lane, Reading, Source, Trace};
use base::{Clock, Problem};
use coverage::Seen;
use kind::{EventTypes, Selection, StreamKind};
use metadata::Metadata;
use model::Schema;
use packet::{Packet, StreamFile};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use stream::{InOrder, Reader, TraceFile};

/// True if `path` is a CTF trace, holds one, or is the metadata of one. The bytes of `metadata` decide.
pub fn sniff(path: &Path) -> bool {
    !find::traces(path).is_empty()
}

/// Opens the CTF traces at or below `path` as one.
///
/// # Errors
/// If there is none, a file cannot be read, or the metadata is damaged.
pub fn open(path: &Path) -> Result<Box<dyn Trace>, Error> {
    Ok(Box::new(CtfTrace::open(path)?))
}

/// The CTF traces below one directory.
pub(crate) struct CtfTrace {
    facts: Facts,
    kinds: Vec<StreamKind>,
    files: Vec<TraceFile>,
    streams: Vec<Stream>,
    directories: Vec<PathBuf>,
    /// What each of `files` gave.
    seen: Vec<Seen>,
}

/// One stream: packets of one or several files.
struct Stream {
    name: String,
    kind: usize,
    cpu: Option<u32>,
    packets: Vec<Packet>,
}

impl CtfTrace {
    fn open(path: &Path) -> Result<Self, Error> {
        let directories = find::traces(path);
        if directories.is_empty() {
            let found = "no `metadata` file below it starts like CTF".to_owned();
            return Err(Error::UnknownFormat { file: path.to_owned(), found });
        }
        let facts = Facts::new(path.to_owned(), Format::Ctf1, Clock::uncalibrated("none"));
        let mut trace =
            Self { facts, kinds: Vec::new(), files: Vec::new(), streams: Vec::new(), directories, seen: Vec::new() };
        let mut event_types = EventTypes::default();
        for number in 0..trace.directories.len() {
            let directory = trace.directories[number].clone();
            match trace.take_in(&directory, &mut event_types) {
                Ok(()) => {}
                // One of several traces can be read without the others.
                Err(error) if trace.directories.len() > 1 => trace.note_unreadable(&directory, error),
                Err(error) => return Err(error),
            }
        }
        trace.facts.event_types = event_types.list;
        trace.describe();
        Ok(trace)
    }

    /// Adds the trace in `directory`.
    fn take_in(&mut self, directory: &Path, event_types: &mut EventTypes) -> Result<(), Error> {
        let metadata = Metadata::read(&directory.join("metadata"))?;
        let schema = if metadata.is_json() { json::parse(&metadata)? } else { tsdl::parse(&metadata)? };
        if self.kinds.is_empty() {
            self.take_origin(&schema);
        }
        let (first_kind, mut classes) = (self.kinds.len(), 0);
        for class in &schema.streams {
            let kind = StreamKind::compile(&schema, class, event_types, &mut classes);
            self.kinds.push(kind.map_err(|error| {
                metadata.damaged(0, "references to earlier integers, and a bounded number of fields", error)
            })?);
        }
        let mut packets = Vec::new();
        self.facts.bytes += metadata.bytes;
        for path in find::streams(directory)? {
            let name = path.display().to_string();
            let content = match MappedFile::open(&path) {
                Ok(content) => Arc::new(content),
                Err(error) => {
                    let text = format!("{error}; this stream is skipped");
                    let expected = "a stream that can be read".to_owned();
                    self.facts.problems.push(Problem::at(name, None, expected, error.to_string(), 0, text));
                    continue;
                }
            };
            let file = TraceFile { path, name, content };
            let (name, number, data) = (&file.name, self.files.len(), &file.content[..]);
            self.facts.bytes += data.len() as u64;
            let kinds = &self.kinds[first_kind..];
            let found = StreamFile { name, number, data }.packets(kinds, first_kind, &mut self.facts.problems);
            self.seen.push(Seen::of(&file.path, &found));
            packets.extend(found);
            self.files.push(file);
        }
        self.group(packets);
        Ok(())
    }

    /// Notes that one of several traces is left out.
    fn note_unreadable(&mut self, directory: &Path, error: Error) {
        let (offset, expected, found) = match &error {
            Error::Damaged { offset, expected, found, .. } => (Some(*offset), expected.clone(), found.clone()),
            _ => (None, "a trace that can be read".to_owned(), error.to_string()),
        };
        let file = directory.join("metadata").display().to_string();
        let text = format!("{error}; the trace in this directory is skipped");
        self.facts.problems.push(Problem::at(file, offset, expected, found, 0, text));
    }

    fn take_origin(&mut self, schema: &Schema) {
        self.facts.format = schema.format;
        self.facts.env.clone_from(&schema.env);
        self.facts.hostname = schema.env.get("hostname").cloned();
        self.facts.uname = match (schema.env.get("kernel_release"), schema.env.get("kernel_version")) {
            (Some(release), Some(version)) => Some(format!("{release} {version}")),
            (release, _) => release.cloned(),
        };
    }

    /// Sorts packets into streams: by what they say, else by file.
    fn group(&mut self, packets: Vec<Packet>) {
        let mut streams: Vec<Stream> = Vec::new();
        let mut places: FxHashMap<(usize, Option<u64>, usize), usize> = FxHashMap::default();
        for packet in packets {
            let file = if packet.instance.is_some() { usize::MAX } else { packet.file };
            let place = *places.entry((packet.kind, packet.instance, file)).or_insert(streams.len());
            if place == streams.len() {
                let cpu = packet.cpu.and_then(|cpu| u32::try_from(cpu).ok());
                let name = self.files[packet.file].name.clone();
                streams.push(Stream { name, kind: packet.kind, cpu, packets: Vec::new() });
            }
            streams[place].packets.push(packet);
        }
        for stream in &mut streams {
            // Several files of one stream (LTTng's rotating trace files) are put in the order of time.
            if stream.packets.iter().all(|packet| packet.begin.is_some()) {
                stream.packets.sort_by_key(|packet| (packet.begin, packet.file, packet.from));
            }
            packet::note_losses(&mut stream.packets);
        }
        self.streams.extend(streams);
    }

    /// Fills in the facts that all streams together give.
    fn describe(&mut self) {
        let mut cpus: Vec<u32> = self.streams.iter().filter_map(|stream| stream.cpu).collect();
        cpus.sort_unstable();
        cpus.dedup();
        self.facts.cpus = if cpus.is_empty() { self.streams.len() } else { cpus.len() } as u32;
        let clock = self.streams.iter().find_map(|stream| self.kinds[stream.kind].clock.clone());
        match clock.or_else(|| self.kinds.iter().find_map(|kind| kind.clock.clone())) {
            Some(clock) => self.facts.clock = clock,
            None => {
                let file = self.facts.path.display().to_string();
                let text = format!("{file}: the trace describes no clock, so one tick is shown as one nanosecond");
                self.facts.problems.push(Problem::remark(file, "a clock", "none", text));
            }
        }
        coverage::describe(self);
        // Several streams may have one CPU, or none that is known.
        let mut stated: BTreeMap<(Option<u32>, &str), u64> = BTreeMap::new();
        for stream in &self.streams {
            for lost in stream.packets.iter().filter_map(|packet| packet.lost) {
                for (kind, count) in [("discarded events", lost.events), ("lost packets", lost.packets)] {
                    let sum = stated.entry((stream.cpu, kind)).or_default();
                    *sum = sum.saturating_add(count);
                }
            }
        }
        let stated = stated.into_iter().filter(|(_, count)| *count > 0);
        let loss = |((cpu, kind), count): ((Option<u32>, &str), u64)| StatedLoss { cpu, kind: kind.to_owned(), count };
        self.facts.losses.extend(stated.map(loss));
    }
}

impl CtfTrace {
    fn reader<'t>(&'t self, stream: &'t Stream, selection: Arc<Selection>, fitted: Option<&Clock>) -> Reader<'t> {
        let kind = &self.kinds[stream.kind];
        let clock = kind.clock.as_ref().or(fitted).unwrap_or(&self.facts.clock);
        Reader {
            kind,
            packets: &stream.packets,
            files: &self.files,
            selection,
            event_types: self.facts.event_types.len(),
            clock: clock.clone(),
        }
    }
}

impl Trace for CtfTrace {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn torn(&self) -> Vec<String> {
        self.files.iter().filter(|file| file.content.is_torn()).map(|file| file.name.clone()).collect()
    }

    fn lanes<'t>(&'t self, reading: &'t Reading<'t>) -> Vec<Lane<'t>> {
        let select = |kind: &StreamKind| Arc::new(kind.select(reading.request, &self.facts.event_types));
        let selections: Vec<_> = self.kinds.iter().map(select).collect();
        let lane = |stream: &'t Stream| {
            let reader = self.reader(stream, selections[stream.kind].clone(), reading.fitted.as_ref());
            let source = Source::Sequence(Box::new(InOrder::new(reader)));
            let bytes = stream.packets.iter().map(|packet| packet.to - packet.from).sum();
            Lane { name: stream.name.clone(), cpu: stream.cpu, bytes, source }
        };
        self.streams.iter().map(lane).collect()
    }
}

impl Stream {
    /// True if each packet can be read without those before it.
    fn stands_alone(&self, kind: &StreamKind) -> bool {
        let whole_stamps = kind.shortest_time.is_some_and(|bits| bits == 64);
        self.packets.iter().all(|packet| whole_stamps || packet.begin.is_some())
    }
}
