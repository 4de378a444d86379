//! Which processes run VMs, what are those called, and which threads have they?

use super::vm_named_in;
use crate::Snapshot;
use base::recording::{VmProcess, VmProcesses};

/// The processes of a snapshot, or of a machine that runs, that run VMs.
pub fn vm_processes(snapshot: &Snapshot) -> VmProcesses {
    let process = |pid: &String| {
        let tids = snapshot.names(&format!("proc/{pid}/task"));
        let tids = tids.into_iter().filter_map(|tid| tid.parse().ok()).collect();
        let command = snapshot.read(&format!("proc/{pid}/cmdline")).unwrap_or_default().replace('\0', " ");
        Some(VmProcess { pid: pid.parse().ok()?, vm: vm_named_in(&command), tids })
    };
    VmProcesses { vms: snapshot.vms().iter().filter_map(process).collect() }
}
