//! How does a perf.data file hold tracepoints?
//!
//! ```text
//! header | ids | attrs, one per kind of event | data: COMM.. SAMPLE.. LOST.. FINISHED_ROUND.. | feature table | features
//! ```
//! In: a [`Schema`] and records. Out: the file form, as `perf record -a -e ... -k mono` leaves it: every sample has
//! IDENTIFIER, TID, TIME, CPU and RAW, and the format texts stand in the feature TRACING_DATA. Records go to the file
//! as they come; sizes are filled in at the end. Sources: tools/perf/Documentation/perf.data-file-format.txt,
//! include/uapi/linux/perf_event.h and tools/perf/util/trace-event-info.c of Linux 6.1.

use super::layout::{Machine, encode, place_all};
use super::tracedat::{TraceDat, Version, parts};
use super::{Loss, Record, Schema, Sink, unknown_event};
use crate::format::{Endian, EventFormat};
use std::fs::File;
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::Path;

const MAGIC: u64 = u64::from_le_bytes(*b"PERFILE2");
const HEADER_BYTES: u64 = 104;
/// `perf_event_attr` in its seventh size, and the section that says where its ids are.
const ATTR_BYTES: u64 = 128;
const ATTR_ENTRY_BYTES: u64 = ATTR_BYTES + 16;

const TYPE_TRACEPOINT: u64 = 2;
const SAMPLE_TID: u64 = 1 << 1;
const SAMPLE_TIME: u64 = 1 << 2;
const SAMPLE_CPU: u64 = 1 << 7;
const SAMPLE_RAW: u64 = 1 << 10;
const SAMPLE_IDENTIFIER: u64 = 1 << 16;
/// Bits of the attribute's flag word, counted as a little-endian machine lays them.
const FLAG_SAMPLE_ID_ALL: u32 = 18;
const FLAG_USE_CLOCKID: u32 = 25;
const CLOCK_MONOTONIC: u64 = 1;

const RECORD_LOST: u64 = 2;
const RECORD_COMM: u64 = 3;
const RECORD_SAMPLE: u64 = 9;
const RECORD_FINISHED_ROUND: u64 = 68;
const MISC_KERNEL: u64 = 1;

const FEATURE_TRACING_DATA: u32 = 1;
const FEATURE_HOSTNAME: u32 = 3;
const FEATURE_OSRELEASE: u32 = 4;
const FEATURE_NRCPUS: u32 = 7;
const FEATURE_CLOCKID: u32 = 23;

/// Samples after which a round is finished: perf may sort and hand out what came before the round before.
const ROUND: u64 = 512;

/// What the file says beside its events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Style {
    /// Byte order. `perf` itself reads both; a sample's RAW is in it too.
    pub endian: Endian,
    /// Thread names.
    pub comms: Vec<(i32, String)>,
    /// What `uname -r` says.
    pub release: String,
    /// CPUs of the machine.
    pub cpus: u32,
}

/// Takes records and writes a perf.data.
pub struct PerfData {
    out: BufWriter<File>,
    style: Style,
    formats: Vec<EventFormat>,
    raw: Vec<u8>,
    buffer: Vec<u8>,
    data_offset: u64,
    samples: u64,
}

impl PerfData {
    /// Begins a perf.data at `path`.
    ///
    /// # Errors
    /// If the file cannot be made.
    pub fn create(path: &Path, schema: &Schema, style: Style) -> io::Result<Self> {
        let machine = style.machine();
        let formats = place_all(schema, machine);
        let mut head = vec![0; HEADER_BYTES as usize];
        for id in 0..formats.len() as u64 {
            machine.put(&mut head, sample_id(id as usize), 8);
        }
        for (index, format) in formats.iter().enumerate() {
            attribute(&mut head, machine, format);
            machine.put(&mut head, HEADER_BYTES + 8 * index as u64, 8);
            machine.put(&mut head, 8, 8);
        }
        let mut out = BufWriter::new(File::create(path)?);
        out.write_all(&head)?;
        let data_offset = head.len() as u64;
        let mut perf = Self { out, style, formats, raw: Vec::new(), buffer: Vec::new(), data_offset, samples: 0 };
        perf.comms()?;
        Ok(perf)
    }

    fn comms(&mut self) -> io::Result<()> {
        let machine = self.style.machine();
        for (tid, comm) in std::mem::take(&mut self.style.comms) {
            let mut body = Vec::new();
            machine.put(&mut body, tid as u64, 4);
            machine.put(&mut body, tid as u64, 4);
            body.extend_from_slice(comm.as_bytes());
            body.resize((body.len() + 1).next_multiple_of(8), 0);
            trailer(&mut body, machine, tid, 0, 0, 0);
            self.write(RECORD_COMM, 0, &body)?;
        }
        Ok(())
    }

    fn write(&mut self, kind: u64, misc: u64, body: &[u8]) -> io::Result<()> {
        let machine = self.style.machine();
        let mut head = Vec::with_capacity(8);
        machine.put(&mut head, kind, 4);
        machine.put(&mut head, misc, 2);
        machine.put(&mut head, 8 + body.len() as u64, 2);
        self.out.write_all(&head)?;
        self.out.write_all(body)
    }

    /// The feature sections, in the order of their numbers.
    fn features(&self) -> Vec<(u32, Vec<u8>)> {
        let machine = self.style.machine();
        let mut cpus = Vec::new();
        machine.put(&mut cpus, u64::from(self.style.cpus), 4);
        machine.put(&mut cpus, u64::from(self.style.cpus), 4);
        let mut resolution = Vec::new();
        machine.put(&mut resolution, 1, 8);
        vec![
            (FEATURE_TRACING_DATA, self.tracing_data()),
            (FEATURE_HOSTNAME, padded_text("host", machine)),
            (FEATURE_OSRELEASE, padded_text(&self.style.release, machine)),
            (FEATURE_NRCPUS, cpus),
            (FEATURE_CLOCKID, resolution),
        ]
    }

    /// Format texts, in the layout of trace.dat up to the thread names, with version "0.6".
    fn tracing_data(&self) -> Vec<u8> {
        let mut dat = TraceDat::new(Version::V6, self.style.machine());
        dat.describe(&self.formats);
        let mut out = parts::head(&dat, "0.6");
        for part in
            [parts::headers, parts::ftrace_formats, parts::formats, parts::kallsyms, parts::printk, parts::cmdlines]
        {
            out.extend_from_slice(&part(&dat));
        }
        out
    }
}

impl Style {
    fn machine(&self) -> Machine {
        Machine { endian: self.endian, long_bytes: 8 }
    }
}

impl Sink for PerfData {
    fn record(&mut self, record: &Record) -> io::Result<()> {
        let machine = self.style.machine();
        let format = self.formats.get(record.event).ok_or_else(|| unknown_event(record))?;
        encode(format, record, machine, &mut self.raw);
        let mut body = std::mem::take(&mut self.buffer);
        body.clear();
        machine.put(&mut body, sample_id(record.event), 8);
        machine.put(&mut body, record.tid as u64, 4);
        machine.put(&mut body, record.tid as u64, 4);
        machine.put(&mut body, record.ticks, 8);
        machine.put(&mut body, u64::from(record.cpu), 4);
        machine.put(&mut body, 0, 4);
        // Size and data together fill whole words of 8 bytes, as the kernel pads them.
        let raw_bytes = (self.raw.len() + 4).next_multiple_of(8) - 4;
        machine.put(&mut body, raw_bytes as u64, 4);
        body.extend_from_slice(&self.raw);
        body.resize(body.len() + raw_bytes - self.raw.len(), 0);
        let written = self.write(RECORD_SAMPLE, MISC_KERNEL, &body);
        self.buffer = body;
        self.samples += 1;
        if self.samples.is_multiple_of(ROUND) {
            self.write(RECORD_FINISHED_ROUND, 0, &[])?;
        }
        written
    }

    /// Without a count, perf has no word for a loss: one event is written as lost.
    fn lost(&mut self, loss: &Loss) -> io::Result<()> {
        let machine = self.style.machine();
        let mut body = Vec::new();
        machine.put(&mut body, sample_id(0), 8);
        machine.put(&mut body, loss.events.unwrap_or(1), 8);
        trailer(&mut body, machine, 0, loss.ticks, loss.cpu, sample_id(0));
        self.write(RECORD_LOST, 0, &body)
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        let machine = self.style.machine();
        self.write(RECORD_FINISHED_ROUND, 0, &[])?;
        let data_end = self.out.stream_position()?;
        let features = self.features();
        let mut table = Vec::new();
        let mut offset = data_end + 16 * features.len() as u64;
        let mut flags = [0u64; 4];
        for (feature, content) in &features {
            machine.put(&mut table, offset, 8);
            machine.put(&mut table, content.len() as u64, 8);
            offset += content.len() as u64;
            flags[*feature as usize / 64] |= 1 << (feature % 64);
        }
        self.out.write_all(&table)?;
        features.iter().try_for_each(|(_, content)| self.out.write_all(content))?;
        let attrs_offset = HEADER_BYTES + 8 * self.formats.len() as u64;
        let attrs_bytes = ATTR_ENTRY_BYTES * self.formats.len() as u64;
        let sections = [attrs_offset, attrs_bytes, self.data_offset, data_end - self.data_offset, 0, 0];
        let mut head = Vec::new();
        for number in [MAGIC, HEADER_BYTES, ATTR_ENTRY_BYTES].into_iter().chain(sections).chain(flags) {
            machine.put(&mut head, number, 8);
        }
        self.out.seek(SeekFrom::Start(0))?;
        self.out.write_all(&head)?;
        self.out.flush()
    }
}

/// The id by which samples name their event.
fn sample_id(event: usize) -> u64 {
    1_000 + event as u64
}

fn attribute(out: &mut Vec<u8>, machine: Machine, format: &EventFormat) {
    let end = out.len() + ATTR_BYTES as usize;
    machine.put(out, TYPE_TRACEPOINT, 4);
    machine.put(out, ATTR_BYTES, 4);
    machine.put(out, u64::from(format.id), 8);
    let every_event = 1;
    machine.put(out, every_event, 8);
    machine.put(out, SAMPLE_IDENTIFIER | SAMPLE_TID | SAMPLE_TIME | SAMPLE_CPU | SAMPLE_RAW, 8);
    let read_format_id = 4;
    machine.put(out, read_format_id, 8);
    let bit = |bit: u32| if machine.endian == Endian::Little { 1u64 << bit } else { 1 << (63 - bit) };
    machine.put(out, bit(FLAG_SAMPLE_ID_ALL) | bit(FLAG_USE_CLOCKID), 8);
    let from_flags_to_clock = 44;
    out.resize(out.len() + from_flags_to_clock, 0);
    machine.put(out, CLOCK_MONOTONIC, 4);
    out.resize(end, 0);
}

/// What follows records that are no samples: thread, time, CPU, id.
fn trailer(out: &mut Vec<u8>, machine: Machine, tid: i32, ticks: u64, cpu: u32, id: u64) {
    machine.put(out, tid as u64, 4);
    machine.put(out, tid as u64, 4);
    machine.put(out, ticks, 8);
    machine.put(out, u64::from(cpu), 4);
    machine.put(out, 0, 4);
    machine.put(out, id, 8);
}

/// Text as perf's features hold it: length, then the text with NULs up to a multiple of 64.
fn padded_text(text: &str, machine: Machine) -> Vec<u8> {
    let length = (text.len() + 1).next_multiple_of(64);
    let mut out = Vec::new();
    machine.put(&mut out, length as u64, 4);
    out.extend_from_slice(text.as_bytes());
    out.resize(4 + length, 0);
    out
}
