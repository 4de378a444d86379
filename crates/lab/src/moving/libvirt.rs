//! Events of a VM of libvirt's, which alone is connected to its QEMU: `virsh qemu-monitor-event`.
//!
//! ```text
//! event MIGRATION_PASS at 1795624486.777918 for domain 'web': {"pass":1}
//! ```
//! Times are QEMU's own. libvirt turns the capability `events` on by itself. How much each pass sends is not asked: `qemu-monitor-command` marks the domain as
//! tainted, and a meter leaves no mark. Format: `vshEventPrint` of tools/virsh-domain-event.c and `virshEventPrint`, seen with libvirt 9.0.

use super::session::clock_ns;
use super::{Error, Shared};
use crate::program::{Program, tie};
use base::qmp::{ENDS, Message, Way, append};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::Child;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// The program, and its package.
const VIRSH: (&str, &str) = ("virsh", "libvirt-clients");
/// How often it is looked whether to end.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// A line that is longer is none of an event of a migration.
const MOST_LINE_BYTES: u64 = 1 << 16;
/// Last words that are kept.
const MOST_WORDS_BYTES: u64 = 1 << 12;

pub(super) struct Events {
    child: Child,
}

impl Events {
    pub(super) fn of(domain: &str) -> Result<Self, Error> {
        let program = Program::new(VIRSH.0, VIRSH.1);
        let mut command = program.command(&["qemu-monitor-event", "--loop", "--domain", domain]);
        tie(&mut command, Signal::TERM);
        Ok(Self { child: program.start(command)? })
    }

    /// Writes down what it prints until told to stop, or until it ends.
    pub(super) fn follow(mut self, file: File, place: &Path, shared: &Shared) -> Result<(), Error> {
        let Some(printed) = self.child.stdout.take() else { return Ok(()) };
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            let mut printed = BufReader::new(printed);
            loop {
                let mut line = Vec::new();
                let read = printed.by_ref().take(MOST_LINE_BYTES).read_until(b'\n', &mut line);
                let is_over = !read.is_ok_and(|read| read > 0);
                if is_over || sender.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                    return;
                }
            }
        });
        while !shared.stop.load(Ordering::Relaxed) {
            let line = match lines.recv_timeout(LOOK_EVERY) {
                Ok(line) => line,
                Err(RecvTimeoutError::Timeout) => continue,
                Err(RecvTimeoutError::Disconnected) => return self.ended(shared),
            };
            let Some(message) = event(&line) else { continue };
            let is_over = message["event"] == "MIGRATION" && ENDS.iter().any(|end| message["data"]["status"] == *end);
            let message = Message { at_ns: clock_ns(), way: Way::FromQemu, message };
            append(&[message], &file).map_err(|error| Error::io(place, error))?;
            shared.has_ended.fetch_or(is_over, Ordering::Relaxed);
        }
        Ok(())
    }

    /// It ended by itself: the domain is gone, or it could not be asked.
    fn ended(&mut self, shared: &Shared) -> Result<(), Error> {
        let had_ended = shared.has_ended.swap(true, Ordering::Relaxed);
        let status = self.child.wait().map_err(|error| Error::io(VIRSH.0, error))?;
        if had_ended || status.success() {
            return Ok(());
        }
        let mut said = String::new();
        let words = self.child.stderr.take().map(|words| words.take(MOST_WORDS_BYTES).read_to_string(&mut said));
        drop(words);
        Err(Program::new(VIRSH.0, VIRSH.1).failed(status, &said))
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The message of QEMU's that a line is of.
fn event(line: &str) -> Option<Value> {
    let (name, rest) = line.trim_end().strip_prefix("event ")?.split_once(" at ")?;
    let (at, rest) = rest.split_once(" for domain ")?;
    let (seconds, microseconds) = at.split_once('.')?;
    let (seconds, microseconds): (u64, u64) = (seconds.parse().ok()?, microseconds.parse().ok()?);
    // What QEMU does not tell is `<null>` or `(null)`.
    let data = rest.split_once("': ").and_then(|(_, data)| serde_json::from_str(data).ok()).unwrap_or(Value::Null);
    let timestamp = json!({ "seconds": seconds, "microseconds": microseconds });
    Some(json!({ "event": name, "data": data, "timestamp": timestamp }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::qmp::Event;

    #[test]
    fn a_line_of_virsh_is_the_event_with_qemus_own_time() {
        let of = |line| event(line).as_ref().and_then(Event::of);
        let pass = of("event MIGRATION_PASS at 1795624486.777918 for domain 'web: 1': {\"pass\":2}\n").unwrap();
        let stop = of("event STOP at 1795624486.000042 for domain 'web': <null>\n").unwrap();
        assert_eq!((stop.name.as_str(), stop.at_ns, stop.data), ("STOP", Some(1_795_624_486_000_042_000), Value::Null));
        assert_eq!((pass.name.as_str(), pass.data["pass"].as_u64()), ("MIGRATION_PASS", Some(2)));
        assert_eq!(pass.at_ns, Some(1_795_624_486_777_918_000));
        assert_eq!(of("events received: 3\n"), None);
    }
}
