//! Why there is no answer, as exceptions whose message is the program's sentence: what, in which file, at which offset.

use base::plain::without_os_numbers;
use pyo3::create_exception;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use std::fmt::Display;

create_exception!(kvmscope, Error, PyException, "Why kvmscope has no answer.");
create_exception!(
    kvmscope,
    NoAnswerError,
    Error,
    "Nothing could be opened, read or answered: exit status 1 of the program."
);
create_exception!(
    kvmscope,
    UsageError,
    Error,
    "What was asked for cannot be: a name that is not there, values that do not fit. Exit status 2 of the program."
);

/// Adds the exceptions to the module.
pub(crate) fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("Error", py.get_type::<Error>())?;
    module.add("NoAnswerError", py.get_type::<NoAnswerError>())?;
    module.add("UsageError", py.get_type::<UsageError>())
}

/// A sentence that says why, before it becomes an exception: it is made on a thread that Python does not know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// Nothing could be answered.
    NoAnswer(String),
    /// What was asked for cannot be.
    Usage(String),
}

impl Failure {
    /// Nothing could be answered, because of `cause`.
    pub fn no_answer(cause: impl Display) -> Self {
        Self::NoAnswer(without_os_numbers(&cause.to_string()))
    }

    /// What was asked for cannot be, because of `cause`.
    pub fn usage(cause: impl Display) -> Self {
        Self::Usage(without_os_numbers(&cause.to_string()))
    }
}

impl From<analysis::Error> for Failure {
    fn from(error: analysis::Error) -> Self {
        match error {
            analysis::Error::NoSuch(_) | analysis::Error::Outside(_) => Self::usage(in_python(&error.to_string())),
            _ => Self::no_answer(error),
        }
    }
}

/// A sentence of the program about its options as one about the arguments of Python: `--vm x: ..` becomes `vm='x': ..`.
fn in_python(sentence: &str) -> String {
    let sentence = sentence.replace("--from and --to are seconds since", "from_ns and to_ns are nanoseconds since");
    let option = sentence.strip_prefix("--").and_then(|rest| rest.split_once(": "));
    let named = option.and_then(|(option, rest)| Some((option.split_once(' ')?, rest)));
    match named {
        Some((("vcpu", value), rest)) => format!("vcpu={value}: {rest}"),
        Some(((name, value), rest)) => format!("{name}='{value}': {rest}"),
        None => sentence,
    }
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::NoAnswer(sentence) => NoAnswerError::new_err(sentence),
            Failure::Usage(sentence) => UsageError::new_err(sentence),
        }
    }
}
