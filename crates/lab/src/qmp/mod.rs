//! One connection to a QEMU's machine protocol: commands, their answers, and the events that come between them.
//!
//! ```text
//! connect  greeting, qmp_capabilities        execute  one command, its answer; events that come first are kept
//! event    the next one, waited for          messages everything that went over, with the time of this host: what a recording keeps
//! ```
//! What a QEMU can do is asked of it ([`Abilities`]), never derived from its version: distributions move both ways.
//! Protocol: docs/interop/qmp-spec.txt, QEMU 7.2.

mod abilities;

pub use abilities::Abilities;

use crate::Error;
use base::qmp::{Event, Message, Way};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A line that is longer is none of QEMU's: its whole schema is some 200 KB.
const MOST_LINE_BYTES: u64 = 16 << 20;

pub struct Qmp {
    path: PathBuf,
    from: BufReader<UnixStream>,
    /// What has come of a line that is not whole.
    begun: Vec<u8>,
    events: VecDeque<Event>,
    messages: Vec<Message>,
    clock_ns: fn() -> u64,
    next_id: u64,
    version: String,
    is_closed: bool,
}

impl Qmp {
    /// Connects to the socket at `path` and leaves its negotiation, within `patience`; `clock_ns` is CLOCK_REALTIME.
    ///
    /// # Errors
    /// If nobody listens there, or what answers does not greet as QEMU does.
    pub fn connect(path: &Path, patience: Duration, clock_ns: fn() -> u64) -> Result<Self, Error> {
        let until = Instant::now() + patience;
        let stream = UnixStream::connect(path).map_err(|source| match source.kind() {
            ErrorKind::ConnectionRefused => refused(path, "no process is listening; has QEMU ended?"),
            _ => Error::Io { path: path.to_owned(), source },
        })?;
        let mut qmp = Self {
            path: path.to_owned(),
            from: BufReader::new(stream),
            begun: Vec::new(),
            events: VecDeque::new(),
            messages: Vec::new(),
            clock_ns,
            next_id: 0,
            version: String::new(),
            is_closed: false,
        };
        let greeting = qmp.line(until)?.ok_or_else(|| {
            refused(path, "it does not greet: another program is connected to it, and QEMU serves one at a time")
        })?;
        let version = &greeting["QMP"]["version"]["qemu"];
        if !version.is_object() {
            return Err(refused(path, "what answers there is no QEMU"));
        }
        qmp.version = ["major", "minor", "micro"].map(|part| version[part].to_string()).join(".");
        qmp.execute("qmp_capabilities", Value::Null, patience)?;
        Ok(qmp)
    }

    /// As it greets: `7.2.22`.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// What this QEMU can do, out of its own schema.
    ///
    /// # Errors
    /// As of [`execute`](Self::execute).
    pub fn abilities(&mut self, patience: Duration) -> Result<Abilities, Error> {
        Ok(Abilities::of_schema(&self.execute("query-qmp-schema", Value::Null, patience)?))
    }

    /// The answer to `command`.
    ///
    /// # Errors
    /// If QEMU refuses it, ends, or does not answer within `patience`.
    pub fn execute(&mut self, command: &str, arguments: Value, patience: Duration) -> Result<Value, Error> {
        let until = Instant::now() + patience;
        let id = self.next_id;
        self.next_id += 1;
        let mut message = json!({ "execute": command, "id": id });
        if !arguments.is_null() {
            message["arguments"] = arguments;
        }
        self.send(message)?;
        loop {
            let Some(mut answer) = self.line(until)? else {
                return Err(refused(&self.path, format!("no answer to {command} within {patience:?}")));
            };
            if let Some(event) = Event::of(&answer) {
                self.events.push_back(event);
            } else if answer["id"] == id {
                return match answer.get_mut("return") {
                    Some(value) => Ok(value.take()),
                    None => {
                        let said = answer["error"]["desc"].as_str().unwrap_or("it gives no reason");
                        Err(Error::Refused { what: format!("QEMU refuses {command}"), said: said.to_owned() })
                    }
                };
            }
        }
    }

    /// The next event, if one comes within `patience`.
    ///
    /// # Errors
    /// If QEMU ends.
    pub fn event(&mut self, patience: Duration) -> Result<Option<Event>, Error> {
        let until = Instant::now() + patience;
        while self.events.is_empty() {
            let Some(message) = self.line(until)? else { break };
            self.events.extend(Event::of(&message));
        }
        Ok(self.events.pop_front())
    }

    /// Everything that went over so far, in order.
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// The same, and forgets it: for a session that is written down as it goes.
    pub(crate) fn take_messages(&mut self) -> Vec<Message> {
        std::mem::take(&mut self.messages)
    }

    /// Whether the other end is gone: whatever failed, failed because of that.
    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed
    }

    fn send(&mut self, message: Value) -> Result<(), Error> {
        let line = format!("{message}\n");
        self.messages.push(Message { at_ns: (self.clock_ns)(), way: Way::ToQemu, message });
        self.from.get_mut().write_all(line.as_bytes()).map_err(|source| self.lost(source))
    }

    /// The next message, if one comes until then.
    fn line(&mut self, until: Instant) -> Result<Option<Value>, Error> {
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            self.from.get_ref().set_read_timeout(Some(left)).map_err(|source| self.lost(source))?;
            match self.from.fill_buf() {
                Ok([]) => {
                    self.is_closed = true;
                    return Err(refused(
                        &self.path,
                        "QEMU closed the connection: it has ended, or another program has it",
                    ));
                }
                Ok(came) => {
                    let (taken, is_whole) = match came.iter().position(|byte| *byte == b'\n') {
                        Some(end) => (end + 1, true),
                        None => (came.len(), false),
                    };
                    self.begun.extend_from_slice(&came[..taken]);
                    self.from.consume(taken);
                    if self.begun.len() as u64 > MOST_LINE_BYTES {
                        return Err(refused(&self.path, "a line of more than 16 MiB"));
                    }
                    if is_whole {
                        return self.message().map(Some);
                    }
                }
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => return Ok(None),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(source) => return Err(self.lost(source)),
            }
        }
    }

    fn message(&mut self) -> Result<Value, Error> {
        let line = std::mem::take(&mut self.begun);
        let message: Value = serde_json::from_slice(&line)
            .map_err(|error| refused(&self.path, format!("its answer is not JSON: {error}")))?;
        self.messages.push(Message { at_ns: (self.clock_ns)(), way: Way::FromQemu, message: message.clone() });
        Ok(message)
    }

    fn lost(&mut self, source: std::io::Error) -> Error {
        self.is_closed |= matches!(source.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset);
        Error::Io { path: self.path.clone(), source }
    }
}

fn refused(path: &Path, said: impl Into<String>) -> Error {
    Error::Refused { what: path.display().to_string(), said: said.into() }
}

#[cfg(test)]
mod tests;
