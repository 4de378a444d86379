//! Any lines as what a lab saw of a migration besides its sessions: packets, a heartbeat, processes, memory. All the way to the answer.

use crate::room::{Room, answer};
use base::recording::Recording;

const MANIFEST: &str = r#"{"schema":"kvmscope-recording/2","created":null,"tool":null,"emulated":null,
    "machines":[{"id":"L0","level":0,"parent":null,"name":null}],
    "parts":[{"path":"source.jsonl","machine":"L0","kind":"qmp","clock":null,"state":"complete"},
             {"path":"target.jsonl","machine":"L0","kind":"qmp","clock":null,"state":"complete"},
             {"path":"network","machine":"L0","kind":"network","clock":null,"state":"complete"},
             {"path":"heartbeat","machine":"L0","kind":"heartbeat","clock":null,"state":"complete"},
             {"path":"processes","machine":"L0","kind":"processes","clock":null,"state":"complete"},
             {"path":"memory","machine":"L0","kind":"moved-memory","clock":null,"state":"complete"}]}"#;

const SESSIONS: [(&str, &[u8]); 2] = [
    ("source.jsonl", include_bytes!("../../../fixtures/migrate-network/L0/qmp/0-source.jsonl")),
    ("target.jsonl", include_bytes!("../../../fixtures/migrate-network/L0/qmp/0-target.jsonl")),
];

/// Panics where a promise is broken by these bytes.
pub fn moved(room: &Room, bytes: &[u8]) {
    let mut lines = bytes.split(|byte| *byte == b'\n');
    for part in ["network", "heartbeat", "processes", "memory"] {
        room.write(part, lines.next().unwrap_or_default());
    }
    for (name, session) in SESSIONS {
        room.write(name, session);
    }
    room.write("recording.json", MANIFEST.as_bytes());
    answer(Recording::open(room.path()).expect("the manifest is whole"));
}
