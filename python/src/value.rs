//! JSON as Python objects, without a text between: integers stay whole, numbers keep every bit. And numbers from Python.

use crate::error::UsageError;
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use serde_json::Value;

/// `value` as `json.loads` would give it.
pub(crate) fn to_python<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    match value {
        Value::Null => Ok(py.None().into_bound(py)),
        Value::Bool(value) => value.into_bound_py_any(py),
        Value::Number(number) => match (number.as_u64(), number.as_i64()) {
            (Some(value), _) => value.into_bound_py_any(py),
            (None, Some(value)) => value.into_bound_py_any(py),
            (None, None) => number.as_f64().into_bound_py_any(py),
        },
        Value::String(text) => text.into_bound_py_any(py),
        Value::Array(items) => {
            let items = items.iter().map(|item| to_python(py, item)).collect::<PyResult<Vec<_>>>()?;
            Ok(PyList::new(py, items)?.into_any())
        }
        Value::Object(map) => {
            let dict = PyDict::new(py);
            map.iter().try_for_each(|(key, item)| dict.set_item(key, to_python(py, item)?))?;
            Ok(dict.into_any())
        }
    }
}

/// A number that cannot be negative, as Python hands it over under `name`.
///
/// # Errors
/// A [`UsageError`] that names it if it is negative, or larger than any that can be meant.
pub(crate) fn whole<T: TryFrom<i128>>(name: &str, number: Option<i128>) -> PyResult<Option<T>> {
    let refused = |number| UsageError::new_err(format!("{name}={number}: write a whole number that is not negative"));
    number.map(|number| T::try_from(number).map_err(|_| refused(number))).transpose()
}

/// An empty dict whose lookups say what there is when a `kind` is asked for that it has not.
///
/// # Errors
/// If the package lacks its module.
pub(crate) fn named<'py>(py: Python<'py>, kind: &str) -> PyResult<Bound<'py, PyAny>> {
    py.import("kvmscope._named")?.getattr("Named")?.call1((kind,))
}
