//! What went over a connection to QEMU's machine protocol, as a recording keeps it: `<machine>/qmp/<name>.jsonl`, a message a line.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::io::{BufRead, BufReader, BufWriter, Result, Write};
use std::path::Path;

/// A session of an hour, asked twenty times a second, is some 100 MB; of more than this the rest is left out.
const MOST_BYTES: u64 = 256 << 20;

/// Statuses after which a migration is over (`MigrationStatus` of qapi/migration.json, QEMU 10.0).
pub const ENDS: [&str; 3] = ["completed", "failed", "cancelled"];

/// Whether a migration of that status is being made: told to, and not over.
pub fn is_under_way(status: &str) -> bool {
    !["", "none"].contains(&status) && !ENDS.contains(&status)
}

/// Which way a message went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Way {
    /// A command.
    ToQemu,
    /// An answer, an event, the greeting.
    FromQemu,
}

/// One line of a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// CLOCK_REALTIME when it was sent, or had come.
    pub at_ns: u64,
    /// Which way.
    pub way: Way,
    /// The message itself.
    pub message: Value,
}

/// Something that QEMU told unasked.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// `STOP`, `MIGRATION`.
    pub name: String,
    /// What it carries.
    pub data: Value,
    /// CLOCK_REALTIME of QEMU's host, to the microsecond; `None` where QEMU could not tell.
    pub at_ns: Option<u64>,
}

impl Event {
    /// That of a message; `None` if it is an answer.
    pub fn of(message: &Value) -> Option<Self> {
        let name = message["event"].as_str()?.to_owned();
        // QEMU writes -1 for both where it has no clock (docs/interop/qmp-spec.txt, 2.5, QEMU 7.2).
        let part = |name: &str| message["timestamp"][name].as_i64().and_then(|part| u64::try_from(part).ok());
        let at_ns = part("seconds").zip(part("microseconds"));
        let at_ns = at_ns.and_then(|(s, us)| s.checked_mul(1_000_000_000)?.checked_add(us.checked_mul(1_000)?));
        Some(Self { name, data: message["data"].clone(), at_ns })
    }
}

/// Reads a session; the second value counts lines that are none of one, such as the last one of a recorder that was killed.
///
/// # Errors
/// If the file cannot be read.
pub fn read(path: &Path) -> Result<(Vec<Message>, u64)> {
    use std::io::Read;
    let (mut messages, mut damaged) = (Vec::new(), 0);
    for line in BufReader::new(crate::files::open(path)?.take(MOST_BYTES)).split(b'\n') {
        match serde_json::from_slice(&line?) {
            Ok(message) => messages.push(message),
            Err(_) => damaged += 1,
        }
    }
    Ok((messages, damaged))
}

/// Writes one, and makes the directory that it lies in.
///
/// # Errors
/// If the operating system refuses.
pub fn write(messages: &[Message], path: &Path) -> Result<()> {
    path.parent().map_or(Ok(()), std::fs::create_dir_all)?;
    append(messages, std::fs::File::create(path)?)
}

/// Writes more of one behind what is there.
///
/// # Errors
/// If the operating system refuses.
pub fn append(messages: &[Message], file: impl Write) -> Result<()> {
    let mut file = BufWriter::new(file);
    for message in messages {
        serde_json::to_writer(&mut file, message)?;
        file.write_all(b"\n")?;
    }
    file.flush()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_session_reads_back_and_half_a_line_is_counted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("L0/qmp/source.jsonl");
        let message = |at_ns, way, message| Message { at_ns, way, message };
        let messages = vec![
            message(1, Way::ToQemu, json!({"execute": "stop"})),
            message(2, Way::FromQemu, json!({"event": "STOP", "timestamp": {"seconds": 3, "microseconds": 4}})),
        ];
        write(&messages, &path).unwrap();
        assert_eq!(read(&path).unwrap(), (messages.clone(), 0));
        let text = std::fs::read(&path).unwrap();
        std::fs::write(&path, &text[..text.len() - 5]).unwrap();
        assert_eq!(read(&path).unwrap(), (messages[..1].to_vec(), 1));
        assert_eq!(Event::of(&messages[1].message).and_then(|event| event.at_ns), Some(3_000_004_000));
        assert_eq!(Event::of(&messages[0].message), None);
        let without = json!({"event": "STOP", "timestamp": {"seconds": -1, "microseconds": -1}});
        assert_eq!(Event::of(&without).and_then(|event| event.at_ns), None);
    }
}
