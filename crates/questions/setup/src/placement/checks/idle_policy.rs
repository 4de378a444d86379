//! VMs with the policy SCHED_IDLE: their vCPUs run where nobody else wants the CPU, whatever their groups weigh.

use crate::placement::model::Model;
use base::shell::quoted;
use base::{Evidence, Needs, Setting};
use facts::rule::Hit;
use host::machine::{Role, Thread, unit_of};

/// Of include/uapi/linux/sched.h. A thread of this policy weighs 3 beside 1,024 of the usual one (`WEIGHT_IDLEPRIO`,
/// kernel/sched/sched.h, Linux 6.12).
const IDLE: u32 = 5;

fn is_idle(thread: &Thread) -> bool {
    thread.policy == Some(IDLE)
}

/// Whether a thread waits for another one because of its policy. Between groups that have weights these decide, and a policy counts
/// within its own group alone.
pub(super) fn yields(model: &Model, victim: &Thread, rival: &Thread) -> bool {
    is_idle(victim) && !is_idle(rival) && model.machine.parting(victim, rival).is_none()
}

/// The hit with what gives the vCPUs of a VM the usual policy, and where the one that they have comes from.
pub(super) fn as_usual(model: &Model, vm: &str, hit: &mut Hit) {
    let said = format!("; {vm} has the policy SCHED_IDLE: it gets what others leave");
    if hit.title.contains(&said) {
        return;
    }
    hit.title.push_str(&said);
    let threads: Vec<&Thread> = model.machine.threads_of(vm).filter(|thread| is_idle(thread)).collect();
    let place = |thread: &&Thread| thread.last_cpu.as_ref().map(|cpu| cpu.place.clone());
    let vcpus = threads.iter().filter(|thread| matches!(thread.role, Role::Vcpu(_))).count();
    hit.evidence.push(Evidence::new(
        format!("policy 5, SCHED_IDLE, of {vcpus} vCPUs of {vm}"),
        threads.first().and_then(place).unwrap_or_else(|| "proc/PID/task/TID/stat".to_owned()),
    ));
    let usual = |thread: &&Thread| Some(Setting::TaskPolicy(thread.id()?).change("other", Some("idle".to_owned())));
    hit.changes.extend(threads.iter().filter_map(usual));
    hit.needs = Some(Needs::Nothing);
    let domain = model.machine.domains.iter().find(|domain| domain.name == vm);
    if domain.is_some_and(|domain| domain.whole.is_some()) {
        let name = quoted(vm);
        hit.fix
            .push(format!("virsh edit {name}   # for its next start: <cputune> without <vcpusched scheduler='idle'>"));
        hit.undo.push(format!("virsh edit {name}   # <vcpusched> as it was"));
        return;
    }
    let unit = threads.iter().find_map(|thread| unit_of(thread.time_group.as_deref()?));
    if let Some(unit) = unit.filter(|unit| unit.ends_with(".service")).map(quoted) {
        hit.first.push(format!(
            "systemctl show -p CPUSchedulingPolicy {unit}   # idle: then it has it again from its next start"
        ));
    }
}
