//! What all targets share: room in memory for the bytes, a reader that leaves nothing unread, and all questions.
//!
//! Readers take paths, because they map files. So the bytes are written to files.

use analysis::{Answers, Case, Given, WINDOWS};
use base::recording::Recording;
use base::{Cell, Span, Table};
use serve::Server;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use tempfile::TempDir;
use trace::{Event, Listener, Reading, Request, Totals};

/// Enough events to meet every branch; a short input that unpacks to millions says nothing new after them.
const MOST_EVENTS: u64 = 200_000;

/// Room for the files of one target, which must not meet another one's: below `/dev/shm`, which is memory. Gone when it is dropped.
pub struct Room {
    files: TempDir,
    cut: TempDir,
    server: OnceLock<Server>,
}

impl Room {
    /// An empty one.
    ///
    /// # Panics
    /// Where no directory can be made.
    #[must_use]
    pub fn empty() -> Self {
        let in_memory =
            || tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a directory to write to");
        Self { files: in_memory(), cut: in_memory(), server: OnceLock::new() }
    }

    /// Where its files are, the same for all inputs.
    pub(crate) fn path(&self) -> &Path {
        self.files.path()
    }

    /// The server that all inputs meet, which the first one starts.
    pub(crate) fn server(&self, start: impl FnOnce() -> Server) -> &Server {
        self.server.get_or_init(start)
    }

    /// Writes `bytes` to the file `name`.
    pub(crate) fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.path().join(name);
        std::fs::write(&path, bytes).expect("memory for the input");
        path
    }

    /// Reads what lies at `path`, and what `cut` makes of its middle half; `cut` says whether it made a trace, which must open then.
    pub(crate) fn read_and_cut(&self, path: &Path, cut: impl FnOnce(&Path, &Path, Span) -> bool) {
        let Some(length_ns) = read_everything(path) else { return };
        let to = self.cut.path().join("cut");
        let window = Span { from_ns: length_ns / 4, to_ns: length_ns - length_ns / 4 };
        if cut(path, &to, window) {
            assert!(trace::open(&to).is_ok(), "a cut that does not open: {:?}", trace::open(&to).err());
            read_everything(&to);
        }
        // A cut that was refused left nothing to remove.
        let _ = if to.is_dir() { std::fs::remove_dir_all(&to) } else { std::fs::remove_file(&to) };
    }
}

/// Opens what lies at `path` and reads every field of every event. Refusals are welcome, panics are not. Returns how long the
/// trace is, in ns.
pub(crate) fn read_everything(path: &Path) -> Option<u64> {
    let trace = trace::open(path).ok()?;
    let fitted = trace::calibrate::fit(trace.as_ref());
    let request = Request::everything(trace.facts());
    let reading = Reading { request: &request, fitted };
    let mut listener = Everything { fields: field_counts(&request), ..Everything::default() };
    let totals = trace::replay(trace.as_ref(), &reading, &mut listener);
    assert_sane(&totals, &listener);
    totals.span_ns.map(|(first_ns, last_ns)| last_ns - first_ns)
}

/// Asks a recording all questions: the ledgers must close.
pub(crate) fn answer(recording: Recording) {
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
