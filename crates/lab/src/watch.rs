//! Who watches an experiment: what is said to them, and how they end it.

use crate::Error;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// What tells a run of the lab what happens, and what ends it.
pub struct Watch<'a> {
    /// Hears a line for each thing that begins.
    pub say: &'a mut dyn FnMut(&str),
    /// Set by who has had enough.
    pub stop: &'a AtomicBool,
}

impl Watch<'_> {
    /// # Errors
    /// If the user has had enough.
    pub fn check(&self) -> Result<(), Error> {
        if self.stop.load(Ordering::Relaxed) { Err(Error::Stopped) } else { Ok(()) }
    }

    /// Waits, unless the user has had enough before.
    pub fn rest(&self, length: Duration) -> Result<(), Error> {
        const LOOK_EVERY: Duration = Duration::from_millis(20);
        let until = Instant::now() + length;
        loop {
            self.check()?;
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            std::thread::sleep(left.min(LOOK_EVERY));
        }
    }
}
