//! What a processor reads from memory in long mode, as words: segments, gates, pages.
//!
//! Intel SDM volume 3, 3.4.5 (segment descriptors), 6.14.1 (gates), 4.5 (paging).

/// The entry is a page, and no table of pages.
const LARGE: u64 = 0x80;

/// The descriptor of a segment of all memory, by its access byte and its flags.
pub const fn flat_segment(access: u64, flags: u64) -> u64 {
    0xffff | 0xf << 48 | access << 40 | flags << 52
}

/// An interrupt gate to ring 0, to a segment of code.
pub fn interrupt_gate(handler: u64, code: u16) -> [u64; 2] {
    let low = handler & 0xffff | u64::from(code) << 16 | 0x8e << 40 | (handler >> 16 & 0xffff) << 48;
    [low, handler >> 32]
}

/// The directory of a gigabyte whose pages of 2 MB lie at their own addresses, each with these bits.
pub fn identity(gigabyte: u64, bits: u64) -> Vec<u64> {
    (0..512).map(|entry| gigabyte << 30 | entry << 21 | LARGE | bits).collect()
}
