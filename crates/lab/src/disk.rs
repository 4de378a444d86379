//! How fast does the file system by itself write and read what a guest's memory takes there?
//!
//! A file of data that cannot be compressed, past the page cache where the file system allows that; it is durable when it is counted as written.

use crate::Error;
use base::hibernation::Disk;
use rustix::fs::{Advice, OFlags, fadvise, fcntl_getfl, fcntl_setfl};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::time::{Duration, Instant};

/// O_DIRECT wants memory, places and lengths in multiples of a sector: 4 KiB serve all disks (open(2)).
const ALIGNED: usize = 4_096;
/// Written and read at once: as QEMU's own blocks or larger.
const BLOCK: usize = 1 << 20;
/// The file is timed in so many pieces, of which the slowest counts.
const PIECES: u64 = 4;
/// No more than this is written for the measurement.
const MOST_BYTES: u64 = 1 << 30;
/// A disk's cache and the clock would decide over less.
const LEAST_BYTES: u64 = 16 << 20;

/// Measures where `place` lies; `bytes` is what will be read from there.
///
/// # Errors
/// If it cannot be written or read there.
pub fn measure(place: &Path, bytes: u64) -> Result<Disk, Error> {
    let path = place.join("disk");
    let measured = timed(&path, bytes.clamp(LEAST_BYTES, MOST_BYTES));
    let _ = std::fs::remove_file(&path);
    measured.map_err(|error| Error::io(&path, error))
}

fn timed(path: &Path, bytes: u64) -> std::io::Result<Disk> {
    let mut file = File::options().read(true).write(true).create(true).truncate(true).open(path)?;
    let flags = fcntl_getfl(&file)?;
    let is_direct = fcntl_setfl(&file, flags | OFlags::DIRECT).is_ok();
    let mut memory = vec![0_u8; BLOCK + ALIGNED];
    let skip = memory.as_ptr().align_offset(ALIGNED);
    let Some(block) = memory.get_mut(skip..skip + BLOCK) else {
        return Err(std::io::Error::other("memory could not be aligned"));
    };
    fill(block);
    let blocks = bytes.div_ceil(BLOCK as u64).next_multiple_of(PIECES);
    let begin = Instant::now();
    for number in 0..blocks {
        // No block is like another, to whoever looks for that.
        block.chunks_exact_mut(8).step_by(64).for_each(|word| word.copy_from_slice(&number.to_le_bytes()));
        file.write_all(block)?;
    }
    file.sync_all()?;
    let write_ns = nanoseconds(begin.elapsed());
    fadvise(&file, 0, None, Advice::DontNeed)?;
    file.seek(SeekFrom::Start(0))?;
    let mut pieces_ns = Vec::new();
    for _ in 0..PIECES {
        let begin = Instant::now();
        for _ in 0..blocks / PIECES {
            file.read_exact(block)?;
        }
        pieces_ns.push(nanoseconds(begin.elapsed()));
    }
    let slowest_ns = pieces_ns.iter().max().copied().unwrap_or_default();
    Ok(Disk {
        bytes: blocks * BLOCK as u64,
        write_ns,
        read_ns: pieces_ns.iter().sum(),
        slowest_read_ns: slowest_ns.saturating_mul(PIECES),
        is_direct,
    })
}

fn nanoseconds(length: Duration) -> u64 {
    u64::try_from(length.as_nanos()).unwrap_or(u64::MAX)
}

/// A linear congruential generator, as the guest has one: nothing of it repeats within a block.
fn fill(block: &mut [u8]) {
    let mut state = 1_u64;
    for word in block.chunks_exact_mut(8) {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        word.copy_from_slice(&state.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_written_read_and_gone() {
        let folder = tempfile::tempdir().unwrap();
        let disk = measure(folder.path(), 1).unwrap();
        assert_eq!(disk.bytes, LEAST_BYTES, "as much as tells");
        assert!(disk.write_ns > 0 && disk.read_ns > 0 && disk.slowest_read_ns >= disk.read_ns);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        assert!(measure(&folder.path().join("none"), 1).is_err());
    }
}
