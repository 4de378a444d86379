//! How much may a file claim?
//!
//! ```text
//! streams     at most MOST_STREAMS, none twice, each CPU number one that kernels have
//! their data  no byte belongs to two streams: each ends where the next one begins, so that the file's size bounds the work
//! unpacked    at most MOST_UNPACKED_PER_BYTE times the file's data, beyond what is free
//! ```
//! What a bound cuts off is a problem.

use super::index::Index;
use super::layout::{CpuData, Layout};
use base::{MOST_CPUS, Problem};
use std::collections::BTreeSet;

/// Most streams of all instances together: sixteen instances on 512 CPUs. Two pieces of each may be in memory, 40 KB of pages
/// and about twice that of events: 2 GB at this bound.
const MOST_STREAMS: usize = MOST_CPUS as usize;

/// zstd packs pages 3 to 20 times smaller, empty ones some hundred times. What unpacks to more than this many times its
/// size, beyond [`UNPACKED_FREELY`], was made to fill a memory or a day.
const MOST_UNPACKED_PER_BYTE: u64 = 1_000;

/// Unpacked bytes that are not held against what they were packed to: a chunk of ten empty pages packs to 30 bytes.
const UNPACKED_FREELY: u64 = 64 << 20;

/// Most bytes of the largest pieces of all streams together: two of each may be in memory, with their events. trace-cmd's
/// pieces have 40 KB.
const MOST_AT_ONCE: usize = 256 << 20;

/// Where data of streams begins.
pub(super) struct Ends(BTreeSet<u64>);

impl Ends {
    /// Where the data of `cpu` ends at the latest: where the next stream's begins.
    pub(super) fn of(&self, cpu: CpuData) -> usize {
        let next = self.0.range(cpu.offset.saturating_add(1)..).next();
        next.map_or(usize::MAX, |next| usize::try_from(*next).unwrap_or(usize::MAX))
    }
}

/// Takes streams out of `layout` that cannot be.
pub(super) fn bound(layout: &mut Layout, file: &[u8], name: &str) -> Ends {
    let (mut starts, mut streams, mut refused) = (BTreeSet::new(), 0, None);
    let mut refuse = |cpu: &CpuData, why: &'static str| {
        let (_, _, count) = refused.get_or_insert((cpu.offset, why, 0u64));
        *count += 1;
    };
    for buffer in &mut layout.buffers {
        let mut known = BTreeSet::new();
        buffer.cpus.retain(|cpu| {
            let is_new = known.insert(cpu.cpu);
            let has_data = cpu.size > 0 && cpu.offset < file.len() as u64;
            let why = if cpu.cpu >= MOST_CPUS {
                Some("a CPU number that no kernel has")
            } else if !is_new {
                Some("a CPU that already has a stream")
            } else if streams == MOST_STREAMS {
                Some("more streams than CPUs can have")
            } else if has_data && !starts.insert(cpu.offset) {
                Some("data of another stream")
            } else {
                None
            };
            match why {
                Some(why) => refuse(cpu, why),
                None => streams += 1,
            }
            why.is_none()
        });
    }
    if let Some((offset, why, count)) = refused {
        let text = format!("{name}: streams of impossible CPUs are ignored: {count}, the first has {why}");
        let mut problem = Problem::at(name, offset, "a stream for each CPU", why, 0, text);
        problem.count = count;
        layout.problems.push(problem);
    }
    Ends(starts)
}

/// Ends streams whose pieces unpack to more than can be.
pub(super) fn bound_unpacked(indexes: &mut [Vec<Index>], name: &str) {
    let (mut stored, mut unpacked, mut at_once) = (0u64, 0u64, 0usize);
    for index in indexes.iter_mut().flatten() {
        let mut largest = 0;
        let within = index.places.iter().position(|place| {
            stored = stored.saturating_add(place.stored as u64);
            unpacked = unpacked.saturating_add(place.size as u64);
            largest = largest.max(place.size);
            let allowed = stored.saturating_mul(MOST_UNPACKED_PER_BYTE).saturating_add(UNPACKED_FREELY);
            unpacked > allowed || at_once.saturating_add(largest) > MOST_AT_ONCE
        });
        if let Some(end) = within {
            let place = index.places[end];
            let skipped = index.places[end..].iter().fold(0u64, |sum, place| sum.saturating_add(place.stored as u64));
            index.places.truncate(end);
            largest = index.places.iter().map(|place| place.size).max().unwrap_or(0);
            let (expected, found) = ("pieces of plausible size", format!("one of {} bytes", place.size));
            let text = format!(
                "{name}: CPU {}: from byte {:#x} on the data unpacks to more than a trace can have; {skipped} bytes of it \
                 are skipped",
                index.cpu, place.offset
            );
            index.problem = Some(Problem::at(name, place.offset as u64, expected, found, skipped, text));
        }
        at_once += largest;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::Endian;
    use crate::tracedat::index::Place;
    use crate::tracedat::layout::{Buffer, Compression};

    fn layout(cpus: Vec<CpuData>) -> Layout {
        let mut layout = Layout::new(7, Endian::Little, 4096, Compression::Zstd);
        let (name, clock) = (String::new(), String::new());
        layout.buffers.push(Buffer { name, clock, page_size: 4096, compressed: true, cpus });
        layout
    }

    #[test]
    fn streams_that_cannot_be_are_left_out_and_counted() {
        let cpu = |cpu, offset| CpuData { cpu, offset, size: 100 };
        let mut claimed = layout(vec![cpu(0, 10), cpu(1, 50), cpu(1, 90), cpu(2, 50), cpu(MOST_CPUS, 95)]);
        let ends = bound(&mut claimed, &[0; 200], "x");
        assert_eq!(claimed.buffers[0].cpus, [cpu(0, 10), cpu(1, 50)]);
        assert_eq!((ends.of(cpu(0, 10)), ends.of(cpu(1, 50))), (50, usize::MAX));
        assert_eq!((claimed.problems[0].count, claimed.problems[0].offset), (3, Some(90)));
        let mut absurd = layout((0..100_000).map(|number| cpu(number, 10)).collect());
        bound(&mut absurd, &[0; 200], "x");
        assert_eq!((absurd.buffers[0].cpus.len(), absurd.problems[0].count), (1, 99_999));
    }

    #[test]
    fn what_unpacks_to_too_much_ends_its_stream() {
        let stream = |places: Vec<Place>| Index { cpu: 3, page_size: 4096, places, problem: None };
        let bomb = Place { file: 0, offset: 8, stored: 100, size: 60 << 20 };
        let mut indexes = vec![vec![stream(vec![bomb; 9]), stream(vec![Place { size: 40 << 10, ..bomb }; 9])]];
        bound_unpacked(&mut indexes, "x");
        assert_eq!(
            (indexes[0][0].places.len(), indexes[0][0].problem.as_ref().map(|p| p.bytes_skipped)),
            (1, Some(800))
        );
        let mut wide = vec![(0..9).map(|_| stream(vec![Place { stored: 1 << 20, ..bomb }])).collect::<Vec<_>>()];
        bound_unpacked(&mut wide, "x");
        let left: usize = wide[0].iter().map(|index| index.places.len()).sum();
        assert_eq!(left, 4, "largest pieces of all streams: 240 of 256 MB");
    }
}
