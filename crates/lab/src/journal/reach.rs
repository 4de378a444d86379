//! What a step may touch: the kinds of places that this program changes, and nothing else.
//!
//! A step that names another place is refused when it is noted and when it is read, so that an entry can never say more
//! than a command of ours would have done.

use super::step::Step;
use crate::Error;
use std::path::{Component, Path, PathBuf};

/// What the names of tracing instances and LTTng sessions begin with.
const OURS: &str = "kvmscope-";

/// The host that steps belong to.
#[derive(Debug, Clone)]
pub(super) struct Reach {
    /// `/`, or the tree that a test stands in.
    pub(super) root: PathBuf,
}

impl Reach {
    /// Refuses a step of entry `id` that names a thing which no command of ours changes.
    pub(super) fn allow(&self, id: &str, step: &Step) -> Result<(), Error> {
        let allowed = match step {
            Step::TracefsInstance { path } => is_plain(path) && is_instance(path),
            Step::SysfsWrite { path, .. } => {
                self.below(path, "sys").is_some() || self.below(path, "proc/sys").is_some()
            }
            Step::CpuList { path, .. } => {
                let irq = self.below(path, "proc/irq").is_some_and(is_irq);
                irq || self.below(path, "sys").is_some() && path.ends_with("cpuset.cpus")
            }
            Step::LttngSession { name } => name.starts_with(OURS),
            Step::Mount { path } => *path == self.root.join("sys/kernel/tracing"),
            // Process 1 is never one that we started.
            Step::Process(owner) => owner.pid > 1,
            Step::NetNamespace { name } | Step::NicMoved { namespace: name, .. } => {
                name.strip_prefix(id).is_some_and(|role| role.starts_with('-'))
            }
            // Threads are held to their start times, names of domains and NICs are checked where programs are given them.
            Step::TaskAffinity { .. } | Step::TaskPolicy { .. } | Step::Pin { .. } | Step::PmdMask { .. } => true,
        };
        allowed.then_some(()).ok_or_else(|| Error::Unable(format!("{step} is not a change that kvmscope makes")))
    }

    /// What of `path` lies below that directory of the host.
    fn below<'a>(&self, path: &'a Path, directory: &str) -> Option<&'a Path> {
        path.strip_prefix(self.root.join(directory)).ok().filter(|below| is_plain(path) && below.file_name().is_some())
    }
}

/// True for a path that begins at the root and never climbs.
fn is_plain(path: &Path) -> bool {
    let plain = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::RootDir);
    path.is_absolute() && path.components().all(plain)
}

/// True for `.../instances/kvmscope-NAME`, wherever tracefs is mounted.
fn is_instance(path: &Path) -> bool {
    let named = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(OURS));
    named && path.parent().is_some_and(|above| above.ends_with("instances"))
}

/// True for `N/smp_affinity_list`.
fn is_irq(below: &Path) -> bool {
    let mut parts = below.iter();
    let number = parts.next().and_then(|number| number.to_str());
    number.is_some_and(|number| number.parse::<u32>().is_ok())
        && parts.next().is_some_and(|name| name == "smp_affinity_list")
        && parts.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_places_that_our_commands_change_are_within_reach() {
        let reach = Reach { root: PathBuf::from("/") };
        let write = |path: &str| Step::SysfsWrite { path: path.into(), old: "0".into(), new: "1".into() };
        let list = |path: &str| Step::CpuList { path: path.into(), old: "0".into(), new: "1".into() };
        let instance = |path: &str| Step::TracefsInstance { path: path.into() };
        let session = |name: &str| Step::LttngSession { name: name.into() };
        let namespace = |name: &str| Step::NetNamespace { name: name.into() };
        for step in [
            write("/sys/module/kvm/parameters/halt_poll_ns"),
            write("/proc/sys/kernel/sched_schedstats"),
            list("/proc/irq/9/smp_affinity_list"),
            list("/sys/fs/cgroup/machine.slice/cpuset.cpus"),
            instance("/sys/kernel/tracing/instances/kvmscope-7"),
            instance("/sys/kernel/debug/tracing/instances/kvmscope-7-1"),
            session("kvmscope-record-7-0"),
            Step::Mount { path: "/sys/kernel/tracing".into() },
            namespace("netns-7-0-client"),
        ] {
            assert!(reach.allow("netns-7-0", &step).is_ok(), "{step}");
        }
        for step in [
            write("/etc/passwd"),
            write("/sys/../etc/passwd"),
            write("sys/x"),
            write("/sys"),
            write("/proc/7/comm"),
            list("/proc/irq/../../etc/passwd"),
            list("/proc/irq/9/smp_affinity_list/x"),
            list("/proc/irq/all/smp_affinity_list"),
            list("/sys/module/kvm/parameters/halt_poll_ns"),
            instance("/home/me"),
            instance("/sys/kernel/tracing/instances/theirs"),
            instance("/sys/kernel/tracing/instances/kvmscope-7/.."),
            session("theirs"),
            Step::Mount { path: "/home".into() },
            namespace("netns-7-01"),
        ] {
            let error = reach.allow("netns-7-0", &step).unwrap_err().to_string();
            assert!(error.contains("not a change that kvmscope makes"), "{step}: {error}");
        }
    }
}
