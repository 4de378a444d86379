//! Traces made by hand: metadata as text, streams bit by bit.

use super::events::{Whole, read_path};
use std::fs;
use std::path::Path;
use tempfile::TempDir;

/// A trace directory that goes away with it.
pub(super) struct Made {
    directory: TempDir,
}

impl Made {
    /// Writes `metadata` and streams called `stream_0`, `stream_1`, ...
    pub(super) fn new(metadata: impl AsRef<[u8]>, streams: &[&[u8]]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("metadata"), metadata).unwrap();
        for (number, stream) in streams.iter().enumerate() {
            fs::write(directory.path().join(format!("stream_{number}")), stream).unwrap();
        }
        Self { directory }
    }

    pub(super) fn path(&self) -> &Path {
        self.directory.path()
    }

    pub(super) fn read(&self) -> Whole {
        read_path(self.path())
    }
}

/// A stream written bit by bit; `big`: the first bit is the highest of its byte.
#[derive(Debug, Clone, Default)]
pub(super) struct Bits {
    pub bytes: Vec<u8>,
    pub at: usize,
    pub big: bool,
}

impl Bits {
    pub(super) fn little() -> Self {
        Self::default()
    }

    pub(super) fn big() -> Self {
        Self { big: true, ..Self::default() }
    }

    pub(super) fn align(mut self, bits: usize) -> Self {
        self.at = self.at.next_multiple_of(bits);
        self.bytes.resize(self.at.div_ceil(8), 0);
        self
    }

    /// The low `bits` of `value`, one bit after the other.
    pub(super) fn put(mut self, bits: usize, value: u64) -> Self {
        for n in 0..bits {
            let bit = if self.big { value >> (bits - 1 - n) & 1 } else { value >> n & 1 };
            self.bytes.resize(self.at / 8 + 1, 0);
            let shift = if self.big { 7 - self.at % 8 } else { self.at % 8 };
            self.bytes[self.at / 8] |= (bit as u8) << shift;
            self.at += 1;
        }
        self
    }

    /// Whole bytes at the next byte boundary.
    pub(super) fn bytes(self, bytes: &[u8]) -> Self {
        let mut aligned = self.align(8);
        aligned.bytes.extend_from_slice(bytes);
        aligned.at += 8 * bytes.len();
        aligned
    }

    pub(super) fn u8(self, value: u8) -> Self {
        self.align(8).put(8, value.into())
    }

    pub(super) fn u16(self, value: u16) -> Self {
        self.align(8).put(16, value.into())
    }

    pub(super) fn u32(self, value: u32) -> Self {
        self.align(8).put(32, value.into())
    }

    pub(super) fn u64(self, value: u64) -> Self {
        self.align(8).put(64, value)
    }

    /// Text with its NUL.
    pub(super) fn text(self, text: &str) -> Self {
        self.bytes(text.as_bytes()).u8(0)
    }
}

/// Integer types that all hand-written metadata here use.
pub(super) const INTEGERS: &str = "
typealias integer { size = 8; align = 8; signed = false; } := uint8_t;
typealias integer { size = 16; align = 8; signed = false; } := uint16_t;
typealias integer { size = 32; align = 8; signed = false; } := uint32_t;
typealias integer { size = 64; align = 8; signed = false; } := uint64_t;
typealias integer { size = 32; align = 8; signed = true; } := int32_t;
typealias integer { size = 32; align = 8; signed = true; } := int;
";

/// Metadata of one stream whose packets have a magic number and nothing else, and whose events have a byte of id and
/// 64 bits of time in ns.
pub(super) fn plain(order: &str, events: &str) -> String {
    format!(
        "/* CTF 1.8 */\n{INTEGERS}
trace {{ major = 1; minor = 8; byte_order = {order}; packet.header := struct {{ uint32_t magic; }}; }};
clock {{ name = c; freq = 1000000000; }};
typealias integer {{ size = 64; align = 8; signed = false; map = clock.c.value; }} := stamp_t;
stream {{ event.header := struct {{ uint8_t id; stamp_t timestamp; }}; }};
{events}"
    )
}

/// The start of a packet of [`plain`] metadata.
pub(super) fn packet(bits: Bits) -> Bits {
    bits.u32(0xC1FC_1FC1)
}
