//! A thread that works until it is told to end.

use lab::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle};

/// It is told to end, and waited for, when this is dropped.
pub(super) struct Worker<T> {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<T>>,
}

impl<T: Send + 'static> Worker<T> {
    /// `work` hears when it is to end.
    pub(super) fn start(builder: Builder, work: impl FnOnce(&AtomicBool) -> T + Send + 'static) -> Result<Self, Error> {
        let stop = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&stop);
        let thread = builder.spawn(move || work(&ends));
        let thread = thread.map_err(|error| Error::Died(format!("no thread could be started: {error}")))?;
        Ok(Self { stop, thread: Some(thread) })
    }

    /// Whether it has ended by itself.
    pub(super) fn is_over(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Ends it, and gives what came of it; `None` if it panicked, which it has said on stderr.
    pub(super) fn end(mut self) -> Option<T> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take()?.join().ok()
    }
}

impl<T> Drop for Worker<T> {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}
