//! What people see while a recording grows, and at its end.

use lab::tracefs::{Meter, TracefsRecorder};
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use terminal_size::terminal_size_of;

const MIB: f64 = (1 << 20) as f64;

/// A line on stderr, where it is a terminal.
pub struct Status {
    wanted: bool,
    meter: Arc<Meter>,
}

impl Status {
    /// The line of what `meter` counts.
    pub fn new(wanted: bool, meter: Arc<Meter>) -> Self {
        Self { wanted: wanted && std::io::stderr().is_terminal(), meter }
    }

    /// Says what is recorded.
    pub fn began(&self, recorder: &TracefsRecorder) {
        if self.wanted {
            eprintln!("recording {} kinds of events, clock {}; Ctrl-C ends it", recorder.events(), recorder.clock());
        }
    }

    /// Writes the line anew; `live` is what was seen last, or empty.
    pub fn show(&self, elapsed: Duration, live: String) {
        let what = if live.is_empty() { self.amount() } else { live };
        let line = format!("{:.1} s  {what}", elapsed.as_secs_f64());
        // A line that wraps could not be written anew.
        let width = terminal_size_of(std::io::stderr()).map_or(usize::MAX, |(width, _)| usize::from(width.0));
        let end = line.char_indices().nth(width.saturating_sub(1)).map_or(line.len(), |(end, _)| end);
        self.line(&line[..end]);
    }

    /// Says that the end has begun, which takes a moment for a large recording.
    pub fn packing(&self) {
        self.line(&format!("packing {:.1} MiB", self.mib()));
    }

    /// Takes the line away.
    pub fn wipe(&self) {
        self.line("");
    }

    /// The last word, for stdout.
    pub fn summary(&self, elapsed: Duration, output: &Path) -> String {
        format!("recorded {:.1} s into {}: {}", elapsed.as_secs_f64(), output.display(), self.amount())
    }

    fn amount(&self) -> String {
        let lost = match self.meter.lost() {
            0 => "no event lost".to_owned(),
            lost => format!("{lost} events lost, a larger --buffer-size helps"),
        };
        format!("{:.1} MiB of events, {lost}", self.mib())
    }

    fn mib(&self) -> f64 {
        self.meter.bytes() as f64 / MIB
    }

    fn line(&self, text: &str) {
        if self.wanted {
            // \r and "erase to the end of the line" (ECMA-48, EL). A terminal that went away is no reason to stop.
            let _ = write!(std::io::stderr(), "\r\x1b[K{text}");
        }
    }
}
