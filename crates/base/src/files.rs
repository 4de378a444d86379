//! Files that somebody else may have laid where they are: opened here, and nowhere else.
//!
//! A recording, a data set or a tree of a host comes from an archive, a shared folder, another user. A FIFO there would be waited for
//! for ever, and a device has no end: both are refused, and so is what no open can return from.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

/// The open of a FIFO waits for nobody (`O_NONBLOCK`, include/uapi/asm-generic/fcntl.h, Linux 6.12).
const NONBLOCK: i32 = 0o4000;
/// A terminal does not become the program's own (`O_NOCTTY`, the same file).
const NOCTTY: i32 = 0o400;

/// Opens a file to be read. Directories are opened too, and refused by who reads them.
///
/// # Errors
/// If it cannot be opened, or is a FIFO, a socket or a device.
pub fn open(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().read(true).custom_flags(NONBLOCK | NOCTTY).open(path)?;
    let kind = file.metadata()?.file_type();
    let kind = if kind.is_fifo() {
        "a FIFO"
    } else if kind.is_char_device() || kind.is_block_device() {
        "a device"
    } else if kind.is_socket() {
        "a socket"
    } else {
        return Ok(file);
    };
    // What a shell makes of <(..).
    let instead = if path.starts_with("/dev/fd") { "; pipe it in: .. | kvmscope report -" } else { "" };
    Err(io::Error::new(ErrorKind::InvalidInput, format!("it is {kind}, not a regular file{instead}")))
}

/// Refuses a file that is nearly all holes: a few bytes that claim to be terabytes would be read, or carried, for hours.
///
/// # Errors
/// If it claims more than 1 GiB, and a thousand times what is stored of it.
pub fn check_sparse(file: &File) -> io::Result<()> {
    let about = file.metadata()?;
    // st_blocks counts 512 bytes whatever the file system's blocks are (stat(2)).
    let (claimed, stored) = (about.len(), about.blocks().saturating_mul(512));
    if claimed > 1 << 30 && claimed / 1000 > stored {
        let sentence = format!("it claims {claimed} bytes but only {stored} are stored: nearly all of it is holes");
        return Err(io::Error::new(ErrorKind::InvalidData, sentence));
    }
    Ok(())
}

/// The content of a file, which must have `most_bytes` at most.
///
/// # Errors
/// As [`open`]; if it cannot be read, or is longer.
pub fn read(path: &Path, most_bytes: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.take(most_bytes.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most_bytes {
        return Err(io::Error::new(ErrorKind::FileTooLarge, format!("it has more than {most_bytes} bytes")));
    }
    Ok(bytes)
}

/// The content of a file of text.
///
/// # Errors
/// As [`read`], and if it is no UTF-8.
pub fn text(path: &Path, most_bytes: u64) -> io::Result<String> {
    String::from_utf8(read(path, most_bytes)?)
        .map_err(|_| io::Error::new(ErrorKind::InvalidData, "it is no text (UTF-8)"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_file_is_read_and_what_never_ends_is_refused() {
        let place = tempfile::tempdir().unwrap();
        let (file, fifo, link) = (place.path().join("file"), place.path().join("fifo"), place.path().join("link"));
        std::fs::write(&file, b"text").unwrap();
        assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        std::os::unix::fs::symlink(&fifo, &link).unwrap();
        assert_eq!(read(&file, 4).unwrap(), b"text");
        assert_eq!(read(&file, 3).unwrap_err().to_string(), "it has more than 3 bytes");
        assert!(open(place.path()).is_ok(), "whoever reads a directory is told that it is one");
        for (path, kind) in [(fifo.as_path(), "a FIFO"), (&link, "a FIFO"), (Path::new("/dev/zero"), "a device")] {
            let error = open(path).unwrap_err().to_string();
            assert!(error.starts_with(&format!("it is {kind},")), "{error}");
        }
    }
}
