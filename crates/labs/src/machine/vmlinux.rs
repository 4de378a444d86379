//! What is in a bootable kernel image? The kernel itself, packed. Unpacking it here, once, saves each machine that boots
//! it the work, which under an emulator takes longer than all of the boot.
//!
//! ```text
//! bzImage { setup: sectors at 0x1f1, payload at 0x248, its bytes at 0x24c | payload: xz, size } --> ELF --> flat from 16 MiB
//! ```
//! Sources: Documentation/arch/x86/boot.rst, "Details of Header Fields" (Linux 6.12); the ELF-64 object file format.

use lab::Error;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};

/// Where a kernel that is not relocated lies, and begins (`CONFIG_PHYSICAL_START`).
pub(crate) const START: u64 = 16 << 20;

/// No kernel is that large.
const MOST_BYTES: usize = 256 << 20;

/// The kernel of `image` as it lies in memory from [`START`], without the zeros at its end.
///
/// # Errors
/// If it is no such image, or packed with something that this computer does not unpack.
pub(crate) fn flat(image: &Path) -> Result<Vec<u8>, Error> {
    let bytes = std::fs::read(image).map_err(|error| Error::io(image, error))?;
    let unable = |why: &str| Error::Malformed(format!("{}: {why}", image.display()));
    let payload = payload(&bytes).ok_or_else(|| unable("not a bootable kernel"))?;
    let program = match payload {
        [0xfd, b'7', b'z', b'X', b'Z', ..] => "xz",
        [0x28, 0xb5, 0x2f, 0xfd, ..] => "zstd",
        [0x1f, 0x8b, ..] => "gzip",
        _ => return Err(unable("the kernel is not compressed with xz, zstd or gzip")),
    };
    let elf =
        unpack(program, payload).map_err(|error| unable(&format!("{program} does not decompress it: {error}")))?;
    flatten(&elf).ok_or_else(|| unable("the kernel in it does not begin at 16 MiB"))
}

fn number(bytes: &[u8], at: usize, size: usize) -> Option<u64> {
    let bytes = bytes.get(at..at.checked_add(size)?)?;
    Some(bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)))
}

/// The packed kernel, without the size that follows it.
fn payload(image: &[u8]) -> Option<&[u8]> {
    (image.get(0x202..0x206)? == b"HdrS").then_some(())?;
    let setup_sectors = number(image, 0x1f1, 1)? as usize + 1;
    let start = setup_sectors * 512 + number(image, 0x248, 4)? as usize;
    let end = start + number(image, 0x24c, 4)? as usize;
    image.get(start..end.checked_sub(4)?)
}

/// What `program` makes of `packed`.
fn unpack(program: &str, packed: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut child =
        Command::new(program).arg("-dcq").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
    let (input, output) = (child.stdin.take(), child.stdout.take());
    let mut unpacked = Vec::new();
    std::thread::scope(|scope| {
        // If the program ends early, its status says so.
        scope.spawn(|| input.map(|mut input| input.write_all(packed)));
        output.map_or(Ok(0), |mut output| output.read_to_end(&mut unpacked))
    })?;
    let status = child.wait()?;
    if status.success() { Ok(unpacked) } else { Err(std::io::Error::other(status.to_string())) }
}

/// The loaded segments at their physical addresses; nothing if the kernel does not begin where it should.
fn flatten(elf: &[u8]) -> Option<Vec<u8>> {
    const LOAD: u64 = 1;
    let (entry, table) = (number(elf, 0x18, 8)?, number(elf, 0x20, 8)? as usize);
    let (size, count) = (number(elf, 0x36, 2)? as usize, number(elf, 0x38, 2)? as usize);
    (elf.starts_with(b"\x7fELF") && entry == START).then_some(())?;
    let mut flat = Vec::new();
    for header in (table..).step_by(size.max(1)).take(count) {
        if number(elf, header, 4)? != LOAD {
            continue;
        }
        let (offset, bytes) = (number(elf, header + 0x08, 8)? as usize, number(elf, header + 0x20, 8)? as usize);
        let at = number(elf, header + 0x18, 8)?.checked_sub(START)? as usize;
        let segment = elf.get(offset..offset.checked_add(bytes)?)?;
        let end = at.checked_add(bytes).filter(|end| *end <= MOST_BYTES)?;
        flat.resize(flat.len().max(end), 0);
        flat[at..end].copy_from_slice(segment);
    }
    flat.truncate(flat.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1));
    Some(flat)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A kernel of two segments, the second of which ends with zeros.
    fn elf(entry: u64) -> Vec<u8> {
        let mut elf = vec![0; 0x200];
        let mut put = |at: usize, bytes: &[u8]| elf[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, b"\x7fELF");
        put(0x18, &entry.to_le_bytes());
        put(0x20, &0x40_u64.to_le_bytes());
        put(0x36, &[0x38, 0, 2, 0]);
        for (at, offset, address) in [(0x40, 0x100_u64, START), (0x78, 0x180, START + 8)] {
            put(at, &[1, 0, 0, 0]);
            put(at + 0x08, &offset.to_le_bytes());
            put(at + 0x18, &address.to_le_bytes());
            put(at + 0x20, &4_u64.to_le_bytes());
        }
        put(0x100, b"text");
        put(0x180, b"da\0\0");
        elf
    }

    /// Such a kernel, as it is booted.
    fn image(packed: &[u8]) -> Vec<u8> {
        let mut image = vec![0; 1024 + 16];
        image[0x1f1] = 1;
        image[0x202..0x206].copy_from_slice(b"HdrS");
        image[0x248] = 16;
        image[0x24c..0x250].copy_from_slice(&(packed.len() as u32 + 4).to_le_bytes());
        [&image, packed, &[0; 4]].concat()
    }

    #[test]
    fn segments_lie_at_their_addresses_and_zeros_at_the_end_are_left_out() {
        assert_eq!(flatten(&elf(START)).unwrap(), b"text\0\0\0\0da");
        assert_eq!(flatten(&elf(START + 1)), None);
        assert_eq!(flatten(&elf(START)[..0x170]), None, "cut short");
    }

    #[test]
    fn the_packed_kernel_is_found_without_its_size() {
        let image = image(b"packed");
        assert_eq!(payload(&image).unwrap(), b"packed");
        assert_eq!(payload(&image[..image.len() - 5]), None, "cut short");
        assert_eq!(payload(b"MZ"), None);
    }

    #[test]
    fn what_cannot_be_unpacked_is_said() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("vmlinuz");
        for (packed, said) in
            [(&b"lzop"[..], "not compressed with xz, zstd or gzip"), (b"\xfd7zXZ\0broken", "xz does not decompress it")]
        {
            std::fs::write(&path, image(packed)).unwrap();
            let error = flat(&path).unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
    }
}
