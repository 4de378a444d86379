//! What does KVM itself say that it can do? `kvm.json` of a snapshot: answers to KVM_CHECK_EXTENSION.
//!
//! Meaning of each: Documentation/virt/kvm/api.rst, Linux 6.12. 0 is no; other numbers are answers of their own kind.

use crate::model::Seen;
use base::figure::Standing;
use host::Virtualization;
use host::snapshot::Content;

const FILE: &str = "kvm.json";

/// One answer; no row where KVM is not loaded.
fn answer(facts: &Virtualization, name: &str) -> Option<Seen> {
    if facts.is_loaded("kvm") == Some(false) {
        return None;
    }
    let text = match facts.snapshot.content(FILE) {
        Content::Text(text) => text,
        Content::Unreadable(why) => return Some(Seen::new(Standing::Unknown, format!("{FILE}: {why}"))),
        Content::Absent => return Some(Seen::new(Standing::Unknown, format!("{FILE} is not in the snapshot"))),
    };
    // One `"NAME": number` a line, as the snapshot writes it.
    let key = format!("\"{name}\":");
    let value =
        text.lines().find_map(|line| line.trim().strip_prefix(&key)?.trim().trim_end_matches(',').parse::<i64>().ok());
    Some(match value {
        Some(number) if number > 0 => Seen::new(Standing::On, format!("KVM_CAP_{name} is {number}")),
        Some(number) => Seen::new(Standing::Absent, format!("KVM_CAP_{name} is {number}")),
        None => Seen::new(Standing::Unknown, format!("{FILE} has no {name}")),
    })
}

/// The state of nested guests can be saved: live migration of guest hypervisors.
pub(super) fn nested_state(facts: &Virtualization) -> Option<Seen> {
    answer(facts, "NESTED_STATE")
}

/// HLT, PAUSE and MWAIT need not exit (`cpu-pm`).
pub(super) fn disable_exits(facts: &Virtualization) -> Option<Seen> {
    answer(facts, "X86_DISABLE_EXITS")
}

/// KVM's counters by vCPU, which `bench exits` reads.
pub(super) fn stats_fd(facts: &Virtualization) -> Option<Seen> {
    answer(facts, "BINARY_STATS_FD")
}

pub(super) fn dirty_ring(facts: &Virtualization) -> Option<Seen> {
    answer(facts, "DIRTY_LOG_RING")
}

/// The enlightened VMCS for guests that are Hyper-V.
pub(super) fn evmcs(facts: &Virtualization) -> Option<Seen> {
    answer(facts, "HYPERV_ENLIGHTENED_VMCS")
}

/// Counters by VM.
pub(super) fn pmu(facts: &Virtualization) -> Option<Seen> {
    answer(facts, "PMU_CAPABILITY")
}

/// The device itself, of KVM's one API version (12): who took the snapshot could open it.
pub(super) fn device(facts: &Virtualization) -> Option<Seen> {
    Some(match facts.snapshot.content(FILE) {
        Content::Text(_) => Seen::new(Standing::On, "/dev/kvm could be opened and responded"),
        Content::Unreadable(why) => Seen::new(Standing::Off, why),
        Content::Absent => Seen::new(Standing::Unknown, format!("{FILE} is not in the snapshot")),
    })
}
