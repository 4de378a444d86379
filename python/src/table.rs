//! A table that every Arrow library takes without a copy, through the PyCapsule interface.

use crate::answer::Answer;
use crate::error::Failure;
use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::{ArrayRef, Int64Array, RecordBatch, StructArray};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use base::recording::Emulator;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};
use pyo3_arrow::error::PyArrowResult;
use pyo3_arrow::ffi::{ArrayIterator, to_schema_pycapsule, to_stream_pycapsule};
use std::collections::HashMap;
use std::sync::Arc;

/// One table: rows with named columns, whose units are in their names and in the schema's metadata.
///
/// pyarrow, pandas, polars and duckdb take it as it is:
///
/// >>> import pyarrow
/// >>> exits = kvmscope.open(fixtures / "nested-svm-toy").report().sections["flow"].tables["exits"]
/// >>> pyarrow.table(exits).num_rows == len(exits)
/// True
#[pyclass(frozen, module = "kvmscope")]
pub struct Table {
    rows: Rows,
}

enum Rows {
    /// A table of an answer, which becomes columns when they are wanted.
    Answered { answer: Arc<Answer>, section: usize, table: usize },
    /// Columns, under a name.
    Made { name: &'static str, schema: SchemaRef, batches: Vec<RecordBatch> },
}

impl Table {
    /// The table at place `table` of the section at place `section`.
    pub fn of_answer(answer: &Arc<Answer>, section: usize, table: usize) -> Self {
        Self { rows: Rows::Answered { answer: Arc::clone(answer), section, table } }
    }

    /// A table of its own, whose batches have this schema.
    pub fn made(name: &'static str, schema: SchemaRef, batches: Vec<RecordBatch>) -> Self {
        Self { rows: Rows::Made { name, schema, batches } }
    }

    fn schema(&self) -> Result<SchemaRef, Failure> {
        match &self.rows {
            Rows::Answered { answer, section, table } => Ok(answer.batch(*section, *table)?.schema()),
            Rows::Made { schema, .. } => Ok(Arc::clone(schema)),
        }
    }

    fn batches(&self) -> Result<Vec<RecordBatch>, Failure> {
        match &self.rows {
            Rows::Answered { answer, section, table } => Ok(vec![answer.batch(*section, *table)?.clone()]),
            Rows::Made { batches, .. } => Ok(batches.clone()),
        }
    }

    /// The table as answers have it, if it is of one.
    fn answered(&self) -> Option<(&Answer, &base::Section, &base::Table)> {
        let Rows::Answered { answer, section, table } = &self.rows else { return None };
        let section = &answer.sections[*section];
        Some((&**answer, section, &section.tables[*table]))
    }
}

#[pymethods]
impl Table {
    /// `<section>.<table>`, as everywhere in the program.
    #[getter]
    fn name(&self) -> String {
        match &self.rows {
            Rows::Answered { .. } => self.answered().map(|(_, _, table)| table.spec.address()).unwrap_or_default(),
            Rows::Made { name, .. } => (*name).to_owned(),
        }
    }

    /// The names of its columns.
    #[getter]
    fn columns(&self) -> PyResult<Vec<String>> {
        Ok(self.schema()?.fields().iter().map(|field| field.name().clone()).collect())
    }

    /// The unit of each column by its name: `ns`, `bytes`, `count`, `share`, ... or empty.
    #[getter]
    fn units<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let units = PyDict::new(py);
        for field in self.schema()?.fields() {
            units.set_item(field.name(), field.metadata().get("unit").map_or("", String::as_str))?;
        }
        Ok(units)
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyArrowResult<Bound<'py, PyCapsule>> {
        let batches = py.detach(|| self.batches()).map_err(PyErr::from)?;
        let schema = self.schema().map_err(PyErr::from)?;
        stream(py, &schema, batches.into_iter().map(Ok), requested_schema)
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyArrowResult<Bound<'py, PyCapsule>> {
        to_schema_pycapsule(py, self.schema().map_err(PyErr::from)?.as_ref())
    }

    fn __len__(&self) -> usize {
        match &self.rows {
            Rows::Answered { answer, section, table } => answer.sections[*section].tables[*table].rows.len(),
            Rows::Made { batches, .. } => batches.iter().map(RecordBatch::num_rows).sum(),
        }
    }

    fn __str__(&self) -> PyResult<String> {
        let Some((answer, _, table)) = self.answered() else { return self.__repr__() };
        let text = show::text::render_table(table, &show::text::Page::default());
        if text.is_empty() {
            return self.__repr__();
        }
        // No time that is not real without the mark.
        let mark = answer
            .emulated()
            .map(|by| format!("EMULATED by {}: counts and order are real, times are not.\n", by.name()));
        Ok(mark.unwrap_or_default() + &text)
    }

    fn __repr__(&self) -> PyResult<String> {
        let rows = base::number::many(self.__len__() as u64, "row");
        Ok(format!("<kvmscope.Table {}: {rows}; {}>", self.name(), self.columns()?.join(", ")))
    }

    fn _repr_html_(&self) -> Option<String> {
        let (answer, section, table) = self.answered()?;
        show::html::fragment::of_table(section.id, table, answer.emulated())
    }
}

/// What a schema says of a table beside its columns: its name, and who emulated the hardware, as the files of `kvmscope export` do.
pub(crate) fn about(name: &str, emulated: Option<Emulator>) -> HashMap<String, String> {
    let emulated = emulated.map(|by| ("kvmscope.emulated".to_owned(), by.name().to_owned()));
    emulated.into_iter().chain([("kvmscope.table".to_owned(), name.to_owned())]).collect()
}

/// The same rows with signed integers, so that differences of columns can be negative in every library. Nothing is copied. A column with
/// a value above 2^63, which only addresses have, stays as it is.
///
/// # Errors
/// If Arrow refuses it, which is a mistake in the program.
pub(crate) fn signed(batch: RecordBatch) -> Result<RecordBatch, ArrowError> {
    let (schema, columns, _) = batch.into_parts();
    let signed = columns.iter().map(|column| {
        let values = column.as_primitive_opt::<UInt64Type>()?;
        let fits = values.iter().flatten().all(|value| i64::try_from(value).is_ok());
        let (_, values, missing) = fits.then(|| values.clone().into_parts())?;
        Some(Arc::new(Int64Array::new(values.into_inner().into(), missing)) as ArrayRef)
    });
    let signed: Vec<Option<ArrayRef>> = signed.collect();
    let fields = schema.fields().iter().zip(&signed).map(|(field, signed)| match signed {
        Some(_) => Arc::new(field.as_ref().clone().with_data_type(DataType::Int64)),
        None => Arc::clone(field),
    });
    let schema = Schema::new_with_metadata(fields.collect::<Vec<_>>(), schema.metadata().clone());
    let columns = columns.into_iter().zip(signed).map(|(column, signed)| signed.unwrap_or(column));
    RecordBatch::try_new(Arc::new(schema), columns.collect())
}

/// Batches of one schema as Arrow's C stream.
pub(crate) fn stream<'py>(
    py: Python<'py>,
    schema: &Schema,
    batches: impl Iterator<Item = Result<RecordBatch, ArrowError>> + Send + 'static,
    requested_schema: Option<Bound<'py, PyCapsule>>,
) -> PyArrowResult<Bound<'py, PyCapsule>> {
    let arrays = batches.map(|batch| batch.map(|batch| Arc::new(StructArray::from(batch)) as ArrayRef));
    let reader = ArrayIterator::new(arrays, struct_field(schema));
    to_stream_pycapsule(py, Box::new(reader), requested_schema)
}

/// A schema as the type of its rows, which is how Arrow's C interface passes it.
fn struct_field(schema: &Schema) -> Arc<Field> {
    let field = Field::new_struct("", schema.fields().clone(), false);
    Arc::new(field.with_metadata(schema.metadata().clone()))
}
