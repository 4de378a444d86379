//! What does it take to send a guest's memory once?

/// Bytes of a page of memory.
pub const PAGE_MEMORY_BYTES: f64 = 4_096.0;
/// Bytes of a page on the wire: its memory and the header with its offset (`save_page_header` in migration/ram.c, QEMU 7.2).
pub const PAGE_BYTES: f64 = 4_104.0;
/// Bytes of a page of zeros on the wire: the header, and the byte that fills it (`save_zero_page_to_file`).
pub(crate) const ZERO_PAGE_BYTES: f64 = 9.0;

/// Memory, as the first pass sends it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Memory {
    /// Pages of 4 KiB.
    pub pages: f64,
    /// How much of them is zeros, 0 to 1.
    pub zero_share: f64,
}

impl Memory {
    pub fn sent_bytes(&self) -> f64 {
        self.pages * (self.zero_share * ZERO_PAGE_BYTES + (1.0 - self.zero_share) * PAGE_BYTES)
    }
}
