//! A machine with SVM and nested paging, without any virtualization hardware: QEMU's TCG.

use super::settings::{Guest, Settings};
use crate::machine::KERNEL_ARGUMENTS;
use crate::machine::packages::Kernel;
use std::process::Command;

/// Modules of L0: the disk that takes the trace, and KVM.
pub(super) const MODULES: &[&str] = &["virtio_pci", "virtio_blk", "kvm_amd"];

/// The command that boots L0.
///
/// It runs in the directory of its files, which are then plain names. `disks` are one for each level that records, L0's first.
pub(super) fn command(
    settings: &Settings,
    kernel: &Kernel,
    initramfs: &str,
    console: &str,
    disks: &[String],
) -> Command {
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
        .args(["-append", KERNEL_ARGUMENTS]);
    for disk in disks {
        command.arg("-drive").arg(format!("if=virtio,format=raw,cache=unsafe,file={disk}"));
    }
    command
}
