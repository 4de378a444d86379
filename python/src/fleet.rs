//! What workers of `kvmscope.fleet` call: recordings become files in memory, files become parts of a fleet, parts become the answer.
//!
//! No store is known here: Python puts and gets the bytes.

use crate::answer::Answer;
use crate::error::Failure;
use crate::report::{Asked, Report};
use analysis::fleet::{FAILURES, Fleet, Id, RECORDINGS};
use analysis::{Case, Given};
use base::parallel;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::path::PathBuf;

/// A file by its path in the data set.
type File<'py> = (String, Bound<'py, PyBytes>);
/// Files that came from a store.
type Read = Vec<(String, Vec<u8>)>;

/// Adds the functions to the module.
pub(crate) fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(fleet_identity, module)?)?;
    module.add_function(wrap_pyfunction!(fleet_added, module)?)?;
    module.add_function(wrap_pyfunction!(fleet_failure, module)?)?;
    module.add_function(wrap_pyfunction!(fleet_failure_path, module)?)?;
    module.add_function(wrap_pyfunction!(fleet_failures_folder, module)?)?;
    module.add_function(wrap_pyfunction!(fleet_recording_path, module)?)?;
    module.add_function(wrap_pyfunction!(fleet_recordings_folder, module)?)?;
    module.add_function(wrap_pyfunction!(fleet_recordings, module)?)?;
    module.add_function(wrap_pyfunction!(fleet_stored_paths, module)?)?;
    module.add_function(wrap_pyfunction!(fleet_manifest, module)?)?;
    module.add_function(wrap_pyfunction!(fleet_manifest_name, module)?)?;
    module.add_function(wrap_pyfunction!(fleet_schema, module)?)?;
    module.add_function(wrap_pyfunction!(fleet_partial, module)?)?;
    module.add_function(wrap_pyfunction!(fleet_merged, module)?)?;
    module.add_function(wrap_pyfunction!(fleet_answer, module)?)
}

fn failed(error: impl std::fmt::Display) -> Failure {
    Failure::no_answer(error)
}

/// The host and the id that the recording at `path` has in a data set, and its digest.
#[pyfunction]
fn fleet_identity(py: Python<'_>, path: PathBuf) -> PyResult<(String, String, String)> {
    let identity = py.detach(|| {
        let source = fleet::opened(&path)?;
        fleet::identity(&source.recording, &Given::default())
    });
    let (Id { host, recording }, digest) = identity.map_err(failed)?;
    Ok((host, recording, digest))
}

/// The files of the recording at `path`, which has this digest; the last one makes it one of the data set. `alone`: on one CPU.
#[pyfunction]
#[pyo3(signature = (path, digest, budget=None, alone=false))]
fn fleet_added<'py>(
    py: Python<'py>,
    path: PathBuf,
    digest: &str,
    budget: Option<PathBuf>,
    alone: bool,
) -> PyResult<Vec<File<'py>>> {
    let given = Asked { budget, ..Asked::default() }.given()?;
    let work = || -> Result<_, fleet::Error> {
        let source = fleet::opened(&path)?;
        fleet::added(&Case::new(analysis::open(source.recording.clone())?, given), digest)
    };
    let added = py.detach(|| if alone { parallel::alone(work) } else { work() });
    Ok(added.map_err(failed)?.files.into_iter().map(|(path, bytes)| (path, PyBytes::new(py, &bytes))).collect())
}

/// The file that says why the recording at `source` was not added.
#[pyfunction]
fn fleet_failure<'py>(py: Python<'py>, source: &str, error: &str) -> PyResult<File<'py>> {
    let (path, bytes) = fleet::failure(source, error).map_err(failed)?;
    Ok((path, PyBytes::new(py, &bytes)))
}

/// Where that file lies.
#[pyfunction]
fn fleet_failure_path(source: &str) -> String {
    fleet::failure_path(source)
}

/// The folder of all such files.
#[pyfunction]
fn fleet_failures_folder() -> String {
    FAILURES.address()
}

/// The file that is there once a recording is.
#[pyfunction]
fn fleet_recording_path(host: String, recording: String) -> String {
    fleet::recordings_path(&Id { host, recording })
}

/// The folder of all such files.
#[pyfunction]
fn fleet_recordings_folder() -> String {
    RECORDINGS.address()
}

/// Host and id of each recording, by the paths of such files.
#[pyfunction]
fn fleet_recordings(paths: Vec<String>) -> Vec<(String, String)> {
    let value = |part: Option<&str>, prefix: &str| Some(fleet::decoded(part?.strip_prefix(prefix)?));
    let of = |path: &String| {
        let mut parts = path.split('/').skip(1);
        let (host, recording) = (value(parts.next(), "host=")?, value(parts.next(), "recording=")?);
        (*path == fleet_recording_path(host.clone(), recording.clone())).then_some((host, recording))
    };
    paths.iter().filter_map(of).collect()
}

/// The files of a recording that an answer needs.
#[pyfunction]
fn fleet_stored_paths(host: String, recording: String) -> Vec<String> {
    fleet::stored_paths(&Id { host, recording }).into_iter().map(|(path, _)| path).collect()
}

/// The content of the file at the root of a data set.
#[pyfunction]
fn fleet_manifest() -> String {
    fleet::manifest()
}

/// Its name.
#[pyfunction]
fn fleet_manifest_name() -> &'static str {
    fleet::MANIFEST
}

/// The version of the layout.
#[pyfunction]
fn fleet_schema() -> &'static str {
    fleet::SCHEMA
}

/// A part of a fleet, as bytes: recordings (host, id, files) and failures.
#[pyfunction]
fn fleet_partial<'py>(
    py: Python<'py>,
    recordings: Vec<(String, String, Read)>,
    failures: Read,
) -> PyResult<Bound<'py, PyBytes>> {
    let partial = py.detach(|| -> Result<Vec<u8>, fleet::Error> {
        let mut all = Fleet::default();
        for (host, recording, files) in recordings {
            fleet::read(&mut all, &Id { host, recording }, files)?;
        }
        let none = Id { host: String::new(), recording: String::new() };
        fleet::read(&mut all, &none, failures)?;
        Ok(all.to_bytes()?)
    });
    Ok(PyBytes::new(py, &partial.map_err(failed)?))
}

/// Parts as one.
#[pyfunction]
fn fleet_merged(py: Python<'_>, parts: Vec<Vec<u8>>) -> PyResult<Bound<'_, PyBytes>> {
    let merged = py.detach(|| -> Result<Vec<u8>, analysis::fleet::Unread> {
        let mut all = Fleet::default();
        parts.iter().try_for_each(|part| Fleet::of_bytes(part).map(|part| all.merge(part)))?;
        all.to_bytes()
    });
    Ok(PyBytes::new(py, &merged.map_err(failed)?))
}

/// The answer over all recordings of a part.
#[pyfunction]
fn fleet_answer(py: Python<'_>, part: Vec<u8>) -> PyResult<Report> {
    let answer = py.detach(|| -> Result<_, Failure> {
        let all = Fleet::of_bytes(&part).map_err(failed)?;
        let (recording, answers) = fleet::answer(all).map_err(failed)?;
        Answer::new("fleet", (recording, Vec::new()), answers, |_| "the data set has no recordings".to_owned())
    });
    Ok(Report { answer: answer? })
}
