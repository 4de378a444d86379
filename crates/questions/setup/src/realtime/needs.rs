//! Does this machine claim, or need, to keep real-time latencies? Ordinary hosts are not asked.

use super::host::{Host, is_real_time, set_apart};
use base::number::many;

/// Why the audit is made, as half sentences; of an ordinary host none.
pub(super) fn reasons(host: &Host<'_>, asked: &[String]) -> Vec<String> {
    let mut reasons = asked.to_vec();
    let apart = set_apart(host.machine);
    let on_apart = |thread: &&host::machine::Thread| {
        let set = thread.affinity.as_ref().map(|set| &set.value);
        set.is_some_and(|set| !set.is_empty() && set.is_within(&apart))
    };
    let vcpus = host.vcpus().filter(on_apart).count() as u64;
    if vcpus > 0 {
        reasons.push(format!("{} on isolated or tickless CPUs", many(vcpus, "vCPU")));
    }
    let vcpus = host.vcpus().filter(|thread| is_real_time(thread)).count() as u64;
    if vcpus > 0 {
        reasons.push(format!("{} with a real-time policy", many(vcpus, "vCPU")));
    }
    if is_preempt_rt(host) {
        reasons.push("a PREEMPT_RT kernel".to_owned());
    }
    reasons
}

/// `sys/kernel/realtime` is there since the first patches of PREEMPT_RT, the word in the version of each such kernel
/// (kernel/sysfs or init/Makefile, UTS_VERSION, Linux 6.12).
pub(super) fn is_preempt_rt(host: &Host<'_>) -> bool {
    let marked = host.last.line("sys/kernel/realtime").is_some_and(|value| value.trim() == "1");
    let version = host.last.line("proc/version").or_else(|| host.last.line("proc/sys/kernel/version"));
    marked || version.is_some_and(|version| version.split_whitespace().any(|word| word == "PREEMPT_RT"))
}
