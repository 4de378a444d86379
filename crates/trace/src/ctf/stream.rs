//! The events of one stream, packet after packet, in batches that are small enough to stay in the CPU's cache.

use super::kind::{Selection, Steps, StreamKind};
use super::machine::{Machine, Stop};
use super::model::Role;
use super::packet::Packet;
use crate::Batch;
use crate::batch::{NO_TID, Row, STORED};
use crate::lane::Sequence;
use crate::mapped::MappedFile;
use crate::records::Records;
use base::{Clock, Problem};
use std::path::PathBuf;
use std::sync::Arc;

/// Events of one batch, wanted or not: about 100 KB once decoded, while LTTng's packets have up to some MB.
const EVENTS_PER_BATCH: u64 = 1 << 11;

pub(super) struct Reader<'t> {
    pub kind: &'t StreamKind,
    pub packets: &'t [Packet],
    pub files: &'t [TraceFile],
    /// How its events are read, given what is wanted.
    pub selection: Arc<Selection>,
    /// How many kinds of event the trace has.
    pub event_types: usize,
    /// Ticks become ns by this.
    pub clock: Clock,
}

pub(super) struct TraceFile {
    pub path: PathBuf,
    pub name: String,
    pub content: Arc<MappedFile>,
}

/// Where reading goes on.
#[derive(Debug, Clone, Copy, Default)]
struct Position {
    packet: usize,
    /// Bits from the start of the packet; 0: before its header.
    at: u64,
    ticks: u64,
}

impl Reader<'_> {
    /// Reads events from `position` to the end of its packet, but at most `most`; returns where to go on.
    fn read(&self, position: Position, most: u64, batch: &mut Batch) -> Position {
        let packet = &self.packets[position.packet];
        let name = &self.files[packet.file].name;
        let next = |ticks| Position { packet: position.packet + 1, at: 0, ticks };
        let ticks = packet.begin.filter(|_| position.at == 0).unwrap_or(position.ticks);
        if position.at == 0 {
            self.files[packet.file].content.will_be_read(packet.from..packet.to);
        }
        let Ok(mut machine) = self.opened(packet, batch) else { return next(ticks) };
        machine.ticks = ticks;
        let cpu = packet.cpu.and_then(|cpu| u32::try_from(cpu).ok()).unwrap_or(0);
        if position.at == 0 {
            if let Some(lost) = packet.lost {
                batch.lost(self.clock.ns(machine.ticks), cpu, lost.events, 0);
            }
        } else {
            machine.at = position.at;
        }
        let in_place = self.selection.in_place.as_ref().filter(|_| u32::try_from(packet.to - packet.from).is_ok());
        if let Some(in_place) = in_place {
            batch.records = Records::Mapped(self.files[packet.file].content.clone(), packet.from as usize);
            batch.layouts = in_place.layouts();
        }
        let mut left = most;
        loop {
            left -= in_place.map_or(0, |events| events.read(&mut machine, left, (&self.clock, cpu), batch));
            if machine.at >= machine.end {
                break;
            }
            if left == 0 {
                return Position { packet: position.packet, at: machine.at, ticks: machine.ticks };
            }
            left -= 1;
            let (start, ticks) = (machine.at, machine.ticks);
            let found = self.event(&mut machine, cpu, batch);
            let (expected, found) = match found {
                Ok(()) if machine.at > start => continue,
                Ok(()) => ("an event of at least one bit", "one of no length".to_owned()),
                Err(Bad::Unknown(id)) => ("an event that the metadata describes", format!("event id {id}")),
                Err(Bad::Stopped(Stop::Short)) => ("events that end with their packet", "one that goes on".to_owned()),
                Err(Bad::Stopped(Stop::NoChoice)) => ("a selector that selects", "one that does not".to_owned()),
                Err(Bad::Stopped(Stop::Empty)) => ("arrays of bounded length", "endless empty elements".to_owned()),
            };
            // The time of what is no event is no time.
            machine.ticks = ticks;
            let at = packet.from + start / 8;
            let skipped = (machine.end - start) / 8;
            let text = format!(
                "{name} at byte {at:#x}: expected {expected}, found {found}; the rest of its packet is skipped"
            );
            batch.problems.push(Problem::at(name.clone(), at, expected, found, skipped, text));
            break;
        }
        next(machine.ticks)
    }

    /// The bytes of a packet, as far as its file has them.
    pub(super) fn bytes_of(&self, packet: &Packet) -> &[u8] {
        let bytes = &self.files[packet.file].content[..];
        bytes.get(packet.from as usize..packet.to as usize).unwrap_or_default()
    }

    /// A machine behind the header and context of a packet.
    ///
    /// # Errors
    /// If the packet ends before them.
    pub(super) fn opened(&self, packet: &Packet, batch: &mut Batch) -> Result<Machine<'_>, Stop> {
        let data = self.bytes_of(packet);
        let mut machine = Machine::new(data, self.kind.registers);
        machine.run(&self.kind.packet_header, batch)?;
        machine.run(&self.kind.packet_context, batch)?;
        machine.end = packet.content_bits.min(data.len() as u64 * 8);
        Ok(machine)
    }

    /// Reads one event.
    ///
    /// # Errors
    /// If it is of no known kind or not whole.
    #[inline]
    pub(super) fn event(&self, machine: &mut Machine<'_>, cpu: u32, batch: &mut Batch) -> Result<(), Bad> {
        let id = self.header(machine, batch)?.unwrap_or_else(|| self.kind.only_id());
        let steps = &self.selection.steps[self.kind.event(id).ok_or(Bad::Unknown(id))?];
        let time_ns = self.clock.ns(machine.ticks);
        let read = match (&steps.fast, steps.kind) {
            (Some(fast), None) => machine.pass(fast),
            (_, None) => machine.run(&steps.ops, batch),
            (_, Some(kind)) => self.wanted(machine, steps, kind, (time_ns, cpu), batch),
        };
        read?;
        if machine.at > machine.end {
            return Err(Bad::Stopped(Stop::Short));
        }
        batch.saw(time_ns, steps.event_type);
        Ok(())
    }

    /// Reads an event's header; returns its id.
    #[inline]
    fn header(&self, machine: &mut Machine<'_>, batch: &mut Batch) -> Result<Option<u64>, Bad> {
        if let Some(id) = self.kind.fast_header.as_ref().and_then(|header| machine.take_header(header)) {
            return Ok(id);
        }
        machine.forget(Role::EventId);
        machine.run(&self.kind.event_header, batch)?;
        Ok(machine.role(Role::EventId))
    }

    /// Reads what is wanted of an event, and takes it back if the event is not whole.
    #[inline]
    fn wanted(
        &self,
        machine: &mut Machine<'_>,
        steps: &Steps,
        kind: u16,
        (time_ns, cpu): (u64, u32),
        batch: &mut Batch,
    ) -> Result<(), Stop> {
        let (start, bytes) = (batch.values.len(), batch.bytes.len());
        let fast = steps.fast.as_ref().and_then(|fast| machine.take_payload(fast, batch));
        let tid = match fast {
            Some(tid) => tid,
            None => {
                machine.forget(Role::Tid);
                machine.begin(batch, steps.fields);
                let read = machine.run(&steps.ops, batch);
                let read = if machine.at > machine.end { Err(Stop::Short) } else { read };
                if read.is_err() {
                    batch.values.truncate(start);
                    batch.bytes.truncate(bytes);
                    return read;
                }
                batch.values[start] = machine.mask;
                machine.role(Role::Tid).map(|tid| tid as i32)
            }
        };
        batch.rows.push(Row { time_ns, kind, cpu, tid: tid.unwrap_or(NO_TID), start: start as u32, layout: STORED });
        Ok(())
    }
}

/// Why the rest of a packet cannot be read.
pub(super) enum Bad {
    /// Nothing describes events of this id.
    Unknown(u64),
    /// An event is not whole or contradicts itself.
    Stopped(Stop),
}

impl From<Stop> for Bad {
    fn from(stop: Stop) -> Self {
        Bad::Stopped(stop)
    }
}

/// Batches of a stream, one after the other.
pub(super) struct InOrder<'t> {
    reader: Reader<'t>,
    position: Position,
    /// First packet that may still be mapped, and bytes of those from it up to where reading goes on.
    mapped: (usize, u64),
}

/// Bytes behind the reader that stay mapped: more than the batches in flight point into.
const STILL_NEEDED_BYTES: u64 = 4 << 20;

impl<'t> InOrder<'t> {
    /// All batches of a stream.
    pub(super) fn new(reader: Reader<'t>) -> Self {
        Self { reader, position: Position::default(), mapped: (0, 0) }
    }

    /// Unmaps what lies far enough behind a packet that was just read.
    fn leave(&mut self, packet: &Packet) {
        let (first, bytes) = &mut self.mapped;
        *bytes += packet.to - packet.from;
        while let Some(Packet { file, from, to, .. }) = self.reader.packets.get(*first)
            && *bytes >= STILL_NEEDED_BYTES + (to - from)
        {
            self.reader.files[*file].content.was_read(*from..*to);
            (*first, *bytes) = (*first + 1, *bytes - (to - from));
        }
    }
}

impl Sequence for InOrder<'_> {
    fn decode_next(&mut self, batch: &mut Batch) -> bool {
        let Some(packet) = self.reader.packets.get(self.position.packet) else { return false };
        let before = self.position;
        self.position = self.reader.read(before, EVENTS_PER_BATCH, batch);
        let to = if self.position.packet == before.packet {
            self.position.at / 8
        } else {
            self.leave(packet);
            packet.to - packet.from
        };
        batch.read_bytes = to - before.at / 8;
        true
    }
}
