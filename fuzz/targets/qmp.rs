//! Any lines as the session of a migration's source, and of its target, all the way to the answer.

#![no_main]

use base::recording::Recording;
use libfuzzer_sys::fuzz_target;

const MANIFEST: &str = r#"{"schema":"kvmscope-recording/2","created":null,"tool":null,"emulated":null,
    "machines":[{"id":"L0","level":0,"parent":null,"name":null}],
    "parts":[{"path":"source.jsonl","machine":"L0","kind":"qmp","clock":null,"state":"complete"},
             {"path":"target.jsonl","machine":"L0","kind":"qmp","clock":null,"state":"complete"}]}"#;

fuzz_target!(|bytes: &[u8]| {
    kvmscope_fuzz::write("source.jsonl", bytes);
    kvmscope_fuzz::write("target.jsonl", bytes);
    kvmscope_fuzz::write("recording.json", MANIFEST.as_bytes());
    kvmscope_fuzz::answer(Recording::open(kvmscope_fuzz::directory()).expect("the manifest is whole"));
});
