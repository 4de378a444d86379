//! The bit reader against one that takes bit after bit.

use super::made::{Bits, Made, packet, plain};
use kvmscope_trace::ctf::bits::Shape;
use kvmscope_trace::format::Endian;
use proptest::prelude::*;

/// Reads bit after bit, as CTF 1.8.3 section 4.1.5 draws it.
fn slowly(data: &[u8], at: usize, bits: usize, big: bool, signed: bool) -> u64 {
    let mut value = 0u64;
    for n in 0..bits {
        let place = at + n;
        let byte = data.get(place / 8).copied().unwrap_or(0);
        let bit = u64::from(if big { byte >> (7 - place % 8) & 1 } else { byte >> (place % 8) & 1 });
        value |= bit << if big { bits - 1 - n } else { n };
    }
    if signed && bits < 64 && value >> (bits - 1) & 1 == 1 { value | u64::MAX << bits } else { value }
}

proptest! {
    #[test]
    fn every_integer_is_what_its_bits_say(
        data in proptest::collection::vec(any::<u8>(), 0..24),
        at in 0usize..200,
        bits in 1usize..=64,
        big: bool,
        signed: bool,
    ) {
        let order = if big { Endian::Big } else { Endian::Little };
        let shape = Shape::new(bits as u8, signed, order);
        prop_assert_eq!(shape.read(&data, at as u64), slowly(&data, at, bits, big, signed));
    }

    #[test]
    fn what_is_written_is_read_and_its_neighbours_stay(
        before in 0usize..20,
        bits in 1usize..=64,
        value: u64,
        old: u64,
        big: bool,
    ) {
        let order = if big { Endian::Big } else { Endian::Little };
        let start = Bits { big, ..Bits::default() };
        let mut data = start.put(before, u64::MAX).put(bits, old).put(9, 0b1_0101_0101).bytes;
        let shape = Shape::new(bits as u8, false, order);
        shape.write(&mut data, before as u64, value);
        prop_assert_eq!(shape.read(&data, before as u64), value << (64 - bits) >> (64 - bits));
        prop_assert_eq!(slowly(&data, 0, before, big, false), (1 << before) - 1);
        prop_assert_eq!(slowly(&data, before + bits, 9, big, false), 0b1_0101_0101);
    }
}

proptest! {
    /// Events far from the end of the packet are read by shortcuts, the last ones by the steps: both must agree.
    #[test]
    fn fields_of_any_length_and_alignment_are_read_far_from_the_end_and_at_it(
        fields in proptest::collection::vec((1usize..=64, 0usize..5, any::<bool>(), any::<u64>()), 1..8),
        big: bool,
    ) {
        let mut members = String::new();
        for (number, (bits, align, signed, _)) in fields.iter().enumerate() {
            members += &format!("integer {{ size = {bits}; align = {}; signed = {signed}; }} f{number};\n", 1 << align);
        }
        let order = if big { "be" } else { "le" };
        let metadata = plain(order, &format!("event {{ name = e; id = 1; fields := struct {{ {members} }}; }};"));
        let mut stream = packet(Bits { big, ..Bits::default() });
        let widest = fields.iter().map(|field| 1 << field.1).max().unwrap();
        for time in 0..4 {
            stream = stream.u8(1).u64(time).align(widest);
            for (bits, align, _, value) in &fields {
                stream = stream.align(1 << align).put(*bits, *value);
            }
        }
        // A last event that fills what is left of the last byte must not appear.
        let whole = Made::new(metadata, &[&stream.bytes]).read();
        prop_assert_eq!(whole.events.len(), 4);
        for event in &whole.events {
            for (number, (bits, _, signed, value)) in fields.iter().enumerate() {
                let low = i128::from(value << (64 - bits) >> (64 - bits));
                let negative = *signed && low >> (bits - 1) & 1 == 1;
                prop_assert_eq!(event.int(&format!("f{number}")), if negative { low - (1 << bits) } else { low });
            }
        }
    }
}

#[test]
fn bytes_and_bits_may_run_against_each_other() {
    let swapped = Shape { bits: 16, signed: false, high_first: true, bytes_swapped: true };
    assert_eq!(swapped.read(&[0x34, 0x12], 0), 0x1234, "little-endian bytes, high bit first");
    let mut data = [0; 2];
    swapped.write(&mut data, 0, 0x1234);
    assert_eq!(data, [0x34, 0x12]);
}
