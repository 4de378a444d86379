//! Long work on a thread of its own, so that Python stays alive: other Python threads run, and Ctrl-C ends the wait.
//!
//! ```text
//! caller    ---start---wait, 50 ms at a time, without Python's lock; signals in between---> result, or KeyboardInterrupt
//! thread       \---work--[heard: bytes read]--[heard: stopped?]-->
//! ```
//! An interrupted walk ends when it next says how far it is: it unwinds, and what it would have computed stays uncomputed
//! (a `OnceLock` that was being filled is empty again). Readers of traces end their own threads when that happens.

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How long a signal may wait: shorter than anybody notices, and long enough to cost nothing.
pub(crate) const TICK: Duration = Duration::from_millis(50);

thread_local! {
    /// Says that the work of this thread is no longer wanted.
    static STOP: RefCell<Option<Stop>> = const { RefCell::new(None) };
}

/// Says that a walk is no longer wanted, from any thread.
#[derive(Clone, Default)]
pub(crate) struct Stop(Arc<AtomicBool>);

impl Stop {
    /// It is no longer wanted.
    pub(crate) fn stop(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// From now on this thread's walks end when it is said.
    pub(crate) fn heed(self) {
        STOP.set(Some(self));
    }
}

/// What an interrupted walk unwinds with.
struct Stopped;

/// What `work` returns; Python's signals are looked at meanwhile.
///
/// # Errors
/// The exception of a signal's handler, such as `KeyboardInterrupt`.
pub(crate) fn run<T: Send + 'static>(py: Python<'_>, work: impl FnOnce() -> T + Send + 'static) -> PyResult<T> {
    let (stop, (done, result)) = (Stop::default(), sync_channel(1));
    let heard = stop.clone();
    let thread = std::thread::Builder::new().name("kvmscope".to_owned()).spawn(move || {
        heard.heed();
        // Whoever waited may have left.
        let _ = done.send(catch_unwind(AssertUnwindSafe(work)));
    });
    thread.map_err(|error| PyRuntimeError::new_err(format!("no thread can be started: {error}")))?;
    // A thread that lets go of Python's lock may lend nothing that another one could not use.
    let result = Mutex::new(result);
    loop {
        match py.detach(|| result.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(TICK)) {
            Ok(Ok(value)) => return Ok(value),
            Ok(Err(panic)) => resume_unwind(panic),
            Err(RecvTimeoutError::Timeout) => {
                py.check_signals().inspect_err(|_| stop.stop())?;
            }
            Err(RecvTimeoutError::Disconnected) => {
                return Err(PyRuntimeError::new_err("a thread ended without an answer"));
            }
        }
    }
}

/// Heard of by every walk over a trace, as often as it says how far it is: ends the one that is no longer wanted.
pub(crate) fn progress(_done: u64, _all: u64) {
    let stopped = STOP.with_borrow(|stop| stop.as_ref().is_some_and(|stop| stop.0.load(Ordering::Relaxed)));
    if stopped {
        // Not `panic!`, which would print a message: this is no mistake.
        resume_unwind(Box::new(Stopped));
    }
}
