//! The guest in QEMU's TCG: no firmware, no disk, one device.

use super::{Seats, ivshmem, rom};
use crate::bench::priority;
use crate::machine::qemu::seat;
use lab::Error;
use lab::program::{lend, tie};
use rustix::process::Signal;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use vmm_sys_util::eventfd::EventFd;

const PROGRAM: &str = "qemu-system-x86_64";
const PACKAGE: &str = "qemu-system-x86";
/// What the VM is called.
const NAME: &str = "kvmscope-probe";
/// Megabytes: a stack is all that the guest needs.
const MEMORY: &str = "2";
/// Lines of QEMU's own that an error shows.
const LAST_LINES: usize = 3;

/// A QEMU that runs.
pub(super) struct Running {
    child: Child,
    log: PathBuf,
    /// The vCPU's thread, once it is seated.
    vcpu: Option<i32>,
    /// QEMU takes its end for the end of all interrupts.
    _server: UnixStream,
}

impl Running {
    pub(super) fn start(scratch: &Path, shared: &super::Shared, interrupt: &EventFd) -> Result<Self, Error> {
        let (bios, log) = (scratch.join("rom"), scratch.join("log"));
        std::fs::write(&bios, rom::bytes()).map_err(|error| Error::io(&bios, error))?;
        let said = File::create(&log).map_err(|error| Error::io(&log, error))?;
        let (server, client) = ivshmem::serve(&shared.file, interrupt)?;
        let mut command = Command::new(PROGRAM);
        command
            .args(["-name", &format!("{NAME},debug-threads=on"), "-accel", "tcg,thread=multi", "-machine", "pc"])
            .args(["-smp", "1", "-m", MEMORY, "-display", "none", "-no-reboot", "-nodefaults", "-bios"])
            .arg(&bios)
            .args(["-chardev", &format!("socket,id=server,fd={}", client.as_raw_fd())])
            .args(["-device", &format!("ivshmem-doorbell,chardev=server,vectors=1,addr={:#x}", rom::SLOT)])
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(said);
        lend(&mut command, client.as_raw_fd());
        tie(&mut command, Signal::KILL);
        let child = command.spawn().map_err(|error| Error::not_started(PROGRAM, PACKAGE, &error))?;
        Ok(Self { child, log, vcpu: None, _server: server })
    }

    /// Puts the vCPU on its CPU and QEMU's other threads on the others.
    pub(crate) fn seat(&mut self, seats: &Seats) -> Result<(), Error> {
        let vcpu = seat(self.child.id(), seats.vcpu, &seats.others, Path::new("/proc"))?;
        self.vcpu = Some(vcpu as i32);
        match seats.fifo {
            true => self.tids().into_iter().try_for_each(|tid| priority::fifo_of(tid, priority::GUEST)),
            false => Ok(()),
        }
    }

    /// The main one, which hears of events, and the vCPU's.
    pub(super) fn tids(&self) -> Vec<i32> {
        std::iter::once(self.child.id() as i32).chain(self.vcpu).collect()
    }

    pub(super) fn look(&mut self) -> Result<(), Error> {
        let Some(status) = self.child.try_wait().map_err(|error| Error::io(PROGRAM, error))? else { return Ok(()) };
        let said = std::fs::read(&self.log).unwrap_or_default();
        let said = String::from_utf8_lossy(&said);
        let lines: Vec<&str> = said.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let last = lines[lines.len().saturating_sub(LAST_LINES)..].join("; ");
        let said = if last.is_empty() { "it gave no reason".to_owned() } else { last };
        Err(Error::Failed { program: PROGRAM.to_owned(), status: status.to_string(), said })
    }

    pub(super) fn end(&mut self) {
        // Gone already is what we want.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
