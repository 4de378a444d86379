//! Ctrl-C, SIGTERM and SIGHUP (a terminal or an ssh connection that closes), the same way for every command.
//!
//! ```text
//! first        what was noted is removed or put back, the last first --> status 130
//! after hold   a flag is raised; the command reads it and ends in its own way
//! ```
//! A signal waits for the end of what is done in [`Interrupt::whole`] and [`Interrupt::making`].

use anyhow::{Context, anyhow};
use base::recording::{Destination, Draft, NewFile};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How often who waits looks whether a signal has come.
pub const LOOK_EVERY: Duration = Duration::from_millis(20);

type Tidy = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct Noted {
    tidy: Vec<Tidy>,
    held: bool,
}

/// What a signal does to this command. Dropping it while a signal is at work waits for the end of the program: what fails
/// because its files are gone is not worth a word.
pub struct Interrupt {
    noted: Arc<Mutex<Noted>>,
    asked: Arc<AtomicBool>,
}

impl Interrupt {
    /// From now on a signal ends the program with status 130, tidied up. Called once in a program.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn watch() -> anyhow::Result<Self> {
        let interrupt = Self { noted: Arc::default(), asked: Arc::default() };
        let seen = Arc::clone(&interrupt.noted);
        let taken = signals();
        for signal in &taken {
            signal_hook::flag::register(*signal, Arc::clone(&interrupt.asked))?;
        }
        let mut signals = Signals::new(&taken)?;
        std::thread::spawn(move || {
            for _ in signals.forever() {
                // Kept locked until the end: nobody makes what would then stay.
                let mut noted = locked(&seen);
                if !noted.held {
                    noted.tidy.drain(..).rev().for_each(|tidy| tidy());
                    std::process::exit(130);
                }
            }
        });
        Ok(interrupt)
    }

    /// Makes something and notes what takes it back; no signal comes between.
    ///
    /// # Errors
    /// Those of `make`.
    pub fn making<T, E, F: FnOnce() + Send + 'static>(
        &self,
        make: impl FnOnce() -> Result<T, E>,
        tidy: impl FnOnce(&T) -> F,
    ) -> Result<T, E> {
        let made = {
            let mut noted = locked(&self.noted);
            let made = make()?;
            noted.tidy.push(Box::new(tidy(&made)));
            made
        };
        self.wait_if_asked();
        Ok(made)
    }

    /// Does what must not be broken off in the middle. It must be short, and must not note anything.
    pub fn whole<T>(&self, act: impl FnOnce() -> T) -> T {
        let acted = {
            let _locked = locked(&self.noted);
            act()
        };
        self.wait_if_asked();
        acted
    }

    /// Makes a temporary directory that a signal removes.
    ///
    /// # Errors
    /// If the operating system refuses.
    pub fn temporary(&self, prefix: &str) -> anyhow::Result<TempDir> {
        let make = || base::recording::temporary(prefix);
        let tidy = |made: &TempDir| {
            let path = made.path().to_owned();
            move || remove(&path)
        };
        self.making(make, tidy).context("a temporary directory cannot be made")
    }

    /// Begins the file that will lie there; a signal removes what there is of it.
    ///
    /// # Errors
    /// If the operating system refuses.
    pub fn new_file(&self, place: &Path, mode: u32) -> anyhow::Result<NewFile> {
        let tidy = |new: &NewFile| {
            let name = new.name().map(Path::to_owned);
            move || name.iter().for_each(|name| remove(name))
        };
        // The hidden name means nothing to anybody: what is refused is the place.
        let made = self.making(|| NewFile::new(place, mode), tidy);
        made.map_err(|error| anyhow!("{} cannot be written: {error}", place.display()))
    }

    /// Begins a recording that will lie there; a signal removes what there is of it.
    ///
    /// # Errors
    /// Those of [`Draft::new`].
    pub fn draft(&self, destination: &Destination) -> Result<Draft, base::recording::Error> {
        let tidy = |draft: &Draft| {
            let root = draft.root().to_owned();
            move || remove(&root)
        };
        self.making(|| Draft::new(destination), tidy)
    }

    /// From now on a signal only raises the flag that this returns: what was begun has to be ended by the command itself.
    pub fn hold(&self) -> Arc<AtomicBool> {
        locked(&self.noted).held = true;
        Arc::clone(&self.asked)
    }

    /// Whether a signal has come that was held: what goes on has to end now.
    pub fn is_held_back(&self) -> bool {
        self.asked.load(Ordering::Relaxed) && locked(&self.noted).held
    }

    /// Where something failed: if a signal is the reason, this waits for the end and says nothing.
    pub fn wait_if_asked(&self) {
        while self.asked.load(Ordering::Relaxed) && !locked(&self.noted).held {
            std::thread::park();
        }
    }
}

impl Drop for Interrupt {
    fn drop(&mut self) {
        self.wait_if_asked();
    }
}

fn locked(noted: &Mutex<Noted>) -> MutexGuard<'_, Noted> {
    noted.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The signals that end a command.
pub fn signals() -> Vec<i32> {
    taken(&std::fs::read_to_string("/proc/self/status").unwrap_or_default())
}

/// The signals to be taken. `nohup` has SIGHUP ignored, and that stays so. SIGINT is taken even where it is ignored: shells
/// without job control do that to whatever runs in the background, and a recorder there is ended by `kill -INT`.
fn taken(status: &str) -> Vec<i32> {
    // The mask of ignored signals, bit 0 is signal 1 (Documentation/filesystems/proc.rst).
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    let mut taken = vec![SIGINT, SIGTERM];
    taken.extend((ignored & 1 << (SIGHUP - 1) == 0).then_some(SIGHUP));
    taken
}

/// Waits; true if a signal has raised `stop` by its end.
pub fn rest(length: Duration, stop: &AtomicBool) -> bool {
    let since = Instant::now();
    while since.elapsed() < length && !stop.load(Ordering::Relaxed) {
        std::thread::sleep(LOOK_EVERY);
    }
    stop.load(Ordering::Relaxed)
}

/// Removes a file, or a directory that another thread may still be filling: under another name nothing is added to it.
/// What cannot be removed is beyond us: the disk is gone or read-only.
pub fn remove(path: &Path) {
    /// A directory is made again at most by the few calls that make those above their file.
    const TRIES: u32 = 10;
    const BETWEEN: Duration = Duration::from_millis(1);
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".gone-{}", std::process::id()));
    let gone = path.with_file_name(name);
    for _ in 0..TRIES {
        let path = if std::fs::rename(path, &gone).is_ok() { &gone } else { path };
        let _ = if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) };
        std::thread::sleep(BETWEEN);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hangup_that_nohup_ignores_stays_ignored() {
        assert_eq!(taken("Name:\tx\nSigIgn:\t0000000000001001\n"), [SIGINT, SIGTERM]);
        assert_eq!(taken("SigIgn:\t0000000000001002\n"), [SIGINT, SIGTERM, SIGHUP]);
        assert_eq!(taken(""), [SIGINT, SIGTERM, SIGHUP]);
    }
}
