//! Is a page of memory zeros, and how fast can one core tell?
//!
//! ```text
//! &[u8] --Scan--> bool      plain: byte by byte, by words, compared with itself     wide: SSE2, AVX2, AVX-512     qemu: as QEMU does it
//! ```
//! All give the same answer. [`is_zero`] takes the fastest that the processor has, chosen once. The bar is what a core reads from
//! memory: a page of zeros has to be read whole, any other one gives itself away in its first line mostly.

mod plain;
mod qemu;
mod wide;

#[cfg(test)]
mod tests;

use std::sync::OnceLock;

/// A page, as QEMU and the kernel count them on x86-64.
pub const PAGE_BYTES: usize = 4096;

/// A way of looking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scan {
    /// One byte after the other.
    Bytes,
    /// Words of 64 bits, eight at a time.
    Words,
    /// By `memcmp` with itself, one byte further: equal neighbours, and a first byte of 0.
    Memcmp,
    /// Eight vectors of 128 bits at a time, which every x86-64 processor has.
    Sse2,
    /// Eight vectors of 256 bits at a time.
    Avx2,
    /// The same, asking for what lies a page further.
    Avx2Ahead,
    /// Four vectors of 512 bits at a time.
    Avx512,
    /// QEMU's own with AVX2, since 9.1 (`qemu.rs`).
    Qemu,
}

impl Scan {
    /// All of them.
    pub const ALL: [Self; 8] =
        [Self::Bytes, Self::Words, Self::Memcmp, Self::Sse2, Self::Avx2, Self::Avx2Ahead, Self::Avx512, Self::Qemu];

    /// As benches call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bytes => "bytes",
            Self::Words => "words",
            Self::Memcmp => "memcmp",
            Self::Sse2 => "sse2",
            Self::Avx2 => "avx2",
            Self::Avx2Ahead => "avx2_ahead",
            Self::Avx512 => "avx512",
            Self::Qemu => "qemu",
        }
    }

    /// Whether this processor has what it takes.
    pub fn is_available(self) -> bool {
        match self {
            Self::Bytes | Self::Words | Self::Memcmp | Self::Sse2 => true,
            Self::Avx2 | Self::Avx2Ahead | Self::Qemu => is_x86_feature_detected!("avx2"),
            Self::Avx512 => is_x86_feature_detected!("avx512f"),
        }
    }

    /// Whether all of `memory` is zeros. What this processor lacks is done by words.
    pub fn is_zero(self, memory: &[u8]) -> bool {
        // SAFETY: `is_available` has looked for what the way takes.
        unsafe { self.function()(memory) }
    }

    /// How many pages of `memory` are zeros; which way it takes is looked up once, not for each page.
    pub fn zero_pages(self, memory: &[u8]) -> usize {
        let is_zero = self.function();
        // SAFETY: as above.
        memory.chunks(PAGE_BYTES).filter(|page| unsafe { is_zero(page) }).count()
    }

    fn function(self) -> unsafe fn(&[u8]) -> bool {
        match self {
            Self::Bytes => plain::by_bytes,
            Self::Memcmp => plain::by_memcmp,
            Self::Sse2 => wide::by_sse2,
            Self::Avx2 if self.is_available() => wide::by_avx2::<false>,
            Self::Avx2Ahead if self.is_available() => wide::by_avx2::<true>,
            Self::Avx512 if self.is_available() => wide::by_avx512,
            Self::Qemu if self.is_available() => qemu::by_avx2,
            Self::Words | Self::Avx2 | Self::Avx2Ahead | Self::Avx512 | Self::Qemu => plain::by_words,
        }
    }

    /// The fastest that this processor has. From memory AVX-512 was no faster than AVX2 where both were measured.
    pub fn best() -> Self {
        static BEST: OnceLock<Scan> = OnceLock::new();
        *BEST.get_or_init(|| if Self::Avx2.is_available() { Self::Avx2 } else { Self::Sse2 })
    }
}

/// Whether all of `memory` is zeros.
pub fn is_zero(memory: &[u8]) -> bool {
    Scan::best().is_zero(memory)
}

/// Reads all of `memory` and does nothing with it that takes time: what a scan is measured against.
pub fn read(memory: &[u8]) -> u64 {
    if Scan::Avx2.is_available() {
        // SAFETY: the processor has AVX2.
        unsafe { wide::read_avx2(memory) }
    } else {
        wide::read_sse2(memory)
    }
}
