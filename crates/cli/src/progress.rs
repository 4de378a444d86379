//! A bar on stderr for work that takes long enough to wonder.

use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// Work that is done sooner needs no bar.
const QUIET: Duration = Duration::from_millis(300);

/// The bar, or nothing where nobody would see it.
pub struct Progress {
    wanted: bool,
    since: Instant,
    bar: Option<ProgressBar>,
}

impl Progress {
    /// A bar for work that begins now.
    pub fn new(wanted: bool) -> Self {
        Self { wanted: wanted && std::io::stderr().is_terminal(), since: Instant::now(), bar: None }
    }

    /// `done` of `all` bytes are done.
    pub fn at(&mut self, done: u64, all: u64) {
        if !self.wanted || (self.bar.is_none() && self.since.elapsed() < QUIET) {
            return;
        }
        let bar = self.bar.get_or_insert_with(|| {
            let style =
                ProgressStyle::with_template("reading {bar:40} {percent:>3} %  {bytes_per_sec:>11}  {eta} left");
            ProgressBar::new(all).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
        });
        bar.set_length(all);
        bar.set_position(done);
    }
}

impl Drop for Progress {
    /// Wipes the bar, so that the answer begins on an empty line.
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
