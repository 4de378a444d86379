//! How does a Common Trace Format trace lie in its directory?
//!
//! ```text
//! metadata                     TSDL text (CTF 1.8), the same in packets, or JSON fragments (CTF 2)
//! ch_0 ch_1 ..                 one stream per CPU, packets of one size:
//!   magic uuid stream instance | begin end content_size packet_size seq discarded cpu | event event .. | padding
//! event = compact { id:5, time:27 } or large { id:16, time:32 }; u32 id + u64 time where those do not suffice
//! ```
//! In: a [`Schema`] and records. Out: what `lttng-tools` 2.13 writes for kernel traces, with the stream bytes the same
//! in both versions. Times are cut to 27 or 32 bits; the full one stands where the distance from the event before, or
//! from the packet's begin, does not fit. Sources: CTF 1.8.3, CTF2-SPEC-2.0, and the layouts of lttng-modules 2.13.

mod json;
mod tsdl;

use super::layout::Machine;
use super::{Loss, Record, Schema, Shape, Sink, unknown_event};
use crate::format::Endian;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Choices of a CTF trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Style {
    /// Byte order of the streams.
    pub endian: Endian,
    /// Language and packing of the metadata.
    pub metadata: Metadata,
    /// Which event header.
    pub header: EventHeader,
    /// The clock's name, as `monotonic`.
    pub clock_name: String,
    /// Its ticks per second.
    pub clock_hz: u64,
    /// Ticks from 1970 to its zero.
    pub clock_offset: u64,
    /// What the trace says of its origin: `kernel_release`, `tracer_name`; a number where it looks like one.
    pub env: Vec<(String, String)>,
    /// Bytes of a packet.
    pub packet_bytes: usize,
    /// True if each event carries its thread (context `tid`).
    pub tid_context: bool,
    /// Identity of the trace.
    pub uuid: [u8; 16],
}

/// Language and packing of the metadata.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Metadata {
    /// CTF 1.8, plain text.
    Text,
    /// CTF 1.8, text in packets, as LTTng writes it.
    Packets,
    /// CTF 2.
    Json,
}

/// Event headers of LTTng.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventHeader {
    /// 5 bits of id, 27 bits of time.
    Compact,
    /// 16 bits of id, 32 bits of time.
    Large,
}

impl EventHeader {
    /// The id that says that the full id and time follow.
    fn extended_id(self) -> u64 {
        match self {
            EventHeader::Compact => 31,
            EventHeader::Large => 65_535,
        }
    }

    fn time_bits(self) -> u32 {
        match self {
            EventHeader::Compact => 27,
            EventHeader::Large => 32,
        }
    }
}

impl Style {
    /// LTTng's choices for a kernel trace with `CLOCK_MONOTONIC`, without contexts.
    pub fn lttng(endian: Endian) -> Self {
        let env = [
            ("hostname", "host"),
            ("domain", "kernel"),
            ("sysname", "Linux"),
            ("kernel_release", "6.1.0"),
            ("tracer_name", "lttng-modules"),
            ("tracer_major", "2"),
            ("tracer_minor", "13"),
        ];
        Self {
            endian,
            metadata: Metadata::Text,
            header: EventHeader::Large,
            clock_name: "monotonic".into(),
            clock_hz: 1_000_000_000,
            clock_offset: 1_795_287_873_342_645_685,
            env: env.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec(),
            packet_bytes: 64 * 1024,
            tid_context: false,
            uuid: *b"kvmscope-written",
        }
    }
}

const MAGIC: u64 = 0xc1fc_1fc1;
/// Packet header and context: 4 + 16 + 4 + 8, and six times 8 + 4.
const PACKET_HEAD_BYTES: usize = 32 + 52;

/// Takes records and writes a CTF trace.
pub struct Ctf {
    schema: Schema,
    style: Style,
    streams: Vec<Stream>,
    event: Vec<u8>,
}

struct Stream {
    cpu: u32,
    out: BufWriter<File>,
    packet: Vec<u8>,
    begin: u64,
    last: u64,
    sequence: u64,
    discarded: u64,
    /// Something was lost of which no packet tells yet, at this time.
    untold: Option<u64>,
}

impl Ctf {
    /// Begins a trace in `directory`, which is made if it does not exist.
    ///
    /// # Errors
    /// If the directory or a file cannot be made, or the directory holds a trace already: streams of that one would
    /// become part of this one.
    pub fn create(directory: &Path, schema: &Schema, style: Style, cpus: u32) -> io::Result<Self> {
        std::fs::create_dir_all(directory)?;
        if directory.join("metadata").exists() {
            let text = format!("{} holds a trace already", directory.display());
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, text));
        }
        let metadata = match style.metadata {
            Metadata::Text => tsdl::text(schema, &style).into_bytes(),
            Metadata::Packets => tsdl::packets(schema, &style),
            Metadata::Json => json::fragments(schema, &style).into_bytes(),
        };
        std::fs::write(directory.join("metadata"), metadata)?;
        let stream = |cpu| {
            let out = BufWriter::new(File::create(directory.join(format!("ch_{cpu}")))?);
            let packet = Vec::with_capacity(style.packet_bytes);
            Ok(Stream { cpu, out, packet, begin: 0, last: 0, sequence: 0, discarded: 0, untold: None })
        };
        let streams = (0..cpus).map(stream).collect::<io::Result<_>>()?;
        Ok(Self { schema: schema.clone(), style, streams, event: Vec::new() })
    }

    /// Puts the payload of `record` into `self.event`.
    fn encode(&mut self, record: &Record) -> io::Result<()> {
        let machine = self.style.machine();
        let out = &mut self.event;
        out.clear();
        if self.style.tid_context {
            machine.put(out, record.tid as u64, 4);
        }
        let schema = self.schema.events.get(record.event).ok_or_else(|| unknown_event(record))?;
        for (index, field) in schema.fields.iter().enumerate() {
            let value = record.value(index);
            match field.shape {
                Shape::Integer { bytes, .. } => machine.put(out, value.integer(), usize::from(bytes)),
                Shape::Long { .. } => machine.put(out, value.integer(), 8),
                Shape::Chars { bytes } | Shape::Bytes { bytes } => {
                    let end = out.len() + usize::from(bytes);
                    out.extend(value.content().iter().take(usize::from(bytes)));
                    out.resize(end, 0);
                }
                Shape::Dynamic => {
                    out.extend(value.content().iter().take_while(|byte| **byte != 0));
                    out.push(0);
                }
            }
        }
        Ok(())
    }
}

fn stream_of(streams: &mut [Stream], cpu: u32) -> io::Result<&mut Stream> {
    let found = streams.get_mut(cpu as usize);
    found.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, format!("there is no CPU {cpu}")))
}

impl Style {
    fn machine(&self) -> Machine {
        Machine { endian: self.endian, long_bytes: 8 }
    }
}

impl Sink for Ctf {
    fn record(&mut self, record: &Record) -> io::Result<()> {
        self.encode(record)?;
        let stream = stream_of(&mut self.streams, record.cpu)?;
        stream.event(&self.style, record.ticks, record.event as u64, &self.event)
    }

    fn lost(&mut self, loss: &Loss) -> io::Result<()> {
        let stream = stream_of(&mut self.streams, loss.cpu)?;
        stream.flush(&self.style)?;
        match loss.events {
            Some(number) => stream.discarded += number,
            None => stream.sequence += 1,
        }
        stream.untold = Some(loss.ticks);
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        let end = self.streams.iter().map(|stream| stream.last).max().unwrap_or(0);
        for stream in &mut self.streams {
            if let Some(ticks) = stream.untold {
                stream.begin(ticks.max(stream.last));
            } else if stream.sequence == 0 {
                // A CPU without events has a packet without events, as a stopped LTTng writes it: it was recorded.
                stream.begin(end);
            }
            if stream.sequence == 0 {
                // A recorder that stops flushes all its buffers: an idle CPU has a packet without events.
                stream.begin(end);
            }
            stream.flush(&self.style)?;
            stream.out.flush()?;
        }
        Ok(())
    }
}

impl Stream {
    fn begin(&mut self, ticks: u64) {
        if self.packet.is_empty() {
            self.packet.resize(PACKET_HEAD_BYTES, 0);
            (self.begin, self.last) = (ticks, ticks);
            self.untold = None;
        }
    }

    fn event(&mut self, style: &Style, ticks: u64, id: u64, payload: &[u8]) -> io::Result<()> {
        const LONGEST_HEADER: usize = 2 + 4 + 8;
        let needed = LONGEST_HEADER + payload.len();
        if PACKET_HEAD_BYTES + needed > style.packet_bytes {
            let text = format!("an event of {needed} bytes does not fit a packet of {}", style.packet_bytes);
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        if self.packet.len() + needed > style.packet_bytes {
            self.flush(style)?;
        }
        self.begin(ticks);
        self.header(style, ticks, id);
        self.packet.extend_from_slice(payload);
        self.last = ticks;
        Ok(())
    }

    fn header(&mut self, style: &Style, ticks: u64, id: u64) {
        let machine = style.machine();
        let time_bits = style.header.time_bits();
        let extended = style.header.extended_id();
        let short = id < extended && ticks.wrapping_sub(self.last) >> time_bits == 0;
        let first = if short { id } else { extended };
        let time = if short { ticks & ((1 << time_bits) - 1) } else { 0 };
        match (style.header, style.endian, short) {
            (EventHeader::Compact, Endian::Little, true) => machine.put(&mut self.packet, first | time << 5, 4),
            (EventHeader::Compact, Endian::Big, true) => machine.put(&mut self.packet, first << 27 | time, 4),
            (EventHeader::Compact, Endian::Little, false) => self.packet.push(first as u8),
            (EventHeader::Compact, Endian::Big, false) => self.packet.push((first as u8) << 3),
            (EventHeader::Large, _, _) => {
                machine.put(&mut self.packet, first, 2);
                if short {
                    machine.put(&mut self.packet, time, 4);
                }
            }
        }
        if !short {
            machine.put(&mut self.packet, id, 4);
            machine.put(&mut self.packet, ticks, 8);
        }
    }

    fn flush(&mut self, style: &Style) -> io::Result<()> {
        if self.packet.is_empty() {
            return Ok(());
        }
        let machine = style.machine();
        let content_bits = self.packet.len() as u64 * 8;
        let mut head = Vec::with_capacity(PACKET_HEAD_BYTES);
        machine.put(&mut head, MAGIC, 4);
        head.extend_from_slice(&style.uuid);
        machine.put(&mut head, 0, 4);
        machine.put(&mut head, u64::from(self.cpu), 8);
        let packet_bits = style.packet_bytes as u64 * 8;
        for number in [self.begin, self.last, content_bits, packet_bits, self.sequence, self.discarded] {
            machine.put(&mut head, number, 8);
        }
        machine.put(&mut head, u64::from(self.cpu), 4);
        self.packet[..PACKET_HEAD_BYTES].copy_from_slice(&head);
        self.packet.resize(style.packet_bytes, 0);
        self.out.write_all(&self.packet)?;
        self.packet.clear();
        self.sequence += 1;
        Ok(())
    }
}
