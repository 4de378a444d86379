//! Is a guest's memory still what it was? Told by a sum over all of it, which QEMU writes to a file.

use super::Settings;
use super::qemu::Qemu;
use crate::Error;
use serde_json::json;
use std::fs::File;
use std::hash::Hasher;
use std::io::Read;
use std::path::Path;
use std::time::Duration;

/// A disk that takes longer for it is none.
const PATIENCE: Duration = Duration::from_secs(600);

/// A sum over the memory of a guest that stands still.
///
/// # Errors
/// If QEMU does not write it, or it cannot be read.
pub(super) fn sum(qemu: &mut Qemu, settings: &Settings, place: &Path) -> Result<String, Error> {
    let path = place.join("memory");
    let asked = json!({ "val": 0, "size": settings.memory_bytes, "filename": path });
    qemu.qmp.execute("pmemsave", asked, PATIENCE)?;
    let summed = File::open(&path).and_then(summed);
    let _ = std::fs::remove_file(&path);
    summed.map_err(|error| Error::io(&path, error))
}

/// Pages of zeros take no part, but their place does: most of a guest's memory is that.
fn summed(from: impl Read) -> std::io::Result<String> {
    const PAGE: usize = 4_096;
    // Both sums are of this program: that another version of it may sum otherwise does not matter.
    let mut hasher = std::hash::DefaultHasher::new();
    let mut from = std::io::BufReader::with_capacity(1 << 20, from);
    let (mut page, zeros) = (vec![0; PAGE], vec![0; PAGE]);
    for number in 0_u64.. {
        match from.read_exact(&mut page) {
            Ok(()) if page == zeros => {}
            Ok(()) => {
                hasher.write_u64(number);
                hasher.write(&page);
            }
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => break,
            Err(error) => return Err(error),
        }
    }
    Ok(format!("{:016x}", hasher.finish()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_bit_makes_another_sum() {
        let mut memory = vec![0_u8; 3 << 20];
        let before = summed(&memory[..]).unwrap();
        assert_eq!(before, summed(&memory[..]).unwrap());
        memory[(2 << 20) + 5] = 1;
        let after = summed(&memory[..]).unwrap();
        assert_ne!(before, after);
        memory.rotate_right(4_096);
        assert_ne!(after, summed(&memory[..]).unwrap(), "the same page at another place");
    }
}
