//! Who has the memory that VMs lack: processes of no VM, by what `status` says of each, and the limits of their groups.
//!
//! Sources: Documentation/filesystems/proc.rst (status, VmRSS), Documentation/admin-guide/cgroup-v2.rst (memory.current, memory.high,
//! memory.max), Linux 6.12.

use super::tasks::cgroup;
use crate::Snapshot;
use crate::machine::{Fact, GaugeKind, Holder, Machine};
use std::collections::BTreeSet;

/// How many are kept.
const MOST: usize = 3;

/// The processes with most memory and what bounds their groups, where memory goes to a disk and back.
pub(super) fn add(snapshot: &Snapshot, machine: &mut Machine) {
    if !machine.gauges.iter().any(|gauge| matches!(gauge.kind, GaugeKind::SwappedIn | GaugeKind::SwappedOut)) {
        return;
    }
    let of_vms: BTreeSet<i32> =
        machine.threads.iter().filter(|thread| thread.vm.is_some()).filter_map(|thread| thread.pid).collect();
    let pids = snapshot.names("proc").into_iter().filter_map(|name| name.parse::<i32>().ok());
    let mut holders: Vec<Holder> =
        pids.filter(|pid| !of_vms.contains(pid)).filter_map(|pid| holder(snapshot, pid)).collect();
    holders.sort_by_key(|holder| (std::cmp::Reverse(holder.resident.value), holder.pid));
    holders.truncate(MOST);
    for path in holders.iter().filter_map(|holder| holder.group.clone()).flat_map(|path| above(&path)) {
        for file in ["memory.current", "memory.high", "memory.max"] {
            let file = format!("sys/fs/cgroup{path}/{file}");
            if let Some(value) = snapshot.line(&file) {
                machine.settings.insert(file.clone(), Fact::new(value, file));
            }
        }
    }
    machine.holders = holders;
}

/// A process by its own `status`, else by that of its first thread, which says the same of its memory.
fn holder(snapshot: &Snapshot, pid: i32) -> Option<Holder> {
    let told = |file: String| {
        let text = snapshot.read(&file)?;
        let field = |key: &str| text.lines().find_map(|line| Some(line.strip_prefix(key)?.trim().to_owned()));
        let kib: u64 = field("VmRSS:")?.split_whitespace().next()?.parse().ok()?;
        Some((field("Name:")?, Fact::new(kib.checked_mul(1_024)?, file)))
    };
    let files = [format!("proc/{pid}/status"), format!("proc/{pid}/task/{pid}/status")];
    let (name, resident) = files.into_iter().find_map(told)?;
    let group = snapshot.read(&format!("proc/{pid}/cgroup")).and_then(|text| cgroup(&text, "memory"));
    Some(Holder { pid, name, resident, group })
}

/// A group and those above it.
fn above(path: &str) -> Vec<String> {
    let ends = path.match_indices('/').map(|(at, _)| at).filter(|at| *at > 0).chain([path.len()]);
    ends.map(|end| path[..end].to_owned()).filter(|path| path.len() > 1).collect()
}
