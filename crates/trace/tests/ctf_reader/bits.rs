//! The bit reader against one that takes bit after bit.

use crate::made::Bits;
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

#[test]
fn bytes_and_bits_may_run_against_each_other() {
    let swapped = Shape { bits: 16, signed: false, high_first: true, bytes_swapped: true };
    assert_eq!(swapped.read(&[0x34, 0x12], 0), 0x1234, "little-endian bytes, high bit first");
    let mut data = [0; 2];
    swapped.write(&mut data, 0, 0x1234);
    assert_eq!(data, [0x34, 0x12]);
}
