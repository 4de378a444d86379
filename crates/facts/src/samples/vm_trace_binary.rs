//! `trace.bin` of vm-trace (opnfv/kvmfornfv, `tests/vm-trace/vm-trace.c`, 23a1e5a7): the ring buffer of one CPU.
//!
//! ```text
//! u32 signature, u16 id of kvm_entry, u16 id of kvm_exit
//! pages of 4,096 bytes: u64 time, u64 length of the data, data
//! event: type_len in 5 bits, time delta in 27, data                                     (include/linux/ring_buffer.h)
//! ```
//! Taken are the pairs of an exit and the next entry with their times. The program itself shifts the upper half of long deltas
//! by 28 bits in place of 27, pairs an entry with an exit whose own entry is lost, and adds up windows that do not slide.

use super::buckets::Lengths;
use super::{Found, SampleClock, Samples, Source};
use std::io::{BufRead, Read};

const PAGE: usize = 4_096;
/// What stands before the data of a page.
const HEAD: usize = 16;
/// The length of a page's data is in these bits of its word; the upper ones are marks of lost events.
const LENGTH: u64 = 0xf_ffff;

/// `type_len` above the lengths of data: kernel/trace/ring_buffer.c.
const PADDING: u32 = 29;
const TIME_EXTEND: u32 = 30;
const TIME_STAMP: u32 = 31;

pub(super) fn read(input: &mut dyn BufRead, found: &mut Found) {
    let mut head = [0; 8];
    if input.read_exact(&mut head).is_err() {
        return found.damaged(0, "8 bytes of a head", "fewer", "the file ends inside its head");
    }
    let [.., entry_low, entry_high, exit_low, exit_high] = head;
    let ids =
        Ids { entry: u16::from_le_bytes([entry_low, entry_high]), exit: u16::from_le_bytes([exit_low, exit_high]) };
    let mut pairs = Pairs {
        left_ns: None,
        lengths: Lengths::default(),
        samples: Samples { unit_ns: 1, clock: SampleClock::Local, ..Samples::new(Source::VmTrace, "") },
    };
    let (mut page, mut offset) = (Vec::with_capacity(PAGE), 8_u64);
    loop {
        page.clear();
        let read = Read::take(&mut *input, PAGE as u64).read_to_end(&mut page);
        if let Err(error) = &read {
            found.damaged(offset, "a page that can be read", error.to_string(), error.to_string());
        }
        if page.is_empty() {
            break;
        }
        if page.len() < PAGE && read.is_ok() {
            found.damaged(
                offset,
                "pages of 4,096 bytes",
                format!("{} bytes", page.len()),
                "the file ends inside a page",
            );
        }
        if events(&page, &ids, &mut pairs).is_none() {
            found.damaged(
                offset,
                "events that fill a page",
                "an event that does not fit",
                "a page is damaged; the rest of it is skipped",
            );
            pairs.left_ns = None;
        }
        offset += page.len() as u64;
    }
    found.samples.push(pairs.lengths.of(pairs.samples));
}

struct Ids {
    entry: u16,
    exit: u16,
}

struct Pairs {
    /// When the guest was left; forgotten at its entry.
    left_ns: Option<u64>,
    lengths: Lengths,
    samples: Samples,
}

impl Pairs {
    fn event(&mut self, at_ns: u64, id: u16, ids: &Ids) {
        if id == ids.exit {
            self.left_ns = Some(at_ns);
        } else if id == ids.entry
            && let Some(length_ns) = self.left_ns.take().and_then(|left_ns| at_ns.checked_sub(left_ns))
        {
            self.lengths.add(length_ns);
            self.samples.add_timed(at_ns, length_ns);
        }
    }
}

/// Takes in the events of a page; `None` if one does not fit into it.
fn events(page: &[u8], ids: &Ids, pairs: &mut Pairs) -> Option<()> {
    let word = |at: usize| Some(u32::from_le_bytes(page.get(at..at.checked_add(4)?)?.try_into().ok()?));
    let long = |at: usize| Some(u64::from_le_bytes(page.get(at..at.checked_add(8)?)?.try_into().ok()?));
    let mut now_ns = long(0)?;
    let end = HEAD.checked_add((long(8)? & LENGTH) as usize)?.min(page.len());
    let mut at = HEAD;
    while at + 4 <= end {
        let head = word(at)?;
        let (kind, delta) = (head & 0x1f, u64::from(head >> 5));
        match kind {
            PADDING if delta == 0 => return Some(()),
            PADDING => at = at.checked_add(word(at + 4)? as usize)?.checked_add(4)?,
            TIME_EXTEND => {
                now_ns = now_ns.saturating_add(delta).saturating_add(u64::from(word(at + 4)?) << 27);
                at += 8;
            }
            TIME_STAMP => {
                now_ns = delta | (u64::from(word(at + 4)?) << 27);
                at += 8;
            }
            _ => {
                now_ns = now_ns.saturating_add(delta);
                // A length of 0 stands in the next word, and counts it.
                let (data, next) = match kind {
                    0 => (at + 8, at.checked_add(4)?.checked_add(word(at + 4)? as usize)?),
                    words => (at + 4, at + 4 + words as usize * 4),
                };
                if next <= data || next > end {
                    return None;
                }
                let id = page.get(data..data + 2)?;
                pairs.event(now_ns, u16::from_le_bytes([id[0], id[1]]), ids);
                at = next;
            }
        }
    }
    Some(())
}
