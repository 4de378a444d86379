//! How does a window of time become a text of its own?
//!
//! ```text
//! # tracer: nop                                  what stands before the first event stays
//! qemu-98 [000]  9.710: kvm_exit: ..             before the window
//! CPU:0 [LOST 5 EVENTS]                          said of the event behind it: goes with that
//! qemu-98 [000]  9.720: kvm_entry: ..            inside
//!  => vcpu_enter_guest                           said of the event before it: goes with that
//! ```
//! Lines are copied byte for byte. Lines of another recording than the one that is read are left out, and so are lines with a
//! NUL: they are damage, and at the start of a file they are the mark of what is no text. What stands between a loss and its
//! event is about neither, and is left out too.

use super::line::{Line, LossLine};
use super::lines::{Entry, Lines};
use super::survey::late_cpu;
use super::{Text, Trace};
use crate::Error;
use base::{Problem, Span};
use std::fs::OpenOptions;
use std::io::{self, BufWriter, Write};
use std::ops::Range;
use std::path::Path;

/// Writes the lines of `from` that lie in `window` (ns since the file's first event) to a new file `to`; returns what was
/// wrong with `from`. Where no event lies in the window, there is no new file, and `None` is returned.
///
/// # Errors
/// If `from` cannot be opened as a printed trace, or if `to` is already there or cannot be written.
pub fn cut(from: &Path, to: &Path, window: Span) -> Result<Option<Vec<Problem>>, Error> {
    let text = Text::open(from)?;
    let fitted = crate::calibrate::fit(&text);
    let origin_ns = crate::replay::origin_ns(&text, fitted.clone());
    let clock = text.clock(fitted.as_ref());
    let window = window.from_ns.saturating_add(origin_ns)..window.to_ns.saturating_add(origin_ns);
    let io = |source| Error::Io { file: to.to_owned(), source };
    // A new file only: writing over the one that is read would take it away under the reader.
    let file = OpenOptions::new().write(true).create_new(true).open(to).map_err(io)?;
    let written = write(&text, |line| window.contains(&line.time.ns(&clock)), &mut BufWriter::new(file));
    if !matches!(written, Ok(1..)) {
        // Half a file looks like a damaged recording. If it cannot be removed either, the first refusal is told.
        let _ = std::fs::remove_file(to);
    }
    Ok((written.map_err(io)? > 0).then(|| text.facts().problems.clone()))
}

/// Copies the lines of the events that are `inside`, and what belongs to them; returns how many events there are.
fn write(text: &Text, inside: impl Fn(&Line<'_>) -> bool, out: &mut impl Write) -> io::Result<u64> {
    let bytes = &text.bytes[..];
    let mut lines = Lines::new(bytes, 0..bytes.len());
    // Where the lines begin that belong to the next event, and whether the last one was copied.
    let (mut held_from, mut copies, mut events) = (None, true, 0);
    while let Some((start, entry)) = lines.next() {
        let start = start as usize;
        let Entry::Text(line) = entry else { continue };
        if line.contains('\0') {
            continue;
        }
        if let Some(event) = Line::parse(&line) {
            let held = held_from.take().unwrap_or(start)..start;
            copies = event.file == text.file && inside(&event);
            events += u64::from(copies);
            if copies {
                write_losses(bytes, held, out)?;
            }
        } else if held_from.is_some() || is_loss(&line) {
            held_from.get_or_insert(start);
            continue;
        }
        if copies {
            out.write_all(&bytes[start..lines.next_start().min(bytes.len())])?;
        }
    }
    out.flush()?;
    Ok(events)
}

/// Whether a line says that events before the next one are missing.
fn is_loss(line: &str) -> bool {
    LossLine::parse(line).is_some() || late_cpu(line).is_some()
}

/// Copies the lines of `held` that tell of losses.
fn write_losses(bytes: &[u8], held: Range<usize>, out: &mut impl Write) -> io::Result<()> {
    let mut lines = Lines::new(bytes, held);
    while let Some((start, entry)) = lines.next() {
        if matches!(entry, Entry::Text(line) if !line.contains('\0') && is_loss(&line)) {
            out.write_all(&bytes[start as usize..lines.next_start()])?;
        }
    }
    Ok(())
}
