//! How does a machine of the lab run a Linux guest where every instruction counts? By a PC of our own, see
//! [`crate::machine::pc`], which boots into what this machine booted into, with other orders.
//!
//! ```text
//! this machine's files --but for what the guest does not need--> initramfs --> guest --store--> its disk, at L0
//! ```

use super::heard::Heard;
use super::{GUEST_KERNEL, Job};
use crate::machine::cpio;
use crate::machine::pc::Pc;
use crate::machine::{KERNEL_ARGUMENTS, initramfs};
use crate::nested::bochs;
use lab::Error;
use std::path::Path;
use std::time::Duration;

/// Beside what all machines are told: nothing to look for, no timer to measure, one CPU, and to reset when it panics.
const ARGUMENTS: &str = "acpi=off nosmp tsc=reliable lpj=1600000 reboot=t random.trust_cpu=on nowatchdog \
    rcupdate.rcu_expedited=1";
/// Memory that a guest has at least: one that has a guest, and one that has none.
const LEAST_MEMORY_BYTES: [u64; 2] = [768 << 20, 256 << 20];
/// The same, in sizes of its initramfs, beside what the kernel itself takes. The archive stays in memory while Linux unpacks it
/// into a file system of at most half of the rest (init/initramfs.c and mm/shmem.c, Linux 6.12); who has a guest also holds that
/// one's archive and memory. A program built with debug information makes it large.
const INITRAMFS_TIMES: [u64; 2] = [7, 3];
const KERNEL_BYTES: u64 = 128 << 20;
/// How long the innermost guest is watched if it is not done before, in emulated time.
const LIMIT: Duration = Duration::from_secs(10);
/// File systems that are mounted when the machine is up, and what is left of the kernel's own root.
const NOT_FILES: [&str; 5] = ["proc", "sys", "dev", "tmp", "root"];

/// Runs the guest to its end.
///
/// # Errors
/// If it does not get there; the sentence says what its console showed last.
pub(super) fn run(job: &Job, guest: &Job) -> Result<(), Error> {
    let kernel = std::fs::read(GUEST_KERNEL).map_err(|error| Error::io(GUEST_KERNEL, error))?;
    let innermost = guest.guest.is_none();
    let initramfs = likeness(Path::new("/"), guest, if innermost { &["modules", "guest"] } else { &[] })?;
    let arguments = KERNEL_ARGUMENTS.replacen("quiet", &format!("quiet {ARGUMENTS}"), 1);
    let memory_bytes = memory_bytes(initramfs.len() as u64, innermost);
    let limit = innermost.then_some(LIMIT);
    let pc = Pc { kernel: &kernel, initramfs: &initramfs, arguments: &arguments, memory_bytes, limit };
    let mut heard = Heard::default();
    let ran = pc.run(&mut |line| heard.hear(line));
    let how = ran.as_ref().err().map_or("its VMM ended it".to_owned(), Error::to_string);
    if ran.is_ok() && !heard.last_word() {
        super::say(&format!("L{} is ended in the middle of its work", guest.level));
    } else {
        heard.end(guest.level, how)?;
    }
    if job.level == 0 {
        let stored = ran?.bytes();
        std::fs::write(bochs::GUESTS_DISK, stored).map_err(|error| Error::io(bochs::GUESTS_DISK, error))?;
    }
    Ok(())
}

/// Memory of a guest that boots into so many bytes of files.
fn memory_bytes(initramfs_bytes: u64, innermost: bool) -> u64 {
    let kind = usize::from(innermost);
    let wanted = KERNEL_BYTES + INITRAMFS_TIMES[kind] * initramfs_bytes;
    wanted.next_multiple_of(1 << 20).max(LEAST_MEMORY_BYTES[kind])
}

/// The initramfs of a machine like the one whose files lie below `root`, with the orders `job`, without some directories.
fn likeness(root: &Path, job: &Job, without: &[&str]) -> Result<Vec<u8>, Error> {
    let mut archive = cpio::Archive::new(Vec::new());
    let mut directories = vec![root.to_owned()];
    for name in NOT_FILES {
        archive.directory(name).map_err(|error| Error::io(name, error))?;
    }
    while let Some(directory) = directories.pop() {
        let io = |error| Error::io(&directory, error);
        for entry in std::fs::read_dir(&directory).map_err(io)? {
            let entry = entry.map_err(io)?;
            let (path, kind) = (entry.path(), entry.file_type().map_err(io)?);
            let name = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().into_owned();
            if NOT_FILES.contains(&name.as_str()) || without.contains(&name.as_str()) {
                continue;
            }
            if kind.is_dir() {
                archive.directory(&name).map_err(io)?;
                directories.push(path);
            } else if kind.is_file() && Path::new(initramfs::JOB) != Path::new("/").join(&name) {
                archive.copy(&name, &path).map_err(|error| Error::io(&path, error))?;
            }
        }
    }
    let orders = serde_json::to_vec(&job.orders()?).map_err(|error| Error::io(initramfs::JOB, error.into()))?;
    let finished = archive.file(initramfs::JOB.trim_start_matches('/'), &orders).and_then(|()| archive.finish());
    finished.map_err(|error| Error::io(initramfs::JOB, error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::inside::Orders;
    use crate::nested::settings::{Arch, Guest, Settings};

    #[test]
    fn a_guest_has_room_for_its_files_however_large_the_program_is() {
        assert_eq!((memory_bytes(30 << 20, false), memory_bytes(30 << 20, true)), (768 << 20, 256 << 20));
        let files_bytes = 105 << 20;
        let of_debug_build = memory_bytes(files_bytes, true);
        assert!(
            (of_debug_build - files_bytes - (48 << 20)) / 2 > files_bytes,
            "half of what the archive and the kernel leave"
        );
        assert!(memory_bytes(135 << 20, false) > of_debug_build + (500 << 20));
    }

    #[test]
    fn a_guest_gets_the_files_of_its_host_but_other_orders() {
        let root = tempfile::tempdir().unwrap();
        for (path, bytes) in [("kvmscope", "program"), ("job.json", "old"), ("lib/a/b.so", "b"), ("guest/vmlinux", "k")]
        {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, bytes).unwrap();
        }
        std::fs::create_dir_all(root.path().join("proc/1")).unwrap();
        let settings = Settings::new(Arch::Vmx, Guest::Linux, &[]).unwrap();
        let clock = "x86-tsc".to_owned();
        let (modules, parameters, disk) = (Vec::new(), Vec::new(), String::new());
        let job = Job { level: 2, settings, modules, parameters, disk, disk_offset: 0, clock, guest: None };
        let archive = likeness(root.path(), &job, &["guest"]).unwrap();
        let mut files = std::collections::BTreeMap::new();
        cpio::unpack(&mut archive.as_slice(), &mut |name, _, body| {
            assert!(files.insert(name.to_owned(), std::io::read_to_string(body)?).is_none(), "{name} comes twice");
            Ok(())
        })
        .unwrap();
        assert_eq!(files.keys().collect::<Vec<_>>(), ["job.json", "kvmscope", "lib/a/b.so"]);
        let orders: Orders = serde_json::from_str(&files["job.json"]).unwrap();
        assert_eq!((orders.work.as_str(), &orders.details["level"]), (super::super::LEVEL.name, &serde_json::json!(2)));
        assert!(String::from_utf8_lossy(&archive).contains("proc\0"), "where file systems are mounted");
    }
}
