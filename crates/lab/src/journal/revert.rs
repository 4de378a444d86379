//! How changes are reverted: what became of it, and the ways of taking things away.
//!
//! Each way succeeds where there is nothing to do, so that an entry can be reverted again after a failure.

use super::owner::Owner;
use crate::program::Program;
use rustix::process::{Pid, Signal, kill_process};
use std::io::ErrorKind;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::time::Duration;

/// How often a thing that is in use is tried again, and how long we wait in between: one second in all.
const TRIES: u32 = 50;
const PAUSE: Duration = Duration::from_millis(20);

/// How often we look whether a process that was asked to end has done so, 20 s in all: perf closes a file per event and
/// CPU, each of which waits for the kernel, before its recording is whole.
const TRIES_TO_END: u32 = 1_000;

/// What became of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reverted {
    Done,
    /// Somebody else has changed the same thing since; the sentence says what was found.
    LeftAlone(String),
    /// It could not be reverted; the sentence says why.
    Failed(String),
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

/// Removes an empty directory, an instance of tracefs, or a control group without processes.
pub(super) fn remove_directory(path: &Path) -> Reverted {
    of(again(|| std::fs::remove_dir(path)))
}

/// Removes a directory with all that lies in it; a link that took its place is somebody's, and nothing behind it is touched.
pub(super) fn remove_tree(path: &Path) -> Reverted {
    match std::fs::symlink_metadata(path) {
        Ok(there) if !there.is_dir() => Reverted::LeftAlone("it is no directory any more".to_owned()),
        _ => of(again(|| std::fs::remove_dir_all(path))),
    }
}

/// Removes a named pipe; what lies there and is none is somebody's.
pub(super) fn remove_pipe(path: &Path) -> Reverted {
    match std::fs::symlink_metadata(path) {
        Ok(there) if !there.file_type().is_fifo() => Reverted::LeftAlone("it is no named pipe any more".to_owned()),
        _ => of(std::fs::remove_file(path)),
    }
}

/// Asks the process to end, and ends it if it does not.
pub(super) fn end(owner: Owner, proc: &Path) -> Reverted {
    let Some(pid) = i32::try_from(owner.pid).ok().and_then(Pid::from_raw) else {
        return Reverted::Failed(format!("{} is no pid", owner.pid));
    };
    for (signal, tries) in [(Signal::TERM, TRIES_TO_END), (Signal::KILL, TRIES)] {
        for attempt in 0..tries {
            if !owner.has_threads(proc) {
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

/// Unmounts what is mounted there; what is in use is somebody's.
pub(super) fn unmount(path: &Path, proc: &Path) -> Reverted {
    // The fifth field is the mount point (Documentation/filesystems/proc.rst, `mountinfo`).
    let mounts = std::fs::read_to_string(proc.join("self/mountinfo")).unwrap_or_default();
    let is_there = |line: &str| line.split(' ').nth(4).is_some_and(|point| Path::new(point) == path);
    if !mounts.lines().any(is_there) {
        return Reverted::Done;
    }
    let unmounted = again(|| match Program::new("umount", "mount").output(&[path]) {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            let kind = if said.contains("busy") { ErrorKind::ResourceBusy } else { ErrorKind::Other };
            Err(std::io::Error::new(kind, said))
        }
        Err(error) => Err(error),
    });
    match unmounted {
        Ok(()) => Reverted::Done,
        Err(error) if error.kind() == ErrorKind::ResourceBusy => {
            Reverted::LeftAlone("another program uses it".to_owned())
        }
        Err(error) => Reverted::Failed(error.to_string()),
    }
}

pub(super) fn destroy_session(name: &str) -> Reverted {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    if name.is_empty() || name.starts_with('-') || !name.bytes().all(plain) {
        return Reverted::Failed(format!("`{name}` is not a session name of kvmscope"));
    }
    match Program::new("lttng", "lttng-tools").output(&["destroy", "--no-wait", name]) {
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
