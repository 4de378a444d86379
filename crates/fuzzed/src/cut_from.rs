//! Any bytes as `cut-from.json` beside a small trace, all the way to the answer.

use crate::room::{Room, answer};
use base::recording::{CUT_FROM_FILE, CutFrom, MANIFEST, Recording};

/// Fourteen events of one vCPU, thread 3102 on CPU 4.
const TRACE: &[u8] = include_bytes!("../../../fixtures/text/ftrace-vmx-6.18.txt");

const RECORDING: &str = r#"{ "schema": "kvmscope-recording/1",
  "machines": [{ "id": "L0", "level": 0, "parent": null, "name": null }],
  "parts": [
    { "path": "trace.txt", "machine": "L0", "kind": "text", "clock": null, "state": "complete" },
    { "path": "cut-from.json", "machine": "L0", "kind": "notes", "clock": null, "state": "complete" }
  ] }"#;

/// Panics where a promise is broken by these bytes.
pub fn cut_from(room: &Room, bytes: &[u8]) {
    room.write("trace.txt", TRACE);
    room.write(MANIFEST, RECORDING.as_bytes());
    let path = room.write(CUT_FROM_FILE, bytes);
    if let Ok(known) = CutFrom::read(&path) {
        known.write(&path).expect("memory for what was read");
        assert_eq!(CutFrom::read(&path).ok(), Some(known), "it reads back as it was written");
    }
    let recording = Recording::open(room.path()).expect("the manifest is right");
    assert_eq!(recording.parts.len(), 2, "{:?}", recording.problems);
    answer(recording);
}
