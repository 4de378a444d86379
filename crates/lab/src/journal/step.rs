//! The kinds of changes, and what reverts each.
//!
//! Every kind is idempotent: reverting what was never made, or is already gone, does nothing and succeeds.

use super::owner::Owner;
use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// How often a thing that is in use is tried again, and how long we wait in between: one second in all.
const TRIES: u32 = 50;
const PAUSE: Duration = Duration::from_millis(20);

/// How often we look whether a process that was asked to end has done so, 20 s in all: perf closes a file per event and
/// CPU, each of which waits for the kernel, before its recording is whole.
const TRIES_TO_END: u32 = 1_000;

/// One change of a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// A tracing instance was made; it is removed, and with it its buffers and its events.
    TracefsInstance {
        /// Below `<tracefs>/instances`.
        path: PathBuf,
    },
    /// A value was written; the old one is written again, unless somebody else changed it meanwhile.
    SysfsWrite {
        /// The file.
        path: PathBuf,
        /// What stood there.
        old: String,
        /// What we wrote.
        new: String,
    },
    /// A process was started; it is ended.
    Process(Owner),
    /// An LTTng session was made; it is destroyed.
    LttngSession {
        /// Its name.
        name: String,
    },
    /// A file was made; it is removed.
    File {
        /// The file.
        path: PathBuf,
    },
}

/// What became of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reverted {
    /// The host is as it was.
    Done,
    /// Somebody else has changed the same thing since; the sentence says what was found.
    LeftAlone(String),
    /// It could not be reverted; the sentence says why.
    Failed(String),
}

impl Step {
    /// Puts back what the step changed.
    pub fn revert(&self, proc: &Path) -> Reverted {
        match self {
            Step::TracefsInstance { path } => of(again(|| std::fs::remove_dir(path))),
            Step::SysfsWrite { path, old, new } => write_back(path, old, new),
            Step::Process(owner) => end(*owner, proc),
            Step::LttngSession { name } => destroy_session(name),
            Step::File { path } => of(std::fs::remove_file(path)),
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::TracefsInstance { path } => write!(out, "tracing instance {}", path.display()),
            Step::SysfsWrite { path, old, new } => write!(out, "{}: {old} -> {new}", path.display()),
            Step::Process(owner) => write!(out, "process {}", owner.pid),
            Step::LttngSession { name } => write!(out, "LTTng session {name}"),
            Step::File { path } => write!(out, "file {}", path.display()),
        }
    }
}

fn of(outcome: std::io::Result<()>) -> Reverted {
    match outcome {
        Err(error) if error.kind() != ErrorKind::NotFound => Reverted::Failed(error.to_string()),
        _ => Reverted::Done,
    }
}

/// Tries again while the kernel says that the thing is in use: a killed process closes its files a moment later.
fn again(mut attempt: impl FnMut() -> std::io::Result<()>) -> std::io::Result<()> {
    for _ in 1..TRIES {
        match attempt() {
            Err(error) if error.kind() == ErrorKind::ResourceBusy => std::thread::sleep(PAUSE),
            outcome => return outcome,
        }
    }
    attempt()
}

fn write_back(path: &Path, old: &str, new: &str) -> Reverted {
    match std::fs::read_to_string(path) {
        Ok(now) if now.trim_end() == old => Reverted::Done,
        Ok(now) if now.trim_end() != new => {
            Reverted::LeftAlone(format!("it is {} now, and we had written {new}", now.trim_end()))
        }
        Ok(_) => of(std::fs::write(path, old)),
        Err(error) => of(Err(error)),
    }
}

/// Asks the process to end, and ends it if it does not.
fn end(owner: Owner, proc: &Path) -> Reverted {
    let Some(pid) = i32::try_from(owner.pid).ok().and_then(Pid::from_raw) else {
        return Reverted::Failed(format!("{} is no pid", owner.pid));
    };
    for (signal, tries) in [(Signal::TERM, TRIES_TO_END), (Signal::KILL, TRIES)] {
        for attempt in 0..tries {
            if !owner.is_alive(proc) {
                return Reverted::Done;
            }
            if attempt == 0
                && let Err(error) = kill_process(pid, signal)
            {
                return Reverted::Failed(error.to_string());
            }
            std::thread::sleep(PAUSE);
        }
    }
    Reverted::Failed("it does not end, even when killed".to_owned())
}

fn destroy_session(name: &str) -> Reverted {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    if name.is_empty() || name.starts_with('-') || !name.bytes().all(plain) {
        return Reverted::Failed(format!("`{name}` is no name of a session that we would make"));
    }
    match Command::new("lttng").args(["destroy", "--no-wait", name]).output() {
        Ok(output) if output.status.success() => Reverted::Done,
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            match said.contains("not found") || said.contains("No session daemon") {
                true => Reverted::Done,
                false => Reverted::Failed(said.trim().to_owned()),
            }
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Reverted::Done, // without LTTng there is no session
        Err(error) => Reverted::Failed(format!("lttng: {error}")),
    }
}
