//! Which integer stands at a bit position of a packet?
//!
//! ```text
//! little-endian  first bit = least significant bit of the byte      ..|..|87654321|...
//! big-endian     first bit = most significant bit of the byte       ..|..|12345678|...
//! ```
//! An integer takes the next bits in this order; its own lowest (highest) bit comes first. CTF 1.8.3 section 4.1.5,
//! CTF2-SPEC-2.0 section 6.4. One unaligned load of 8 bytes serves nearly all of them.

use crate::format::Endian;

/// Shape of an integer of 1 to 64 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Its length.
    pub bits: u8,
    /// True for two's complement.
    pub signed: bool,
    /// True if the first bit is the most significant one of its byte.
    pub high_first: bool,
    /// True if whole bytes stand in the other order than the bits say (CTF 2 lets the two differ).
    pub bytes_swapped: bool,
}

impl Shape {
    /// An integer in one of the two common orders.
    pub fn new(bits: u8, signed: bool, order: Endian) -> Self {
        Self { bits, signed, high_first: order == Endian::Big, bytes_swapped: false }
    }

    /// The integer at bit `at` of `data`, sign-extended; bits outside of `data` are 0.
    #[inline]
    pub fn read(self, data: &[u8], at: u64) -> u64 {
        let (byte, skip) = ((at >> 3) as usize, (at & 7) as u32);
        let bits = u32::from(self.bits);
        let word = eight(data, byte);
        let value = if skip + bits > 64 {
            // Nine bytes are touched.
            let last = data.get(byte + 8).copied().unwrap_or(0);
            if self.high_first {
                let wide = u128::from(word.swap_bytes()) << 8 | u128::from(last);
                (wide << (56 + skip) >> (128 - bits)) as u64
            } else {
                let wide = u128::from(last) << 64 | u128::from(word);
                (wide >> skip) as u64
            }
        } else if self.high_first {
            word.swap_bytes() << skip >> (64 - bits)
        } else {
            word >> skip
        };
        let unused = 64 - bits;
        if self.bytes_swapped {
            return self.extend((value << unused).swap_bytes());
        }
        self.extend(value)
    }

    /// The value with its sign in all upper bits, or zeros there.
    #[inline]
    fn extend(self, value: u64) -> u64 {
        let unused = 64 - u32::from(self.bits);
        if self.signed { ((value << unused) as i64 >> unused) as u64 } else { value << unused >> unused }
    }

    /// Writes `value` at bit `at`; bits outside of `data` are dropped.
    pub fn write(self, data: &mut [u8], at: u64, value: u64) {
        let bits = u32::from(self.bits);
        let value = if self.bytes_swapped { value.swap_bytes() >> (64 - bits) } else { value };
        for bit in 0..bits {
            let place = at + u64::from(bit);
            let (shift, set) = if self.high_first {
                (7 - (place & 7), value >> (bits - 1 - bit) & 1)
            } else {
                (place & 7, value >> bit & 1)
            };
            if let Some(byte) = data.get_mut((place >> 3) as usize) {
                *byte = *byte & !(1 << shift) | (set as u8) << shift;
            }
        }
    }
}

/// Eight bytes from `byte` on as a little-endian word, with zeros behind the end.
#[inline]
fn eight(data: &[u8], byte: usize) -> u64 {
    match data.get(byte..).and_then(|rest| rest.first_chunk::<8>()) {
        Some(word) => u64::from_le_bytes(*word),
        None => tail(data, byte),
    }
}

#[cold]
fn tail(data: &[u8], byte: usize) -> u64 {
    let rest = data.get(byte..).unwrap_or_default();
    rest.iter().take(8).enumerate().fold(0, |word, (at, byte)| word | u64::from(*byte) << (8 * at))
}
