//! How two threads that want the same CPU, or a thread and a device's interrupt, are taken apart, where a snapshot shows on which CPUs
//! each may run.

use super::ledger::model::PartFlow;
use base::setting::ThreadId;
use base::{Change, CpuSet, Setting};
use host::machine::Irq;
use walk::kernel_threads;

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

/// An interrupt leaves these CPUs; `None` where it does not come to them, has no others, or the kernel manages its CPUs itself.
pub fn interrupt_leaves(irq: &Irq, cpus: &CpuSet) -> Option<Change> {
    let asked = &irq.affinity.as_ref()?.value;
    let rest = asked.without(cpus);
    let moves = asked.meets(cpus) && !rest.is_empty() && !irq.is_managed();
    moves.then(|| Setting::IrqAffinity { irq: irq.number }.change(rest.to_string(), Some(asked.to_string())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use host::machine::Fact;

    #[test]
    fn an_interrupt_leaves_for_the_rest_of_its_cpus_if_it_has_one_and_may() {
        let irq = |name: &str, asked: Option<&str>| Irq {
            number: 24,
            name: name.into(),
            affinity: asked.map(|asked| Fact { value: CpuSet::parse(asked).unwrap(), place: String::new() }),
            effective: None,
            node: None,
            per_s: Default::default(),
            counts: Default::default(),
        };
        let leaves = |name: &str, asked: Option<&str>| {
            let change = interrupt_leaves(&irq(name, asked), &CpuSet::parse("2-3").unwrap())?;
            Some((change.command(), change.undo()))
        };
        let moved = ("echo 0-1 > /proc/irq/24/smp_affinity_list", "echo 0-3 > /proc/irq/24/smp_affinity_list");
        assert_eq!(leaves("eth0-rx-0", Some("0-3")), Some((moved.0.to_owned(), Some(moved.1.to_owned()))));
        for (name, asked) in
            [("eth0-rx-0", Some("0-1")), ("eth0-rx-0", Some("3")), ("eth0-rx-0", None), ("nvme0q1", Some("0-3"))]
        {
            assert_eq!(leaves(name, asked), None, "{name} {asked:?}");
        }
    }
}
