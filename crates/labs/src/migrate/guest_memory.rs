//! What does a guest's memory hold? QEMU writes it to a file, a piece at a time.
//!
//! ```text
//! saved and woken:  a sum before, a sum after
//! moved:            source, which keeps what it had when it stopped  --each page-->  the same on the target?
//!                   what the guest's program has written by its count --hot pages-->  the same on the target?
//! ```

use super::Settings;
use super::network;
use super::qemu::{ODD_BYTES, Qemu, realtime_ns};
use super::sector::Written;
use base::moved_memory::{MovedMemory, SCHEMA};
use lab::Error;
use lab::watch::Watch;
use serde_json::{Value, json};
use std::hash::Hasher;
use std::path::Path;
use std::time::Duration;

const PAGE: usize = 4_096;
/// So much of it lies on the disk at once.
const PIECE: u64 = 64 << 20;
/// A disk that takes longer for a piece is none.
const PATIENCE: Duration = Duration::from_secs(600);
/// Of more memory than the first, q35 keeps the second below 4 GiB, and the rest lies above (`pc_q35_init` of hw/i386/pc_q35.c, QEMU 7.2).
const LOW_BYTES: (u64, u64) = (0xb000_0000, 0x8000_0000);

/// Where all of a guest's memory lies, in pieces: address and length.
fn pieces(memory_bytes: u64) -> impl Iterator<Item = (u64, u64)> {
    let low = if memory_bytes >= LOW_BYTES.0 { LOW_BYTES.1 } else { memory_bytes };
    [(0, low), (4 << 30, memory_bytes - low)].into_iter().flat_map(|(begin, length)| {
        let starts = (0..length).step_by(PIECE as usize);
        starts.map(move |start| (begin + start, PIECE.min(length - start)))
    })
}

fn read(qemu: &mut Qemu, (address, length): (u64, u64), place: &Path) -> Result<Vec<u8>, Error> {
    let path = place.join("memory");
    let asked = json!({ "val": address, "size": length, "filename": path });
    qemu.qmp.execute("pmemsave", asked, PATIENCE)?;
    let read = std::fs::read(&path);
    let _ = std::fs::remove_file(&path);
    let read = read.map_err(|error| Error::io(&path, error))?;
    if read.len() as u64 == length {
        return Ok(read);
    }
    Err(Error::Malformed(format!("QEMU wrote {} of {length} bytes of its guest's memory", read.len())))
}

/// A sum over the memory of a guest that stands still.
///
/// # Errors
/// If QEMU does not write it, or it cannot be read.
pub(super) fn sum(qemu: &mut Qemu, settings: &Settings, place: &Path) -> Result<String, Error> {
    let mut sum = Sum::default();
    for piece in pieces(settings.memory_bytes + ODD_BYTES) {
        sum.add(piece.0, &read(qemu, piece, place)?);
    }
    Ok(sum.end())
}

/// Stops a guest that was moved, and holds its memory against the source's and its own program. `from_ns` is when that began.
///
/// # Errors
/// As of [`sum`].
pub(super) fn compare(
    [source, target]: [&mut Qemu; 2],
    settings: &Settings,
    place: &Path,
    from_ns: u64,
    watch: &Watch<'_>,
) -> Result<MovedMemory, Error> {
    target.qmp.execute("stop", Value::Null, PATIENCE)?;
    let beats = target.heartbeat()?;
    let written = settings.work.written(beats);
    let rings = settings.packets.map(|_| network::RINGS);
    let mut found = MovedMemory { schema: SCHEMA.to_owned(), from_ns, to_ns: realtime_ns(), ..MovedMemory::default() };
    for piece in pieces(settings.memory_bytes + ODD_BYTES) {
        watch.check()?;
        let (was, is) = (read(source, piece, place)?, read(target, piece, place)?);
        hold(&mut found, piece.0, [&was, &is], &written, rings);
    }
    Ok(found)
}

/// Holds pages from `address` on against the source's, or against what the guest has written.
fn hold(found: &mut MovedMemory, address: u64, [was, is]: [&[u8]; 2], written: &Written, rings: Option<(u64, u64)>) {
    let pages = was.chunks(PAGE).zip(is.chunks(PAGE));
    for ((was, is), address) in pages.zip((address..).step_by(PAGE)) {
        let is_ring = rings.is_some_and(|(begin, end)| (begin..end).contains(&address));
        let is_equal = if let Some(foretold) = written.page(address) {
            found.foretold += 1;
            foretold == is
        } else if is_ring || written.is_own(address) {
            found.left_out += 1;
            true
        } else {
            found.compared += 1;
            was == is
        };
        if !is_equal {
            found.differs(address);
        }
    }
}

/// Pages of zeros take no part, but their place does: most of a guest's memory is that.
// Both sums are of this program: that another version of it may sum otherwise does not matter.
#[derive(Default)]
struct Sum(std::hash::DefaultHasher);

impl Sum {
    fn add(&mut self, address: u64, bytes: &[u8]) {
        for (page, address) in bytes.chunks(PAGE).zip((address..).step_by(PAGE)) {
            if page.iter().any(|byte| *byte != 0) {
                self.0.write_u64(address);
                self.0.write(page);
            }
        }
    }

    fn end(self) -> String {
        format!("{:016x}", self.0.finish())
    }
}

#[cfg(test)]
mod tests {
    use super::super::sector::{HEARTBEAT_AT, HOT_AT, Work};
    use super::*;

    fn summed(memory: &[u8]) -> String {
        let mut sum = Sum::default();
        sum.add(0, memory);
        sum.end()
    }

    #[test]
    fn one_bit_makes_another_sum() {
        let mut memory = vec![0_u8; 3 << 20];
        let before = summed(&memory);
        assert_eq!(before, summed(&memory));
        memory[(2 << 20) + 5] = 1;
        let after = summed(&memory);
        assert_ne!(before, after);
        memory.rotate_right(4_096);
        assert_ne!(after, summed(&memory), "the same page at another place");
    }

    #[test]
    fn a_sum_of_pieces_is_that_of_the_whole() {
        let memory: Vec<u8> = (0..3_u32 << 20).map(|at| (at / 5_000) as u8).collect();
        let mut sum = Sum::default();
        let (first, rest) = memory.split_at(1 << 20);
        sum.add(0, first);
        sum.add(1 << 20, rest);
        assert_eq!(sum.end(), summed(&memory));
    }

    #[test]
    fn pieces_are_all_of_a_memory_and_leave_out_the_hole() {
        let all = |bytes: u64| pieces(bytes).collect::<Vec<_>>();
        assert_eq!(all((64 << 20) + ODD_BYTES), [(0, 64 << 20), (64 << 20, ODD_BYTES)]);
        let of_four = all(4 << 30);
        assert_eq!(of_four.iter().map(|(_, length)| length).sum::<u64>(), 4 << 30);
        assert!(of_four.iter().all(|(begin, length)| begin + length <= 2 << 30 || *begin >= 4 << 30), "{of_four:?}");
    }

    #[test]
    fn a_page_that_is_not_what_it_should_be_is_found_wherever_it_lies() {
        let work = Work { pages: 3, ticks: 1, anywhere: false };
        let written = work.written(7);
        let mut was = vec![0_u8; (HOT_AT + 4 * 4_096) as usize];
        was[5_000] = 1;
        let mut is = was.clone();
        for page in 0..3 {
            let at = HOT_AT as usize + page * PAGE;
            is[at..at + PAGE].copy_from_slice(&written.page(at as u64).unwrap());
        }
        is[HEARTBEAT_AT as usize] = 7;
        let found = |is: &[u8], rings| {
            let mut found = MovedMemory::default();
            hold(&mut found, 0, [&was, is], &written, rings);
            found
        };
        let good = found(&is, None);
        assert_eq!((good.foretold, good.left_out, good.differing), (3, 2, 0), "the stack and the heartbeat");
        assert_eq!(good.compared + 5, (is.len() / PAGE) as u64);
        for at in [5_000, HOT_AT as usize, HOT_AT as usize + 3 * PAGE - 1, is.len() - 1] {
            let mut bad = is.clone();
            bad[at] ^= 1;
            let address = (at / PAGE * PAGE) as u64;
            assert_eq!(found(&bad, None).first_differing, [address], "{at:#x}");
            assert_eq!(found(&bad, Some((0, 0x2000))).differing, u64::from(at > 0x2000), "of a card");
        }
    }
}
