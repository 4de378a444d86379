//! How does a machine of the lab run a Linux guest? By the QEMU that came with it, on its own KVM.
//!
//! What the guest says on its console is passed on, so that whoever started the lab hears all levels. All disks of the
//! machine but its first become the guest's, so that the guest's trace leaves as ours does.

use super::heard::Heard;
use super::{GUEST_INITRAMFS, GUEST_KERNEL, INNERMOST, Job};
use crate::machine::{KERNEL_ARGUMENTS, qemu};
use crate::nested::settings::Workload;
use lab::Error;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

/// What becomes the disk that L2 reads.
const L2_DISK: &str = "/tmp/l2.disk";
const L2_DISK_BYTES: u64 = 16 << 20;

/// Runs the guest to its end.
pub(super) fn run(job: &Job) -> Result<(), Error> {
    let guest = job.level + 1;
    let memory = if guest == INNERMOST { "384M" } else { "1536M" };
    let mut disks: Vec<_> = (guest..=INNERMOST).zip('b'..).map(|(_, letter)| format!("/dev/vd{letter}")).collect();
    if guest == INNERMOST && job.settings.workload == Workload::Disk {
        let made = std::fs::File::create(L2_DISK).and_then(|file| file.set_len(L2_DISK_BYTES));
        made.map_err(|error| Error::io(L2_DISK, error))?;
        disks.push(L2_DISK.to_owned());
    }
    let cpus = if guest == INNERMOST { 1 } else { job.settings.cpus };
    let mut command = Command::new(qemu::PROGRAM);
    command
        .args(["-name", &format!("L{guest},debug-threads=on"), "-accel", "kvm", "-cpu", "host"])
        .args(["-smp", &cpus.to_string(), "-m", memory, "-display", "none", "-no-reboot", "-nodefaults"])
        .args(["-serial", "stdio", "-kernel", GUEST_KERNEL, "-initrd", GUEST_INITRAMFS, "-append", KERNEL_ARGUMENTS]);
    for disk in disks {
        command.args(["-drive", &format!("if=virtio,format=raw,cache=unsafe,file={disk}")]);
    }
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().map_err(|error| Error::io(qemu::PROGRAM, error))?;
    let mut heard = Heard::default();
    for line in child.stdout.take().into_iter().flat_map(|out| BufReader::new(out).split(b'\n')) {
        let line = line.map_err(|error| Error::io(qemu::PROGRAM, error))?;
        // A guest that has said its last word switches itself off, and QEMU ends.
        let _ = heard.hear(String::from_utf8_lossy(&line).trim_end());
    }
    let status = child.wait().map_err(|error| Error::io(qemu::PROGRAM, error))?;
    heard.end(guest, status)
}
