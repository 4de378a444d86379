//! KVM's own thread that makes small pages of guests large again, where a trace shows that it took a CPU from a vCPU.

use crate::signs::{Preemptor, Scene};
use base::number::duration;
use base::{Level, Severity};
use facts::rule::Hit;

/// How the thread is called: a name has fifteen letters (arch/x86/kvm/mmu/mmu.c, Linux 6.12).
const NAME: &str = "kvm-nx-lpage-re";

/// It took a CPU for so long at once from which a real-time guest feels it: our own threshold.
pub(in crate::signs) const LONG_NS: u64 = 100_000;

/// It comes back each period: once may be anything, such as a VM that began. Our own threshold.
pub(in crate::signs) const AGAIN: u64 = 2;

const RATIO: &str = "sys/module/kvm/parameters/nx_huge_pages_recovery_ratio";
const PERIOD: &str = "sys/module/kvm/parameters/nx_huge_pages_recovery_period_ms";

pub(in crate::signs) fn pages(scene: &Scene<'_>) -> Vec<Hit> {
    let own = scene
        .preemptors
        .iter()
        .filter(|taken| taken.name.starts_with(NAME) && taken.longest_ns >= LONG_NS && taken.count >= AGAIN);
    own.max_by_key(|taken| taken.longest_ns).map(|taken| hit(scene, taken)).into_iter().collect()
}

fn hit(scene: &Scene<'_>, taken: &Preemptor) -> Hit {
    let title = format!(
        "KVM's recovery of huge pages ({}) took the CPU of vCPU {} for up to {} at once, {} in all",
        taken.name,
        taken.vcpu,
        duration(taken.longest_ns as f64),
        duration(taken.total_ns as f64)
    );
    let mut hit = Hit::new(taken.name.as_str(), Severity::High, title);
    hit.level = Some(Level::L0);
    hit = hit.seen(
        format!(
            "{} (thread {}) ran while vCPU {} was runnable, {} times",
            taken.name, taken.tid, taken.vcpu, taken.count
        ),
        "the trace's sched_switch",
    );
    let setting = |path: &str| scene.models.iter().find_map(|model| model.machine.settings.get(path));
    let number = |path: &str| setting(path).and_then(|told| told.value.trim().parse::<u64>().ok());
    for path in [RATIO, PERIOD] {
        if let Some(told) = setting(path) {
            hit = hit.seen(format!("/{path} is {}", told.value), &told.place);
        }
    }
    // Without a period of its own it goes through a part of the pages so often that all of them take an hour.
    if let (Some(ratio @ 1..), Some(0)) = (number(RATIO), number(PERIOD)) {
        let what =
            format!("period 0 is an hour divided by the ratio: it runs each {}", duration(3_600e9 / ratio as f64));
        hit = hit.seen(what, "mmu.c, calc_nx_huge_pages_recovery_period");
    }
    let file = format!("/{RATIO}");
    let before = setting(RATIO).map(|told| told.value.trim().to_owned());
    if before.is_none() {
        hit.fix.push(format!("cat {file}   # for undo: what it is now"));
    }
    hit.fix.push(format!("echo 0 > {file}   # it no longer runs; pages that were split stay small until the VM ends"));
    hit.undo.push(match before {
        Some(before) => format!("echo {before} > {file}"),
        None => format!("echo RATIO > {file}   # RATIO: what cat printed before"),
    });
    hit
}
