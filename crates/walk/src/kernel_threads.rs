//! Which threads of the kernel stay where they are?

/// The kernel refuses another CPU for threads whose names begin so (`PF_NO_SETAFFINITY`: kernel/smpboot.c, kernel/softirq.c, kernel/workqueue.c,
/// Linux 6.12; kidle_inj: drivers/thermal/intel/intel_powerclamp.c, Linux 6.1; watchdog: kernel/watchdog.c, Linux 4.14).
const BOUND: &[&str] = &[
    "ksoftirqd/",
    "migration/",
    "kworker/",
    "rcuc/",
    "cpuhp/",
    "irq_work/",
    "idle_inject/",
    "kidle_inj/",
    "ktimers/",
    "watchdog/",
];

/// Whether a thread of this name cannot be moved by itself.
pub fn is_bound(name: &str) -> bool {
    BOUND.iter().any(|bound| name.starts_with(bound)) || handles(name).is_some()
}

/// The interrupt whose handler a thread of this name runs: `irq/34-eth0`. It goes where its interrupt may go: any other mask
/// is taken from it again (`irq_thread_check_affinity`, kernel/irq/manage.c, Linux 6.12).
pub fn handles(name: &str) -> Option<u32> {
    name.strip_prefix("irq/")?.split_once('-')?.0.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handler_belongs_to_its_interrupt() {
        assert_eq!((handles("irq/34-eth0"), handles("irq/x-y"), handles("irq_work/0")), (Some(34), None, None));
        assert!(
            is_bound("irq/34-eth0") && is_bound("ksoftirqd/0") && is_bound("kidle_inj/3") && !is_bound("irqbalance")
        );
    }
}
