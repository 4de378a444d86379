//! NICs and interrupts: where they are, where they go, how often they come.

use super::Samples;
use crate::machine::{Fact, Irq, Nic};
use crate::{Snapshot, paste};
use base::CpuSet;

/// Network devices but the loopback. A `numa_node` of -1 is unknown, not node 0.
pub(super) fn nics(snapshot: &Snapshot) -> Vec<Nic> {
    let one = |name: String| {
        let of = |file: &str| format!("sys/class/net/{name}/{file}");
        let number = |file: &str| snapshot.line(&of(file))?.parse::<i64>().ok();
        let node = number("device/numa_node").and_then(|node| u32::try_from(node).ok());
        let steered = snapshot.find(&of("queues/rx-*/rps_cpus"));
        let masks = steered.iter().filter_map(|path| CpuSet::parse_mask(&snapshot.line(path)?));
        let device = snapshot.link(&of("device"));
        let functions = number("device/sriov_numvfs").zip(number("device/sriov_totalvfs"));
        Nic {
            node: node.map(|node| Fact::new(node, of("device/numa_node"))),
            physical: device.is_some_and(|device| !device.contains("virtio")),
            lower: snapshot
                .names(&format!("sys/class/net/{name}"))
                .into_iter()
                .filter_map(|file| file.strip_prefix("lower_").map(str::to_owned))
                .collect(),
            irqs: snapshot.names(&of("device/msi_irqs")).into_iter().filter_map(|irq| irq.parse().ok()).collect(),
            rx_queues: steered.len() as u32,
            rps_cpus: masks.fold(CpuSet::default(), |all, mask| all.or(&mask)),
            virtual_functions: functions.map(|(now, most)| (now.max(0) as u32, most.max(0) as u32)),
            name,
            ..Nic::default()
        }
    };
    snapshot.names("sys/class/net").into_iter().filter(|name| name != "lo").map(one).collect()
}

/// Interrupts that came at least once, with their masks.
pub(super) fn irqs(samples: &Samples<'_>) -> Vec<Irq> {
    const FILE: &str = "proc/interrupts";
    let read = |text: String| paste::read(&[(FILE.to_owned(), text)]).irqs;
    let before = samples.both(FILE).map(|(first, _, span)| (read(first), span as f64 / 1e9));
    let mut irqs = samples.last.read(FILE).map(read).unwrap_or_default();
    irqs.retain(|irq| irq.counts.values().any(|count| *count > 0));
    for irq in &mut irqs {
        let of = |file: &str| format!("proc/irq/{}/{file}", irq.number);
        let set = |file: &str| CpuSet::parse(&samples.last.line(&of(file))?);
        irq.affinity = set("smp_affinity_list").map(|cpus| Fact::new(cpus, of("smp_affinity_list")));
        irq.effective = set("effective_affinity_list");
        if let Some((before, span_s)) = &before
            && let Some(old) = before.iter().find(|old| old.number == irq.number)
        {
            let rate = |(cpu, count): (&u32, &u64)| {
                let came = count.saturating_sub(old.counts.get(cpu).copied().unwrap_or(0));
                (came > 0).then_some((*cpu, came as f64 / span_s))
            };
            irq.per_s = irq.counts.iter().filter_map(rate).collect();
        }
    }
    irqs
}
