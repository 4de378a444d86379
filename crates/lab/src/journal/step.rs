//! One step of an entry: a setting that is altered, or a thing that is made, and what reverts it.
//!
//! Every kind is idempotent: reverting what was never made, or is already gone, does nothing and succeeds.

use super::network::{self, Nic};
use super::owner::Owner;
use super::revert::{Reverted, destroy_session, end, remove_directory, remove_pipe, remove_tree, unmount};
use crate::setting::{Altered, Host};
use base::shell::printable;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::PathBuf;

/// One change of a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// A setting was altered; what held is set again, unless somebody else changed it meanwhile.
    Setting(Altered),
    /// A tracing instance was made; it is removed, and with it its buffers and its events.
    TracefsInstance {
        /// Below `<tracefs>/instances`.
        path: PathBuf,
    },
    /// A process was started; it is ended.
    Process(Owner),
    LttngSession {
        name: String,
    },
    /// The tracing file system was mounted; it is unmounted, unless somebody uses it by now.
    Mount {
        path: PathBuf,
    },
    TriggerPipe {
        path: PathBuf,
    },
    /// A directory for sockets and files of programs that we started was made; it is removed with all that lies in it.
    RunDirectory {
        path: PathBuf,
    },
    NetNamespace {
        name: String,
    },
    /// A control group was made; it is removed once its processes have ended.
    ControlGroup {
        /// Below `/sys/fs/cgroup`.
        path: PathBuf,
    },
    /// A NIC was moved into a namespace; it is moved back, and gets its addresses and routes again.
    NicMoved {
        nic: Nic,
        namespace: String,
    },
}

impl Step {
    /// True if both alter the same setting, from and to whatever.
    pub fn is_of_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Step::Setting(one), Step::Setting(other)) => one.setting.is_same(&other.setting),
            (one, other) => one == other,
        }
    }

    /// True if a reboot leaves what was changed: files, also those in which libvirt and Open vSwitch keep settings.
    pub(super) fn outlives_boot(&self, host: &Host) -> bool {
        match self {
            Step::Setting(altered) => altered.outlives_boot(host),
            Step::TriggerPipe { .. } | Step::RunDirectory { .. } => true,
            Step::TracefsInstance { .. }
            | Step::Process(_)
            | Step::LttngSession { .. }
            | Step::Mount { .. }
            | Step::NetNamespace { .. }
            | Step::ControlGroup { .. }
            | Step::NicMoved { .. } => false,
        }
    }

    /// True if several programs may note the same step, each for as long as it needs what was made.
    pub(super) fn is_shared(&self) -> bool {
        matches!(self, Step::Mount { .. })
    }

    /// True if the step is about a process or thread, by its id.
    pub(super) fn names_process(&self) -> bool {
        match self {
            Step::Setting(altered) => altered.setting.thread().is_some(),
            Step::Process(_) => true,
            Step::TracefsInstance { .. }
            | Step::LttngSession { .. }
            | Step::Mount { .. }
            | Step::TriggerPipe { .. }
            | Step::RunDirectory { .. }
            | Step::NetNamespace { .. }
            | Step::ControlGroup { .. }
            | Step::NicMoved { .. } => false,
        }
    }

    /// Puts back what the step changed.
    pub fn revert(&self, host: &Host) -> Reverted {
        match self {
            Step::Setting(altered) => altered.put_back(host),
            Step::TracefsInstance { path } | Step::ControlGroup { path } => remove_directory(path),
            Step::NetNamespace { name } => network::delete(name),
            Step::NicMoved { nic, namespace } => network::move_back(nic, namespace),
            Step::Process(owner) => end(*owner, &host.proc),
            Step::LttngSession { name } => destroy_session(name),
            Step::Mount { path } => unmount(path, &host.proc),
            Step::TriggerPipe { path } => remove_pipe(path),
            Step::RunDirectory { path } => remove_tree(path),
        }
    }

    /// What was changed, in a line.
    fn words(&self) -> String {
        match self {
            Step::Setting(altered) => altered.to_string(),
            Step::TracefsInstance { path } => format!("tracing instance {}", path.display()),
            Step::NetNamespace { name } => format!("network namespace {name}"),
            Step::ControlGroup { path } => format!("control group {}", path.display()),
            Step::NicMoved { nic, namespace } => format!("NIC {} in namespace {namespace}", nic.name),
            Step::Process(owner) => format!("process {}", owner.pid),
            Step::LttngSession { name } => format!("LTTng session {name}"),
            Step::Mount { path } => format!("tracing file system mounted at {}", path.display()),
            Step::TriggerPipe { path } => format!("named pipe {}", path.display()),
            Step::RunDirectory { path } => format!("directory {}", path.display()),
        }
    }
}

impl fmt::Display for Step {
    /// Control characters, which a name may have, are written out.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&printable(&self.words()))
    }
}
