//! One answer of a report.

use crate::answer::Answer;
use crate::finding::Finding;
use crate::table::Table;
use crate::value::{named, to_python};
use pyo3::prelude::*;
use std::sync::Arc;

/// The answer to one question.
#[pyclass(frozen, module = "kvmscope")]
pub struct Section {
    /// The answers that it is one of.
    pub answer: Arc<Answer>,
    /// Its place among them.
    pub place: usize,
}

impl Section {
    fn own(&self) -> &base::Section {
        &self.answer.sections[self.place]
    }

    /// A part of it as in JSON.
    fn words<'py>(&self, py: Python<'py>, key: &str) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.answer.words(self.place)[key])
    }
}

#[pymethods]
impl Section {
    /// Its id: `flow`, `latency`, `placement`, ...
    #[getter]
    fn id(&self) -> &'static str {
        self.own().id
    }

    /// The question that it answers.
    #[getter]
    fn question(&self) -> &'static str {
        self.own().question
    }

    /// What was read, a line each.
    #[getter]
    fn about(&self) -> Vec<String> {
        self.own().about.clone()
    }

    /// The answer in a paragraph.
    #[getter]
    fn summary(&self) -> String {
        self.own().summary.clone()
    }

    /// The tables by their names, in reading order.
    ///
    /// >>> flow = kvmscope.open(fixtures / "nested-svm-toy").report().sections["flow"]
    /// >>> flow.tables["exits"].columns[:4]
    /// ['machine', 'vm', 'vcpu', 'level']
    #[getter]
    fn tables<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let tables = named(py, "table")?;
        for (at, table) in self.own().tables.iter().enumerate() {
            tables.set_item(table.spec.name, Table::of_answer(&self.answer, self.place, at))?;
        }
        Ok(tables)
    }

    /// Its findings, the one to act on first at the front.
    #[getter]
    fn findings(&self) -> Vec<Finding> {
        Finding::of_section(&self.answer, self.place)
    }

    /// Its figures, as `figures` of the JSON.
    #[getter]
    fn figures<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.words(py, "figures")
    }

    /// What is not known or was lost, as `unknown` of the JSON: each with its `amount` in `unit`.
    #[getter]
    fn unknown<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.words(py, "unknown")
    }

    /// What to do or type next.
    #[getter]
    fn next(&self) -> Vec<String> {
        self.own().next.clone()
    }

    fn __str__(&self) -> String {
        show::text::render(std::slice::from_ref(self.own()), &[], &show::text::Page::default())
    }

    fn __repr__(&self) -> String {
        let tables = self.own().tables.iter().map(|table| table.spec.name);
        format!("<kvmscope.Section {}: {}>", self.own().id, tables.collect::<Vec<_>>().join(", "))
    }

    fn _repr_html_(&self, py: Python<'_>) -> String {
        py.detach(|| {
            let own = show::json::Answered {
                sections: std::slice::from_ref(self.own()),
                problems: &[],
                ..self.answer.shown()
            };
            let most_bytes = show::html::MOST_BYTES;
            show::html::fragment::page(&show::html::Page { answered: own, drawn: None, most_bytes })
        })
    }
}
