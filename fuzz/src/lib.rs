//! What all targets share: a place in memory for the bytes, and a reader that leaves nothing unread.
//!
//! Readers take paths, because they map files. So the bytes are written below `/dev/shm`, which is memory.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use tempfile::TempDir;
use trace::{Event, Listener, Reading, Request, Totals};

/// Enough events to meet every branch; a short input that unpacks to millions says nothing new after them.
const MOST_EVENTS: u64 = 200_000;

/// The target's own directory, the same for all inputs of a process.
pub fn directory() -> &'static Path {
    static PLACE: OnceLock<TempDir> = OnceLock::new();
    let make = || tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a directory to write to");
    PLACE.get_or_init(make).path()
}

/// Writes `bytes` to the file `name` of [`directory`].
pub fn write(name: &str, bytes: &[u8]) -> PathBuf {
    let path = directory().join(name);
    std::fs::write(&path, bytes).expect("memory for the input");
    path
}

/// Opens what lies at `path` and reads every field of every event. Refusals are welcome, panics are not.
pub fn read_everything(path: &Path) {
    let Ok(trace) = trace::open(path) else { return };
    let fitted = trace::calibrate::fit(trace.as_ref());
    let request = Request::everything(trace.facts());
    let reading = Reading { request: &request, fitted };
    let mut listener = Everything { fields: field_counts(&request), ..Everything::default() };
    let totals = trace::replay(trace.as_ref(), &reading, &mut listener);
    assert_sane(&totals, &listener);
}

/// What must hold for any input.
fn assert_sane(totals: &Totals, listener: &Everything) {
    let stopped_early = listener.events >= MOST_EVENTS;
    assert!(stopped_early || totals.events() >= listener.events, "more events heard than counted");
    for problem in totals.problems.list() {
        assert!(!problem.text.is_empty(), "a problem without words: {problem:?}");
    }
}

#[derive(Default)]
struct Everything {
    /// Fields per kind.
    fields: Vec<usize>,
    events: u64,
    /// Keeps the compiler from leaving the reading out.
    checksum: u64,
}

fn field_counts(request: &Request) -> Vec<usize> {
    request.events.iter().map(|wanted| wanted.fields.len()).collect()
}

impl Listener for Everything {
    fn event(&mut self, event: &Event<'_>) {
        if event.is_loss() {
            return;
        }
        self.events += 1;
        for field in 0..self.fields[usize::from(event.kind)] {
            self.checksum = self.checksum.wrapping_add(event.or_zero(field));
        }
    }

    fn enough(&self) -> bool {
        self.events >= MOST_EVENTS
    }
}
