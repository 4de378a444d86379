//! How two threads that want the same CPU are taken apart, where a snapshot shows on which CPUs each may run.

use super::kernel_threads;
use super::ledger::model::PartFlow;
use base::setting::ThreadId;
use base::{Change, CpuSet, Setting};

/// Programs that record: what they take from a vCPU ends with the recording.
const RECORDERS: &[&str] = &["kvmscope", "trace-cmd", "perf", "lttng-consumerd", "lttng-sessiond"];

/// Whether a thread is gone, or will be when the recording ends: nothing has to be done about it.
pub fn ends_by_itself(part: &PartFlow, tid: i32) -> bool {
    part.gone.contains(&tid) || part.comms.get(&tid).is_some_and(|name| RECORDERS.contains(&name.as_str()))
}

/// The CPUs on which a thread may run, where a snapshot says it.
pub fn affinity(part: &PartFlow, tid: i32) -> Option<&CpuSet> {
    Some(&part.threads.get(&tid)?.affinity.as_ref()?.value)
}

/// With the masks of both known: the rival leaves the CPUs of the other, unless the kernel binds it to them; else the other leaves
/// its own that the rival may use. `None` if neither can: then all threads have to be placed together.
pub fn apart(part: &PartFlow, (own, own_cpus): (i32, &CpuSet), (rival, cpus): (i32, &CpuSet)) -> Option<Change> {
    let moved = |tid: i32, from: &CpuSet, to: CpuSet| {
        let thread = part.threads.get(&tid).filter(|_| !to.is_empty())?;
        let comm = Some(thread.name.clone());
        let thread = ThreadId { tid, start_ticks: thread.start_ticks, comm };
        Some(Setting::TaskAffinity(thread).change(to.to_string(), Some(from.to_string())))
    };
    let is_bound = part.comms.get(&rival).is_some_and(|name| kernel_threads::is_bound(name));
    let rival_leaves = || moved(rival, cpus, cpus.without(own_cpus)).filter(|_| !is_bound);
    rival_leaves().or_else(|| moved(own, own_cpus, own_cpus.without(cpus)))
}
