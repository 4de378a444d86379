//! Recordings and answers as Python objects.
//!
//! ```text
//! kvmscope.open(path) --> Recording (a Case) --report()--> Report --> Section --> Table    Arrow, through the PyCapsule interface
//!                             |                                          \--> Finding      the fields of the JSON
//!                             |--timeline(), chains()-->  Table
//!                             \--events()-->  EventStream, record batches as they are read
//! kvmscope.compare(a, b), kvmscope.plan.chain(..)     --> Report
//! ```
//! Nothing is computed here: cases, answers, drawings and Arrow come from the crates that the program has, so that both
//! agree to the last digit. What takes long runs on a thread of its own (`job`), without Python's lock.

mod answer;
mod comparison;
mod error;
mod event_columns;
mod events;
mod finding;
mod fleet;
mod job;
mod opening;
mod plan;
mod recording;
mod report;
mod section;
mod table;
mod timeline;
mod value;

use pyo3::prelude::*;

/// The compiled half of `kvmscope`.
#[pymodule]
fn _kvmscope(module: &Bound<'_, PyModule>) -> PyResult<()> {
    error::add_to(module)?;
    module.add_class::<recording::Recording>()?;
    module.add_class::<report::Report>()?;
    module.add_class::<section::Section>()?;
    module.add_class::<table::Table>()?;
    module.add_class::<finding::Finding>()?;
    module.add_class::<timeline::Timeline>()?;
    module.add_class::<events::EventStream>()?;
    module.add_function(wrap_pyfunction!(recording::open, module)?)?;
    module.add_function(wrap_pyfunction!(comparison::compare, module)?)?;
    module.add_function(wrap_pyfunction!(plan::plan_chain, module)?)?;
    fleet::add_to(module)?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))
}
