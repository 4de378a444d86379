//! Which threads of the kernel stay where they are?

/// The kernel refuses another CPU for threads whose names begin so (`PF_NO_SETAFFINITY`: kernel/smpboot.c, kernel/workqueue.c,
/// Linux 6.12).
const BOUND: &[&str] = &["ksoftirqd/", "migration/", "kworker/", "rcuc/", "cpuhp/", "irq_work/", "idle_inject/"];

/// Whether a thread of this name cannot be moved.
pub fn is_bound(name: &str) -> bool {
    BOUND.iter().any(|bound| name.starts_with(bound))
}
