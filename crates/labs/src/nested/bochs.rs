//! A machine with VMX, EPT and VMCS shadowing, without any virtualization hardware: Bochs.
//!
//! Bochs boots like a computer of its time: from a CD, whose GRUB loads the kernel and the initramfs; and it has an IDE
//! disk. Where its console goes is a file. The CPU model is a Haswell, the first with VMCS shadowing.

use super::settings::Guest;
use crate::machine::KERNEL_ARGUMENTS;
use crate::machine::packages::Kernel;
use lab::Error;
use lab::program::Program;
use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Modules of L0 beside KVM: the disk that takes the trace.
pub(crate) const MODULES: &[&str] = &["ata_piix", "sd_mod", "kvm_intel"];
/// Modules of a guest, which has no disk.
pub(crate) const GUEST_MODULES: &[&str] = &["kvm_intel"];
/// The disk that takes the trace.
pub(super) const DISK: &str = "/dev/sda";
/// The disk that takes what a guest has recorded.
pub(crate) const GUESTS_DISK: &str = "/dev/sdb";
/// Its size: 16 heads of 63 sectors, as IDE counts them, and enough cylinders for 128 MB.
pub(super) const DISK_BYTES: u64 = CYLINDERS * 16 * 63 * 512;
const CYLINDERS: u64 = 260;

/// What differs between guests.
struct Variant {
    memory_mb: u32,
    /// Instructions in an emulated second, which are also ticks of the TSC. Between two ticks of L2's timer there must be
    /// many more of them than L0 and L1 need to hand L2 such a tick: without shadowing some hundred thousand.
    speed: u32,
    /// One CPU: Bochs emulates several in turn. The delay loop is not measured, for the timer is not real. A Linux guest
    /// takes its clock from the TSC.
    arguments: &'static str,
}

const TOY: Variant = Variant { memory_mb: 512, speed: 40_000_000, arguments: "nosmp tsc=unstable lpj=1000000" };
const LINUX: Variant = Variant {
    memory_mb: 1536,
    speed: 400_000_000,
    arguments: "nosmp tsc=reliable tsc_early_khz=400000 lpj=1600000 rcupdate.rcu_expedited=1",
};

/// The command that boots L0 from a CD made in `scratch`. It runs there, and its files are plain names.
///
/// # Errors
/// If the CD cannot be made; the sentence says which packages do that.
pub(super) fn command(
    guest: Guest,
    kernel: &Kernel,
    initramfs: &str,
    console: &str,
    disks: &[String],
    scratch: &Path,
) -> Result<Command, Error> {
    let Variant { memory_mb, speed, arguments } = if guest == Guest::Linux { LINUX } else { TOY };
    let places = ["ata0-master", "ata0-slave"].iter().zip(disks);
    let disks: String = places
        .map(|(place, path)| {
            format!("{place}: type=disk, mode=flat, path={path}, cylinders={CYLINDERS}, heads=16, spt=63\n")
        })
        .collect();
    make_cd(kernel, arguments, &scratch.join(initramfs), scratch)?;
    let settings = scratch.join(SETTINGS);
    let text = format!(
        "display_library: rfb, options=\"timeout=0\"\n\
         cpu: model=corei7_haswell_4770, count=1, ips={speed}, reset_on_triple_fault=0, ignore_bad_msrs=1\n\
         memory: guest={memory_mb}, host={memory_mb}\n\
         romimage: file=/usr/share/bochs/BIOS-bochs-latest\n\
         vgaromimage: file=/usr/share/bochs/VGABIOS-lgpl-latest\n\
         ata0: enabled=1, ioaddr1=0x1f0, ioaddr2=0x3f0, irq=14\n\
         {disks}\
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
         mouse: enabled=0\n\
         {SOUND}\n",
    );
    fs::write(&settings, text).map_err(|error| Error::io(&settings, error))?;
    // Debian's Bochs has its debugger built in, which waits for a word before the first instruction.
    let go = scratch.join(DEBUGGER);
    fs::write(&go, "c\n").map_err(|error| Error::io(&go, error))?;
    let mut command = Command::new("bochs");
    command.args(["-q", "-f", SETTINGS, "-rc", DEBUGGER]);
    Ok(command)
}

/// No sound: on a computer without a sound card the mixer of Debian 12's Bochs 2.7 overruns a buffer and aborts.
const SOUND: &str = "sound: driver=dummy";

/// It copies some ten megabytes.
const TO_MAKE_A_CD: Duration = Duration::from_secs(120);
const CD: &str = "cd.iso";
const SETTINGS: &str = "bochsrc";
const DEBUGGER: &str = "debugger";

/// A bootable CD with GRUB, the kernel and the initramfs.
fn make_cd(kernel: &Kernel, arguments: &str, initramfs: &Path, scratch: &Path) -> Result<(), Error> {
    let (tree, cd) = (scratch.join("cd"), scratch.join(CD));
    let grub = tree.join("boot/grub");
    fs::create_dir_all(&grub).map_err(|error| Error::io(&grub, error))?;
    let menu = format!(
        "set timeout=0\nmenuentry lab {{\n  linux /boot/vmlinuz {}\n  initrd /boot/initramfs\n}}\n",
        KERNEL_ARGUMENTS.replacen("quiet", &format!("quiet {arguments}"), 1)
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
    let sentence = "grub-mkrescue made no boot CD; it needs the Debian packages grub-pc-bin, xorriso and mtools";
    Err(Error::Absent(sentence.to_owned()))
}
