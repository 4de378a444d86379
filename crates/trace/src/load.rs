//! An integer taken out of a record by one load of eight bytes.
//!
//! ```text
//! record  .. [ 8 bytes at `byte` ] ..   --as u64--> (raw >> shift) & keep --sign--> value
//! ```
//! The same few instructions for every size and sign, so that a list of them runs without a branch that could be
//! mispredicted: a trace has millions of records, and their kinds follow each other without a rule.

/// How to take one integer that lies in the first bytes of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Load {
    byte: u8,
    shift: u8,
    keep: u64,
    /// The sign bit of a signed integer, else 0.
    sign: u64,
}

/// The first bytes of a record, and whatever follows it: loads need no check of their own.
pub(crate) type Window = [u8; WINDOW_BYTES];

/// Bytes that a window has.
pub(crate) const WINDOW_BYTES: usize = REACH + LOAD_BYTES;

/// Bytes that a load reads.
pub(crate) const LOAD_BYTES: usize = 8;

/// A load begins before this byte.
const REACH: usize = 64;

impl Load {
    /// A field that is not there: its value is 0.
    pub(crate) const ABSENT: Load = Load { byte: 0, shift: 0, keep: 0, sign: 0 };

    /// `bits` (1 to 64) bits of the eight bytes at `byte`, the lowest of them being bit `shift` of the word; `None` if it
    /// does not fit into a window.
    pub fn new(byte: usize, shift: u8, bits: u8, signed: bool) -> Option<Self> {
        let keep = u64::MAX >> (64 - u32::from(bits.clamp(1, 64)));
        let sign = if signed { keep ^ (keep >> 1) } else { 0 };
        (byte < REACH).then_some(Load { byte: byte as u8, shift, keep, sign })
    }

    /// The value of a load of shift 0, whose bytes come least significant first.
    #[inline(always)]
    pub(crate) fn value_of_whole_bytes(self, window: &Window) -> u64 {
        self.kept(u64::from_le_bytes(self.raw(window)))
    }

    #[inline(always)]
    fn raw(self, window: &Window) -> [u8; LOAD_BYTES] {
        let mut raw = [0; LOAD_BYTES];
        let from = usize::from(self.byte) % REACH;
        raw.copy_from_slice(&window[from..from + LOAD_BYTES]);
        raw
    }

    #[inline(always)]
    fn kept(self, value: u64) -> u64 {
        ((value & self.keep) ^ self.sign).wrapping_sub(self.sign)
    }

    /// True if it begins with the lowest bit of its first byte.
    pub(crate) fn has_whole_bytes(&self) -> bool {
        self.shift == 0
    }

    /// True for [`Load::ABSENT`].
    #[inline(always)]
    pub fn is_absent(self) -> bool {
        self.keep == 0
    }

    /// The value; `BIG`: the bytes come most significant first.
    #[inline(always)]
    pub fn value<const BIG: bool>(self, window: &Window) -> u64 {
        let raw = if BIG { u64::from_be_bytes } else { u64::from_le_bytes }(self.raw(window));
        self.kept(raw >> (self.shift & 63))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_size_and_sign_comes_out_of_eight_bytes() {
        let mut bytes = [0; WINDOW_BYTES];
        bytes[..9].copy_from_slice(&[0xfe, 0xff, 0x03, 0x80, 5, 6, 7, 0x88, 9]);
        let little = |load: Option<Load>| load.unwrap().value::<false>(&bytes) as i64;
        assert_eq!(little(Load::new(0, 0, 16, true)), -2);
        assert_eq!(little(Load::new(0, 0, 16, false)), 0xfffe);
        assert_eq!(little(Load::new(0, 16, 16, true)), 0x8003u16 as i16 as i64);
        assert_eq!(little(Load::new(1, 56, 8, false)), 9);
        assert_eq!(little(Load::new(0, 0, 64, false)) as u64, u64::from_le_bytes(*bytes.first_chunk().unwrap()));
        assert_eq!(little(Some(Load::ABSENT)), 0);
        assert_eq!(Load::new(0, 48, 16, false).unwrap().value::<true>(&bytes), 0xfeff);
        assert_eq!(Load::new(REACH, 0, 8, false), None);
    }
}
