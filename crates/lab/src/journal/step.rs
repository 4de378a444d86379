//! The kinds of changes, and what reverts each.
//!
//! Every kind is idempotent: reverting what was never made, or is already gone, does nothing and succeeds.

use super::network::{self, Nic};
use super::owner::Owner;
use super::pin::{Pin, Scope};
use super::polling;
use super::thread;
use super::value::{holding, is_taken};
use crate::Error;
use base::CpuSet;
use base::shell::printable;
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
    /// A thread was moved to other CPUs; it is moved back, if it is still the same thread.
    TaskAffinity {
        /// The thread: its id stands in `pid`.
        thread: Owner,
        /// Its name, for people.
        name: String,
        /// CPU list that held.
        old: String,
        /// CPU list that we set.
        new: String,
    },
    /// A thread was given another policy; it gets its own again, if it is still the same thread.
    TaskPolicy {
        /// The thread: its id stands in `pid`.
        thread: Owner,
        /// Its name, for people.
        name: String,
        /// The policy that held, `other` or `fifo:1`.
        old: String,
        /// The policy that we set.
        new: String,
    },
    /// A CPU list was written to a file; the kernel may spell it in its own way.
    CpuList {
        /// Such as `/proc/irq/9/smp_affinity_list`.
        path: PathBuf,
        /// What stood there.
        old: String,
        /// What we wrote.
        new: String,
    },
    /// Threads of a libvirt domain were pinned; they are pinned as they were.
    Pin {
        /// Which, and in which scope.
        pin: Pin,
        /// CPU list that held.
        old: String,
        /// CPU list that we set.
        new: String,
        /// True if the domain's XML had an element for it.
        had_element: bool,
    },
    /// The polling threads of Open vSwitch were given other CPUs; they get theirs again.
    PmdMask {
        /// CPU list that held; empty: no mask was set.
        old: String,
        /// CPU list that we set.
        new: String,
    },
    /// The tracing file system was mounted; it is unmounted, unless somebody uses it by now.
    Mount {
        /// Where.
        path: PathBuf,
    },
    /// A network namespace was made; it is deleted.
    NetNamespace {
        /// Its name.
        name: String,
    },
    /// A NIC was moved into a namespace; it is moved back, and gets its addresses and routes again.
    NicMoved {
        /// What it was.
        nic: Nic,
        /// The namespace.
        namespace: String,
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
    /// Makes the change, and reads back whether it was taken. Only changes of values can be made from their step alone;
    /// what else a step notes is made by whoever noted it.
    ///
    /// # Errors
    /// If it was refused, or taken in part.
    pub fn make(&self, proc: &Path) -> Result<(), Error> {
        match self {
            Step::SysfsWrite { path, new, .. } => write_and_read(path, new, |now| is_taken(path, new, now)),
            Step::CpuList { path, new, .. } => write_and_read(path, new, |now| same_cpus(new, now)),
            Step::TaskAffinity { thread, name, new, .. } => {
                same_thread(*thread, name, proc)?;
                thread::set_affinity(thread.pid, &cpus(new)?)
            }
            Step::TaskPolicy { thread, name, new, .. } => {
                same_thread(*thread, name, proc)?;
                thread::set_policy(thread.pid, new)
            }
            Step::Pin { pin, new, .. } => pin.set(&cpus(new)?),
            Step::PmdMask { new, .. } => polling::set(&cpus(new)?),
            _ => Err(Error::Unable(format!("{self} is not made from the journal"))),
        }
    }

    /// True if both change the same thing, from and to whatever, and whatever a thread was called when.
    pub fn is_of_same(&self, other: &Self) -> bool {
        let thing = |step: &Self| {
            let mut thing = step.clone();
            if let Step::TaskAffinity { name, .. } | Step::TaskPolicy { name, .. } = &mut thing {
                name.clear();
            }
            if let Step::SysfsWrite { old, new, .. }
            | Step::CpuList { old, new, .. }
            | Step::TaskAffinity { old, new, .. }
            | Step::TaskPolicy { old, new, .. }
            | Step::PmdMask { old, new }
            | Step::Pin { old, new, .. } = &mut thing
            {
                old.clear();
                new.clear();
            }
            if let Step::Pin { had_element, .. } = &mut thing {
                *had_element = false;
            }
            thing
        };
        thing(self) == thing(other)
    }

    /// True if a reboot leaves what was changed: what libvirt and Open vSwitch keep in files of their own.
    pub(super) fn outlives_boot(&self) -> bool {
        matches!(self, Step::Pin { pin: Pin { scope: Scope::Config, .. }, .. } | Step::PmdMask { .. })
    }

    /// True if the step is about a process or thread, by its id.
    pub(super) fn names_process(&self) -> bool {
        matches!(self, Step::Process(_)) || self.thread().is_some()
    }

    /// The thread that the step changes, if it changes one.
    pub fn thread(&self) -> Option<Owner> {
        match self {
            Step::TaskAffinity { thread, .. } | Step::TaskPolicy { thread, .. } => Some(*thread),
            _ => None,
        }
    }

    /// True if what the step has set still holds. A thread that has ended has nothing any more, and nobody took it away.
    pub fn holds(&self, proc: &Path) -> bool {
        let text = |path: &PathBuf| std::fs::read_to_string(path).map(|now| now.trim_end().to_owned());
        match self {
            Step::SysfsWrite { path, new, .. } => text(path).is_ok_and(|now| is_taken(path, new, holding(&now))),
            Step::CpuList { path, new, .. } => text(path).is_ok_and(|now| same_cpus(&now, new)),
            Step::TaskAffinity { thread, new, .. } => {
                !thread.is_alive(proc) || thread::affinity(thread.pid).is_ok_and(|now| CpuSet::parse(new) == Some(now))
            }
            Step::TaskPolicy { thread, new, .. } => {
                !thread.is_alive(proc) || thread::policy(thread.pid).is_ok_and(|now| now == *new)
            }
            Step::Pin { pin, new, .. } => pin.read().is_ok_and(|(now, _)| CpuSet::parse(new) == Some(now)),
            Step::PmdMask { new, .. } => polling::read().is_ok_and(|now| CpuSet::parse(new) == Some(now)),
            _ => true,
        }
    }

    /// Puts back what the step changed.
    pub fn revert(&self, proc: &Path) -> Reverted {
        match self {
            Step::TracefsInstance { path } => of(again(|| std::fs::remove_dir(path))),
            Step::SysfsWrite { path, old, new } => write_back(path, old, new, |was, now| is_taken(path, was, now)),
            Step::CpuList { path, old, new } => write_back(path, old, new, same_cpus),
            Step::TaskAffinity { thread, old, new, .. } => match (cpus(old), cpus(new)) {
                (Ok(old), Ok(new)) => {
                    thread::put_back(*thread, proc, (old, new), thread::affinity, thread::set_affinity)
                }
                _ => Reverted::Failed(format!("`{old}` or `{new}` is no CPU list")),
            },
            Step::TaskPolicy { thread, old, new, .. } => {
                let sides = (old.clone(), new.clone());
                thread::put_back(*thread, proc, sides, thread::policy, |tid, old| thread::set_policy(tid, old))
            }
            Step::Pin { pin, old, new, had_element } => match (cpus(old), cpus(new)) {
                (Ok(old), Ok(new)) => pin.put_back(&old, &new, *had_element),
                _ => Reverted::Failed(format!("`{old}` or `{new}` is no CPU list")),
            },
            Step::PmdMask { old, new } => match (cpus(old), cpus(new)) {
                (Ok(old), Ok(new)) => polling::put_back(&old, &new),
                _ => Reverted::Failed(format!("`{old}` or `{new}` is no CPU list")),
            },
            Step::NetNamespace { name } => network::delete(name),
            Step::NicMoved { nic, namespace } => network::move_back(nic, namespace),
            Step::Process(owner) => end(*owner, proc),
            Step::LttngSession { name } => destroy_session(name),
            Step::Mount { path } => unmount(path, proc),
        }
    }
}

impl fmt::Display for Step {
    /// Control characters, which a thread may have in its name, are written out.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&printable(&self.words()))
    }
}

impl Step {
    /// What was changed, in a line.
    fn words(&self) -> String {
        match self {
            Step::TracefsInstance { path } => format!("tracing instance {}", path.display()),
            Step::SysfsWrite { path, old, new } | Step::CpuList { path, old, new } => {
                format!("{}: {old} -> {new}", path.display())
            }
            Step::TaskAffinity { thread, name, old, new } => {
                format!("thread {} ({name}): CPUs {old} -> {new}", thread.pid)
            }
            Step::TaskPolicy { thread, name, old, new } => {
                format!("thread {} ({name}): policy {old} -> {new}", thread.pid)
            }
            Step::Pin { pin, old, new, .. } => format!("{pin}: CPUs {old} -> {new}"),
            Step::PmdMask { old, new } => {
                let words = |cpus: &String| if cpus.is_empty() { "no mask".to_owned() } else { format!("CPUs {cpus}") };
                format!("polling threads of Open vSwitch: {} -> {}", words(old), words(new))
            }
            Step::NetNamespace { name } => format!("network namespace {name}"),
            Step::NicMoved { nic, namespace } => format!("NIC {} in namespace {namespace}", nic.name),
            Step::Process(owner) => format!("process {}", owner.pid),
            Step::LttngSession { name } => format!("LTTng session {name}"),
            Step::Mount { path } => format!("tracing file system mounted at {}", path.display()),
        }
    }
}

/// A path without control characters.
fn printed(path: &Path) -> String {
    printable(&path.to_string_lossy()).into_owned()
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

fn cpus(list: &str) -> Result<CpuSet, Error> {
    CpuSet::parse(list).ok_or_else(|| Error::Unable(format!("`{list}` is no CPU list")))
}

/// True if both are CPU lists, of the same CPUs.
fn same_cpus(one: &str, other: &str) -> bool {
    CpuSet::parse(one).is_some_and(|cpus| Some(cpus) == CpuSet::parse(other))
}

fn same_thread(thread: Owner, name: &str, proc: &Path) -> Result<(), Error> {
    let gone = || Error::Unable(format!("thread {} ({}) has ended meanwhile", thread.pid, printable(name)));
    thread.is_alive(proc).then_some(()).ok_or_else(gone)
}

fn write_and_read(path: &Path, new: &str, taken: impl Fn(&str) -> bool) -> Result<(), Error> {
    std::fs::write(path, new).map_err(|error| Error::io(path, error))?;
    let text = std::fs::read_to_string(path).map_err(|error| Error::io(path, error))?;
    let now = holding(&text);
    let refused = || Error::Unable(format!("{}: {new} was written and it is {now}", printed(path)));
    taken(now).then_some(()).ok_or_else(refused)
}

/// Writes `old` again if `new` still holds; `same` compares what was written with what is read.
fn write_back(path: &Path, old: &str, new: &str, same: impl Fn(&str, &str) -> bool) -> Reverted {
    match std::fs::read_to_string(path) {
        Ok(now) if same(old, holding(&now)) => Reverted::Done,
        Ok(now) if !same(new, holding(&now)) => {
            Reverted::LeftAlone(format!("it is {} now, and we had written {new}", printable(holding(&now))))
        }
        // To write nothing is no write: an empty value is set by an empty line.
        Ok(_) => of(std::fs::write(path, if old.is_empty() { "\n" } else { old })),
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

/// Unmounts what is mounted there; what is in use is somebody's.
fn unmount(path: &Path, proc: &Path) -> Reverted {
    // The fifth field is the mount point (Documentation/filesystems/proc.rst, `mountinfo`).
    let mounts = std::fs::read_to_string(proc.join("self/mountinfo")).unwrap_or_default();
    let is_there = |line: &str| line.split(' ').nth(4).is_some_and(|point| Path::new(point) == path);
    if !mounts.lines().any(is_there) {
        return Reverted::Done;
    }
    let unmounted = again(|| match Command::new("umount").arg(path).env("LC_ALL", "C").output() {
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
