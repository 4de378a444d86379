//! A machine with VMX, EPT and VMCS shadowing, without any virtualization hardware: Bochs.
//!
//! Bochs boots like a computer of its time: from a CD, whose GRUB loads the kernel and the initramfs; and it has an IDE
//! disk. Where its console goes is a file. The CPU model is a Haswell, the first with VMCS shadowing.

use super::packages::Kernel;
use crate::Error;
use crate::program::Program;
use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Modules of L0 beside KVM: the disk that takes the trace.
pub const MODULES: &[&str] = &["ata_piix", "sd_mod", "kvm_intel"];
/// The disk that takes the trace.
pub const DISK: &str = "/dev/sda";
/// Its size: 16 heads of 63 sectors, as IDE counts them, and enough cylinders for 128 MB.
pub const DISK_BYTES: u64 = CYLINDERS * 16 * 63 * 512;
const CYLINDERS: u64 = 260;

/// One CPU: Bochs emulates several in turn. Its delay loop is not measured, for its timer is not real.
const KERNEL_ARGUMENTS: &str = "nosmp tsc=unstable lpj=1000000";

/// The command that boots L0 from a CD made in `scratch`. It runs there, and its files are plain names.
///
/// # Errors
/// If the CD cannot be made; the sentence says which packages do that.
pub fn command(kernel: &Kernel, initramfs: &str, console: &str, disk: &str, scratch: &Path) -> Result<Command, Error> {
    make_cd(kernel, &scratch.join(initramfs), scratch)?;
    let settings = scratch.join(SETTINGS);
    let text = format!(
        "display_library: rfb, options=\"timeout=0\"\n\
         cpu: model=corei7_haswell_4770, count=1, ips=40000000, reset_on_triple_fault=0, ignore_bad_msrs=1\n\
         memory: guest=512, host=512\n\
         romimage: file=/usr/share/bochs/BIOS-bochs-latest\n\
         vgaromimage: file=/usr/share/bochs/VGABIOS-lgpl-latest\n\
         ata0: enabled=1, ioaddr1=0x1f0, ioaddr2=0x3f0, irq=14\n\
         ata0-master: type=disk, mode=flat, path={disk}, cylinders={CYLINDERS}, heads=16, spt=63\n\
         ata1: enabled=1, ioaddr1=0x170, ioaddr2=0x370, irq=15\n\
         ata1-master: type=cdrom, path={CD}, status=inserted\n\
         boot: cdrom\n\
         com1: enabled=1, mode=file, dev={console}\n\
         clock: sync=none\n\
         log: -\n\
         panic: action=fatal\n\
         error: action=report\n\
         info: action=ignore\n\
         debug: action=ignore\n\
         mouse: enabled=0\n",
    );
    fs::write(&settings, text).map_err(|error| Error::io(&settings, error))?;
    // Debian's Bochs has its debugger built in, which waits for a word before the first instruction.
    let go = scratch.join(DEBUGGER);
    fs::write(&go, "c\n").map_err(|error| Error::io(&go, error))?;
    let mut command = Command::new("bochs");
    command.args(["-q", "-f", SETTINGS, "-rc", DEBUGGER]);
    Ok(command)
}

/// It copies some ten megabytes.
const TO_MAKE_A_CD: Duration = Duration::from_secs(120);
const CD: &str = "cd.iso";
const SETTINGS: &str = "bochsrc";
const DEBUGGER: &str = "debugger";

/// A bootable CD with GRUB, the kernel and the initramfs.
fn make_cd(kernel: &Kernel, initramfs: &Path, scratch: &Path) -> Result<(), Error> {
    let (tree, cd) = (scratch.join("cd"), scratch.join(CD));
    let grub = tree.join("boot/grub");
    fs::create_dir_all(&grub).map_err(|error| Error::io(&grub, error))?;
    let menu = format!(
        "set timeout=0\nmenuentry lab {{\n  linux /boot/vmlinuz {}\n  initrd /boot/initramfs\n}}\n",
        super::KERNEL_ARGUMENTS.replacen("quiet", &format!("quiet {KERNEL_ARGUMENTS}"), 1)
    );
    fs::write(grub.join("grub.cfg"), menu).map_err(|error| Error::io(&grub, error))?;
    for (from, name) in [(kernel.image.as_path(), "boot/vmlinuz"), (initramfs, "boot/initramfs")] {
        let to = tree.join(name);
        fs::copy(from, &to).map_err(|error| Error::io(from, error))?;
    }
    let grub = Program::new("grub-mkrescue", "grub-common (with grub-pc-bin, xorriso and mtools)");
    grub.run(&[OsStr::new("-o"), cd.as_os_str(), tree.as_os_str()], TO_MAKE_A_CD).map(drop)?;
    if cd.exists() {
        return Ok(());
    }
    let sentence = "grub-mkrescue made no boot CD; the Debian packages grub-pc-bin, xorriso and mtools let it";
    Err(Error::Unable(sentence.to_owned()))
}
