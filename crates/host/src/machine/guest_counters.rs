//! What a snapshot says of the time-stamp counters of a host's guests: KVM's files in debugfs.
//!
//! ```text
//! sys/kernel/debug/kvm/<pid>-<fd>/vcpuN/ pid  tsc-offset  tsc-scaling-ratio  tsc-scaling-ratio-frac-bits
//! ```
//! Recorders read them while they record, and look at `guest_mode` before and after ([`TscReading::is_own`]); a copy of the files
//! cannot tell whether a guest of the guest ran. Sources: arch/x86/kvm/debugfs.c, Linux 6.12; `pid` came with 5.18.

use super::Role;
use super::roles::role_of;
use crate::Snapshot;
use base::recording::{TscReading, TscScaling};
use std::str::FromStr;

/// Below it each VM has a directory, called after its process and a file of it.
const KVM: &str = "sys/kernel/debug/kvm";

/// The counters of all vCPUs whose offset the snapshot has.
pub fn guest_counters(snapshot: &Snapshot) -> Vec<TscReading> {
    let mut readings = Vec::new();
    for vm in snapshot.names(KVM) {
        let Some(pid) = vm.split_once('-').and_then(|(pid, _)| pid.parse().ok()) else { continue };
        for name in snapshot.names(&format!("{KVM}/{vm}")) {
            let Some(vcpu) = name.strip_prefix("vcpu").and_then(|number| number.parse().ok()) else { continue };
            readings.extend(reading(snapshot, &format!("{KVM}/{vm}/{name}"), (pid, vcpu)));
        }
    }
    readings
}

fn reading(snapshot: &Snapshot, directory: &str, (pid, vcpu): (i32, u32)) -> Option<TscReading> {
    let offset = Some(number(snapshot, directory, "tsc-offset")?);
    let ratio = number(snapshot, directory, "tsc-scaling-ratio");
    let scaling = ratio.zip(number(snapshot, directory, "tsc-scaling-ratio-frac-bits"));
    let scaling = scaling.map(|(ratio, frac_bits)| TscScaling { ratio, frac_bits });
    let tid = number(snapshot, directory, "pid").filter(|tid| *tid > 0).or_else(|| named(snapshot, pid, vcpu));
    Some(TscReading { pid, vcpu, tid, offset, scaling, is_own: false, error_ticks: None })
}

/// The thread that is called after the vCPU.
fn named(snapshot: &Snapshot, pid: i32, vcpu: u32) -> Option<i32> {
    let is_it = |tid: &String| {
        let comm = snapshot.read(&format!("proc/{pid}/task/{tid}/comm")).unwrap_or_default();
        role_of(&comm).is_some_and(|(role, _)| role == Role::Vcpu(vcpu))
    };
    snapshot.names(&format!("proc/{pid}/task")).iter().find(|tid| is_it(tid))?.parse().ok()
}

fn number<T: FromStr>(snapshot: &Snapshot, directory: &str, name: &str) -> Option<T> {
    snapshot.read(&format!("{directory}/{name}"))?.trim().parse().ok()
}
