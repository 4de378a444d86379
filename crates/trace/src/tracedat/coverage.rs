//! For which time are the events of each CPU in the file?
//!
//! ```text
//! sections of 2 CPUs, CPUCOUNT 2    both whole; one of 0 bytes is of a CPU that had no event
//! the first of them alone           CPU 1 is missing: the file breaks off before its section
//! a section that breaks off         until its last event; missing if no piece of it is left
//! ```
//! Pages that were overwritten before the first one say so themselves (`MISSED_EVENTS`), which is a loss with its time.

use super::TraceDat;
use super::index::Index;
use super::layout::Buffer;
use super::page::Records;
use super::pieces::unpacked;
use crate::facts::Coverage;
use crate::format::Endian;
use crate::lane::Scratch;
use base::{Clock, MOST_CPUS, Problem};
use std::collections::BTreeMap;

/// Fills in the coverage of all CPUs, and tells which ones the file lacks.
pub(super) fn describe(trace: &mut TraceDat) {
    let mut coverage: BTreeMap<u32, Coverage> = BTreeMap::new();
    for ((buffer, clock), indexes) in trace.layout.buffers.iter().zip(&trace.clocks).zip(&trace.indexes) {
        for (number, index) in indexes.iter().enumerate() {
            let goes_on = trace.layout.breaks_off && number + 1 == indexes.len();
            let own = of_stream(trace, buffer, index, clock, goes_on);
            // Any instance that recorded the CPU tells of it.
            coverage.entry(index.cpu).and_modify(|known| *known = known.or(own)).or_insert(own);
        }
    }
    let name = trace.files[0].name.clone();
    // A head alone, as a recorder at work leaves it, has no buffers at all.
    let declared = if trace.layout.buffers.is_empty() { 0 } else { trace.layout.cpus.min(MOST_CPUS) };
    for cpu in (0..declared).filter(|cpu| !coverage.contains_key(cpu)).collect::<Vec<_>>() {
        coverage.insert(cpu, Coverage::Missing);
        let text = format!(
            "{name}: the recording has {} CPUs, but the file has no data of CPU {cpu}; activity of that CPU is unknown",
            trace.layout.cpus
        );
        trace.facts.problems.push(Problem::at(
            &name,
            None,
            "the data of every CPU",
            format!("none of CPU {cpu}"),
            0,
            text,
        ));
    }
    trace.facts.cover(coverage);
}

fn of_stream(trace: &TraceDat, buffer: &Buffer, index: &Index, clock: &Clock, goes_on: bool) -> Coverage {
    if index.problem.is_none() && !goes_on {
        return Coverage::Whole;
    }
    last_ticks(trace, buffer, index).map_or(Coverage::Missing, |ticks| Coverage::between(0, clock.ns(ticks)))
}

/// Ticks of the last event of a CPU that can be read.
pub(super) fn last_ticks(trace: &TraceDat, buffer: &Buffer, index: &Index) -> Option<u64> {
    let packed = buffer.compressed.then_some(trace.layout.compression);
    let (mut scratch, mut pages) = (Scratch::default(), Vec::new());
    // The last piece may be unreadable itself; then the one before it.
    index.places.iter().rev().take(PIECES_TRIED).find_map(|place| {
        unpacked(&trace.files[place.file].bytes, packed, place, &mut scratch, &mut pages).ok()?;
        pages.chunks(index.page_size).filter_map(|page| last_of(trace, page)).next_back()
    })
}

/// A file that breaks off has one damaged piece at its end; more than this are damage of another kind.
const PIECES_TRIED: usize = 4;

fn last_of(trace: &TraceDat, page: &[u8]) -> Option<u64> {
    let last = match trace.shape.endian {
        Endian::Little => Records::<false>::new(page, &trace.shape).last(),
        Endian::Big => Records::<true>::new(page, &trace.shape).last(),
    };
    last.map(|record| record.ticks)
}
