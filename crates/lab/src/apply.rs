//! Makes the changes that a finding proposes, each journalled first so that it can be undone.
//!
//! ```text
//! Change --prepare--> what holds now is read --> steps --journal--> made --> read back
//!                     |                                                      |
//!                     gone, or so already: passed over, and said             refused: all steps are undone
//!                     neither old nor new: out of date, nothing is changed
//! ```
//! In: typed changes, never strings that something executes. A thread is named by id, start time and name: one that differs
//! in any of them is another thread, and one whose start time nobody read is not changed.

use crate::Error;
use crate::journal::pin::{self, Pin, Pinned, Scope};
use crate::journal::value::{holding, holds_already, is_taken};
use crate::journal::{Entry, Owner, Step, polling, thread};
use base::change::ThreadId;
use base::shell::printable;
use base::{Change, CpuSet};
use std::path::{Path, PathBuf};

/// Where a host's files lie.
#[derive(Debug, Clone)]
pub struct Host {
    /// `/proc`, or a copy.
    pub proc: PathBuf,
    /// `/sys`, or a copy.
    pub sys: PathBuf,
}

/// A change, held against the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Prepared {
    /// What has to be done, with what holds now.
    Steps(Vec<Step>),
    /// Nothing is to be done, and why.
    PassedOver(String),
}

impl Host {
    /// The host below `root`.
    pub fn at(root: &Path) -> Self {
        Self { proc: root.join("proc"), sys: root.join("sys") }
    }

    /// Reads what holds now and says which steps make `change`.
    ///
    /// # Errors
    /// If the host has neither the value that the change starts from nor the one it sets, if what holds cannot be read, if
    /// a thread's start time is not in the change, or if the change is of a kind that is not made on a running host.
    pub fn prepare(&self, change: &Change) -> Result<Prepared, Error> {
        let from = change.from();
        match change {
            Change::TaskAffinity { thread, cpus, .. } => {
                let wanted = list(cpus)?;
                // The kernel lists CPUs that are offline in a thread's mask, and leaves them out where it is asked for it.
                let from = from.as_deref().map(list).transpose()?.map(|from| self.online(from).to_string());
                self.task(
                    thread,
                    |tid| Ok((thread::affinity(tid)?.to_string(), wanted.to_string(), from.clone())),
                    |thread, name, old, new| Step::TaskAffinity { thread, name, old, new },
                )
            }
            Change::TaskPolicy { thread, to, .. } => self.task(
                thread,
                |tid| Ok((thread::policy(tid)?, to.clone(), from.clone())),
                |thread, name, old, new| Step::TaskPolicy { thread, name, old, new },
            ),
            Change::SysfsWrite { path, to, .. } => {
                let path = inside(&self.sys, path)?;
                let now = holding(&read(&path)?).to_owned();
                let what = path.display().to_string();
                if is_cpuset(&path) {
                    // The kernel spells lists in its own way; an empty one takes the CPUs of the group above.
                    let plain =
                        |text: &str| CpuSet::parse(text).map_or_else(|| text.to_owned(), |cpus| cpus.to_string());
                    let needed = needed(&what, plain(&now), list(to)?.to_string(), from.as_deref().map(plain))?;
                    return Ok(needed.map(|(old, new)| Step::CpuList { path, old, new }));
                }
                // The kernel has words of its own for what was written.
                let from = from.map(|from| if is_taken(&path, &from, &now) { now.clone() } else { from });
                let to = if holds_already(&path, to, &now) { now.clone() } else { to.clone() };
                Ok(needed(&what, now, to, from)?.map(|(old, new)| Step::SysfsWrite { path, old, new }))
            }
            Change::IrqAffinity { irq, cpus, .. } => {
                let path = self.proc.join("irq").join(irq.to_string()).join("smp_affinity_list");
                let now = list(&read(&path)?)?.to_string();
                let from = from.as_deref().map(list).transpose()?.map(|from| from.to_string());
                let needed = needed(&format!("interrupt {irq}"), now, list(cpus)?.to_string(), from)?;
                Ok(needed.map(|(old, new)| Step::CpuList { path, old, new }))
            }
            Change::PmdMask { cpus, .. } => {
                let now = polling::read()?.to_string();
                let from = from.as_deref().map(set).transpose()?.map(|from| from.to_string());
                let needed = needed("the mask of polling threads", now, set(cpus)?.to_string(), from)?;
                Ok(needed.map(|(old, new)| Step::PmdMask { old, new }))
            }
            Change::VcpuPin { domain, vcpu, cpus, .. } => pins(domain, Pinned::Vcpu(*vcpu), cpus, from.as_deref()),
            Change::EmulatorPin { domain, cpus, .. } => pins(domain, Pinned::Emulator, cpus, from.as_deref()),
            Change::IothreadPin { domain, iothread, cpus, .. } => {
                pins(domain, Pinned::Iothread(*iothread), cpus, from.as_deref())
            }
            Change::ModuleOption { .. } => Err(Error::Unable(format!(
                "a module is not reloaded by this program, because every VM on it would have to end; type: {}",
                change.command()
            ))),
        }
    }

    /// Those of `cpus` that are online; all of them where the kernel does not say.
    fn online(&self, cpus: CpuSet) -> CpuSet {
        let online = read(&self.sys.join("devices/system/cpu/online")).ok().and_then(|text| CpuSet::parse(&text));
        online.map(|online| cpus.and(&online)).filter(|left| !left.is_empty()).unwrap_or(cpus)
    }

    /// The steps of a change of a thread, which may have ended.
    fn task(
        &self,
        meant: &ThreadId,
        sides: impl Fn(u32) -> Result<(String, String, Option<String>), Error>,
        step: impl Fn(Owner, String, String, String) -> Step,
    ) -> Result<Prepared, Error> {
        let tid = meant.tid;
        let number = u32::try_from(tid).map_err(|_| Error::Unable(format!("{tid} is not a thread id")))?;
        let Some(started) = meant.start_ticks else {
            return Err(Error::Unable(format!(
                "the start time of thread {tid} is unknown, so this thread id may be another thread by now: it is not changed"
            )));
        };
        let Ok(thread) = Owner::of(&self.proc, number) else {
            return Ok(Prepared::PassedOver(format!("thread {tid} has ended; there is nothing to change")));
        };
        let name = read(&self.proc.join(number.to_string()).join("comm")).unwrap_or_default();
        let another = |how: String| {
            Ok(Prepared::PassedOver(format!("thread {tid} {how}: it is another thread and was not changed")))
        };
        if thread.start_ticks != started {
            return another("started at another time than the intended one".to_owned());
        }
        // A program that is replaced (execve(2)) keeps id and start time.
        if let Some(meant) = meant.comm.as_ref().filter(|meant| **meant != name) {
            return another(format!("is called {}, and the intended one {}", printable(&name), printable(meant)));
        }
        let (now, to, from) = sides(number)?;
        let needed = needed(&format!("thread {tid} ({})", printable(&name)), now, to, from)?;
        Ok(needed.map(|(old, new)| step(thread, name, old, new)))
    }
}

/// Makes `steps`, each noted in `entry` first; returns what was not reached: threads that ended meanwhile, and threads of a
/// domain that did not follow its pin.
///
/// # Errors
/// If a step was refused: those before it are still made, and `entry` undoes them.
pub fn make(entry: &mut Entry, steps: &[Step], proc: &Path) -> Result<Vec<String>, Error> {
    let mut passed_over = Vec::new();
    for step in steps {
        entry.intend(step.clone())?;
        match step.make(proc) {
            Err(error) if step.thread().is_some_and(|thread| !thread.is_alive(proc)) => {
                passed_over.push(error.to_string());
            }
            made => made?,
        }
        if let Step::Pin { pin, new, .. } = step {
            passed_over.extend(pin::unmoved(pin, new, proc, Path::new("/run")));
        }
    }
    Ok(passed_over)
}

/// Both sides of a change that is still to be made.
enum Needed {
    Change(String, String),
    SoAlready(String),
}

impl Needed {
    fn map(self, step: impl FnOnce((String, String)) -> Step) -> Prepared {
        match self {
            Needed::Change(old, new) => Prepared::Steps(vec![step((old, new))]),
            Needed::SoAlready(said) => Prepared::PassedOver(said),
        }
    }
}

fn needed(what: &str, now: String, to: String, from: Option<String>) -> Result<Needed, Error> {
    if now == to {
        return Ok(Needed::SoAlready(format!("{what} has {to} already")));
    }
    match from {
        Some(from) if from != now => Err(Error::Unable(format!(
            "{what} is {now}, but was {from} when the proposal was made: the proposal is out of date; run `kvmscope \
             check` again"
        ))),
        _ => Ok(Needed::Change(now, to)),
    }
}

/// The steps of a pin: of the running domain, and of its next start.
fn pins(domain: &str, pinned: Pinned, cpus: &str, from: Option<&str>) -> Result<Prepared, Error> {
    let wanted = list(cpus)?;
    let mut steps = Vec::new();
    let running = pin::is_running(domain)?;
    for scope in [Scope::Live, Scope::Config] {
        if scope == Scope::Live && !running {
            continue;
        }
        let pin = Pin { domain: domain.to_owned(), pinned, scope };
        let (now, had_element) = pin.read()?;
        // The proposal saw the running domain; what its next start would have may differ.
        let from = from.filter(|_| scope == Scope::Live || !running).map(list).transpose()?;
        let needed = needed(&pin.to_string(), now.to_string(), wanted.to_string(), from.map(|from| from.to_string()))?;
        if let Needed::Change(old, new) = needed {
            steps.push(Step::Pin { pin, old, new, had_element });
        }
    }
    match steps.is_empty() {
        true => Ok(Prepared::PassedOver(format!("{domain} has CPUs {wanted} already"))),
        false => Ok(Prepared::Steps(steps)),
    }
}

fn set(text: &str) -> Result<CpuSet, Error> {
    CpuSet::parse(text).ok_or_else(|| Error::Unable(format!("`{}` is no CPU list", text.trim())))
}

fn list(text: &str) -> Result<CpuSet, Error> {
    set(text).and_then(|cpus| match cpus.is_empty() {
        true => Err(Error::Unable(format!("`{}` is no CPU list", text.trim()))),
        false => Ok(cpus),
    })
}

fn read(path: &Path) -> Result<String, Error> {
    let text = std::fs::read_to_string(path).map_err(|error| Error::io(path, error))?;
    Ok(text.trim_end().to_owned())
}

/// True for the CPUs of a control group (Documentation/admin-guide/cgroup-v1/cpusets.rst, cgroup-v2.rst).
pub fn is_cpuset(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == "cpuset.cpus")
}

/// The path below `root`; it must not lead out of it.
fn inside(root: &Path, path: &str) -> Result<PathBuf, Error> {
    let plain = Path::new(path).components().all(|part| matches!(part, std::path::Component::Normal(_)));
    plain.then(|| root.join(path)).ok_or_else(|| Error::Unable(format!("`{path}` is no path below /sys")))
}

#[cfg(test)]
mod tests;
