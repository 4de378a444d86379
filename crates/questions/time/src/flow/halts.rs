//! What is known of halts where a trace has no exits: how KVM's own event says that each of them ended.

use base::number::{counted, duration, percent};
use facts::ledger::model::PartFlow;

/// What `kvm_vcpu_wakeup` tells by itself: how long KVM polled for each vCPU, and how long it slept.
pub(super) fn halts_sentence(part: &PartFlow) -> String {
    let wall_ns = part.window.length_ns();
    let of_thread = |(tid, [(polls, polled_ns), (sleeps, slept_ns)]): (&i32, &[(u64, u64); 2])| {
        let name = part.comms.get(tid).map_or_else(|| format!("thread {tid}"), |comm| format!("{comm} ({tid})"));
        // A poll that began before the trace counts whole.
        let share = (*polled_ns <= wall_ns)
            .then(|| format!(", {} of the trace", percent(*polled_ns as f64 / wall_ns.max(1) as f64)));
        let polled = format!(
            "polled {} for {} in all{}",
            counted(*polls, "time", "times"),
            duration(*polled_ns as f64),
            share.unwrap_or_default()
        );
        let slept = format!(
            "slept {} for {} in all, what it polled before counted",
            counted(*sleeps, "time", "times"),
            duration(*slept_ns as f64)
        );
        let did: Vec<String> = [(*polls, polled), (*sleeps, slept)]
            .into_iter()
            .filter(|(times, _)| *times > 0)
            .map(|(_, did)| did)
            .collect();
        format!("{name} {}", did.join(" and "))
    };
    let mut told: Vec<_> = part.halts.iter().collect();
    told.sort_by_key(|(tid, [(_, polled_ns), _])| (std::cmp::Reverse(*polled_ns), **tid));
    let mut said: Vec<String> = told.iter().take(MOST_HALTING).map(|(tid, halts)| of_thread((tid, halts))).collect();
    said.extend(
        told.len().checked_sub(MOST_HALTING).filter(|more| *more > 0).map(|more| format!("{more} more are not named")),
    );
    let polls = told.iter().any(|(_, [(polls, _), _])| *polls > 0);
    let price = if polls {
        " A vCPU that polls keeps a CPU of the host busy; KVM's parameter halt_poll_ns bounds each poll, and 0 ends them."
    } else {
        ""
    };
    if said.is_empty() { String::new() } else { format!(" Of halts it tells: {}.{price}", said.join("; ")) }
}

/// Threads of vCPUs that are named with their halts.
const MOST_HALTING: usize = 8;
