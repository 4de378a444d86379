//! What does the `metadata` file of a CTF trace hold, without its packaging?
//!
//! ```text
//! text       /* CTF 1.8 */ ...            TSDL as it is
//! packets    57 1D D1 75 | uuid | ...     TSDL or JSON in packets, either byte order
//! JSON       1E { ... } 1E { ... }        CTF 2
//! ```
//! Packet header: CTF 1.8.3 section 7.1 and CTF2-PMETA-1.0, the same 37 bytes; CTF 2 writes major version 2.

use crate::Error;
use crate::format::Endian;
use std::path::{Path, PathBuf};

/// First four bytes of a metadata packet.
const MAGIC: u32 = 0x75D1_1D57;
/// Bytes of a metadata packet's header.
const HEADER: usize = 37;
/// Largest metadata. LTTng describes all events of a kernel in 3 MB; each byte may become a word of 40 bytes.
pub(super) const MOST_BYTES: u64 = 16 << 20;
/// Start of a JSON text in a sequence (RFC 7464).
pub(super) const RECORD_SEPARATOR: u8 = 0x1E;

/// The description as text, with the way back to places in the file.
#[derive(Debug, Clone)]
pub(super) struct Metadata {
    pub file: PathBuf,
    /// TSDL or a sequence of JSON texts.
    pub text: String,
    /// Size of the file.
    pub bytes: u64,
    /// Byte order of its packets, if it has packets.
    pub packets: Option<Endian>,
    /// Where in the text the content of each packet starts, and where that is in the file.
    chunks: Vec<(usize, u64)>,
}

/// True if a file that starts so is the metadata of a CTF trace.
pub(super) fn is_metadata(start: &[u8]) -> bool {
    let text = start.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(start).trim_ascii_start();
    packet_order(start).is_some() || text.starts_with(b"/* CTF 1.8") || starts_json(text)
}

fn starts_json(text: &[u8]) -> bool {
    text.strip_prefix(&[RECORD_SEPARATOR]).is_some_and(|rest| rest.trim_ascii_start().starts_with(b"{"))
}

fn packet_order(bytes: &[u8]) -> Option<Endian> {
    let word: [u8; 4] = bytes.get(..4)?.try_into().ok()?;
    match MAGIC {
        magic if magic == u32::from_le_bytes(word) => Some(Endian::Little),
        magic if magic == u32::from_be_bytes(word) => Some(Endian::Big),
        _ => None,
    }
}

impl Metadata {
    /// Reads the file and unpacks it.
    ///
    /// # Errors
    /// If it cannot be read, is none of the three forms, or a packet's header is damaged.
    pub(super) fn read(file: &Path) -> Result<Self, Error> {
        let io = |source| Error::Io { file: file.to_owned(), source };
        Self::unpack(file, &base::files::read(file, MOST_BYTES).map_err(io)?)
    }

    /// Unpacks the content of a metadata file.
    ///
    /// # Errors
    /// If it is none of the three forms, or a packet's header is damaged.
    pub(super) fn unpack(file: &Path, bytes: &[u8]) -> Result<Self, Error> {
        let mut metadata = Self {
            file: file.to_owned(),
            text: String::new(),
            bytes: bytes.len() as u64,
            packets: packet_order(bytes),
            chunks: Vec::new(),
        };
        let mut content = Vec::new();
        match metadata.packets {
            Some(order) => metadata.unpack_packets(order, bytes, &mut content)?,
            None => {
                metadata.chunks.push((0, 0));
                content.extend_from_slice(bytes);
            }
        }
        // A packet may end inside a character, so the text is checked as a whole.
        metadata.text =
            String::from_utf8(content).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
        Ok(metadata)
    }

    fn unpack_packets(&mut self, order: Endian, bytes: &[u8], content: &mut Vec<u8>) -> Result<(), Error> {
        let mut at = 0;
        while at < bytes.len() {
            let rest = &bytes[at..];
            let damaged = |offset: usize, expected: &str, found: String| Error::Damaged {
                file: self.file.clone(),
                offset: (at + offset) as u64,
                expected: expected.to_owned(),
                found,
            };
            if rest.len() < HEADER {
                return Err(damaged(0, "a metadata packet header of 37 bytes", format!("{} bytes", rest.len())));
            }
            if packet_order(rest) != Some(order) {
                return Err(damaged(0, "the magic number of a metadata packet", format!("{:02x?}", &rest[..4])));
            }
            let bits = |from: usize| order.unsigned(&rest[from..from + 4]);
            let (content_bytes, packet_bytes) = (bits(24) / 8, bits(28) / 8);
            // What is compressed or encrypted (CTF 1.8.3 names no scheme) cannot be understood.
            if rest[32] != 0 || rest[33] != 0 {
                return Err(damaged(32, "a packet neither compressed nor encrypted", format!("{:?}", &rest[32..34])));
            }
            let fits = content_bytes >= HEADER as u64 && packet_bytes >= content_bytes;
            if !fits || content_bytes > rest.len() as u64 {
                let found = format!("{content_bytes} of {packet_bytes} bytes, {} are left", rest.len());
                return Err(damaged(24, "the size of a metadata packet", found));
            }
            self.chunks.push((content.len(), (at + HEADER) as u64));
            content.extend_from_slice(&rest[HEADER..content_bytes as usize]);
            at = at.saturating_add(packet_bytes as usize);
        }
        Ok(())
    }

    /// True if the text is CTF 2.
    pub(super) fn is_json(&self) -> bool {
        starts_json(self.text.trim_start_matches('\u{FEFF}').as_bytes().trim_ascii_start())
    }

    /// Where in the file the byte `at` of the text stands.
    pub(super) fn place(&self, at: usize) -> u64 {
        let next = self.chunks.partition_point(|(text, _)| *text <= at);
        let (text, file) = self.chunks[next.saturating_sub(1)..].first().copied().unwrap_or((0, 0));
        file + (at.saturating_sub(text)) as u64
    }

    /// Something else was expected at byte `at` of the text.
    pub(super) fn damaged(&self, at: usize, expected: impl Into<String>, found: impl Into<String>) -> Error {
        let line = 1 + self.text.as_bytes()[..at.min(self.text.len())].iter().filter(|byte| **byte == b'\n').count();
        let found = format!("{} (line {line})", found.into());
        Error::Damaged { file: self.file.clone(), offset: self.place(at), expected: expected.into(), found }
    }
}
