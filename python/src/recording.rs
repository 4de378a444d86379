//! A recording: opened once, its facts computed once, when somebody asks.

use crate::answer::Answer;
use crate::error::Failure;
use crate::events::EventStream;
use crate::job;
use crate::opening::{Opened, opened};
use crate::report::{Asked, Report};
use crate::table::Table;
use crate::timeline::{Timeline, chains_of};
use crate::value::whole;
use analysis::facts::timeline::draw;
use analysis::{Answers, Case, Given, Input};
use base::timeline::Drawn;
use pyo3::prelude::*;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// Opens a recording: its directory, a packed one, a CTF directory, or a bare trace file, which is taken as recorded at L0.
///
/// Nothing is read of the traces but what they say of themselves; facts are computed when they are first asked for.
///
/// >>> import kvmscope
/// >>> recording = kvmscope.open(fixtures / "nested-svm-toy")
/// >>> recording
/// <kvmscope.Recording nested-svm-toy: L0/trace.dat>
#[pyfunction]
pub(crate) fn open(py: Python<'_>, path: PathBuf) -> PyResult<Recording> {
    let kept = job::run(py, move || Kept::open(&path))??;
    Ok(Recording { kept: Arc::new(kept) })
}

/// What is kept of a recording, shared with the threads that compute.
pub struct Kept {
    opened: Opened,
    /// All of it, and what is known of it by now.
    pub case: Case,
    answer: OnceLock<Result<Arc<Answer>, Failure>>,
    drawn: OnceLock<Drawn>,
}

impl Kept {
    /// Opens what `path` names.
    ///
    /// # Errors
    /// If it is no recording, or nothing of it can be opened.
    pub fn open(path: &Path) -> Result<Self, Failure> {
        let opened = opened(path)?;
        let case = Case::new(Arc::clone(&opened.input), Given::default()).with_progress(job::progress);
        Ok(Self { opened, case, answer: OnceLock::new(), drawn: OnceLock::new() })
    }

    /// Its traces and snapshots.
    pub fn input(&self) -> &Arc<Input> {
        &self.opened.input
    }

    /// Its timeline and its chains.
    pub fn drawn(&self) -> &Drawn {
        self.drawn.get_or_init(|| draw(self.input(), self.case.given(), self.case.ledger(), &mut job::progress))
    }

    /// The answers to all questions that it can answer, as `asked`.
    fn answer(&self, asked: &Asked) -> Result<Arc<Answer>, Failure> {
        if asked.is_plain() {
            return self.answer.get_or_init(|| answer(&self.case)).clone();
        }
        answer(&self.case.asked_with(asked.given()?).with_progress(job::progress))
    }
}

fn answer(case: &Case) -> Result<Arc<Answer>, Failure> {
    let recording = case.input().recording.clone();
    Answer::new("report", (recording, Vec::new()), Answers::of(case), |recording| {
        format!("{} has no events that a question can use", recording.title())
    })
}

/// An opened recording; its facts are computed once, when they are first asked for, and kept as long as it is.
#[pyclass(frozen, module = "kvmscope")]
pub struct Recording {
    /// Shared with the threads that compute.
    pub kept: Arc<Kept>,
}

#[pymethods]
impl Recording {
    /// The path under which it was opened.
    #[getter]
    fn path(&self) -> String {
        show::json::path_of(&self.kept.input().recording)
    }

    /// What happened, how machines are set up, and what to change: the answers of `kvmscope report`.
    ///
    /// `budget` judges latencies: the name of a built-in budget, a path of a TOML file, or its text. The others narrow the
    /// question to a level (`"L2"`), a VM, a vCPU, or a window in ns since the recording's first event. What the traces of several
    /// levels saw is counted by the outermost one, or by that of `witness` (`"L1"`).
    ///
    /// >>> report = kvmscope.open(fixtures / "nested-svm-toy").report()
    /// >>> list(report.sections)
    /// ['flow', 'latency']
    #[pyo3(signature = (budget=None, *, level=None, vm=None, vcpu=None, from_ns=None, to_ns=None, witness=None))]
    #[expect(clippy::too_many_arguments, reason = "they are Python's, by name")]
    fn report(
        &self,
        py: Python<'_>,
        budget: Option<PathBuf>,
        level: Option<String>,
        vm: Option<String>,
        vcpu: Option<i128>,
        from_ns: Option<i128>,
        to_ns: Option<i128>,
        witness: Option<String>,
    ) -> PyResult<Report> {
        let kept = Arc::clone(&self.kept);
        let vcpu = whole("vcpu", vcpu)?;
        let (from_ns, to_ns) = (whole("from_ns", from_ns)?, whole("to_ns", to_ns)?);
        let asked = Asked { budget, level, vm, vcpu, from_ns, to_ns, witness };
        let answer = job::run(py, move || kept.answer(&asked))??;
        Ok(Report { answer })
    }

    /// Where the vCPUs were at every instant: the lanes of those with this number, of a VM or of all; without a number every lane.
    ///
    /// >>> kvmscope.open(fixtures / "nested-svm-toy").timeline(0)
    /// <kvmscope.Timeline nested-svm-toy: 1 lane, 0 to 813969290 ns>
    #[pyo3(signature = (vcpu=None, *, vm=None))]
    fn timeline(&self, py: Python<'_>, vcpu: Option<i128>, vm: Option<String>) -> PyResult<Timeline> {
        let kept = Arc::clone(&self.kept);
        let vcpu = whole("vcpu", vcpu)?;
        Ok(job::run(py, move || Timeline::of(&kept, vcpu, vm))??)
    }

    /// Every exit of a nested guest that its hypervisor handled, with what it took until the guest ran again.
    ///
    /// >>> kvmscope.open(fixtures / "nested-svm-toy").chains().columns[:6]
    /// ['id', 'lane', 'vm', 'vcpu', 'tid', 'reason']
    fn chains(&self, py: Python<'_>) -> PyResult<Table> {
        let kept = Arc::clone(&self.kept);
        job::run(py, move || {
            kept.drawn();
        })?;
        chains_of(py, &self.kept)
    }

    /// The traces of the recording, in the order in which `events` counts them.
    #[getter]
    fn traces(&self) -> Vec<String> {
        let recording = &self.kept.input().recording;
        let path = |part: &analysis::Part| recording.parts[part.index].path.display().to_string();
        self.kept.input().parts.iter().map(path).collect()
    }

    /// Events as they were traced, one kind or several, read while they are taken: an iterator over tables, and an Arrow stream.
    ///
    /// Columns are `time_ns`, `cpu`, `tid`, `event` and the fields of the event; all of them unless `columns` names some.
    /// `trace` is a place in `traces`.
    ///
    /// >>> events = kvmscope.open(fixtures / "nested-svm-toy").events("kvm_exit", columns=["time_ns", "exit_reason"])
    /// >>> sum(len(batch) for batch in events)
    /// 1828
    #[pyo3(signature = (event, columns=None, *, trace=0))]
    fn events(
        &self,
        event: &Bound<'_, PyAny>,
        columns: Option<&Bound<'_, PyAny>>,
        trace: i128,
    ) -> PyResult<EventStream> {
        let names = event.extract::<String>().map(|name| vec![name]).or_else(|_| event.extract::<Vec<String>>())?;
        if let Some(column) = columns.and_then(|columns| columns.extract::<String>().ok()) {
            let sentence =
                format!("columns='{column}': write a list of columns; several kinds of events are a list too");
            return Err(Failure::Usage(sentence).into());
        }
        let columns = columns.map(|columns| columns.extract::<Vec<String>>()).transpose()?;
        let trace: usize = whole("trace", Some(trace))?.unwrap_or(0);
        let traces = self.kept.input().parts.len();
        if trace >= traces {
            let title = self.kept.input().recording.title();
            return Err(
                Failure::Usage(format!("{title} has no trace {trace}; traces in this recording: {traces}")).into()
            );
        }
        Ok(EventStream::begin(&self.kept, trace, &names, columns.as_deref())?)
    }

    fn __repr__(&self) -> String {
        let recording = &self.kept.input().recording;
        let of = |part: &base::recording::Part| part.path.display().to_string();
        let parts: Vec<String> = recording.parts.iter().map(of).collect();
        format!("<kvmscope.Recording {}: {}>", recording.title(), parts.join(", "))
    }
}
