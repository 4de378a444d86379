//! The memory of a toy guest: a few megabytes, zero at first, written and read as numbers by address.

use lab::Error;
use lab::guest::memory::Memory as Pages;

/// Guest memory from address 0.
pub(super) struct Memory(Pages);

impl Memory {
    pub(super) const BYTES: usize = 4 << 20;

    pub(super) fn new() -> Result<Self, Error> {
        Pages::new(Self::BYTES).map(Self)
    }

    pub(crate) fn host_address(&self) -> u64 {
        self.0.address()
    }

    /// Copies `bytes` to the guest's address `at`, which lies inside: where things lie is decided in `mod.rs`.
    pub(super) fn write(&mut self, at: u64, bytes: &[u8]) {
        self.0.load(at as usize, bytes).expect("the toy's layout fits its memory");
    }

    /// Writes a number of 64 bits.
    pub(crate) fn write_u64(&mut self, at: u64, value: u64) {
        self.write(at, &value.to_le_bytes());
    }

    /// Writes a number of 32 bits.
    pub(crate) fn write_u32(&mut self, at: u64, value: u32) {
        self.write(at, &value.to_le_bytes());
    }

    /// Writes a number of 16 bits.
    pub(crate) fn write_u16(&mut self, at: u64, value: u16) {
        self.write(at, &value.to_le_bytes());
    }

    /// Reads a number of 64 bits; `at` is a multiple of 8.
    pub(crate) fn read_u64(&self, at: u64) -> u64 {
        assert!(at.is_multiple_of(8) && at as usize + 8 <= Self::BYTES, "{at:#x} lies outside the toy's memory");
        // SAFETY: inside the mapping and aligned; volatile, because the guest may have changed it.
        unsafe { ((self.host_address() + at) as *const u64).read_volatile() }
    }
}
