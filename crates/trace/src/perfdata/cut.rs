//! How does a window of time become a perf.data of its own?
//!
//! ```text
//! what describes   attributes, features, perf's own records    as it stands
//! in time order    [ names, samples, .. |== window ==| .. ]
//!                    names, at time 0     all records          names: threads, what they have mapped, the kernel's symbols
//! ```
//! In: a file and a window on the axis that starts at its first event. Out: a file of the same form and byte order. Its
//! records are unpacked, in the order of time, and byte for byte as they were; a name from before the window gets time 0,
//! as perf gives it to what ran before it began, so that the new file begins with the window. What was counted over the
//! whole recording (LOST_SAMPLES without a time, counts of `perf stat`) is left out.
//!
//! Hardware traces (AUX, such as Intel PT) are refused: their bytes can be decoded only in their order, and no record tells
//! which of them belong to a window.

use super::PerfData;
use super::container::{FILE_HEADER, PIPE_HEADER, SECTION, feature};
use super::order::Timed;
use super::records::{HEADER, Record, RecordKind};
use crate::Error;
use crate::write::layout::Machine;
use base::{Problem, Problems, Span};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::Path;

/// Records between two rounds: perf holds those of two rounds for sorting.
const ROUND: u64 = 512;

/// Feature sections that do not fit the new file: it is one file, its records are not packed.
const NOT_KEPT: &[u32] = &[feature::DIR_FORMAT, feature::COMPRESSED];

/// Bits that say which features a file has (`HEADER_FEAT_BITS` in tools/perf/util/header.h, Linux 6.12).
const FEATURE_BITS: usize = 256;

/// Writes what `window` (ns since the file's first event) has of `from` to a new file `to`; returns what was wrong with
/// `from`.
///
/// # Errors
/// If `from` cannot be opened as a perf.data or holds a hardware trace, or if `to` is already there or cannot be written.
pub fn cut(from: &Path, to: &Path, window: Span) -> Result<Vec<Problem>, Error> {
    let trace = PerfData::open(from)?;
    if has_hardware_trace(&trace) {
        return Err(Error::Unsupported {
            file: from.to_owned(),
            reason: "it holds a hardware trace (AUX, such as Intel PT), which cannot be cut; record without it, or \
                     decode it with perf inject --itrace first"
                .into(),
        });
    }
    let origin_ns = crate::replay::origin_ns(&trace, None);
    let window =
        Span { from_ns: window.from_ns.saturating_add(origin_ns), to_ns: window.to_ns.saturating_add(origin_ns) };
    let io = |source| Error::Io { file: to.to_owned(), source };
    // A new file only: writing over the one that is read would take it away under the reader.
    let file = OpenOptions::new().write(true).create_new(true).open(to).map_err(io)?;
    let machine = Machine { endian: trace.container.endian, long_bytes: 8 };
    let mut problems = Problems::default();
    problems.extend(trace.facts.problems.iter().cloned());
    let out = BufWriter::new(file);
    let cut = Cut { trace: &trace, machine, window, out, records: 0, samples: None, problems };
    cut.write().map_err(|source| {
        // Half a file looks like a damaged recording. If it cannot be removed either, the first refusal is told.
        let _ = std::fs::remove_file(to);
        io(source)
    })
}

fn has_hardware_trace(trace: &PerfData) -> bool {
    let mut records = trace.records();
    // What is damaged is reported when it is read for the cut.
    let mut unreported = Problems::default();
    trace.container.features.contains_key(&feature::AUXTRACE)
        || std::iter::from_fn(|| records.next(&mut unreported)).any(|record| record.kind.is_hardware_trace())
}

/// A file in the making.
struct Cut<'t> {
    trace: &'t PerfData,
    machine: Machine,
    /// On the clock's own axis.
    window: Span,
    out: BufWriter<File>,
    /// Records of the kernel written so far.
    records: u64,
    /// Times of the first and the last sample.
    samples: Option<(u64, u64)>,
    problems: Problems,
}

impl Cut<'_> {
    fn write(mut self) -> io::Result<Vec<Problem>> {
        let attributes = if self.trace.container.pipe {
            self.out.write_all(&self.trace.bytes[..PIPE_HEADER as usize])?;
            0
        } else {
            self.attributes()?
        };
        let data = self.out.stream_position()?;
        self.descriptions()?;
        let mut ordered = self.trace.ordered();
        while let Some(record) = ordered.next(&mut self.problems) {
            self.record(record)?;
        }
        if self.records > 0 {
            self.put(RecordKind::FINISHED_ROUND, 0, &[])?;
        }
        if !self.trace.container.pipe {
            self.finish(attributes, data)?;
        }
        self.out.flush()?;
        Ok(self.problems.list().to_vec())
    }

    /// Room for the header, the ids of all events, their attributes. Returns where the attributes begin.
    fn attributes(&mut self) -> io::Result<u64> {
        let mut head = vec![0; FILE_HEADER];
        let attrs = &self.trace.attrs.list;
        attrs.iter().flat_map(|attr| &attr.ids).for_each(|id| self.machine.put(&mut head, *id, 8));
        let begin = head.len() as u64;
        let mut ids_at = FILE_HEADER as u64;
        for (attr, place) in attrs.iter().zip(&self.trace.container.attr_places) {
            head.extend_from_slice(&self.trace.bytes[place.clone()]);
            let ids_bytes = 8 * attr.ids.len() as u64;
            self.machine.put(&mut head, ids_at, 8);
            self.machine.put(&mut head, ids_bytes, 8);
            ids_at += ids_bytes;
        }
        self.out.write_all(&head)?;
        Ok(begin)
    }

    /// perf's own records that describe the others, with the bytes that trail them.
    fn descriptions(&mut self) -> io::Result<()> {
        let mut records = self.trace.records();
        // Damage is met again when the records are read in order.
        let mut unreported = Problems::default();
        while let Some(Record { kind, body, trailer, offset, .. }) = records.next(&mut unreported) {
            let fits = || {
                let number = body.get(..8).map(|number| self.machine.endian.unsigned(number) as u32);
                kind != RecordKind::FEATURE || number.is_some_and(|number| !NOT_KEPT.contains(&number))
            };
            if kind.is_description() && fits() {
                self.out.write_all(&self.trace.bytes[offset as usize..trailer.end])?;
            }
        }
        Ok(())
    }

    /// Writes a record of the kernel, if the window has it or names follow from it.
    fn record(&mut self, record: Timed<'_>) -> io::Result<()> {
        let Timed { time, kind, misc, mut body, offset } = record;
        let endian = self.machine.endian;
        let is_inside = (self.window.from_ns..self.window.to_ns).contains(&time);
        let place = self.trace.attrs.list[0].time_in_other(body.len()).filter(|_| kind != RecordKind::SAMPLE);
        let own = place.and_then(|at| body.get(at..at + 8)).map(|time| endian.unsigned(time));
        let is_kept = match kind {
            RecordKind::SAMPLE if is_inside && !self.is_readable(&body, time) => {
                self.note_sample(offset, body.len());
                false
            }
            RecordKind::LOST_SAMPLES if own.is_none_or(|own| own == 0) => false,
            kind if kind.is_name() => time < self.window.to_ns,
            kind => kind.is_kernels() && is_inside,
        };
        if !is_kept {
            return Ok(());
        }
        if let Some(at) = place.filter(|_| time < self.window.from_ns) {
            body.to_mut()[at..at + 8].fill(0);
        }
        if kind == RecordKind::SAMPLE {
            self.samples = Some((self.samples.map_or(time, |(first, _)| first), time));
        }
        self.put(kind, misc, &body)?;
        self.records += 1;
        if self.records.is_multiple_of(ROUND) {
            self.put(RecordKind::FINISHED_ROUND, 0, &[])?;
        }
        Ok(())
    }

    /// A sample of one of the file's events, with the time by which it was put in order.
    fn is_readable(&self, body: &[u8], time: u64) -> bool {
        let attrs = &self.trace.attrs;
        let own = || attrs.time(RecordKind::SAMPLE, body, self.machine.endian);
        attrs.of_sample(body, self.machine.endian).is_some() && own().is_none_or(|own| own == time)
    }

    fn note_sample(&mut self, offset: u64, length: usize) {
        self.problems.note(Problem::at(
            self.trace.facts.path.display().to_string(),
            offset,
            "a sample of one of the file's events, with a time near the others",
            "another one",
            length as u64,
            "samples of perf.data that belong to none of its events, or have an impossible time, were left out",
        ));
    }

    fn put(&mut self, kind: RecordKind, misc: u16, body: &[u8]) -> io::Result<()> {
        let mut head = Vec::with_capacity(HEADER);
        self.machine.put(&mut head, u64::from(kind.0), 4);
        self.machine.put(&mut head, u64::from(misc), 2);
        self.machine.put(&mut head, (HEADER + body.len()) as u64, 2);
        self.out.write_all(&head)?;
        self.out.write_all(body)
    }

    /// Features behind the records, and the header.
    fn finish(&mut self, attributes: u64, data: u64) -> io::Result<()> {
        let trace = self.trace;
        let mut features: BTreeMap<u32, Cow<'_, [u8]>> = BTreeMap::new();
        for (number, place) in trace.container.features.iter().filter(|(number, _)| !NOT_KEPT.contains(number)) {
            features.insert(*number, Cow::Borrowed(&trace.bytes[place.clone()]));
        }
        if let (Some(times), Some((first, last))) = (features.get_mut(&feature::SAMPLE_TIME), self.samples) {
            let mut own = Vec::new();
            [first, last].into_iter().for_each(|time| self.machine.put(&mut own, time, 8));
            *times = Cow::Owned(own);
        }
        let behind_data = self.out.stream_position()?;
        let mut table = Vec::new();
        let mut at = behind_data + (SECTION * features.len()) as u64;
        let mut bits = [0u64; FEATURE_BITS / 64];
        for (number, content) in &features {
            self.machine.put(&mut table, at, 8);
            self.machine.put(&mut table, content.len() as u64, 8);
            at += content.len() as u64;
            bits[*number as usize / 64] |= 1 << (number % 64);
        }
        self.out.write_all(&table)?;
        features.values().try_for_each(|content| self.out.write_all(content))?;
        let attr_bytes = trace.container.attr_places.first().map_or(0, ExactSizeIterator::len);
        let sections = [attributes, data - attributes, data, behind_data - data, 0, 0];
        let mut head = trace.bytes[..8].to_vec();
        for number in [FILE_HEADER as u64, (attr_bytes + SECTION) as u64].into_iter().chain(sections).chain(bits) {
            self.machine.put(&mut head, number, 8);
        }
        self.out.seek(SeekFrom::Start(0))?;
        self.out.write_all(&head)
    }
}
