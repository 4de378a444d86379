//! Steps that alter a setting as earlier versions wrote them: such an entry is undone after an upgrade too.
//!
//! Files were named by their whole path there, and each kind of setting was a kind of step of its own.

use super::owner::Owner;
use super::step::Step;
use crate::setting::Altered;
use base::Setting;
use base::setting::{Scope, ThreadId};
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// A step of this version, or of one before.
#[derive(Deserialize)]
#[serde(untagged, expecting = "no kind of step that this version knows")]
pub(super) enum Written {
    Now(Step),
    Before(Earlier),
}

impl Written {
    /// The step on the host below `root`; else what it names that no version changed.
    pub(super) fn step(self, root: &Path) -> Result<Step, String> {
        match self {
            Written::Now(step) => Ok(step),
            Written::Before(earlier) => earlier.altered(root).map(Step::Setting),
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Earlier {
    SysfsWrite { path: PathBuf, old: String, new: String },
    CpuList { path: PathBuf, old: String, new: String },
    TaskAffinity { thread: Owner, name: String, old: String, new: String },
    TaskPolicy { thread: Owner, name: String, old: String, new: String },
    Pin { pin: Pin, old: String, new: String, had_element: bool },
    PmdMask { old: String, new: String },
}

#[derive(Deserialize)]
pub(super) struct Pin {
    domain: String,
    pinned: Pinned,
    scope: Scope,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Pinned {
    Vcpu(u32),
    Emulator,
    Iothread(u32),
}

impl Earlier {
    fn altered(self, root: &Path) -> Result<Altered, String> {
        let below = |path: &Path, directory: &str| {
            let below = path.strip_prefix(root.join(directory)).ok()?.to_str()?;
            (!below.is_empty()).then(|| below.to_owned())
        };
        let unknown = |path: &Path| format!("{} is not a file that kvmscope changes", path.display());
        let thread = |thread: Owner, comm: String| {
            let tid = i32::try_from(thread.pid).map_err(|_| format!("{} is not a thread id", thread.pid))?;
            Ok::<_, String>(ThreadId { tid, start_ticks: Some(thread.start_ticks), comm: Some(comm) })
        };
        let mut was_unset = false;
        let (setting, old, new) = match self {
            Earlier::SysfsWrite { path, old, new } => {
                let sysfs = below(&path, "sys").map(|path| Setting::SysfsWrite { path });
                let sysctl = || below(&path, "proc/sys").map(|path| Setting::Sysctl { path });
                (sysfs.or_else(sysctl).ok_or_else(|| unknown(&path))?, old, new)
            }
            Earlier::CpuList { path, old, new } => {
                let number = |below: String| below.strip_suffix("/smp_affinity_list")?.parse().ok();
                let irq = below(&path, "proc/irq").and_then(number).map(|irq| Setting::IrqAffinity { irq });
                let group = || below(&path, "sys").filter(|below| Path::new(below).ends_with("cpuset.cpus"));
                let group = || group().map(|path| Setting::SysfsWrite { path });
                (irq.or_else(group).ok_or_else(|| unknown(&path))?, old, new)
            }
            Earlier::TaskAffinity { thread: owner, name, old, new } => {
                (Setting::TaskAffinity(thread(owner, name)?), old, new)
            }
            Earlier::TaskPolicy { thread: owner, name, old, new } => {
                (Setting::TaskPolicy(thread(owner, name)?), old, new)
            }
            Earlier::Pin { pin: Pin { domain, pinned, scope }, old, new, had_element } => {
                was_unset = scope == Scope::Config && !had_element;
                let setting = match pinned {
                    Pinned::Vcpu(vcpu) => Setting::VcpuPin { domain, vcpu, scope },
                    Pinned::Emulator => Setting::EmulatorPin { domain, scope },
                    Pinned::Iothread(iothread) => Setting::IothreadPin { domain, iothread, scope },
                };
                (setting, old, new)
            }
            Earlier::PmdMask { old, new } => (Setting::PmdMask, old, new),
        };
        Ok(Altered { setting, old, new, was_unset })
    }
}
