//! Interrupts on CPUs that were set aside from them, where two looks tell how often they come.

use super::place::managed;
use crate::placement::culprits::MANY_PER_S;
use crate::placement::model::Model;
use base::number::rate;
use base::{CpuSet, Severity};
use facts::rule::Hit;
use host::machine::Irq;

/// Timer interrupts a second from which a CPU's tick runs: that of the slowest kernels (CONFIG_HZ_100).
pub(in crate::placement) const TICKING: f64 = 90.0;

/// Interrupts of devices that come often to isolated CPUs without a known vCPU, whose own are PLC-IRQ's; and ticks that nohz_full was to stop.
pub(crate) fn interrupts(model: &Model) -> Vec<Hit> {
    let topology = &model.machine.topology;
    let of_vcpus = model.of_vcpus();
    let apart = topology.isolated.clone().unwrap_or_default().without(&of_vcpus);
    let mut hits: Vec<Hit> = model.machine.irqs.iter().filter_map(|irq| often(model, irq, &apart)).collect();
    let told = model.machine.timer_interrupts.as_ref().zip(topology.nohz_full.as_ref());
    for ((cpu, often), place) in told.into_iter().flat_map(|(told, full)| {
        told.value
            .iter()
            .filter(|(cpu, often)| full.contains(**cpu) && **often >= TICKING)
            .map(|one| (one, &told.place))
    }) {
        let title = format!("CPU {cpu} is in nohz_full, and its timer interrupts it {} times per second", rate(*often));
        let mut hit = Hit::new(format!("tick of CPU {cpu}"), Severity::Low, title)
            .seen(format!("LOC {} a second on CPU {cpu}", rate(*often)), place);
        hit.fix.push(format!(
            "trace-cmd record -e timer:tick_stop -e timer:hrtimer_expire_entry -M {} sleep 5; trace-cmd report   # what keeps the tick: a second task there, a \
             timer, perf; or timers of a guest that KVM emulates",
            mask(*cpu)
        ));
        hit.fix.push(format!(
            "ps -eLo psr,cls,pcpu,comm | awk '$1 == {cpu} && $3 > 0'   # two that are ready at once need the tick"
        ));
        hits.push(hit);
    }
    hits
}

/// The mask of one CPU, as trace-cmd takes it.
fn mask(cpu: u32) -> String {
    let zeros = "0".repeat(cpu as usize / 4);
    format!("{:x}{zeros}", 1_u32 << (cpu % 4))
}

fn often(model: &Model, irq: &Irq, apart: &CpuSet) -> Option<Hit> {
    let there = irq.per_s.iter().filter(|(cpu, often)| apart.contains(**cpu) && **often >= MANY_PER_S);
    let (cpu, often) = there.max_by(|one, other| one.1.total_cmp(other.1))?;
    let title = format!(
        "isolated CPU {cpu} is interrupted {} times per second by {} (interrupt {})",
        rate(*often),
        irq.name,
        irq.number
    );
    let mut hit = Hit::new(format!("irq{}", irq.number), Severity::Medium, title)
        .seen(format!("{} a second on CPU {cpu}", rate(*often)), "proc/interrupts")
        .seen(format!("isolated: {apart}"), "proc/cmdline");
    let rest = model.machine.topology.online.without(model.machine.topology.isolated.as_ref()?);
    if irq.is_managed() {
        hit.fix.push(managed(irq.number));
    } else if !rest.is_empty() {
        let file = format!("/proc/irq/{}/smp_affinity_list", irq.number);
        hit.fix.push(format!(
            "cat {file}; echo {rest} > {file}   # the CPUs that are not isolated; irqbalance would move it back"
        ));
        hit.undo.push(format!("echo {cpu} > {file}   # or what it had"));
    }
    Some(hit)
}
