//! What a step may touch: the kinds of places that this program changes, and nothing else.
//!
//! A step that names another place is refused when it is noted and when it is read, so that an entry can never say more
//! than a command of ours would have done.

use super::step::Step;
use crate::Error;
use crate::trigger::TRIGGER;
use base::Setting;
use base::setting::Scope;
use std::path::{Component, Path, PathBuf};

/// What the names of tracing instances, control groups and LTTng sessions begin with.
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
            Step::Setting(altered) => is_set_by_us(&altered.setting),
            Step::ControlGroup { path } => is_plain(path) && is_group(path, &self.root),
            Step::LttngSession { name } => name.starts_with(OURS),
            Step::Mount { path } => *path == self.root.join("sys/kernel/tracing"),
            Step::RunDirectory { path } => path.parent() == Some(&self.root.join("run")) && is_ours(path),
            Step::TriggerPipe { path } => is_plain(path) && path.file_name() == Some(TRIGGER.as_ref()),
            // Process 1 is never one that we started.
            Step::Process(owner) => owner.pid > 1,
            Step::NetNamespace { name } | Step::NicMoved { namespace: name, .. } => {
                name.strip_prefix(id).is_some_and(|role| role.starts_with('-'))
            }
        };
        allowed.then_some(()).ok_or_else(|| Error::Denied(format!("{step} is not a change that kvmscope makes")))
    }
}

/// True if it is a setting that commands of ours change, named so that it can be nothing else.
fn is_set_by_us(setting: &Setting) -> bool {
    match setting {
        Setting::SysfsWrite { path } | Setting::Sysctl { path } => {
            !path.is_empty() && Path::new(path).components().all(|part| matches!(part, Component::Normal(_)))
        }
        // Ids are given to new threads again.
        Setting::TaskAffinity(thread) | Setting::TaskPolicy(thread) => thread.tid > 0 && thread.start_ticks.is_some(),
        Setting::IrqAffinity { .. } | Setting::PmdMask => true,
        // Names of domains are checked where programs are given them. Each scope has values of its own.
        Setting::VcpuPin { scope, .. } | Setting::EmulatorPin { scope, .. } | Setting::IothreadPin { scope, .. } => {
            *scope != Scope::Both
        }
        Setting::ModuleOption { .. } => false,
    }
}

/// True for a path that begins at the root and never climbs.
fn is_plain(path: &Path) -> bool {
    let plain = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::RootDir);
    path.is_absolute() && path.components().all(plain)
}

/// True for a path whose last name is `kvmscope-NAME`.
fn is_ours(path: &Path) -> bool {
    is_plain(path) && path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(OURS))
}

/// True for `.../kvmscope-NAME` where control groups are mounted.
fn is_group(path: &Path, root: &Path) -> bool {
    is_ours(path) && path.starts_with(root.join("sys/fs/cgroup"))
}

/// True for `.../instances/kvmscope-NAME`, wherever tracefs is mounted.
fn is_instance(path: &Path) -> bool {
    is_ours(path) && path.parent().is_some_and(|above| above.ends_with("instances"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setting::Altered;
    use base::setting::ThreadId;

    #[test]
    fn only_the_places_that_our_commands_change_are_within_reach() {
        let reach = Reach { root: PathBuf::from("/") };
        let set = |setting| Step::Setting(Altered { setting, old: "0".into(), new: "1".into(), was_unset: false });
        let write = |path: &str| set(Setting::SysfsWrite { path: path.into() });
        let sysctl = |path: &str| set(Setting::Sysctl { path: path.into() });
        let thread = |tid, start_ticks| set(Setting::TaskPolicy(ThreadId { tid, start_ticks, comm: None }));
        let instance = |path: &str| Step::TracefsInstance { path: path.into() };
        let session = |name: &str| Step::LttngSession { name: name.into() };
        let pipe = |path: &str| Step::TriggerPipe { path: path.into() };
        let group = |path: &str| Step::ControlGroup { path: path.into() };
        let namespace = |name: &str| Step::NetNamespace { name: name.into() };
        let directory = |path: &str| Step::RunDirectory { path: path.into() };
        for step in [
            write("module/kvm/parameters/halt_poll_ns"),
            write("fs/cgroup/machine.slice/cpuset.cpus"),
            sysctl("kernel/sched_schedstats"),
            thread(7, Some(1)),
            set(Setting::IrqAffinity { irq: 9 }),
            set(Setting::EmulatorPin { domain: "web".into(), scope: Scope::Live }),
            instance("/sys/kernel/tracing/instances/kvmscope-7"),
            instance("/sys/kernel/debug/tracing/instances/kvmscope-7-1"),
            session("kvmscope-record-7-0"),
            group("/sys/fs/cgroup/cpu/user.slice/kvmscope-rt-7-0"),
            Step::Mount { path: "/sys/kernel/tracing".into() },
            pipe("/home/me/web/trigger"),
            namespace("netns-7-0-client"),
            directory("/run/kvmscope-ovs-7-0"),
        ] {
            assert!(reach.allow("netns-7-0", &step).is_ok(), "{step}");
        }
        for step in [
            write("/etc/passwd"),
            write("../etc/passwd"),
            write("a/../../etc/passwd"),
            write("./x"),
            write(""),
            sysctl("/etc/passwd"),
            sysctl("../7/comm"),
            sysctl(""),
            thread(7, None),
            thread(-7, Some(1)),
            set(Setting::emulator_pin("web")),
            set(Setting::ModuleOption { module: "kvm".into(), parameter: "x".into() }),
            instance("/home/me"),
            instance("/sys/kernel/tracing/instances/theirs"),
            instance("/sys/kernel/tracing/instances/kvmscope-7/.."),
            session("theirs"),
            group("/sys/fs/cgroup/cpu/theirs"),
            group("/sys/fs/cgroup/cpu/kvmscope-7/../theirs"),
            group("/home/kvmscope-7"),
            Step::Mount { path: "/home".into() },
            pipe("/run/initctl"),
            pipe("web/trigger"),
            pipe("/home/me/../trigger"),
            namespace("netns-7-01"),
            directory("/run/openvswitch"),
            directory("/run/kvmscope-7/.."),
            directory("/run/kvmscope-7/db"),
            directory("/home/kvmscope-7"),
        ] {
            let error = reach.allow("netns-7-0", &step).unwrap_err().to_string();
            assert!(error.contains("not a change that kvmscope makes"), "{step}: {error}");
        }
    }
}
