//! CPUs that KVM spends on polling for vCPUs that halted, by a limit that somebody raised: an idle guest then looks busy.

use super::strain::largest;
use crate::placement::model::Model;
use base::number::duration;
use base::{Cost, CostKind, Setting, Severity};
use facts::rule::Hit;
use host::machine::GaugeKind;

/// Part of all CPUs that polling must take to count: our own limit.
pub(in crate::placement) const POLLED: f64 = 0.1;

/// What the kernel begins with (`KVM_HALT_POLL_NS_DEFAULT`, arch/x86/include/asm/kvm_host.h, Linux 6.12).
pub(in crate::placement) const USUAL_NS: u64 = 200_000;

pub(crate) fn polling(model: &Model) -> Vec<Hit> {
    const FILE: &str = "module/kvm/parameters/halt_poll_ns";
    let (machine, cpus) = (&model.machine, model.machine.topology.online.len() as f64);
    let Some(polled) =
        largest(model, GaugeKind::HaltPolling).filter(|gauge| cpus > 0.0 && gauge.value >= POLLED * cpus)
    else {
        return Vec::new();
    };
    let now = machine.setting(&format!("sys/{FILE}")).and_then(|now| now.trim().parse::<u64>().ok());
    let Some(now) = now.filter(|now| *now > USUAL_NS) else { return Vec::new() };
    let title = format!(
        "KVM polls for halted vCPUs with {:.2} of {cpus} CPUs: halt_poll_ns is {now}, {} where the kernel has {}",
        polled.value,
        duration(now as f64),
        duration(USUAL_NS as f64)
    );
    let mut hit = Hit::new("halt_poll_ns", Severity::Medium, title);
    hit = hit.seen(format!("polling took {:.2} CPUs", polled.value), &polled.place);
    hit = hit.seen(format!("halt_poll_ns is {now}"), format!("sys/{FILE}"));
    hit.cost = Cost::of(CostKind::Measured, polled.value, "CPUs that polled for halted vCPUs");
    hit.changes = vec![Setting::SysfsWrite { path: FILE.into() }.change(USUAL_NS.to_string(), Some(now.to_string()))];
    vec![hit]
}
