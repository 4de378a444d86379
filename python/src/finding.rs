//! A finding as an object: the fields that it has in JSON.

use crate::answer::Answer;
use crate::value::to_python;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::Value;
use std::sync::Arc;

/// What is wrong, how that is known, what it costs, and what to type to change it.
#[pyclass(frozen, module = "kvmscope")]
pub struct Finding {
    answer: Arc<Answer>,
    /// Places of its section and of itself in there.
    place: (usize, usize),
    /// 1 is the one to act on first, whichever section has it.
    #[pyo3(get)]
    pub rank: u64,
}

impl Finding {
    /// The findings of a section, in its order.
    pub fn of_section(answer: &Arc<Answer>, place: usize) -> Vec<Self> {
        let findings = answer.words(place)["findings"].as_array().map_or(0, Vec::len);
        let of = |at: usize| {
            let rank = answer.words(place)["findings"][at]["rank"].as_u64().unwrap_or(0);
            Self { answer: Arc::clone(answer), place: (place, at), rank }
        };
        (0..findings).map(of).collect()
    }

    fn json(&self) -> &Value {
        &self.answer.words(self.place.0)["findings"][self.place.1]
    }

    fn text(&self, key: &str) -> &str {
        self.json()[key].as_str().unwrap_or_default()
    }

    fn field<'py>(&self, py: Python<'py>, key: &str) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.json()[key])
    }
}

#[pymethods]
impl Finding {
    /// `RULE@subject`, unique in one answer.
    #[getter]
    fn id(&self) -> &str {
        self.text("id")
    }

    /// The rule, such as `FLW-SHADOW`; `kvmscope explain` prints it.
    #[getter]
    fn rule(&self) -> &str {
        self.text("rule")
    }

    /// What it is about: a VM, a vCPU, a level, a file.
    #[getter]
    fn subject(&self) -> &str {
        self.text("subject")
    }

    /// `info`, `low`, `medium` or `high`.
    #[getter]
    fn severity(&self) -> &str {
        self.text("severity")
    }

    /// Where the change has to be made: `L0`, `L1`, ...
    #[getter]
    fn level(&self) -> &str {
        self.text("level")
    }

    /// One line with the number that matters.
    #[getter]
    fn title(&self) -> &str {
        self.text("title")
    }

    /// Why this happens.
    #[getter]
    fn why(&self) -> &str {
        self.text("why")
    }

    /// What the change demands: `nothing`, `reload`, `reboot` or `outer level`.
    #[getter]
    fn needs(&self) -> &str {
        self.text("needs")
    }

    /// Where the rule's claim comes from.
    #[getter]
    fn source(&self) -> &str {
        self.text("source")
    }

    /// What was seen and where: dictionaries with `what`, `where` and `about`.
    #[getter]
    fn evidence<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.field(py, "evidence")
    }

    /// What it costs: a dictionary with `value`, `unit`, `kind`, `low` and `high`.
    #[getter]
    fn cost<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.field(py, "cost")
    }

    /// The vCPU time that its change would give back at most: a dictionary with `state`, `share` and `unit`; None if no trace shows it.
    #[getter]
    fn gives_back<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.field(py, "gives_back")
    }

    /// Ids of the findings that it is the cause of.
    #[getter]
    fn explains<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.field(py, "explains")
    }

    /// Typed changes, where the program can make them.
    #[getter]
    fn changes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.field(py, "changes")
    }

    /// The commands to type.
    #[getter]
    fn fix<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.field(py, "fix")
    }

    /// The commands that restore what the fix replaced.
    #[getter]
    fn undo<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.field(py, "undo")
    }

    /// All of it, as in the JSON.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        Ok(to_python(py, self.json())?.cast_into::<PyDict>()?)
    }

    fn __repr__(&self) -> String {
        format!("<kvmscope.Finding {} {}: {}>", self.text("severity"), self.text("id"), self.text("title"))
    }

    fn _repr_html_(&self) -> String {
        let (section, at) = self.place;
        show::html::fragment::of_findings(&[&self.answer.sections[section].findings[at]])
    }
}
