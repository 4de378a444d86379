//! Where are the packets of a stream file, and what do they say of themselves?
//!
//! ```text
//! offset ->| header | context | event event event ... | padding |  next packet
//!          |<------------- content_size ------------->|
//!          |<------------------- packet_size ------------------->|
//! ```
//! Both sizes are in bits and either may be absent. All packets of a file are visited once when a trace is opened: only
//! their headers, so this costs a page of memory each.

use super::kind::StreamKind;
use super::machine::{Machine, extended};
use super::model::Role;
use crate::Batch;
use base::Problem;

/// First four bytes of a packet, where its header has them (CTF 1.8.3 section 5.1).
const MAGIC: u64 = 0xC1FC_1FC1;

#[derive(Debug, Clone)]
pub(super) struct Packet {
    /// Position of its file in the trace's list.
    pub file: usize,
    /// First byte in the file.
    pub from: u64,
    /// First byte behind it, or the end of the file where that comes earlier.
    pub to: u64,
    /// Bits that hold events, header and context included.
    pub(crate) content_bits: u64,
    pub kind: usize,
    /// Which stream it belongs to, where it says so.
    pub instance: Option<u64>,
    /// Its CPU.
    pub cpu: Option<u64>,
    pub begin: Option<u64>,
    /// True if the file ends before its content does.
    pub truncated: bool,
    /// Its number in the stream, and how many bits that has.
    pub sequence: Option<(u64, u8)>,
    /// Events lost so far, and how many bits that has.
    pub discarded: Option<(u64, u8)>,
    /// What was lost between the packet before and this one.
    pub lost: Option<Lost>,
}

/// Events lost before a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Lost {
    /// How many, 0 if that is not known.
    pub events: u64,
    /// How many whole packets.
    pub packets: u64,
}

/// A file being searched for packets.
pub(super) struct StreamFile<'f> {
    pub name: &'f str,
    /// Position in the trace's list.
    pub number: usize,
    pub data: &'f [u8],
}

impl StreamFile<'_> {
    fn problem(&self, at: u64, expected: &str, found: String, skipped: u64) -> Box<Problem> {
        let text = format!("{} at byte {at:#x}: expected {expected}, found {found}", self.name);
        Box::new(Problem::at(self.name, at, expected, found, skipped, text))
    }

    /// The packets of the file; `kinds` are those of its trace, of which the first starts at `first_kind`.
    pub(super) fn packets(&self, kinds: &[StreamKind], first_kind: usize, problems: &mut Vec<Problem>) -> Vec<Packet> {
        let mut packets: Vec<Packet> = Vec::new();
        let mut at = 0u64;
        let length = self.data.len() as u64;
        while at < length {
            match self.packet(at, kinds, packets.last()) {
                Ok(Found { mut packet, next, odd }) => {
                    problems.extend(odd.map(|problem| *problem));
                    packet.kind += first_kind;
                    packets.push(packet);
                    at = next;
                }
                Err(problem) => {
                    problems.push(*problem);
                    break;
                }
            }
        }
        packets
    }

    /// The packet at byte `at`.
    fn packet(&self, at: u64, kinds: &[StreamKind], before: Option<&Packet>) -> Result<Found, Box<Problem>> {
        let data = &self.data[at as usize..];
        let left = data.len() as u64;
        let mut nothing = Batch::default();
        let none = || self.problem(at, "a stream that the metadata describes", "none".to_owned(), left);
        let first = kinds.first().ok_or_else(none)?;
        let mut machine = Machine::new(data, first.registers);
        let cut_short = || self.problem(at, "a packet header", format!("{left} bytes that end inside it"), left);
        machine.run(&first.packet_header, &mut nothing).map_err(|_| cut_short())?;
        if machine.role(Role::Magic).is_some_and(|magic| magic & 0xFFFF_FFFF != MAGIC) {
            let found = format!("{:02x?}", &data[..data.len().min(4)]);
            return Err(self.problem(at, "the magic number of a packet", found, left));
        }
        let number = match machine.role(Role::StreamId) {
            Some(id) => kinds.iter().position(|kind| kind.id == id).ok_or_else(|| {
                self.problem(at, "a stream that the metadata describes", format!("stream {id}"), left)
            })?,
            None => 0,
        };
        let kind = &kinds[number];
        let mut machine = Machine::new(data, kind.registers);
        let read = machine.run(&kind.packet_header, &mut nothing);
        read.and_then(|()| machine.run(&kind.packet_context, &mut nothing)).map_err(|_| cut_short())?;
        let with_bits = |role| Some((machine.role(role)?, machine.place(role).map_or(64, |(_, shape)| shape.bits)));
        let begin = with_bits(Role::Begin).map(|(begin, bits)| {
            let last = before.and_then(|packet| packet.begin).unwrap_or(0);
            extended(last, begin, bits)
        });
        let (size, odd) = self.sizes(at, left * 8, &machine)?;
        let packet = Packet {
            file: self.number,
            from: at,
            to: at + size.packet_bits.div_ceil(8).min(left),
            content_bits: size.content_bits,
            kind: number,
            instance: machine.role(Role::StreamInstance),
            cpu: machine.role(Role::Cpu),
            begin,
            truncated: size.truncated,
            sequence: with_bits(Role::Sequence),
            discarded: with_bits(Role::Discarded),
            lost: None,
        };
        Ok(Found { packet, next: at.saturating_add(size.packet_bits.div_ceil(8)), odd })
    }

    fn sizes(&self, at: u64, left: u64, machine: &Machine<'_>) -> Result<(Sizes, Option<Box<Problem>>), Box<Problem>> {
        let stated = (machine.role(Role::ContentSize), machine.role(Role::PacketSize));
        let (content_bits, packet_bits) = match stated {
            (Some(content), Some(packet)) => (content, packet),
            (Some(content), None) => (content, content),
            (None, Some(packet)) => (packet, packet),
            (None, None) => (left, left),
        };
        if packet_bits < machine.at.max(8) {
            let found = format!("{packet_bits} bits");
            return Err(self.problem(at, "a packet that holds its own header", found, left / 8));
        }
        let mut sizes = Sizes { content_bits, packet_bits, truncated: content_bits.min(packet_bits) > left };
        let problem = if content_bits > packet_bits {
            sizes.content_bits = packet_bits;
            let found = format!("{content_bits} of {packet_bits} bits");
            Some(self.problem(at, "a content that fits into its packet", found, 0))
        } else if content_bits < machine.at {
            sizes.content_bits = machine.at;
            let found = format!("{content_bits} bits, the header alone has {}", machine.at);
            Some(self.problem(at, "a content that holds the packet's header", found, packet_bits / 8))
        } else if packet_bits > left {
            let missing = content_bits.saturating_sub(left) / 8;
            let found = format!("{} bytes, {missing} of its content are missing", left / 8);
            Some(self.problem(at, "a packet as long as its header says", found, missing))
        } else {
            None
        };
        sizes.content_bits = sizes.content_bits.min(left);
        Ok((sizes, problem))
    }
}

/// A packet, where the next one starts, and what is odd about it.
struct Found {
    packet: Packet,
    next: u64,
    odd: Option<Box<Problem>>,
}

struct Sizes {
    content_bits: u64,
    packet_bits: u64,
    truncated: bool,
}

/// Fills in [`Packet::lost`] for the packets of one stream.
pub(super) fn note_losses(packets: &mut [Packet]) {
    let mut before: Option<Packet> = None;
    for packet in packets {
        let mut lost = Lost::default();
        let mut unknown = false;
        match (&before, packet.sequence) {
            (Some(Packet { sequence: Some((last, _)), .. }), Some((number, bits))) => {
                let step = low_bits(number.wrapping_sub(*last), bits);
                // More than half the range ahead is a number that went back, which says nothing of losses.
                if step > 1 && step <= low_bits(u64::MAX, bits) / 2 {
                    lost.packets = step - 1;
                }
            }
            // A recording that starts later does not tell what its first count means.
            (None, Some((number, _))) => unknown = number > 0,
            _ => {}
        }
        if let Some((count, bits)) = packet.discarded {
            match &before {
                Some(Packet { discarded: Some((last, _)), .. }) => {
                    lost.events = low_bits(count.wrapping_sub(*last), bits);
                }
                None if !unknown => lost.events = count,
                _ => {}
            }
        }
        packet.lost = (lost != Lost::default()).then_some(lost);
        before = Some(packet.clone());
    }
}

fn low_bits(value: u64, bits: u8) -> u64 {
    value & (u64::MAX >> (64 - u32::from(bits.clamp(1, 64))))
}
