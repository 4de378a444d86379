//! How does L0 boot, with everything that it and its guests need?
//!
//! ```text
//! toy     L0's initramfs: this program
//! Linux   L0's initramfs: this program, QEMU, the kernel, L1's initramfs: the same again, L2's initramfs: this program
//! Linux in Bochs          this program, the kernel unpacked; out of that each machine makes the initramfs of its guest
//! ```
//! In: settings and a kernel. Out: the disks that L0, and L1 and L2 if they are Linux, have written; in Bochs L2 writes none.

use super::inside::{GUEST_INITRAMFS, GUEST_KERNEL, INNERMOST, Job};
use super::settings::{Arch, Guest, Settings};
use super::{bochs, svm};
use crate::machine::emulator::Emulator;
use crate::machine::initramfs::{self, Contents};
use crate::machine::modules::Modules;
use crate::machine::packages::Kernel;
use crate::machine::scratch::Scratch;
use crate::machine::{pc, qemu, vmlinux};
use lab::Error;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// The file that takes the console.
const CONSOLE: &str = "console";

/// A machine in QEMU that says nothing for so long hangs: L2's boot, the longest stage, took 280 s on a core shared by
/// three. Nothing is known of Bochs, which is slower.
const SILENCE: Duration = Duration::from_secs(600);
/// A bench says something after each test, and its watchdog comes after 20 s.
const BENCH_SILENCE: Duration = Duration::from_secs(120);

/// What a boot needs beside its settings.
pub(super) struct Boot<'a> {
    pub settings: &'a Settings,
    pub program: &'a Path,
    pub kernel: &'a Kernel,
    /// Where files go meanwhile.
    pub scratch: &'a Scratch,
}

impl Boot<'_> {
    /// Boots L0 and waits for its end; gives the disks, L0's first.
    ///
    /// # Errors
    /// If something is missing or goes wrong on the way; the sentence says what.
    pub(super) fn run(&self, say: &mut dyn FnMut(&str), stop: &AtomicBool) -> Result<Vec<PathBuf>, Error> {
        let initramfs = self.initramfs()?;
        let names: Vec<_> = (0..=self.last_to_record()).map(|level| format!("disk-L{level}")).collect();
        let disks: Vec<_> = names.iter().map(|name| self.scratch.join(name)).collect();
        let bytes = if self.settings.arch == Arch::Svm { qemu::DISK_BYTES } else { bochs::DISK_BYTES };
        for disk in &disks {
            let made = std::fs::File::create(disk).and_then(|file| file.set_len(bytes));
            made.map_err(|error| Error::io(disk, error))?;
        }
        let (mut command, package, limit_s, with) = match self.settings.arch {
            Arch::Svm => {
                let command = svm::command(self.settings, self.kernel, &initramfs, CONSOLE, &names);
                let limit_s = if self.settings.guest == Guest::Toy { 300 } else { 1800 };
                (command, "qemu-system-x86", limit_s, "QEMU TCG with SVM")
            }
            Arch::Vmx => {
                let command =
                    bochs::command(self.settings.guest, self.kernel, &initramfs, CONSOLE, &names, self.scratch.path())?;
                (command, "bochs", 1800, "Bochs with VMX; this takes some minutes")
            }
        };
        say(&format!("booting L0, Linux {} in {with}", self.kernel.version));
        command.current_dir(self.scratch.path());
        let (console, log) = (self.scratch.join(CONSOLE), self.scratch.join("log"));
        let limit = Duration::from_secs(limit_s);
        let silence = match (self.settings.arch, self.settings.guest) {
            (Arch::Svm, Guest::Bench) => BENCH_SILENCE,
            (Arch::Svm, _) => SILENCE,
            (Arch::Vmx, _) => limit,
        };
        Emulator { command, package, console, log, limit, silence, stop }.run(say)?;
        Ok(disks)
    }

    /// Makes L0's initramfs, with those of its guests inside; gives its name.
    fn initramfs(&self) -> Result<String, Error> {
        let modules = Modules::of(self.kernel)?;
        let (wanted, disk) = match self.settings.arch {
            Arch::Svm => (svm::MODULES, qemu::DISK),
            Arch::Vmx => (bochs::MODULES, bochs::DISK),
        };
        if (self.settings.arch, self.settings.guest) == (Arch::Vmx, Guest::Linux) {
            return self.one_initramfs_for_all(&modules);
        }
        let mut inner: Option<String> = None;
        for level in (0..=self.innermost()).rev() {
            let initramfs = format!("initramfs-L{level}");
            let mut contents = Contents {
                program: self.program,
                orders: self.job(level, disk).orders()?,
                modules: if level == INNERMOST { qemu::DISK_MODULES } else { wanted },
                programs: Vec::new(),
                files: Vec::new(),
            };
            if let Some(inner) = inner.replace(initramfs.clone()) {
                contents.programs.push(PathBuf::from(qemu::PROGRAM));
                contents
                    .files
                    .extend([qemu::BIOS, qemu::BOOT_ROM, qemu::APIC_ROM].map(|path| (path.into(), path.into())));
                contents.files.push((PathBuf::from(GUEST_KERNEL), self.kernel.image.clone()));
                contents.files.push((PathBuf::from(GUEST_INITRAMFS), self.scratch.join(&inner)));
            }
            initramfs::write(&self.scratch.join(&initramfs), contents, &modules)?;
        }
        inner.ok_or_else(|| Error::Absent("no machine to boot".to_owned()))
    }

    /// Makes an initramfs out of which L0 makes those of its guests, who have all of it in common.
    fn one_initramfs_for_all(&self, modules: &Modules) -> Result<String, Error> {
        let kernel = self.scratch.join("vmlinux");
        let flat = vmlinux::flat(&self.kernel.image)?;
        std::fs::write(&kernel, flat).map_err(|error| Error::io(&kernel, error))?;
        let (mut l0, mut l1, l2) = (self.job(0, bochs::DISK), self.job(1, pc::STORE_DEVICE), self.job(INNERMOST, ""));
        l1.disk_offset = pc::STORE;
        l1.modules = modules.in_order(bochs::GUEST_MODULES)?.into_iter().map(|(name, _)| name).collect();
        l1.guest = Some(Box::new(l2));
        l0.guest = Some(Box::new(l1));
        let contents = Contents {
            program: self.program,
            orders: l0.orders()?,
            modules: bochs::MODULES,
            programs: Vec::new(),
            files: vec![(PathBuf::from(GUEST_KERNEL), kernel)],
        };
        let name = "initramfs-L0".to_owned();
        initramfs::write(&self.scratch.join(&name), contents, modules)?;
        Ok(name)
    }

    /// The innermost machine that records: L2 in Bochs has nothing to write to.
    fn last_to_record(&self) -> u8 {
        if self.settings.arch == Arch::Vmx { self.innermost().min(1) } else { self.innermost() }
    }

    /// The innermost machine that this program runs in.
    fn innermost(&self) -> u8 {
        if self.settings.guest == Guest::Linux { INNERMOST } else { 0 }
    }

    fn job(&self, level: u8, disk: &str) -> Job {
        let shadow = u8::from(self.settings.shadow_vmcs);
        Job {
            level,
            settings: self.settings.clone(),
            modules: Vec::new(),
            parameters: vec![
                ("kvm_amd".to_owned(), "nested=1".to_owned()),
                ("kvm_intel".to_owned(), format!("nested=1 enable_shadow_vmcs={shadow}")),
            ],
            disk: disk.to_owned(),
            disk_offset: 0,
            guest: None,
            // The one clock that levels share.
            clock: if self.settings.guest == Guest::Linux { "x86-tsc" } else { "mono" }.to_owned(),
        }
    }
}
