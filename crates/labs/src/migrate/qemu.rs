//! A QEMU that runs the guest, or waits for it.

use super::Settings;
use super::network::{self, Plug};
use super::sector::{HEARTBEAT_AT, image};
use crate::netns::inside::inside;
use lab::Error;
use lab::program::{confine, lend, tie, untranslated};
use lab::qmp::Qmp;
use lab::watch::Watch;
use rustix::process::{Pid, Signal};
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Name and package of the program.
pub(super) const PROGRAM: (&str, &str) = ("qemu-system-x86_64", "qemu-system-x86");
/// It listens to its socket before it starts the guest's firmware.
const PATIENCE: Duration = Duration::from_secs(30);
/// The firmware takes 2 to 3 s in TCG; filling a gigabyte some more.
const BOOT: Duration = Duration::from_secs(120);
/// One that is asked something answers at once, unless its machine is overloaded.
pub(crate) const ANSWER: Duration = Duration::from_secs(30);
/// The guest has so much more memory: of a block that is a multiple of 256 KiB, QEMU before 9.0 fetches dirty bits without telling its
/// emulated CPUs (`cpu_physical_memory_sync_dirty_bitmap` of include/exec/ram_addr.h, 7.2), and the guest loses what they write then. QEMU
/// rounds up to 8 KiB (`set_memory_options` of softmmu/vl.c).
pub(crate) const ODD_BYTES: u64 = 8 << 10;
/// A floppy of 1.44 MB.
const FLOPPY_BYTES: usize = 1_474_560;

base::named! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(super) enum Side {
        Source = "source",
        Target = "target",
    }
}

impl Side {
    /// Where its guest's memory lies, if it is observed.
    pub(super) fn memory(self, place: &Path) -> PathBuf {
        place.join(format!("{}.memory", self.name()))
    }
}

/// What one of them has that others have not.
pub(super) enum Extra<'a> {
    Nothing,
    /// It alone sees a file system of so many bytes there.
    SmallDisk(&'a Path, u64),
    /// The guest has a network card.
    Network(Plug),
}

/// One that runs; it ends when this is dropped, and with this program.
pub(super) struct Qemu {
    child: Child,
    log: PathBuf,
    pub qmp: Qmp,
}

impl Qemu {
    /// Starts one in `place`, which holds its floppy, its socket and its log.
    ///
    /// # Errors
    /// If it is not there or does not come up; with its own last words.
    pub(super) fn start(side: Side, settings: &Settings, place: &Path) -> Result<Self, Error> {
        Self::start_with(side, settings, place, Extra::Nothing)
    }

    /// The same, with something of its own.
    ///
    /// # Errors
    /// As of [`start`](Self::start), and if the kernel does not allow it.
    pub(crate) fn start_with(side: Side, settings: &Settings, place: &Path, extra: Extra<'_>) -> Result<Self, Error> {
        let name = side.name();
        let [floppy, socket, log] = ["floppy", "qmp", "log"].map(|what| place.join(format!("{name}.{what}")));
        let driver = if let Extra::Network(_) = extra { network::driver() } else { &[] };
        let mut sectors = image(settings.work, driver);
        sectors.resize(FLOPPY_BYTES, 0);
        std::fs::write(&floppy, sectors).map_err(|error| Error::io(&floppy, error))?;
        let program = settings.program();
        let mut command = std::process::Command::new(&program.path);
        untranslated(&mut command);
        tie(&mut command, Signal::KILL);
        // Until it has started.
        let mut _tap = None;
        match extra {
            Extra::Nothing => {}
            Extra::SmallDisk(at, bytes) => confine(&mut command, at, bytes)?,
            Extra::Network(Plug { namespace, tap }) => {
                inside(&mut command, &namespace)?;
                let number = tap.as_raw_fd();
                lend(&mut command, number);
                command.args(["-netdev", &format!("tap,id=net,fd={number},vhost=off"), "-device", &network::card()]);
                _tap = Some(tap);
            }
        }
        command
            .args(["-name", &format!("kvmscope-{name},debug-threads=on"), "-accel", "tcg"])
            .args([
                "-m",
                &format!("{}B", settings.memory_bytes + ODD_BYTES),
                "-nodefaults",
                "-no-user-config",
                "-display",
                "none",
            ])
            .args(["-qmp", &format!("unix:{},server=on,wait=off", socket.display())])
            .args(["-drive", &format!("if=none,id=f,format=raw,readonly=on,file={}", floppy.display())])
            .args(["-device", "isa-fdc,fdtypeA=144", "-device", "floppy,drive=f"]);
        if settings.is_observed {
            let (memory, size) = (side.memory(place), settings.memory_bytes + ODD_BYTES);
            let backend = format!("memory-backend-file,id=memory,share=on,mem-path={},size={size}", memory.display());
            command.args(["-object", &backend, "-M", "q35,memory-backend=memory"]);
        } else {
            command.args(["-M", "q35"]);
        }
        if side == Side::Target {
            command.args(["-incoming", "defer"]);
        }
        let said = File::create(&log).map_err(|error| Error::io(&log, error))?;
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(said);
        let mut child = program.start(command)?;
        let until = Instant::now() + PATIENCE;
        loop {
            match Qmp::connect(&socket, ANSWER, realtime_ns) {
                Ok(qmp) => return Ok(Self { child, log, qmp }),
                Err(error) if Instant::now() > until => {
                    let _ = child.kill();
                    let _ = child.wait();
                    return Err(error);
                }
                Err(_) => {}
            }
            if let Ok(Some(status)) = child.try_wait() {
                let said = std::fs::read_to_string(&log).unwrap_or_default();
                return Err(program.failed(status, &said));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Waits until the guest has filled its pages and written to each hot one once, or to the first if it is to wait.
    ///
    /// # Errors
    /// If it never does.
    pub(crate) fn wait_for_guest(&mut self, settings: &Settings, watch: &Watch<'_>) -> Result<(), Error> {
        let until = Instant::now() + BOOT;
        while self.heartbeat()? < settings.work.settled() {
            if Instant::now() > until {
                return Err(Error::TimedOut(format!("the guest had not begun to write after {} s", BOOT.as_secs())));
            }
            watch.rest(Duration::from_millis(50))?;
        }
        Ok(())
    }

    /// What the guest has counted, by its own memory.
    ///
    /// # Errors
    /// If QEMU does not answer.
    pub(super) fn heartbeat(&mut self) -> Result<u32, Error> {
        let command = json!({ "command-line": format!("xp /1xw {HEARTBEAT_AT:#x}") });
        let said = self.qmp.execute("human-monitor-command", command, ANSWER)?;
        let said = said.as_str().unwrap_or_default();
        // `0000000000100000: 0x00001234`
        let word = said.split_once(": 0x").and_then(|(_, word)| u32::from_str_radix(word.trim(), 16).ok());
        word.ok_or_else(|| Error::Malformed(format!("QEMU shows memory as `{}`", said.trim())))
    }

    /// Has it end, and waits for that.
    ///
    /// # Errors
    /// If it does not.
    pub(super) fn end(&mut self, patience: Duration) -> Result<(), Error> {
        self.qmp.execute("quit", Value::Null, ANSWER)?;
        let until = Instant::now() + patience;
        while self.ended().is_none() {
            if Instant::now() > until {
                return Err(Error::TimedOut(format!("QEMU had not ended after {} s", patience.as_secs())));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    pub(super) fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    /// How it ended, if it did.
    pub(super) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    pub(super) fn words(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }
}

impl Drop for Qemu {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// CLOCK_REALTIME.
pub(super) fn realtime_ns() -> u64 {
    let now = clock_gettime(ClockId::Realtime);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
