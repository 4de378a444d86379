//! The kinds of changes, and what reverts each.
//!
//! Every kind is idempotent: reverting what was never made, or is already gone, does nothing and succeeds.

use super::network::{self, Nic};
use super::owner::Owner;
use super::pin::{Pin, Scope};
use super::polling;
use super::revert::{Reverted, destroy_session, end, remove_directory, unmount, write_back};
use super::thread;
use super::value::{holding, is_taken};
use crate::Error;
use base::CpuSet;
use base::shell::printable;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::{Path, PathBuf};

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
            _ => Err(Error::Unable(format!("{self} cannot be repeated from the journal"))),
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

    /// True if several programs may note the same step, each for as long as it needs what was made.
    pub(super) fn is_shared(&self) -> bool {
        matches!(self, Step::Mount { .. })
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
            Step::TracefsInstance { path } => remove_directory(path),
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

fn cpus(list: &str) -> Result<CpuSet, Error> {
    CpuSet::parse(list).ok_or_else(|| Error::Unable(format!("`{list}` is no CPU list")))
}

/// True if both are CPU lists, of the same CPUs.
fn same_cpus(one: &str, other: &str) -> bool {
    CpuSet::parse(one).is_some_and(|cpus| Some(cpus) == CpuSet::parse(other))
}

fn same_thread(thread: Owner, name: &str, proc: &Path) -> Result<(), Error> {
    let gone = || Error::Unable(format!("thread {} ({}) has ended since", thread.pid, printable(name)));
    thread.is_alive(proc).then_some(()).ok_or_else(gone)
}

fn write_and_read(path: &Path, new: &str, taken: impl Fn(&str) -> bool) -> Result<(), Error> {
    std::fs::write(path, new).map_err(|error| Error::io(path, error))?;
    let text = std::fs::read_to_string(path).map_err(|error| Error::io(path, error))?;
    let now = holding(&text);
    let refused = || Error::Unable(format!("{}: {new} was written and it is {now}", printed(path)));
    taken(now).then_some(()).ok_or_else(refused)
}
