//! What all targets share: a place in memory for the bytes, a reader that leaves nothing unread, and all questions.
//!
//! Readers take paths, because they map files. So the bytes are written below `/dev/shm`, which is memory.

use analysis::{Answers, Case, Given, Input, WINDOWS};
use base::recording::Recording;
use base::{Cell, Span, Table};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use tempfile::TempDir;
use trace::{Event, Listener, Reading, Request, Totals};

/// Enough events to meet every branch; a short input that unpacks to millions says nothing new after them.
const MOST_EVENTS: u64 = 200_000;

/// The target's own directory, the same for all inputs of a process.
pub fn directory() -> &'static Path {
    static PLACE: OnceLock<TempDir> = OnceLock::new();
    PLACE.get_or_init(in_memory).path()
}

fn in_memory() -> TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a directory to write to")
}

/// Writes `bytes` to the file `name` of [`directory`].
pub fn write(name: &str, bytes: &[u8]) -> PathBuf {
    let path = directory().join(name);
    std::fs::write(&path, bytes).expect("memory for the input");
    path
}

/// Opens what lies at `path` and reads every field of every event. Refusals are welcome, panics are not. Returns how long the
/// trace is, in ns.
pub fn read_everything(path: &Path) -> Option<u64> {
    let trace = trace::open(path).ok()?;
    let fitted = trace::calibrate::fit(trace.as_ref());
    let request = Request::everything(trace.facts());
    let reading = Reading { request: &request, fitted };
    let mut listener = Everything { fields: field_counts(&request), ..Everything::default() };
    let totals = trace::replay(trace.as_ref(), &reading, &mut listener);
    assert_sane(&totals, &listener);
    totals.span_ns.map(|(first_ns, last_ns)| last_ns - first_ns)
}

/// Reads what lies at `path`, and what `cut` makes of its middle half; `cut` says whether it made a trace, which must open then.
pub fn read_and_cut(path: &Path, cut: impl FnOnce(&Path, &Path, Span) -> bool) {
    static PLACE: OnceLock<TempDir> = OnceLock::new();
    let Some(length_ns) = read_everything(path) else { return };
    let place = PLACE.get_or_init(in_memory).path().join("cut");
    let window = Span { from_ns: length_ns / 4, to_ns: length_ns - length_ns / 4 };
    if cut(path, &place, window) {
        assert!(trace::open(&place).is_ok(), "a cut that does not open: {:?}", trace::open(&place).err());
        read_everything(&place);
    }
    // A cut that was refused left nothing to remove.
    let _ = if place.is_dir() { std::fs::remove_dir_all(&place) } else { std::fs::remove_file(&place) };
}

/// Asks a recording all questions: the ledgers must close.
pub fn answer(recording: Recording) {
    let Ok(input) = analysis::open(recording) else { return };
    let case = Case::new(input, Given::default());
    // Windows first: they are cut out of the reading that fills the ledger.
    assert!(case.windows().iter().all(|windows| windows.len() == WINDOWS), "a trace is not cut into its windows");
    for section in Answers::of(&case).sections {
        if let Some(vcpus) = section.table("vcpus") {
            assert_closed(vcpus);
        }
    }
}

/// Each row's states sum to its `wall_ns`: only state columns end in `_ns` beside it.
fn assert_closed(vcpus: &Table) {
    let wall = vcpus.spec.columns.iter().position(|column| column.name == "wall_ns");
    for row in &vcpus.rows {
        let ns = |at: usize| match &row[at] {
            Cell::U64(ns) => *ns,
            _ => 0,
        };
        let states = (0..row.len()).filter(|at| Some(*at) != wall && vcpus.spec.columns[*at].name.ends_with("_ns"));
        let sum: u64 = states.map(ns).sum();
        assert_eq!(Some(sum), wall.map(ns), "the ledger does not close: {row:?}");
    }
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
