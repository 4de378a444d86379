//! How is each kind of setting read, set and taken back on a running host, and whom does it concern?
//!
//! ```text
//! Change --prepare--> Altered (what holds, what is set) --journal--> make --> holds? --> put back
//!            |            |                                           |         |           |
//!            +------------+--------------- read, same, write, unset --+---------+-----------+   one Live for each kind
//! ```
//! `live` is the list of kinds: a kind is a file here that implements `Live`, and a line there. What lies above asks
//! every kind in the same words.

mod altered;
mod file;
mod module;
mod pin;
mod polling;
pub mod thread;

pub use altered::Altered;

use crate::Error;
use base::setting::Scope;
use base::{CpuSet, Setting};
use file::File;
use pin::{Pin, Pinned};
use std::path::{Path, PathBuf};

#[derive(Debug, Clone)]
pub struct Host {
    /// `/proc`, or a copy.
    pub proc: PathBuf,
    /// `/sys`, or a copy.
    pub sys: PathBuf,
    /// `/run`, or a copy.
    pub run: PathBuf,
}

impl Host {
    /// The host below `root`.
    pub fn at(root: &Path) -> Self {
        Self { proc: root.join("proc"), sys: root.join("sys"), run: root.join("run") }
    }
}

/// What a setting is at the moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) value: String,
    /// False if it has that value only because nobody has set another.
    pub(crate) is_set: bool,
}

impl From<String> for Held {
    fn from(value: String) -> Self {
        Self { value, is_set: true }
    }
}

/// What of the host a proposed setting is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Located {
    Here(Vec<Setting>),
    /// It is no longer there, and why.
    Gone(String),
}

/// Whom an altered setting concerns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Concern {
    /// These threads, and the CPUs that they move to; `None`: they stay where they are.
    Threads(Vec<u32>, Option<CpuSet>),
    Interrupt(CpuSet, CpuSet),
    Nobody,
    Unknown,
}

/// One setting of a running host.
pub(crate) trait Live {
    /// Which settings of this host are meant; a thread that has ended, or a domain that is off, is not there.
    fn located(&self, setting: &Setting) -> Result<Located, Error> {
        Ok(Located::Here(vec![setting.clone()]))
    }

    fn read(&self) -> Result<Held, Error>;

    /// `value` as it is set and noted, or why it cannot be set.
    fn spelled(&self, value: &str) -> Result<String, Error>;

    /// True if the setting may read `now` after `value` was set.
    fn same(&self, value: &str, now: &str) -> bool;

    /// True if nothing has to be set so that `wanted` holds.
    fn holds_already(&self, wanted: &str, now: &str) -> bool {
        self.same(wanted, now)
    }

    /// Sets `value` and reads it back.
    fn write(&self, value: &str) -> Result<(), Error>;

    /// Takes away the value that was set where none was, which is `value`.
    fn unset(&self, value: &str) -> Result<(), Error> {
        self.write(value)
    }

    /// Why there is nothing left to put back, if what was set is gone.
    fn gone(&self) -> Option<String> {
        None
    }

    /// What did not follow although `value` was taken, as sentences.
    fn unmoved(&self, _value: &str) -> Vec<String> {
        Vec::new()
    }

    /// Whom it concerns that `old` became `new`.
    fn concerns(&self, old: &str, new: &str) -> Result<Concern, Error>;

    /// True if a reboot leaves it.
    fn outlives_boot(&self) -> bool;
}

/// `setting` on `host`.
pub(crate) fn live<'a>(setting: &'a Setting, host: &'a Host) -> Box<dyn Live + 'a> {
    let pin = |domain, pinned, scope: &Scope| Box::new(Pin { domain, pinned, scope: *scope, host });
    match setting {
        Setting::ModuleOption { module, parameter } => Box::new(module::Parameter { module, parameter, setting, host }),
        Setting::SysfsWrite { path } => Box::new(File::of_value(&host.sys, path)),
        Setting::Sysctl { path } => Box::new(File::of_value(&host.proc.join("sys"), path)),
        Setting::IrqAffinity { irq } => Box::new(File::of_interrupt(&host.proc, *irq)),
        Setting::TaskAffinity(thread) => Box::new(thread::Affinity { thread, host }),
        Setting::TaskPolicy(thread) => Box::new(thread::Policy { thread, host }),
        Setting::PmdMask => Box::new(polling::PmdMask),
        Setting::VcpuPin { domain, vcpu, scope } => pin(domain, Pinned::Vcpu(*vcpu), scope),
        Setting::EmulatorPin { domain, scope } => pin(domain, Pinned::Emulator, scope),
        Setting::IothreadPin { domain, iothread, scope } => pin(domain, Pinned::Iothread(*iothread), scope),
    }
}

/// A list of CPUs, which may be empty.
fn set(text: &str) -> Result<CpuSet, Error> {
    CpuSet::parse(text).ok_or_else(|| Error::Malformed(format!("`{}` is no CPU list", text.trim())))
}

fn list(text: &str) -> Result<CpuSet, Error> {
    set(text).and_then(|cpus| match cpus.is_empty() {
        true => Err(Error::Malformed(format!("`{}` is no CPU list", text.trim()))),
        false => Ok(cpus),
    })
}

/// True if both are lists of the same CPUs.
fn same_cpus(one: &str, other: &str) -> bool {
    CpuSet::parse(one).is_some_and(|cpus| Some(cpus) == CpuSet::parse(other))
}

/// The text of a file, without the end of its last line.
fn read(path: &Path) -> Result<String, Error> {
    let text = std::fs::read_to_string(path).map_err(|error| Error::io(path, error))?;
    Ok(text.trim_end().to_owned())
}
