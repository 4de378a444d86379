//! The guest: what it boots from, the process that emulates it, and its threads.

use super::Seats;
use crate::machine::emulator::Emulator;
use crate::machine::initramfs::{self, Contents};
use crate::machine::inside::Orders;
use crate::machine::modules::Modules;
use crate::machine::needs::Need;
use crate::machine::packages::Kernel;
use crate::machine::page::{DEVICE_BYTES, Page};
use crate::machine::scratch::Scratch;
use crate::machine::{KERNEL_ARGUMENTS, qemu};
use crate::rt::measurement::{MEASURE, Measurement, Measures};
use lab::Error;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// What must be installed.
pub(super) const NEEDS: &[Need] = &[("qemu-system-x86_64", "qemu-system-x86")];
/// What the VM is called.
pub(super) const NAME: &str = "kvmscope-rt";
/// Memory that holds the kernel and, packed and unpacked, an initramfs with this program.
const MEMORY: &str = "1G";
/// Beside what all machines of the lab are told: the counter, which is this computer's, is as good as its own; no watchdog,
/// which disturbs a measurement; and no test of the timer's interrupt, in which the kernel panics ("IO-APIC + timer doesn't work") if
/// QEMU's thread of timers gets no CPU meanwhile (`check_timer` in arch/x86/kernel/apic/io_apic.c, Linux 6.1).
const ARGUMENTS: &str = "tsc=reliable nowatchdog no_timer_check";
/// A guest says something before each of its programs: none takes longer than it measures, and this.
const SILENCE: Duration = Duration::from_secs(180);

/// Names of files in the scratch directory.
const CONSOLE: &str = "console";
const DISK: &str = "disk-L1";
const INITRAMFS: &str = "initramfs-L1";
const PAGE: &str = "page";
const PID: &str = "pid";

/// A guest, ready to boot.
pub(super) struct Guest<'a> {
    scratch: &'a Scratch,
    kernel: &'a Kernel,
    /// The page that it shares with this computer.
    pub(super) page: Page,
}

/// Threads of a guest that runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Threads {
    /// The process that emulates it.
    pub(super) pid: u32,
    pub(super) vcpu: u32,
}

impl<'a> Guest<'a> {
    /// Makes its initramfs, with this `program` as its first process and the `programs` that measure, its disk and its page.
    pub(super) fn new(
        scratch: &'a Scratch,
        kernel: &'a Kernel,
        program: &Path,
        programs: Vec<Measures>,
    ) -> Result<Self, Error> {
        let mut paths: Vec<PathBuf> = programs.iter().map(|program| program.path.clone()).collect();
        paths.dedup();
        let measurement = Measurement { disk: qemu::DISK.to_owned(), programs };
        let contents = Contents {
            program,
            orders: Orders::new(MEASURE, &measurement)?,
            modules: qemu::DISK_MODULES,
            programs: paths,
            files: Vec::new(),
        };
        initramfs::write(&scratch.join(INITRAMFS), contents, &Modules::of(kernel)?)?;
        for (name, bytes) in [(DISK, qemu::DISK_BYTES), (PAGE, DEVICE_BYTES)] {
            let path = scratch.join(name);
            let made = File::create(&path).and_then(|file| file.set_len(bytes));
            made.map_err(|error| Error::io(&path, error))?;
        }
        Ok(Self { scratch, kernel, page: Page::of(&scratch.join(PAGE))? })
    }

    /// The file that takes what it hands over.
    pub(super) fn disk(&self) -> PathBuf {
        self.scratch.join(DISK)
    }

    pub(super) fn version(&self) -> &str {
        &self.kernel.version
    }

    /// What runs it from its start to its end, while its programs measure for `measuring` altogether.
    pub(super) fn emulator<'s>(&self, measuring: Duration, stop: &'s AtomicBool) -> Emulator<'s> {
        let mut command = self.command();
        command.current_dir(self.scratch.path());
        Emulator {
            command,
            package: "qemu-system-x86",
            console: self.scratch.join(CONSOLE),
            log: self.scratch.join("log"),
            limit: 4 * (SILENCE + measuring),
            silence: SILENCE + measuring,
            stop,
        }
    }

    fn command(&self) -> Command {
        let arguments = KERNEL_ARGUMENTS.replacen("quiet", &format!("quiet {ARGUMENTS}"), 1);
        let mut command = Command::new("qemu-system-x86_64");
        command
            .args(["-name", &format!("{NAME},debug-threads=on"), "-accel", "tcg,thread=multi", "-cpu", "EPYC"])
            .args(["-smp", "1", "-m", MEMORY, "-display", "none", "-no-reboot", "-nodefaults", "-pidfile", PID])
            .args(["-serial", &format!("file:{CONSOLE}"), "-kernel"])
            .arg(&self.kernel.image)
            .args(["-initrd", INITRAMFS, "-append", &arguments])
            .args(["-drive", &format!("if=virtio,format=raw,cache=unsafe,file={DISK}")])
            .args(["-object", &format!("memory-backend-file,id=page,share=on,mem-path={PAGE},size={DEVICE_BYTES}")])
            .args(["-device", "ivshmem-plain,memdev=page"]);
        command
    }

    /// Puts its vCPU on its CPU and its other threads on the others; to be called once it runs.
    pub(super) fn seat(&self, seats: &Seats, proc: &Path) -> Result<Threads, Error> {
        let file = self.scratch.join(PID);
        let text = std::fs::read_to_string(&file).map_err(|error| Error::io(&file, error))?;
        let pid: u32 = text.trim().parse().map_err(|_| Error::Malformed(format!("{}: no pid", file.display())))?;
        let vcpu = qemu::seat(pid, seats.vcpu, &seats.others, proc)?;
        Ok(Threads { pid, vcpu })
    }
}
