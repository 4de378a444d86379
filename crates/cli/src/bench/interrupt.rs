//! Ctrl-C during a bench: nothing stays that was to go.
//!
//! ```text
//! SIGINT, SIGTERM, SIGHUP --> what was noted here is done, the last first --> status 130
//! ```
//! Launches end by themselves: nobody reads what they tell.

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

type Tidy = Box<dyn FnOnce() + Send>;

/// What is done before a signal ends the program.
#[derive(Clone, Default)]
pub struct Interrupt {
    noted: Arc<Mutex<Vec<Tidy>>>,
    asked: Arc<AtomicBool>,
}

impl Interrupt {
    /// From now on a signal ends the program with status 130, tidied up.
    pub fn watch() -> anyhow::Result<Self> {
        let interrupt = Self::default();
        let seen = interrupt.clone();
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            signal_hook::flag::register(signal, Arc::clone(&interrupt.asked))?;
        }
        let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
        std::thread::spawn(move || {
            if signals.forever().next().is_some() {
                // Held until the end: nobody makes what would then stay.
                let mut noted = seen.noted.lock().unwrap_or_else(PoisonError::into_inner);
                noted.drain(..).rev().for_each(|tidy| tidy());
                std::process::exit(130);
            }
        });
        Ok(interrupt)
    }

    /// Makes something, and notes what takes it back; no signal comes between.
    pub fn making<T, E, F: FnOnce() + Send + 'static>(
        &self,
        make: impl FnOnce() -> Result<T, E>,
        tidy: impl FnOnce(&T) -> F,
    ) -> Result<T, E> {
        let mut noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        let made = make()?;
        noted.push(Box::new(tidy(&made)));
        Ok(made)
    }

    /// Where something failed: if a signal is the reason, this waits for the end and says nothing.
    pub fn wait_if_asked(&self) {
        while self.asked.load(Ordering::Relaxed) {
            std::thread::park();
        }
    }
}
