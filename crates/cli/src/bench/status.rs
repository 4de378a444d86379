//! A bar on stderr while a bench runs: which test of which launch, and how long it still takes.

use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;

/// Whether somebody looks at a bar that is wanted.
pub(super) fn is_seen(wanted: bool) -> bool {
    wanted && std::io::stderr().is_terminal()
}

/// The bar, or nothing where nobody would see it.
pub(super) struct Status(Option<ProgressBar>);

impl Status {
    /// A bar of `steps`.
    pub(super) fn new(wanted: bool, steps: u64) -> Self {
        Self(is_seen(wanted).then(|| {
            let style = ProgressStyle::with_template("measuring {bar:20} {pos} of {len}  {eta} left  {wide_msg}");
            ProgressBar::new(steps).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
        }))
    }

    /// What is going on in this step; nobody is asked where nobody looks.
    pub(super) fn now(&self, live: Option<&(dyn Fn() -> Option<String> + Sync)>) {
        if let Some((bar, text)) = self.0.as_ref().zip(live).and_then(|(bar, live)| Some((bar, live()?))) {
            bar.set_message(text);
        }
    }

    pub(super) fn done(&self, what: String) {
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
