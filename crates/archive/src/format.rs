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
        bytes if bytes.get(TAR_MAGIC_AT..) == Some(b"ustar") => Some(Format::Plain),
        _ => None,
    }
}

impl Format {
    /// The bytes that were packed.
    pub(crate) fn reader(self, file: File) -> io::Result<Box<dyn Read>> {
        Ok(match self {
            Self::Plain => Box::new(BufReader::new(file)),
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
