//! Any lines as the session of a migration's source, and of its target, all the way to the answer.

use crate::room::{Room, answer};
use base::recording::Recording;

const MANIFEST: &str = r#"{"schema":"kvmscope-recording/2","created":null,"tool":null,"emulated":null,
    "machines":[{"id":"L0","level":0,"parent":null,"name":null}],
    "parts":[{"path":"source.jsonl","machine":"L0","kind":"qmp","clock":null,"state":"complete"},
             {"path":"target.jsonl","machine":"L0","kind":"qmp","clock":null,"state":"complete"}]}"#;

/// Panics where a promise is broken by these bytes.
pub fn qmp(room: &Room, bytes: &[u8]) {
    room.write("source.jsonl", bytes);
    room.write("target.jsonl", bytes);
    room.write("recording.json", MANIFEST.as_bytes());
    answer(Recording::open(room.path()).expect("the manifest is whole"));
}
