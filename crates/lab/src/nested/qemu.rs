//! A machine with SVM and nested paging, without any virtualization hardware: QEMU's TCG.

use super::packages::Kernel;
use super::settings::Settings;
use std::path::Path;
use std::process::Command;

/// Modules of L0 beside KVM: the disk that takes the trace.
pub const MODULES: &[&str] = &["virtio_pci", "virtio_blk", "kvm_amd"];
/// The disk that takes the trace.
pub const DISK: &str = "/dev/vda";

/// The command that boots L0.
pub fn command(settings: &Settings, kernel: &Kernel, initramfs: &Path, console: &Path, disk: &Path) -> Command {
    let mut command = Command::new("qemu-system-x86_64");
    let vgif = if settings.vgif { "+vgif" } else { "-vgif" };
    command
        .args(["-accel", "tcg,thread=multi", "-cpu"])
        .arg(format!("EPYC,+svm,+npt,{vgif}"))
        .args(["-smp", &settings.cpus.to_string(), "-m", "1G", "-display", "none", "-no-reboot", "-nodefaults"])
        .arg("-serial")
        .arg(format!("file:{}", console.display()))
        .arg("-drive")
        .arg(format!("if=virtio,format=raw,cache=unsafe,file={}", disk.display()))
        .arg("-kernel")
        .arg(&kernel.image)
        .arg("-initrd")
        .arg(initramfs)
        .args(["-append", super::KERNEL_ARGUMENTS]);
    command
}
