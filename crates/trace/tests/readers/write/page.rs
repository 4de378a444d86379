//! Do pages hold any events at any distance, in every style? Decoded here by the format's own words.

use kvmscope_trace::format::Endian;
use kvmscope_trace::write::layout::Machine;
use kvmscope_trace::write::page::{Discards, PageBuilder, PageStyle};
use proptest::prelude::*;

const PAGE_BYTES: usize = 4096;

/// What stands in pages.
#[derive(Debug, Default, PartialEq)]
struct Content {
    /// Times and payloads.
    events: Vec<(u64, Vec<u8>)>,
    /// Positions of events before which some were missed, and how many.
    missed: Vec<(usize, u64)>,
}

fn decode(pages: &[u8], machine: Machine) -> Content {
    let Content { mut events, mut missed } = Content::default();
    for page in pages.chunks(PAGE_BYTES) {
        let long = usize::from(machine.long_bytes);
        let number = |at: usize, bytes: usize| machine.endian.unsigned(&page[at..at + bytes]);
        let commit = number(8, long);
        let end = 8 + long + (commit & 0xf_ffff) as usize;
        if commit >> 31 & 1 == 1 {
            missed.push((events.len(), if commit >> 30 & 1 == 1 { number(end, long) } else { 0 }));
        }
        let (mut time, mut at) = (number(0, 8), 8 + long);
        while at < end {
            let word = number(at, 4);
            let (kind, delta) = match machine.endian {
                Endian::Little => (word & 31, word >> 5),
                Endian::Big => (word >> 27, word & ((1 << 27) - 1)),
            };
            let array = if at + 8 <= page.len() { number(at + 4, 4) } else { 0 };
            let (body, length) = match kind {
                0 => (at + 8, array as usize - 4),
                1..=28 => (at + 4, kind as usize * 4),
                29 => {
                    time += if delta > 1 { delta } else { 0 };
                    at = if delta == 0 { end } else { at + 4 + array as usize };
                    continue;
                }
                30 => {
                    time += delta + (array << 27);
                    at += 8;
                    continue;
                }
                _ => {
                    time = delta + (array << 27);
                    at += 8;
                    continue;
                }
            };
            time += delta;
            events.push((time, page[body..body + length].to_vec()));
            at = body + length;
        }
    }
    Content { events, missed }
}

fn machines() -> impl Strategy<Value = Machine> {
    let endian = prop_oneof![Just(Endian::Little), Just(Endian::Big)];
    (endian, prop_oneof![Just(4u8), Just(8)]).prop_map(|(endian, long_bytes)| Machine { endian, long_bytes })
}

fn styles() -> impl Strategy<Value = PageStyle> {
    let discards = prop::option::of((1u32..6, 1u32..40).prop_map(|(every, delta)| Discards { every, delta }));
    (any::<bool>(), any::<bool>(), discards).prop_map(|(absolute, padded_tail, discards)| PageStyle {
        absolute,
        padded_tail,
        discards,
    })
}

/// Distances short and long, and payloads up to what a page takes.
fn events() -> impl Strategy<Value = Vec<(u64, usize, bool)>> {
    let distance = prop_oneof![40u64..5_000, (1u64 << 26)..(1 << 34)];
    let payload = prop_oneof![1usize..130, 130usize..3_500];
    prop::collection::vec((distance, payload, prop::bool::weighted(0.05)), 1..60)
}

proptest! {
    #[test]
    fn what_goes_in_comes_out(machine in machines(), style in styles(), events in events()) {
        let (mut out, mut time) = (Vec::new(), 1 << 40);
        let mut builder = PageBuilder::new(machine, PAGE_BYTES as u32, style);
        let mut expected = Content::default();
        for (index, (distance, length, gap)) in events.into_iter().enumerate() {
            time += distance;
            let mut payload = vec![index as u8; length];
            if gap {
                builder.missed(Some(index as u64 + 1), &mut out).unwrap();
                expected.missed.push((index, index as u64 + 1));
            }
            builder.event(time, &payload, &mut out).unwrap();
            payload.resize(length.next_multiple_of(4), 0);
            expected.events.push((time, payload));
        }
        builder.finish(&mut out).unwrap();
        prop_assert_eq!(out.len() % PAGE_BYTES, 0);
        prop_assert_eq!(decode(&out, machine), expected);
    }
}
