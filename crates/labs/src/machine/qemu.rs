//! What do all machines in QEMU's TCG have in common? Where its files lie, the disk that takes what was recorded, and whose CPU a vCPU has.

use base::CpuSet;
use lab::Error;
use lab::setting::thread;
use std::path::Path;

/// The program, here and in machines that have guests of their own.
pub const PROGRAM: &str = "/usr/bin/qemu-system-x86_64";
/// The firmware of its machines.
pub(crate) const BIOS: &str = "/usr/share/seabios/bios-256k.bin";
/// What boots a kernel that QEMU was given.
pub(crate) const BOOT_ROM: &str = "/usr/share/qemu/linuxboot_dma.bin";
/// What old Windows guests need for their task priority; QEMU's PC looks for it whatever it boots.
pub(crate) const APIC_ROM: &str = "/usr/share/qemu/kvmvapic.bin";
/// Modules of a machine without guests.
pub const DISK_MODULES: &[&str] = &["virtio_pci", "virtio_blk"];
/// The disk that takes the trace.
pub const DISK: &str = "/dev/vda";

/// Its size. It takes space as it is written, so it may be larger than any recording.
pub const DISK_BYTES: u64 = 4 << 30;

/// Puts the only vCPU of process `pid` on `cpu` and its other threads on `others`, and gives the vCPU's thread; to be called once it
/// runs. The process needs `-name NAME,debug-threads=on`.
pub(crate) fn seat(pid: u32, cpu: u32, others: &CpuSet, proc: &Path) -> Result<u32, Error> {
    let tasks = proc.join(pid.to_string()).join("task");
    let mut vcpu = None;
    for task in std::fs::read_dir(&tasks).map_err(|error| Error::io(&tasks, error))?.flatten() {
        let Some(tid) = task.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        let name = std::fs::read_to_string(task.path().join("comm")).unwrap_or_default();
        if name.trim_end() == "CPU 0/TCG" {
            thread::set_affinity(tid, &CpuSet::one(cpu))?;
            vcpu = Some(tid);
        } else {
            thread::set_affinity(tid, others)?;
        }
    }
    vcpu.ok_or_else(|| Error::Absent(format!("process {pid} has no thread CPU 0/TCG")))
}
