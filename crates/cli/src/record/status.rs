//! What people see while a recording grows, and at its end.

use base::number::many;
use lab::tracefs::{Meter, TracefsRecorder};
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::time::Duration;
use terminal_size::terminal_size_of;

const MIB: f64 = (1 << 20) as f64;

/// Lines on stderr: what is being done, and on a terminal how far it is.
pub(super) struct Status {
    wanted: bool,
    line: bool,
}

impl Status {
    /// Nothing at all if `quiet`; the line of progress only if `progress` and on a terminal.
    pub(super) fn new(quiet: bool, progress: bool) -> Self {
        Self { wanted: !quiet, line: !quiet && progress && std::io::stderr().is_terminal() }
    }

    /// Says what is being done.
    pub(super) fn say(&self, sentence: &str) {
        if self.wanted {
            // If stderr is closed nobody wants to know.
            process::exit::note(sentence);
        }
    }

    /// Says that events are being recorded, so that whoever waits for it can begin.
    pub(super) fn began(&self, recorder: &TracefsRecorder, until: &str) {
        let (events, clock) = (recorder.events(), recorder.clock());
        self.say(&format!("recording from now on: {}, clock {clock}; {until}", many(events as u64, "event type")));
    }

    /// Writes the line anew; `live` is what was seen last, or empty.
    pub(super) fn show(&self, elapsed: Duration, live: String, meter: &Meter) {
        if !self.line {
            return;
        }
        let what = if live.is_empty() { amount(meter) } else { live };
        let line = format!("{:.1} s  {what}", elapsed.as_secs_f64());
        // A line that wraps could not be written anew.
        let width = terminal_size_of(std::io::stderr()).map_or(usize::MAX, |(width, _)| usize::from(width.0));
        let end = line.char_indices().nth(width.saturating_sub(1)).map_or(line.len(), |(end, _)| end);
        self.rewrite(&line[..end]);
    }

    /// Says that the end has begun, which takes a moment for a large recording.
    pub(super) fn packing(&self, meter: &Meter) {
        self.rewrite(&format!("packing {:.1} MiB", mib(meter)));
    }

    /// Takes the line away.
    pub(super) fn wipe(&self) {
        self.rewrite("");
    }

    fn rewrite(&self, text: &str) {
        if self.line {
            // \r and "erase to the end of the line" (ECMA-48, EL). A terminal that went away is no reason to stop.
            let _ = write!(std::io::stderr(), "\r\x1b[K{text}");
        }
    }
}

/// What was recorded, for stdout.
pub(super) fn summary(elapsed: Duration, output: &Path, meter: &Meter) -> String {
    format!("recorded {:.1} s into {}: {}", elapsed.as_secs_f64(), output.display(), amount(meter))
}

fn amount(meter: &Meter) -> String {
    format!("{:.1} MiB of events, {}", mib(meter), lost(meter))
}

/// What the kernel dropped.
pub(super) fn lost(meter: &Meter) -> String {
    match meter.lost() {
        0 => "no event lost".to_owned(),
        lost => format!("{} lost; use a larger --buffer-size", many(lost, "event")),
    }
}

fn mib(meter: &Meter) -> f64 {
    meter.held() as f64 / MIB
}
