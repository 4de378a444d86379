//! A bar on stderr for work that takes long enough to wonder.

use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// Work that is done sooner needs no bar.
const QUIET: Duration = Duration::from_millis(300);

/// The bar, or nothing where nobody would see it.
#[derive(Clone)]
pub struct Progress(Arc<Shown>);

struct Shown {
    wanted: bool,
    since: Instant,
    bar: OnceLock<ProgressBar>,
}

impl Progress {
    /// A bar for work that begins now.
    pub fn new(wanted: bool) -> Self {
        let wanted = wanted && std::io::stderr().is_terminal();
        Self(Arc::new(Shown { wanted, since: Instant::now(), bar: OnceLock::new() }))
    }

    /// Shows how far work is: bytes that are done, and all.
    pub fn hear(&self) -> impl FnMut(u64, u64) + Send + use<> {
        let shown = Arc::clone(&self.0);
        move |done, all| shown.at(done, all)
    }

    /// Wipes the bar, so that the answer begins on an empty line.
    pub fn finish(&self) {
        if let Some(bar) = self.0.bar.get() {
            bar.finish_and_clear();
        }
    }
}

impl Shown {
    fn at(&self, done: u64, all: u64) {
        if !self.wanted || (self.bar.get().is_none() && self.since.elapsed() < QUIET) {
            return;
        }
        let bar = self.bar.get_or_init(|| {
            let style =
                ProgressStyle::with_template("reading {bar:40} {percent:>3} %  {bytes_per_sec:>11}  {eta} left");
            ProgressBar::new(all).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
        });
        bar.set_length(all);
        bar.set_position(done);
    }
}

impl Drop for Shown {
    /// Wipes the bar where the work failed.
    fn drop(&mut self) {
        if let Some(bar) = self.bar.get() {
            bar.finish_and_clear();
        }
    }
}
