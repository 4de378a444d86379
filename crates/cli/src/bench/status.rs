//! A bar on stderr while a bench runs: which test of which launch, and how long it still takes.

use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;

/// The bar, or nothing where nobody would see it.
pub struct Status(Option<ProgressBar>);

impl Status {
    /// A bar of `steps`.
    pub fn new(wanted: bool, steps: u64) -> Self {
        let seen = wanted && std::io::stderr().is_terminal();
        Self(seen.then(|| {
            let style = ProgressStyle::with_template("measuring {bar:40} {pos} of {len}  {eta} left  {msg}");
            ProgressBar::new(steps).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
        }))
    }

    /// A step is done.
    pub fn done(&self, what: String) {
        if let Some(bar) = &self.0 {
            bar.set_message(what);
            bar.inc(1);
        }
    }
}

impl Drop for Status {
    /// Wipes the bar, so that the answer begins on an empty line.
    fn drop(&mut self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}
