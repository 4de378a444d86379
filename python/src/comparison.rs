//! Two recordings, or several of each side of a change.

use crate::answer::Answer;
use crate::error::Failure;
use crate::job;
use crate::recording::{Kept, Recording};
use crate::report::Report;
use analysis::{About, Answers, Case, Given};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::Arc;

/// What changed between recordings of the same load from before and after a change: the answer of `kvmscope compare`.
///
/// Each side is a path, an opened recording, or a list of these, recorded in the same configuration.
///
/// >>> change = kvmscope.compare(fixtures / "vmx-linux-shadow-off", fixtures / "vmx-linux-shadow-on")
/// >>> list(change.sections)
/// ['compare']
#[pyfunction]
pub(crate) fn compare(py: Python<'_>, before: &Bound<'_, PyAny>, after: &Bound<'_, PyAny>) -> PyResult<Report> {
    let (before, after) = (side(before)?, side(after)?);
    let answer = job::run(py, move || compared(before, after))??;
    Ok(Report { answer })
}

/// One recording of a side.
enum One {
    Opened(Arc<Kept>),
    Path(PathBuf),
}

fn side(given: &Bound<'_, PyAny>) -> PyResult<Vec<One>> {
    let one = |given: &Bound<'_, PyAny>| -> PyResult<One> {
        if let Ok(recording) = given.cast::<Recording>() {
            return Ok(One::Opened(Arc::clone(&recording.get().kept)));
        }
        given.extract().map(One::Path).map_err(|_| {
            PyTypeError::new_err("a side of a comparison is a path, a kvmscope.Recording, or a list of these")
        })
    };
    if let Ok(one) = one(given) {
        return Ok(vec![one]);
    }
    let items = given.try_iter().map_err(|_| one(given).err().unwrap_or_else(|| PyTypeError::new_err("a side")))?;
    items.map(|item| one(&item?)).collect()
}

fn compared(before: Vec<One>, after: Vec<One>) -> Result<Arc<Answer>, Failure> {
    let (before, after) = (opened(before)?, opened(after)?);
    if before.is_empty() || after.is_empty() {
        return Err(Failure::Usage("name at least one recording of before and one of after the change".to_owned()));
    }
    let all = before.iter().chain(&after).map(|kept| kept.input().recording.clone()).collect();
    let case = |kept: &Arc<Kept>| kept.case.asked_with(Given::default()).with_progress(job::progress);
    let cases = |side: &[Arc<Kept>]| side.iter().map(case).collect();
    let compared = Case::of_sides(cases(&before), cases(&after))
        .ok_or_else(|| Failure::Usage("nothing was recorded after the change".to_owned()))?;
    let mut answers = Answers::about(&compared, &[About::Change]);
    if let Some(error) = answers.failed.pop() {
        return Err(error.into());
    }
    let recording = after[0].input().recording.clone();
    Answer::new("compare", (recording, all), answers, |_| "nothing in both can be compared".to_owned())
}

fn opened(side: Vec<One>) -> Result<Vec<Arc<Kept>>, Failure> {
    let kept = |one| match one {
        One::Opened(kept) => Ok(kept),
        One::Path(path) => Kept::open(&path).map(Arc::new),
    };
    side.into_iter().map(kept).collect()
}
