//! For which time are the events of each CPU in the trace?
//!
//! ```text
//! ch_0  [packet 0][packet 1][packet 2]      whole: its packets are numbered from 0
//! ch_1            [packet 1][packet 2]      late: from the begin of its first packet (a flight recorder wrote over packet 0)
//! ch_2  [packet 0][pack                     truncated: until the begin of the packet that breaks off
//! ch_3  (no byte, or no packet)             missing: its index lists packets, or other CPUs' files have some
//! ```
//! In:  packets, and what LTTng's index beside a stream file lists. Out: [`Facts::coverage`](crate::Facts::coverage), and
//! problems.
//! Sources: `lttng_ctf_index` in include/lttng/ctf-index.h (lttng-tools 2.13), which names a stream file CHANNEL_CPU.

use super::packet::Packet;
use super::{CtfTrace, Stream};
use crate::facts::Coverage;
use crate::format::Endian;
use base::{MOST_CPUS, Problem};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::Path;

/// First four bytes of an index file, whose numbers are all big-endian.
const INDEX_MAGIC: u64 = 0xC1F1_DCC1;
/// Bytes of an index file's head: magic, major, minor, bytes of an entry.
const INDEX_HEAD: usize = 16;

/// What a stream file gave.
#[derive(Debug)]
pub(super) struct Seen {
    packets: u64,
    /// Packets that its index lists.
    listed: Option<u64>,
    /// The CPU that its packets name.
    cpu: Option<u32>,
    /// Channel and CPU, as the file is called.
    called: Option<(String, u32)>,
}

impl Seen {
    /// Of the stream file at `path`, in which `found` was found.
    pub(super) fn of(path: &Path, found: &[Packet]) -> Self {
        let cpu = found.iter().find_map(|packet| packet.cpu).and_then(|cpu| u32::try_from(cpu).ok());
        let name = path.file_name().and_then(|name| name.to_str());
        let called = name
            .and_then(|name| name.rsplit_once('_'))
            .and_then(|(channel, cpu)| Some((channel.to_owned(), cpu.parse().ok().filter(|cpu| *cpu < MOST_CPUS)?)));
        Self { packets: found.len() as u64, listed: listed(path), cpu, called }
    }
}

/// How many packets the index of the stream file at `path` lists; `None` without an index.
fn listed(path: &Path) -> Option<u64> {
    let name = format!("{}.idx", path.file_name()?.to_str()?);
    let file = path.with_file_name("index").join(name);
    let bytes = file.metadata().ok().filter(std::fs::Metadata::is_file)?.len();
    let mut head = Vec::new();
    base::files::open(&file).ok()?.take(INDEX_HEAD as u64).read_to_end(&mut head).ok()?;
    let word = |at: usize| head.get(at..at + 4).map(|word| Endian::Big.unsigned(word));
    if word(0)? != INDEX_MAGIC {
        return None;
    }
    bytes.checked_sub(INDEX_HEAD as u64)?.checked_div(word(12)?)
}

/// Fills in the coverage of all CPUs, and tells which ones are missing.
pub(super) fn describe(trace: &mut CtfTrace) {
    let streams = Streams::of(trace);
    let mut coverage: BTreeMap<u32, Coverage> = BTreeMap::new();
    let mut narrow = |cpu: u32, to: Coverage| {
        coverage.entry(cpu).and_modify(|known| *known = known.and(to)).or_insert(to);
    };
    for stream in &trace.streams {
        if let Some(cpu) = stream.cpu {
            narrow(cpu, streams.coverage_of(trace, stream));
        }
    }
    let mut problems = Vec::new();
    for (number, (seen, file)) in trace.seen.iter().zip(&trace.files).enumerate() {
        let (cpu, found) = match (seen.packets, seen.listed.filter(|listed| *listed > seen.packets)) {
            (0, Some(listed)) => {
                (trace.cpu_of_empty(seen), format!("none of the {listed} packets that its index lists"))
            }
            // A channel may have had nothing to write on a CPU whose other channels had.
            (0, None) => match trace.cpu_of_empty(seen).filter(|cpu| !streams.cpus.contains(cpu)) {
                Some(cpu) => (Some(cpu), "none".to_owned()),
                None => continue,
            },
            (found, Some(listed)) => {
                let until_ns = streams.last_begin_ns.get(&number).copied().unwrap_or(u64::MAX);
                seen.cpu.into_iter().for_each(|cpu| narrow(cpu, Coverage::between(0, until_ns)));
                (None, format!("{found} of the {listed} packets that its index lists"))
            }
            (_, None) => continue,
        };
        let gap = cpu.map_or(String::new(), |cpu| format!("; activity of CPU {cpu} is unknown"));
        cpu.into_iter().for_each(|cpu| narrow(cpu, Coverage::Missing));
        let text = format!("{}: expected the packets of a stream, found {found}{gap}", file.name);
        problems.push(Problem::at(&file.name, 0, "the packets of a stream", found, 0, text));
    }
    trace.facts.problems.extend(problems);
    trace.facts.cover(coverage);
}

/// What all streams together tell.
struct Streams {
    cpus: BTreeSet<u32>,
    /// CPU and number of the last packet of each stream.
    ends: BTreeSet<(Option<u32>, u64)>,
    /// When the last packet of each file begins.
    last_begin_ns: BTreeMap<usize, u64>,
}

impl Streams {
    fn of(trace: &CtfTrace) -> Self {
        let end = |stream: &Stream| Some((stream.cpu, stream.packets.last()?.sequence?.0));
        let mut last_begin_ns = BTreeMap::new();
        for stream in &trace.streams {
            for packet in &stream.packets {
                last_begin_ns.extend(packet.begin.map(|ticks| (packet.file, trace.clock_of(stream).ns(ticks))));
            }
        }
        Self {
            cpus: trace.streams.iter().filter_map(|stream| stream.cpu).collect(),
            ends: trace.streams.iter().filter_map(end).collect(),
            last_begin_ns,
        }
    }

    fn coverage_of(&self, trace: &CtfTrace, stream: &Stream) -> Coverage {
        let (Some(first), Some(last)) = (stream.packets.first(), stream.packets.last()) else {
            return Coverage::Missing;
        };
        // A rotated session goes on with the numbers of the chunk before.
        let is_late = |(number, _)| number > 0 && !self.ends.contains(&(stream.cpu, number - 1));
        let begin_ns = |packet: &Packet| packet.begin.map(|ticks| trace.clock_of(stream).ns(ticks));
        let from_ns = first.sequence.filter(|sequence| is_late(*sequence)).and_then(|_| begin_ns(first));
        let until_ns = if last.truncated { begin_ns(last) } else { None };
        Coverage::between(from_ns.unwrap_or(0), until_ns.unwrap_or(u64::MAX))
    }
}

impl CtfTrace {
    /// The CPU of a file without packets: as it is called, if other files are called after their CPUs.
    fn cpu_of_empty(&self, empty: &Seen) -> Option<u32> {
        let (channel, cpu) = empty.called.as_ref()?;
        let mut named = self.seen.iter().filter(|seen| seen.packets > 0).filter_map(|seen| {
            let (other, called) = seen.called.as_ref()?;
            (other == channel).then_some(seen.cpu == Some(*called))
        });
        named.next().filter(|same| *same && named.all(|same| same)).map(|_| *cpu)
    }

    fn clock_of(&self, stream: &Stream) -> &base::Clock {
        self.kinds[stream.kind].clock.as_ref().unwrap_or(&self.facts.clock)
    }
}
