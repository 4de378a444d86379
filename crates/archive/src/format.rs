//! What an archive is packed with, by its first bytes.

use crate::bounds::{XZ_BYTES, ZSTD_WINDOW_LOG};
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

/// What an archive is packed with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Plain,
    /// gzip (RFC 1952, 2.3.1).
    Gzip,
    /// xz (The .xz File Format 1.1, 2.1.1.1).
    Xz,
    /// Zstandard (RFC 8878, 3.1.1).
    Zstd,
    /// bzip2 (`BZh` and the size of its blocks, decompress.c of bzip2 1.0.8).
    Bzip2,
    /// ZIP, which holds files itself (APPNOTE.TXT 6.3.10, 4.3.7).
    Zip,
}

/// Where tar's magic stands (POSIX.1-2017, pax, "ustar Interchange Format").
const TAR_MAGIC_AT: usize = 257;

/// The format of a regular file that may be an archive; `None` for anything else.
pub fn format_of(path: &Path) -> Option<Format> {
    let mut first = Vec::new();
    base::files::open(path).ok()?.take(TAR_MAGIC_AT as u64 + 5).read_to_end(&mut first).ok()?;
    match first.as_slice() {
        [0x1f, 0x8b, ..] => Some(Format::Gzip),
        [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Some(Format::Xz),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Some(Format::Zstd),
        [b'B', b'Z', b'h', b'1'..=b'9', 0x31, 0x41, 0x59, 0x26, 0x53, 0x59, ..] => Some(Format::Bzip2),
        [b'P', b'K', 3, 4, ..] => Some(Format::Zip),
        bytes if bytes.get(TAR_MAGIC_AT..) == Some(b"ustar") => Some(Format::Plain),
        _ => None,
    }
}

impl Format {
    /// Whether one file was compressed, and no tar of several: `trace.txt.gz`. A file that cannot be read is none.
    pub(crate) fn is_one_file(self, file: File) -> bool {
        let mut block = [0; TAR_BLOCK];
        match self {
            Self::Plain | Self::Zip => false,
            _ => match self.reader(file).and_then(|mut reader| fill(&mut reader, &mut block)) {
                Ok(TAR_BLOCK) => !is_tar_header(&block),
                Ok(bytes) => bytes > 0,
                Err(_) => false,
            },
        }
    }

    /// The bytes that were packed.
    pub(crate) fn reader(self, file: File) -> io::Result<Box<dyn Read>> {
        Ok(match self {
            Self::Plain | Self::Zip => Box::new(BufReader::new(file)),
            Self::Bzip2 => Box::new(bzip2::read::MultiBzDecoder::new(BufReader::new(file))),
            Self::Gzip => Box::new(flate2::read::MultiGzDecoder::new(BufReader::new(file))),
            Self::Xz => {
                let stream = liblzma::stream::Stream::new_auto_decoder(XZ_BYTES, liblzma::stream::CONCATENATED);
                Box::new(liblzma::read::XzDecoder::new_stream(file, stream.map_err(io::Error::other)?))
            }
            Self::Zstd => {
                let mut decoder = zstd::Decoder::new(file)?;
                decoder.window_log_max(ZSTD_WINDOW_LOG)?;
                Box::new(decoder)
            }
        })
    }
}

/// Bytes of a header of tar (POSIX.1-2017, pax, "ustar Interchange Format").
const TAR_BLOCK: usize = 512;

/// Reads until `block` is full or nothing comes any more; returns how many bytes came.
fn fill(reader: &mut dyn Read, block: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < block.len() {
        match reader.read(&mut block[filled..])? {
            0 => break,
            read => filled += read,
        }
    }
    Ok(filled)
}

/// Whether a block is a header of tar, whatever its age: its bytes add up to what it says. A tar of nothing is zeros.
fn is_tar_header(block: &[u8; TAR_BLOCK]) -> bool {
    let sum = |range: &[u8]| range.iter().map(|byte| u32::from(*byte)).sum::<u32>();
    // The field of the sum counts as blanks.
    let added = sum(&block[..148]) + 8 * u32::from(b' ') + sum(&block[156..]);
    let said = tar::Header::from_byte_slice(block).cksum();
    block.iter().all(|byte| *byte == 0) || said.is_ok_and(|said| said == added)
}
