//! A QEMU that runs the guest, or waits for it.

use super::Settings;
use super::sector::{HEARTBEAT_AT, image};
use crate::Error;
use crate::program::{confine, tie, untranslated};
use crate::qmp::Qmp;
use crate::watch::Watch;
use rustix::process::{Pid, Signal};
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Name and package of the program.
pub const PROGRAM: (&str, &str) = ("qemu-system-x86_64", "qemu-system-x86");
/// It listens to its socket before it starts the guest's firmware.
const PATIENCE: Duration = Duration::from_secs(30);
/// The firmware takes 2 to 3 s in TCG; filling a gigabyte some more.
const BOOT: Duration = Duration::from_secs(120);
/// One that is asked something answers at once, unless its machine is overloaded.
pub const ANSWER: Duration = Duration::from_secs(30);
/// A floppy of 1.44 MB.
const FLOPPY_BYTES: usize = 1_474_560;

/// Which of the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Where the guest is.
    Source,
    /// Where it goes.
    Target,
}

impl Side {
    /// As files call it.
    pub fn name(self) -> &'static str {
        match self {
            Side::Source => "source",
            Side::Target => "target",
        }
    }

    /// Where its guest's memory lies, if it is observed.
    pub fn memory(self, place: &Path) -> PathBuf {
        place.join(format!("{}.memory", self.name()))
    }
}

/// One that runs; it ends when this is dropped, and with this program.
pub struct Qemu {
    child: Child,
    log: PathBuf,
    /// The connection to it.
    pub qmp: Qmp,
}

impl Qemu {
    /// Starts one in `place`, which holds its floppy, its socket and its log.
    ///
    /// # Errors
    /// If it is not there or does not come up; with its own last words.
    pub fn start(side: Side, settings: &Settings, place: &Path) -> Result<Self, Error> {
        Self::start_on(side, settings, place, None)
    }

    /// The same; it alone sees a file system of so many bytes at `small`.
    ///
    /// # Errors
    /// As of [`start`](Self::start), and if the kernel does not allow the file system.
    pub fn start_on(side: Side, settings: &Settings, place: &Path, small: Option<(&Path, u64)>) -> Result<Self, Error> {
        let name = side.name();
        let [floppy, socket, log] = ["floppy", "qmp", "log"].map(|what| place.join(format!("{name}.{what}")));
        let mut sector = image(settings.work).to_vec();
        sector.resize(FLOPPY_BYTES, 0);
        std::fs::write(&floppy, sector).map_err(|error| Error::io(&floppy, error))?;
        let program = settings.program();
        let mut command = std::process::Command::new(&program.path);
        untranslated(&mut command);
        tie(&mut command, Signal::KILL);
        if let Some((at, bytes)) = small {
            confine(&mut command, at, bytes)?;
        }
        command
            .args(["-name", &format!("kvmscope-{name},debug-threads=on"), "-accel", "tcg"])
            .args([
                "-m",
                &format!("{}M", settings.memory_bytes >> 20),
                "-nodefaults",
                "-no-user-config",
                "-display",
                "none",
            ])
            .args(["-qmp", &format!("unix:{},server=on,wait=off", socket.display())])
            .args(["-drive", &format!("if=none,id=f,format=raw,readonly=on,file={}", floppy.display())])
            .args(["-device", "isa-fdc,fdtypeA=144", "-device", "floppy,drive=f"]);
        if settings.is_observed {
            let (memory, size) = (side.memory(place), settings.memory_bytes >> 20);
            let backend = format!("memory-backend-file,id=memory,share=on,mem-path={},size={size}M", memory.display());
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
    pub fn wait_for_guest(&mut self, settings: &Settings, watch: &Watch<'_>) -> Result<(), Error> {
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
    pub fn heartbeat(&mut self) -> Result<u32, Error> {
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
    pub fn end(&mut self, patience: Duration) -> Result<(), Error> {
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

    /// Its process.
    pub fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// The same as a number.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// How it ended, if it did.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// What it complained of.
    pub fn words(&self) -> String {
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
pub fn realtime_ns() -> u64 {
    let now = clock_gettime(ClockId::Realtime);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
