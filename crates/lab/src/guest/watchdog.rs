//! Work that enters guests, in a thread of its own that is stopped when it takes too long.
//!
//! ```text
//! caller   waits for the end, at most `limit` --late--> sets `stop`, signals until the thread answers
//! thread   KVM_RUN, count the exit, again            --EINTR--> sees `stop`, returns
//! ```
//! The signal repeats, because one that arrives between looking at `stop` and entering the guest does nothing.

use crate::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;
use vmm_sys_util::signal::{Killable, SIGRTMIN, register_signal_handler};

/// Between two signals to a thread that should stop.
const SIGNAL_EVERY: Duration = Duration::from_millis(5);

/// After so many signals a thread is given up: KVM itself hangs, and no signal ends that.
const MOST_SIGNALS: u32 = 400;

/// Does `work`, which looks at the flag it is given whenever a system call was interrupted, and returns once it is set.
///
/// `None`: it was given up. Its thread and what that owns stay as they are.
pub fn watched<T: Send + 'static>(
    limit: Duration,
    work: impl FnOnce(&AtomicBool) -> T + Send + 'static,
) -> Result<Option<T>, Error> {
    extern "C" fn only_interrupt(_: i32, _: *mut libc::siginfo_t, _: *mut std::ffi::c_void) {}
    let refused = |what: &str, error: &dyn std::fmt::Display| Error::refused(format_args!("{what}"), error);
    register_signal_handler(SIGRTMIN(), only_interrupt).map_err(|error| refused("no watchdog signal", &error))?;
    let stop = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&stop);
    let (tell, ends) = channel();
    let thread = std::thread::Builder::new().name("test guest".to_owned()).spawn(move || {
        let done = work(&told);
        let _ = tell.send(()); // whoever gave this thread up does not listen
        done
    });
    let thread = thread.map_err(|error| refused("no thread for the test guest's vCPU", &error))?;
    if ends.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
        stop.store(true, Ordering::Relaxed);
        let stopped = (0..MOST_SIGNALS).any(|_| {
            let _ = thread.kill(SIGRTMIN()); // one that has just ended takes none, and says so by itself
            ends.recv_timeout(SIGNAL_EVERY).is_ok()
        });
        if !stopped {
            return Ok(None);
        }
    }
    let died = || Error::Died("the test guest's thread panicked; please report it".to_owned());
    thread.join().map(Some).map_err(|_| died())
}
