//! A machine with SVM and nested paging, without any virtualization hardware: QEMU's TCG.

use super::packages::Kernel;
use super::settings::{Guest, Settings};
use crate::Error;
use crate::setting::thread;
use base::CpuSet;
use std::path::Path;
use std::process::Command;

/// The program, here and in machines that have guests of their own.
pub const PROGRAM: &str = "/usr/bin/qemu-system-x86_64";
/// The firmware of its machines.
pub const BIOS: &str = "/usr/share/seabios/bios-256k.bin";
/// What boots a kernel that QEMU was given.
pub const BOOT_ROM: &str = "/usr/share/qemu/linuxboot_dma.bin";
/// What old Windows guests need for their task priority; QEMU's PC looks for it whatever it boots.
pub const APIC_ROM: &str = "/usr/share/qemu/kvmvapic.bin";
/// Modules of L0: the disk that takes the trace, and KVM.
pub const MODULES: &[&str] = &["virtio_pci", "virtio_blk", "kvm_amd"];
/// Modules of a machine without guests.
pub const DISK_MODULES: &[&str] = &["virtio_pci", "virtio_blk"];
/// The disk that takes the trace.
pub const DISK: &str = "/dev/vda";

/// Its size. It takes space as it is written, so it may be larger than any recording.
pub const DISK_BYTES: u64 = 4 << 30;

/// The command that boots L0.
///
/// It runs in the directory of its files, which are then plain names. `disks` are one for each level that records, L0's first.
pub fn command(settings: &Settings, kernel: &Kernel, initramfs: &str, console: &str, disks: &[String]) -> Command {
    let mut command = Command::new("qemu-system-x86_64");
    let vgif = if settings.vgif { "+vgif" } else { "-vgif" };
    let (memory, least_cpus) = match settings.guest {
        Guest::Linux => ("4G", 2),
        Guest::Toy => ("1G", 1),
        // Two vCPUs of a guest that wait for each other.
        Guest::Bench => ("1G", 2),
    };
    let cpus = settings.cpus.max(least_cpus);
    command
        .args(["-accel", "tcg,thread=multi", "-cpu"])
        .arg(format!("EPYC,+svm,+npt,{vgif}"))
        .args(["-smp", &cpus.to_string(), "-m", memory, "-display", "none", "-no-reboot", "-nodefaults"])
        .arg("-serial")
        .arg(format!("file:{console}"))
        .arg("-kernel")
        .arg(&kernel.image)
        .arg("-initrd")
        .arg(initramfs)
        .args(["-append", super::KERNEL_ARGUMENTS]);
    for disk in disks {
        command.arg("-drive").arg(format!("if=virtio,format=raw,cache=unsafe,file={disk}"));
    }
    command
}

/// Puts the only vCPU of process `pid` on `cpu` and its other threads on `others`, and gives the vCPU's thread; to be called once it
/// runs. The process needs `-name NAME,debug-threads=on`.
pub fn seat(pid: u32, cpu: u32, others: &CpuSet, proc: &Path) -> Result<u32, Error> {
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
