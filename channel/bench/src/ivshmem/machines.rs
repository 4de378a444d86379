//! Two guests, from their boot to their end: what they boot from, the memory between them, and the lines that they leave.
//!
//! Each QEMU has the CPU of its side, its vCPU and all else. The memory is a sealed memfd of this process, which QEMU opens by its path
//! in `/proc`: it has no name, and it is gone with us. So are the emulators, by whatever end; a directory that was left is removed by the
//! next lab.

use super::control::Role;
use super::ends::{Ends, SIDE, SLOTS, SentThere};
use super::server::Server;
use super::stop::Stop;
use super::{DOORBELL, PLAIN};
use crate::Plan;
use crate::rings::{self, Received};
use base::CpuSet;
use channel::Region;
use lab::Error;
use lab::setting::thread;
use labs::bench::launch::ns_per_tick;
use labs::child::ChildProcess;
use labs::machine::emulator::Emulator;
use labs::machine::initramfs::{self, Contents};
use labs::machine::inside::Orders;
use labs::machine::modules::Modules;
use labs::machine::packages::{self, Flavour, Kernel};
use labs::machine::scratch::Scratch;
use labs::machine::{KERNEL_ARGUMENTS, qemu, words};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::fd::AsRawFd;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const QEMU: &str = "qemu-system-x86_64";
const PACKAGE: &str = "qemu-system-x86";
/// Memory that holds the kernel and, packed and unpacked, an initramfs with this program.
const MEMORY: &str = "1G";
/// Has protection keys, and nothing that makes emulation slow.
const CPU: &str = "EPYC,+pku";
/// Beside what all machines of the lab are told: the counter, which is this computer's, is as good as its own; no watchdog, which
/// would disturb; no test of the timer's interrupt, in which the kernel panics if QEMU gets no CPU meanwhile.
const ARGUMENTS: &str = "tsc=reliable nowatchdog no_timer_check";
/// The kernel of Debian has the driver of this IOMMU, and does not use it by itself.
const WITH_IOMMU: &str = "intel_iommu=on";
/// Modules for interrupts that a process waits for.
const VFIO: [&str; 2] = ["vfio_pci", "vfio_iommu_type1"];
/// How long both boots may take: some 10 s on a quiet machine.
const BOOTS: Duration = Duration::from_secs(300);
/// What a setup may take beside its own time.
const BESIDE: Duration = Duration::from_secs(10);
/// How often answers and signals are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Names of files in the scratch directory.
const INITRAMFS: &str = "initramfs";
const SOCKET: &str = "doorbells";

/// What both sides answer to one setup, or why there is no answer.
pub(super) struct Answers {
    pub sent: Result<Result<SentThere, String>, String>,
    pub received: Result<Result<Received, String>, String>,
}

/// Boots both guests, hands over the answers to each setup, in order, and ends both.
pub(super) fn run(plan: &Plan, tell: &mut dyn FnMut(Answers) -> Result<(), Error>) -> Result<(), Error> {
    ChildProcess::is_installed(QEMU, PACKAGE)?;
    let cache = plan.guests.cache.as_deref().ok_or_else(|| {
        Error::WrongUse("neither $XDG_CACHE_HOME nor $HOME names a directory; use --cache DIR".to_owned())
    })?;
    let cache = std::path::absolute(cache).map_err(|error| Error::io(cache, error))?;
    let kernel = packages::kernel(&cache, Flavour::Stock, &mut |_| {})?;
    let stop = Stop::watch();
    let scratch = Scratch::new(&cache)?;
    let machines = Machines::new(plan, &kernel, &scratch)?;
    if stop.is_asked() {
        return Err(Error::Stopped);
    }
    machines.run(&stop, tell)
}

/// Both guests, ready to boot.
struct Machines<'a> {
    plan: &'a Plan,
    kernel: &'a Kernel,
    scratch: &'a Scratch,
    /// The memory of each path that is measured.
    memory: Vec<(&'static str, u8, Region)>,
}

impl<'a> Machines<'a> {
    fn new(plan: &'a Plan, kernel: &'a Kernel, scratch: &'a Scratch) -> Result<Self, Error> {
        let mut memory = Vec::new();
        for (path, slot) in SLOTS {
            let own = plan.setups.iter().filter(|setup| setup.path == path);
            let rings = own.map(|setup| Ok(rings::shape(plan, setup)?.region_bytes()));
            if let Some(most) = rings.collect::<Result<Vec<_>, Error>>()?.into_iter().max() {
                // The size of a device's memory is a power of two; its last page is for words between the sides.
                let bytes = (most + words::BYTES).next_power_of_two();
                memory.push((path, slot, Region::shared("kvmscope-ivshmem", bytes).map_err(rings::refused)?));
            }
        }
        let machines = Self { plan, kernel, scratch, memory };
        let ends = Ends { disk: qemu::DISK.to_owned(), plan: plan.clone(), per_ns: 1.0 / ns_per_tick() };
        let mut modules = qemu::DISK_MODULES.to_vec();
        if machines.has_doorbells() {
            modules.extend(VFIO);
        }
        let contents = Contents {
            program: &plan.guests.program,
            orders: Orders::new(SIDE, &ends)?,
            modules: &modules,
            programs: Vec::new(),
            files: Vec::new(),
        };
        initramfs::write(&scratch.join(INITRAMFS), contents, &Modules::of(kernel)?)?;
        for role in Role::BOTH {
            let disk = scratch.join(&disk(role));
            let made = File::create(&disk).and_then(|file| file.set_len(qemu::DISK_BYTES));
            made.map_err(|error| Error::io(&disk, error))?;
        }
        Ok(machines)
    }

    fn has_doorbells(&self) -> bool {
        self.memory.iter().any(|(path, ..)| *path == DOORBELL)
    }

    fn run(&self, asked: &Stop, tell: &mut dyn FnMut(Answers) -> Result<(), Error>) -> Result<(), Error> {
        let mut server = self.server()?;
        let mut lines = (Lines::of(self.scratch, Role::Sends)?, Lines::of(self.scratch, Role::Receives)?);
        let mut left = self.plan.setups.len();
        let end = AtomicBool::new(false);
        let ended_early = || end.store(true, Ordering::Relaxed);
        std::thread::scope(|scope| {
            let serving = server.as_mut().map(|server| scope.spawn(|| server.serve(&end)));
            let machines = Role::BOTH.map(|role| {
                let end = &end;
                // The thread that starts an emulator lives as long as that.
                scope.spawn(move || self.machine(role, end).inspect_err(|_| end.store(true, Ordering::Relaxed)))
            });
            let mut told = Ok(());
            loop {
                let done = machines.iter().all(|machine| machine.is_finished());
                told = told.and_then(|()| {
                    while left > 0 && lines.0.has_next()? && lines.1.has_next()? {
                        left -= 1;
                        tell(Answers { sent: lines.0.next(), received: lines.1.next() })?;
                    }
                    if asked.is_asked() { Err(Error::Stopped) } else { Ok(()) }
                });
                if told.is_err() {
                    ended_early();
                }
                if done {
                    break;
                }
                std::thread::sleep(LOOK_EVERY);
            }
            ended_early();
            let died = |_| Err(Error::Died("a thread that runs a guest has panicked; please report it".to_owned()));
            let ended = machines.map(|machine| machine.join().unwrap_or_else(died));
            let served = serving.map_or(Ok(()), |serving| serving.join().unwrap_or_else(died));
            told?;
            // A guest that was ended because of the other one says nothing of the reason.
            let failed = ended.into_iter().chain([served]).filter_map(Result::err);
            failed.reduce(|one, other| if matches!(one, Error::Stopped) { other } else { one }).map_or(Ok(()), Err)
        })
    }

    fn server(&self) -> Result<Option<Server>, Error> {
        let Some((.., memory)) = self.memory.iter().find(|(path, ..)| *path == DOORBELL) else { return Ok(None) };
        let memory =
            memory.file().try_clone_to_owned().map_err(|error| Error::refused("the memory of a device", error))?;
        Server::new(memory).listen(self.scratch.path(), SOCKET).map(Some)
    }

    /// One guest, from its start to its end.
    fn machine(&self, role: Role, end: &AtomicBool) -> Result<(), Error> {
        let cpu = match role {
            Role::Sends => self.plan.cpus.0,
            Role::Receives => self.plan.cpus.1,
        };
        thread::set_affinity(thread::own(), &CpuSet::one(cpu))?;
        let each = self.plan.length + self.plan.warm_up + BESIDE;
        let limit = BOOTS + each * u32::try_from(self.plan.setups.len()).unwrap_or(u32::MAX);
        let mut command = self.command(role);
        command.current_dir(self.scratch.path());
        let console = self.scratch.join(&console(role));
        let log = self.scratch.join(&format!("log-{role}"));
        let silence = BOOTS + each;
        Emulator { command, package: PACKAGE, console, log, limit, silence, stop: end }.run(&mut |_| {})
    }

    fn command(&self, role: Role) -> Command {
        let iommu = if self.has_doorbells() { WITH_IOMMU } else { "" };
        let arguments = format!("quiet {ARGUMENTS} {iommu} {}{role}", Role::ARGUMENT);
        let arguments = KERNEL_ARGUMENTS.replacen("quiet", &arguments, 1);
        let mut command = Command::new(QEMU);
        command
            .args(["-name", &format!("kvmscope-{role},debug-threads=on"), "-machine", "q35", "-accel", "tcg"])
            .args(["-cpu", CPU, "-smp", "1", "-m", MEMORY, "-display", "none", "-no-reboot", "-nodefaults"])
            .args(["-serial", &format!("file:{}", console(role)), "-kernel"])
            .arg(&self.kernel.image)
            .args(["-initrd", INITRAMFS, "-append", &arguments])
            .args(["-drive", &format!("if=virtio,format=raw,cache=unsafe,file={}", disk(role))]);
        if self.has_doorbells() {
            command.args(["-device", "intel-iommu"]);
        }
        for (path, slot, memory) in &self.memory {
            if *path == PLAIN {
                let (file, bytes) = (memory.file().as_raw_fd(), memory.bytes());
                let file = format!("/proc/{}/fd/{file}", std::process::id());
                command
                    .args(["-object", &format!("memory-backend-file,id=memory,share=on,mem-path={file},size={bytes}")])
                    .args(["-device", &format!("ivshmem-plain,memdev=memory,addr={slot:#x}")]);
            } else {
                command
                    .args(["-chardev", &format!("socket,id=server,path={SOCKET}")])
                    .args(["-device", &format!("ivshmem-doorbell,chardev=server,vectors=1,addr={slot:#x}")]);
            }
        }
        command
    }
}

fn disk(role: Role) -> String {
    format!("disk-{role}")
}

fn console(role: Role) -> String {
    format!("console-{role}")
}

/// Lines of a disk that a guest still writes: what it has not written is zeros.
struct Lines {
    disk: File,
    unread: Vec<u8>,
}

impl Lines {
    fn of(scratch: &Scratch, role: Role) -> Result<Lines, Error> {
        let path = scratch.join(&disk(role));
        let disk = File::open(&path).map_err(|error| Error::io(path, error))?;
        Ok(Lines { disk, unread: Vec::new() })
    }

    /// Reads on; whether a whole line is there.
    fn has_next(&mut self) -> Result<bool, Error> {
        let io = |error| Error::io("a guest's disk", error);
        let mut block = vec![0; 1 << 16];
        while !self.unread.contains(&b'\n') {
            let got = self.disk.read(&mut block).map_err(io)?;
            let written = block[..got].iter().position(|byte| *byte == 0).unwrap_or(got);
            self.unread.extend_from_slice(&block[..written]);
            if written < got || got == 0 {
                self.disk.seek(SeekFrom::Current(written as i64 - got as i64)).map_err(io)?;
                return Ok(self.unread.contains(&b'\n'));
            }
        }
        Ok(true)
    }

    /// The next line, if it is what a side says.
    fn next<T: serde::de::DeserializeOwned>(&mut self) -> Result<T, String> {
        let end = self.unread.iter().position(|byte| *byte == b'\n').unwrap_or(self.unread.len());
        let line: Vec<u8> = self.unread.drain(..end).collect();
        self.unread.drain(..self.unread.len().min(1));
        serde_json::from_slice(&line).map_err(|error| format!("a guest left an answer that cannot be read: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn lines_are_read_as_they_are_written_and_zeros_are_not() {
        let cache = tempfile::tempdir().unwrap();
        let scratch = Scratch::new(cache.path()).unwrap();
        let mut disk = File::create(scratch.join(&disk(Role::Sends))).unwrap();
        disk.set_len(1 << 20).unwrap();
        let mut lines = Lines::of(&scratch, Role::Sends).unwrap();
        assert!(!lines.has_next().unwrap());
        disk.write_all(b"{\"Err\":\"first\"}\n{\"Err\"").unwrap();
        assert!(lines.has_next().unwrap());
        let next = |lines: &mut Lines| lines.next::<Result<(), String>>();
        assert_eq!(next(&mut lines), Ok(Err("first".to_owned())));
        assert!(!lines.has_next().unwrap());
        let long = "l".repeat(100_000);
        disk.write_all(format!(":\"{long}\"}}\nnonsense\n").as_bytes()).unwrap();
        assert!(lines.has_next().unwrap());
        assert_eq!(next(&mut lines), Ok(Err(long)));
        assert!(lines.has_next().unwrap());
        assert!(next(&mut lines).unwrap_err().contains("cannot be read"));
        assert!(!lines.has_next().unwrap());
    }
}
