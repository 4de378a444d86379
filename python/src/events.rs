//! Events of a trace as record batches, while the trace is read.
//!
//! ```text
//! thread: replay --rows--> batch --[at most AHEAD batches wait]--> for batch in stream: ..
//!    ^                                                        \--> __arrow_c_stream__, which pyarrow and others read
//!    '---- ends when the stream is closed or dropped
//! ```
//! Memory is that of a few batches, whatever the size of the trace. Lost events are no rows: they are counted beside.

use crate::error::{Failure, UsageError};
use crate::event_columns::{Columns, Kinds};
use crate::job::{Stop, TICK};
use crate::recording::Kept;
use crate::table::{Table, about, stream};
use crate::value::to_python;
use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, SchemaRef};
use base::Problem;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use pyo3_arrow::error::PyArrowResult;
use pyo3_arrow::ffi::to_schema_pycapsule;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::ThreadId;
use std::time::Duration;

/// Rows of a batch: some hundred KB of a few columns, enough that a batch costs nothing beside its rows.
const ROWS: usize = 32_768;

/// Batches that wait for their reader.
const AHEAD: usize = 2;

/// What was lost of the events so far, and what was damaged.
#[derive(Default)]
struct Lost {
    events: AtomicU64,
    gaps: AtomicU64,
    /// Known when all is read.
    problems: OnceLock<Vec<Problem>>,
}

/// Batches as they come.
struct Batches {
    receive: Mutex<Receiver<Result<RecordBatch, ArrowError>>>,
    stop: Stop,
    /// The thread that asked: where signals of Python are looked at without waiting for a lock that waits for us.
    asked_by: ThreadId,
}

impl Batches {
    /// The next one, or why there is none yet.
    fn within(&self, time: Duration) -> Result<Result<RecordBatch, ArrowError>, RecvTimeoutError> {
        self.receive.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(time)
    }

    /// The next one, however long it takes.
    fn next_of_all(&self) -> Option<Result<RecordBatch, ArrowError>> {
        self.receive.lock().unwrap_or_else(PoisonError::into_inner).recv().ok()
    }
}

impl Drop for Batches {
    fn drop(&mut self) {
        self.stop.stop();
    }
}

/// The events of one trace: an iterator over tables, and a stream for Arrow libraries. Either takes them once.
///
/// >>> import pyarrow
/// >>> events = kvmscope.open(fixtures / "nested-svm-toy").events("kvm_exit", columns=["time_ns", "exit_reason"])
/// >>> pyarrow.table(events).column_names
/// ['time_ns', 'exit_reason']
#[pyclass(frozen, module = "kvmscope")]
pub struct EventStream {
    schema: SchemaRef,
    lost: Arc<Lost>,
    state: Mutex<State>,
}

/// How far a stream is.
enum State {
    Reading(Batches),
    /// All of it was taken.
    Ended,
    /// It was closed, or handed to an Arrow library, which takes what is left.
    Gone,
}

impl EventStream {
    /// Begins to read the events of these kinds of trace `place`.
    ///
    /// # Errors
    /// If the trace has no such kind of event or column.
    pub fn begin(
        kept: &Arc<Kept>,
        place: usize,
        names: &[String],
        columns: Option<&[String]>,
    ) -> Result<Self, Failure> {
        let about = about("events", kept.input().recording.emulated);
        let kinds = Kinds::of(&*kept.input().parts[place].trace, names, columns, about)?;
        let (schema, lost) = (kinds.schema(), Arc::new(Lost::default()));
        let (send, receive) = sync_channel(AHEAD);
        let failed = send.clone();
        let stop = Stop::default();
        let (kept, counted, heard) = (Arc::clone(kept), Arc::clone(&lost), stop.clone());
        let walk = move || {
            let mut rows = Columns::new(&kinds);
            let totals = kept.case.events(place, kinds.request(), |event, at_ns| {
                if event.is_loss() {
                    counted.events.fetch_add(event.or_zero(0), Ordering::Relaxed);
                    counted.gaps.fetch_add(1, Ordering::Relaxed);
                    return ControlFlow::Continue(());
                }
                rows.push(event, at_ns);
                if rows.len() < ROWS {
                    return ControlFlow::Continue(());
                }
                // An error says that the reader has gone.
                send.send(rows.take()).map_or(ControlFlow::Break(()), ControlFlow::Continue)
            });
            counted.problems.get_or_init(|| totals.problems.list().to_vec());
            if rows.len() > 0 {
                let _ = send.send(rows.take());
            }
        };
        let thread = std::thread::Builder::new().name("kvmscope-events".to_owned()).spawn(move || {
            heard.heed();
            // A walk that is no longer wanted ends so, and there is no reader that would hear of it. A mistake has printed its message.
            if catch_unwind(AssertUnwindSafe(walk)).is_err() {
                let sentence = "reading the events failed; the message on standard error has the place in the program";
                let _ = failed.send(Err(ArrowError::ComputeError(sentence.to_owned())));
            }
        });
        thread.map_err(|error| Failure::no_answer(format!("no thread can be started: {error}")))?;
        let batches = Batches { receive: Mutex::new(receive), stop, asked_by: std::thread::current().id() };
        Ok(Self { schema, lost, state: Mutex::new(State::Reading(batches)) })
    }

    /// The next batch; signals of Python are looked at while it is waited for, and once however soon it comes.
    fn next_batch(&self, py: Python<'_>) -> PyResult<Option<RecordBatch>> {
        loop {
            py.check_signals()?;
            let next = py.detach(|| match &*self.lock() {
                State::Reading(batches) => Ok(Some(batches.within(TICK))),
                State::Ended => Ok(None),
                State::Gone => Err(taken()),
            })?;
            match next {
                None => return Ok(None),
                Some(Ok(batch)) => return Ok(Some(batch.map_err(Failure::no_answer)?)),
                Some(Err(RecvTimeoutError::Timeout)) => {}
                Some(Err(RecvTimeoutError::Disconnected)) => {
                    let mut state = self.lock();
                    if matches!(*state, State::Reading(_)) {
                        *state = State::Ended;
                    }
                }
            }
        }
    }

    /// Refuses to begin to read what is not there any more: no rows would look like a recording without these events.
    fn still_there(&self) -> PyResult<()> {
        match &*self.lock() {
            State::Reading(_) => Ok(()),
            State::Ended | State::Gone => Err(taken()),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn taken() -> PyErr {
    UsageError::new_err("these events were read, or the stream was closed; ask the recording for them again")
}

#[pymethods]
impl EventStream {
    /// The names of its columns.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.schema.fields().iter().map(|field| field.name().clone()).collect()
    }

    /// Events that were lost while they were recorded, as far as the trace is read by now; of some losses the number is not known.
    #[getter]
    fn lost(&self) -> u64 {
        self.lost.events.load(Ordering::Relaxed)
    }

    /// Places at which some were lost, as far as the trace is read by now.
    #[getter]
    fn gaps(&self) -> u64 {
        self.lost.gaps.load(Ordering::Relaxed)
    }

    /// What was damaged in the trace where it was read, as `problems` of the JSON; known at the end of the stream.
    #[getter]
    fn problems<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let problems = self.lost.problems.get().map_or(&[][..], Vec::as_slice);
        to_python(py, &serde_json::to_value(problems).unwrap_or_default())
    }

    /// Ends the reading; the rows that were not taken are gone.
    fn close(&self) {
        *self.lock() = State::Gone;
    }

    /// All rows that are left, as one table.
    ///
    /// >>> len(kvmscope.open(fixtures / "nested-svm-toy").events("kvm_exit").read_all())
    /// 1828
    fn read_all(&self, py: Python<'_>) -> PyResult<Table> {
        self.still_there()?;
        let mut all = Vec::new();
        while let Some(batch) = self.next_batch(py)? {
            all.push(batch);
        }
        Ok(Table::made("events", Arc::clone(&self.schema), all))
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, _exception: &Bound<'_, PyAny>) {
        self.close();
    }

    fn __iter__(slf: PyRef<'_, Self>) -> PyResult<PyRef<'_, Self>> {
        slf.still_there()?;
        Ok(slf)
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Table>> {
        let batch = self.next_batch(py)?;
        Ok(batch.map(|batch| Table::made("events", Arc::clone(&self.schema), vec![batch])))
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyArrowResult<Bound<'py, PyCapsule>> {
        let State::Reading(batches) = std::mem::replace(&mut *self.lock(), State::Gone) else {
            return Err(taken().into());
        };
        stream(py, &self.schema, batches, requested_schema)
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyArrowResult<Bound<'py, PyCapsule>> {
        to_schema_pycapsule(py, self.schema.as_ref())
    }

    fn __repr__(&self) -> String {
        format!("<kvmscope.EventStream {}>", self.columns().join(", "))
    }
}

impl Iterator for Batches {
    type Item = Result<RecordBatch, ArrowError>;

    /// The next batch for an Arrow library, which calls from C, with Python's lock or without it.
    fn next(&mut self) -> Option<Self::Item> {
        if std::thread::current().id() != self.asked_by {
            // To take Python's lock here could be to wait for a thread that waits for this one.
            return self.next_of_all();
        }
        let wait = |py: Python<'_>| loop {
            // However soon batches come: the library asks for the next one without a look at signals.
            if let Err(error) = py.check_signals() {
                // C has no exceptions; to say that all was read would be worse than to fail with a sentence.
                let sentence = format!("reading the events was interrupted: {error}");
                return Some(Err(ArrowError::ComputeError(sentence)));
            }
            match py.detach(|| self.within(TICK)) {
                Ok(batch) => return Some(batch),
                Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) => {}
            }
        };
        Python::try_attach(wait).unwrap_or_else(|| self.next_of_all())
    }
}
