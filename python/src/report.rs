//! The answers of one command: text, JSON, a page, and its parts as objects.

use crate::answer::Answer;
use crate::error::Failure;
use crate::finding::Finding;
use crate::section::Section;
use crate::value::{named, to_python};
use analysis::Given;
use analysis::facts::budget::{self, Budget};
use base::{Level, Narrow, Span};
use pyo3::prelude::*;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What a user asks of a recording beside everything.
#[derive(Default)]
pub(crate) struct Asked {
    /// Name, path or text of a latency budget.
    pub budget: Option<PathBuf>,
    /// Only rows of this level.
    pub level: Option<String>,
    /// Only this VM.
    pub vm: Option<String>,
    /// Only this vCPU.
    pub vcpu: Option<u32>,
    /// From this time on.
    pub from_ns: Option<u64>,
    /// Until this time.
    pub to_ns: Option<u64>,
    /// The level whose traces count what several saw.
    pub witness: Option<String>,
}

impl Asked {
    /// Whether nothing but everything is asked.
    pub(crate) fn is_plain(&self) -> bool {
        let Self { budget, level, vm, vcpu, from_ns, to_ns, witness } = self;
        let narrowed = level.is_some() || vm.is_some() || vcpu.is_some() || from_ns.is_some() || to_ns.is_some();
        !narrowed && budget.is_none() && witness.is_none()
    }

    /// The same as questions take it.
    ///
    /// # Errors
    /// If it cannot be.
    pub(crate) fn given(&self) -> Result<Given, Failure> {
        let window = match (self.from_ns, self.to_ns) {
            (None, None) => None,
            (from, to) => Some(Span { from_ns: from.unwrap_or(0), to_ns: to.unwrap_or(u64::MAX) }),
        };
        if window.is_some_and(|window| window.to_ns <= window.from_ns) {
            return Err(Failure::Usage("from_ns must be before to_ns".to_owned()));
        }
        let level_of = |text: &Option<String>| text.as_deref().map(str::parse::<Level>).transpose();
        let level = level_of(&self.level).map_err(Failure::usage)?;
        let witness = level_of(&self.witness).map_err(Failure::usage)?;
        let narrow = Narrow { level, vm: self.vm.clone(), vcpu: self.vcpu, window, witness };
        let budget = self.budget.as_deref().map(read_budget).transpose()?;
        Ok(Given { narrow, budget, ..Given::default() })
    }
}

/// A budget by its name, its path, or its text, which has more than one line.
fn read_budget(asked: &Path) -> Result<Budget, Failure> {
    match asked.to_str().filter(|text| text.contains('\n')) {
        Some(text) => Budget::read("budget", text).map_err(Failure::usage),
        None => budget::named(asked).map(|(budget, _)| budget).map_err(Failure::usage),
    }
}

/// What a command found out: sections with tables and findings, and what was wrong with the input.
///
/// ``str()`` of it is the text that the program prints, and a notebook shows the parts of the program's page.
#[pyclass(frozen, module = "kvmscope")]
pub struct Report {
    /// Shared with all that is taken out of it.
    pub answer: Arc<Answer>,
}

#[pymethods]
impl Report {
    /// The sections by their ids, in the order in which the program prints them.
    ///
    /// Where two sections have one id, the second one is called by its id and `#2`.
    #[getter]
    fn sections<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let sections = named(py, "section")?;
        for (place, section) in self.answer.sections.iter().enumerate() {
            let twins = self.answer.sections[..place].iter().filter(|earlier| earlier.id == section.id).count();
            let name = if twins == 0 { section.id.to_owned() } else { format!("{}#{}", section.id, twins + 1) };
            sections.set_item(name, Section { answer: Arc::clone(&self.answer), place })?;
        }
        Ok(sections)
    }

    /// The findings of all sections, the one to act on first at the front.
    ///
    /// >>> for finding in kvmscope.open(fixtures / "seed-vhost").report().findings[:2]:
    /// ...     print(finding.severity, finding.id)
    /// medium PLC-OVERLAP@bigip-virtio
    /// medium PLC-STACKED@bigip-virtio
    #[getter]
    fn findings(&self) -> Vec<Finding> {
        let places = 0..self.answer.sections.len();
        let mut all: Vec<Finding> = places.flat_map(|place| Finding::of_section(&self.answer, place)).collect();
        all.sort_by_key(|finding| finding.rank);
        all
    }

    /// What was wrong with the input, each with its `file` and `offset`, as `problems` of the JSON.
    #[getter]
    fn problems<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &serde_json::to_value(&self.answer.problems).unwrap_or_default())
    }

    /// Why questions have no answer that could not be answered, a sentence each.
    #[getter]
    fn failed(&self) -> Vec<String> {
        self.answer.failed.clone()
    }

    /// What the program prints with `--json`, byte by byte.
    fn json(&self, py: Python<'_>) -> PyResult<String> {
        let json = py.detach(|| self.answer.json());
        Ok(String::from_utf8(json)?)
    }

    fn __str__(&self, py: Python<'_>) -> String {
        py.detach(|| self.answer.text())
    }

    fn __repr__(&self) -> String {
        let sections = self.answer.sections.iter().map(|section| section.id);
        let findings: usize = self.answer.sections.iter().map(|section| section.findings.len()).sum();
        let findings = base::number::many(findings as u64, "finding");
        format!("<kvmscope.Report {}: {}; {findings}>", self.answer.title(), sections.collect::<Vec<_>>().join(", "))
    }

    fn _repr_html_(&self, py: Python<'_>) -> String {
        py.detach(|| {
            let answered = self.answer.shown();
            show::html::fragment::page(&show::html::Page { answered, drawn: None, most_bytes: show::html::MOST_BYTES })
        })
    }
}
