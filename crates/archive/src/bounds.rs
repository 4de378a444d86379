//! How much is taken out of an archive at most. What goes beyond a bound is an error or counted as left out, never silent.

/// Entries: a snapshot takes 250,000 files at most, a sosreport of a large host has some 50,000.
pub(crate) const ENTRIES: u64 = 300_000;

/// Bytes that any archive may unpack to.
pub const FREE_BYTES: u64 = 512 << 20;

/// Beyond these, how many times its own size an archive may unpack to. Text of `/proc` and `/sys` packs to a twentieth,
/// traces to a tenth; an archive that packs better was made to fill a disk.
pub(crate) const MOST_TIMES: u64 = 100;

/// Bytes of a path (PATH_MAX).
pub const PATH_BYTES: u64 = 4_096;

/// Directories in a path.
pub const DEPTH: usize = 64;

/// Bytes of a header that extends another (a long name, pax).
pub(crate) const EXTENSION_BYTES: u64 = 64 << 10;

/// Memory of the decoder of xz: its largest preset takes 65 MiB (xz(1), -9).
pub(crate) const XZ_BYTES: u64 = 256 << 20;

/// Memory of the decoder of zstd, as the logarithm of its window; `zstd --long` takes 27 (zstd(1)).
pub(crate) const ZSTD_WINDOW_LOG: u32 = 27;

/// Bytes that an archive of `packed` bytes may unpack to.
pub fn unpacked_bytes(packed: u64) -> u64 {
    FREE_BYTES.saturating_add(packed.saturating_mul(MOST_TIMES))
}
