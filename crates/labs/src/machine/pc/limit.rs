//! How does a guest end that does not leave to its VMM? A signal to the thread of its vCPU makes KVM_RUN return.

use lab::Error;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;
use vmm_sys_util::signal::{SIGRTMIN, register_signal_handler};

/// The signal repeats, because one that comes just before KVM_RUN does nothing.
const SIGNAL_EVERY: Duration = Duration::from_millis(20);

/// Does `run` in this thread; what it is given becomes true after `limit`, and then its system calls are interrupted.
///
/// # Errors
/// If no signal can be set up, or what `run` says.
pub(super) fn within<T>(
    limit: Option<Duration>,
    run: impl FnOnce(&AtomicBool) -> Result<T, Error>,
) -> Result<T, Error> {
    extern "C" fn only_interrupt(_: i32, _: *mut libc::siginfo_t, _: *mut std::ffi::c_void) {}
    let over = AtomicBool::new(false);
    let Some(limit) = limit else { return run(&over) };
    register_signal_handler(SIGRTMIN(), only_interrupt)
        .map_err(|error| Error::refused("no signal for the end of a guest", error))?;
    // SAFETY: this asks for the caller's own id, which is valid as long as this thread runs.
    let runner = unsafe { libc::pthread_self() };
    let (done, ends) = channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let ends = ends;
            let mut wait = limit;
            while ends.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
                over.store(true, Ordering::Relaxed);
                wait = SIGNAL_EVERY;
                // SAFETY: the runner waits for this thread before it leaves `within`.
                unsafe { libc::pthread_kill(runner, SIGRTMIN()) };
            }
        });
        let ran = run(&over);
        drop(done);
        ran
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_is_interrupted_and_told() {
        let told = within(Some(Duration::from_millis(10)), |over| {
            let (mut signals, forever) = (0, libc::timespec { tv_sec: 60, tv_nsec: 0 });
            while !over.load(Ordering::Relaxed) {
                // SAFETY: the time is a valid one, and nobody asks how much of it was left.
                signals += i32::from(unsafe { libc::nanosleep(&forever, std::ptr::null_mut()) } != 0);
            }
            Ok(signals)
        });
        assert_eq!(told.unwrap(), 1);
        assert!(!within(None, |over| Ok(over.load(Ordering::Relaxed))).unwrap());
    }
}
