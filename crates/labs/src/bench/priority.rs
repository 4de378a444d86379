//! Real-time scheduling of a bench, on request: no ordinary thread takes its CPU then.
//!
//! ```text
//! the thread that watches  WATCHDOG   takes the CPU from a guest that does not end
//! the guest's vCPU         GUEST      takes it from every ordinary thread
//! ```
//! The kernel leaves ordinary threads 5 % of each second (/proc/sys/kernel/sched_rt_runtime_us). Source: sched(7).

use lab::Error;

/// The priority of a guest's vCPU.
pub const GUEST: i32 = 1;
/// That of the thread which stops it; the next one up is enough.
pub(crate) const WATCHDOG: i32 = 2;

/// Puts this thread, and those that it starts, under SCHED_FIFO.
///
/// # Errors
/// If the kernel does not allow it; the sentence says what would.
pub fn fifo(priority: i32) -> Result<(), Error> {
    fifo_of(0, priority)
}

/// The same of thread `tid`.
///
/// # Errors
/// As [`fifo`].
pub(crate) fn fifo_of(tid: i32, priority: i32) -> Result<(), Error> {
    let wanted = libc::sched_param { sched_priority: priority };
    // SAFETY: 0 is this thread, and the structure is ours.
    if unsafe { libc::sched_setscheduler(tid, libc::SCHED_FIFO, &wanted) } == 0 {
        return Ok(());
    }
    let error = std::io::Error::last_os_error();
    Err(Error::Denied(format!("the kernel refuses SCHED_FIFO: {error}; run as root, or leave --fifo out")))
}

/// Whether this process might, found out by a thread that ends at once.
///
/// # Errors
/// As [`fifo`].
pub fn allowed() -> Result<(), Error> {
    let tried = std::thread::spawn(|| fifo(WATCHDOG)).join();
    tried.unwrap_or_else(|_| Err(Error::Died("the thread that tries SCHED_FIFO panicked; please report it".to_owned())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trying_leaves_this_thread_as_it_was() {
        // SAFETY: 0 is this thread; nothing is changed.
        let policy = || unsafe { libc::sched_getscheduler(0) };
        let before = policy();
        match allowed() {
            Ok(()) => assert_eq!(
                std::thread::spawn(move || (fifo(GUEST).is_ok(), policy())).join().unwrap(),
                (true, libc::SCHED_FIFO)
            ),
            Err(error) => assert!(error.to_string().contains("--fifo"), "{error}"),
        }
        assert_eq!(policy(), before);
    }
}
