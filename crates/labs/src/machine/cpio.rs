//! How do files get into the lab's machine and out of it again?
//!
//! As a cpio archive of the format "newc": the kernel unpacks one as its initramfs, and the machine writes another to
//! its disk when it is done. Each file is a head of 110 characters, its name, its bytes, all padded to 4 bytes.
//!
//! ```text
//! 070701 | 13 numbers of 8 hexadecimal digits | name NUL, padded | bytes, padded | ... | TRAILER!!!
//! ```
//! Source: Documentation/driver-api/early-userspace/buffer-format.rst, Linux 6.12.

use std::io::{self, Read, Write};
use std::path::Path;

const MAGIC: &[u8] = b"070701";
const NUMBERS: usize = 13;
const HEAD_BYTES: usize = 6 + NUMBERS * 8;
const LAST: &str = "TRAILER!!!";
const DIRECTORY: u32 = 0o040_755;
const PROGRAM: u32 = 0o100_755;

pub(crate) struct Archive<W: Write> {
    out: W,
    inode: u32,
}

impl<W: Write> Archive<W> {
    /// An archive without files.
    pub(crate) fn new(out: W) -> Self {
        Self { out, inode: 1 }
    }

    /// Adds a directory; those above it must have been added.
    pub(crate) fn directory(&mut self, name: &str) -> io::Result<()> {
        self.head(name, DIRECTORY, 0)
    }

    /// Adds a file that anybody may run.
    pub(crate) fn file(&mut self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.file_of(name, PROGRAM, bytes.len() as u64, &mut &*bytes)
    }

    /// Adds a copy of the file at `from`.
    pub(crate) fn copy(&mut self, name: &str, from: &Path) -> io::Result<()> {
        let mut file = std::fs::File::open(from)?;
        let bytes = file.metadata()?.len();
        self.file_of(name, PROGRAM, bytes, &mut file)
    }

    pub(crate) fn finish(mut self) -> io::Result<W> {
        self.head(LAST, 0, 0)?;
        self.out.flush()?;
        Ok(self.out)
    }

    fn file_of(&mut self, name: &str, mode: u32, bytes: u64, from: &mut dyn Read) -> io::Result<()> {
        self.head(name, mode, bytes)?;
        let written = io::copy(&mut from.take(bytes), &mut self.out)?;
        if written < bytes {
            return Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                format!("{name} became shorter while it was read"),
            ));
        }
        self.pad(bytes)
    }

    fn head(&mut self, name: &str, mode: u32, bytes: u64) -> io::Result<()> {
        let too_long = |_| io::Error::new(io::ErrorKind::FileTooLarge, format!("{name} is too large for the archive"));
        let bytes = u32::try_from(bytes).map_err(too_long)?;
        let inode = self.inode;
        self.inode += 1;
        // inode mode uid gid links mtime size device(2) special(2) name's length checksum
        let name_bytes = name.len() as u32 + 1;
        let numbers = [inode, mode, 0, 0, 1, 0, bytes, 0, 0, 0, 0, name_bytes, 0];
        self.out.write_all(MAGIC)?;
        for number in numbers {
            write!(self.out, "{number:08x}")?;
        }
        self.out.write_all(name.as_bytes())?;
        self.out.write_all(&[0])?;
        self.pad(HEAD_BYTES as u64 + u64::from(name_bytes))
    }

    fn pad(&mut self, after: u64) -> io::Result<()> {
        self.out.write_all(&[0; 3][..padding(after)])
    }
}

fn padding(bytes: u64) -> usize {
    (bytes.wrapping_neg() % 4) as usize
}

/// Hands each file of an archive to `keep`: its name, its length, and a reader of its bytes.
///
/// # Errors
/// If the archive ends before its last entry, or if `keep` fails.
pub(crate) fn unpack(
    from: &mut dyn Read,
    keep: &mut dyn FnMut(&str, u64, &mut dyn Read) -> io::Result<()>,
) -> io::Result<()> {
    loop {
        let mut head = [0; HEAD_BYTES];
        from.read_exact(&mut head)?;
        let number = |index: usize| {
            let digits = head.get(6 + index * 8..14 + index * 8).and_then(|digits| std::str::from_utf8(digits).ok());
            digits.and_then(|digits| u32::from_str_radix(digits, 16).ok())
        };
        let (Some(mode), Some(bytes), Some(name_bytes @ 1..=4096), true) =
            (number(1), number(6), number(11), head.starts_with(MAGIC))
        else {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "not a cpio archive, or a damaged one"));
        };
        let mut name = vec![0; name_bytes as usize + padding(HEAD_BYTES as u64 + u64::from(name_bytes))];
        from.read_exact(&mut name)?;
        let name = String::from_utf8_lossy(&name[..name_bytes as usize - 1]).into_owned();
        if name == LAST {
            return Ok(());
        }
        let mut body = Read::take(&mut *from, u64::from(bytes));
        if mode & 0o170_000 == 0o100_000 {
            keep(&name, u64::from(bytes), &mut body)?;
        }
        io::copy(&mut body, &mut io::sink())?;
        from.read_exact(&mut [0; 3][..padding(u64::from(bytes))])?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(archive: &[u8]) -> io::Result<Vec<(String, Vec<u8>)>> {
        let mut files = Vec::new();
        unpack(&mut &*archive, &mut |name, bytes, body| {
            let mut content = Vec::new();
            body.read_to_end(&mut content)?;
            assert_eq!(content.len() as u64, bytes);
            files.push((name.to_owned(), content));
            Ok(())
        })?;
        Ok(files)
    }

    fn archive() -> Vec<u8> {
        let mut archive = Archive::new(Vec::new());
        archive.directory("dev").unwrap();
        archive.file("dev/a", b"12345").unwrap();
        let (link, target) = (0o120_777, "dev/a");
        archive.file_of("b", link, target.len() as u64, &mut target.as_bytes()).unwrap();
        archive.file("odd name", b"").unwrap();
        archive.finish().unwrap()
    }

    #[test]
    fn what_was_packed_is_unpacked() {
        let expected = vec![("dev/a".to_owned(), b"12345".to_vec()), ("odd name".to_owned(), Vec::new())];
        assert_eq!(files(&archive()).unwrap(), expected);
    }

    #[test]
    fn an_archive_that_is_cut_short_or_damaged_is_refused() {
        let whole = archive();
        for length in [0, 50, 200, whole.len() - 1] {
            assert!(files(&whole[..length]).is_err(), "{length}");
        }
        let mut damaged = whole.clone();
        damaged[0] = b'x';
        assert!(files(&damaged).unwrap_err().to_string().contains("not a cpio archive"));
    }

    #[test]
    fn cpio_lists_what_we_pack() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.cpio");
        std::fs::write(&path, archive()).unwrap();
        let file = std::fs::File::open(&path).unwrap();
        let Ok(output) = std::process::Command::new("cpio").args(["-it", "--quiet"]).stdin(file).output() else {
            println!("skipped: cpio does not start; the Debian package cpio brings it");
            return;
        };
        assert_eq!(String::from_utf8_lossy(&output.stdout), "dev\ndev/a\nb\nodd name\n");
    }
}
