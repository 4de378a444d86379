//! Which columns events have, and how rows become columns.
//!
//! Beside the fields that the trace describes there are `time_ns` since the recording's first event, `cpu`, `tid` and `event`, the
//! event's name. A field that is called like one of these is called `field_cpu`, `field_tid`, ... Exits of guests have a `reason` too:
//! the name of their number, which means something else on Intel, AMD and arm64.

use crate::error::Failure;
use arrow_array::builder::{
    BinaryBuilder, Float64Builder, Int32Builder, Int64Builder, StringBuilder, UInt32Builder, UInt64Builder,
};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use base::nearest::instead;
use std::collections::HashMap;
use std::sync::Arc;
use trace::batch::NO_TID;
use trace::request::MOST_FIELDS;
use trace::{Event, EventType, FieldKind, Request, Trace, Wanted};
use walk::Isa;
use walk::events::exit_reason::reason;
use walk::events::roles::{ROWS, Role, exit, inject};
use walk::events::vendor;

/// Columns that every event has.
const OWN: [(&str, Own); 4] = [("time_ns", Own::Time), ("cpu", Own::Cpu), ("tid", Own::Tid), ("event", Own::Event)];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Own {
    Time,
    Cpu,
    Tid,
    Event,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Column {
    Own(Own),
    /// A field: how it is read, and its place among the wanted fields of each kind of event.
    Field(FieldKind, usize),
    /// Why the guest was left, by name: the first of the places of its number, its instruction set and its name, which follow each
    /// other, and the instruction set where the event names none.
    Reason(usize, Isa),
}

/// The column of [`Column::Reason`].
const REASON: &str = "reason";

/// The fields that tell why a guest was left, under any of their names: the number, the instruction set, the name.
fn reason_fields() -> [Vec<String>; 3] {
    let of = |role: Role, place: usize| {
        let row = ROWS.iter().find(|row| row.role == role);
        row.map_or(&[][..], |row| row.fields[place]).iter().map(|name| (*name).to_owned())
    };
    [
        of(Role::Exit, exit::REASON).chain(of(Role::Inject, inject::REASON)).collect(),
        of(Role::Exit, exit::ISA).collect(),
        of(Role::Exit, exit::REASON_NAME).chain(of(Role::Inject, inject::REASON_NAME)).collect(),
    ]
}

/// Whether one of these events is an exit, and none has a field of its own that is called `reason`.
fn have_reason(kinds: &[&EventType]) -> bool {
    let [number, _, name] = reason_fields();
    let tells =
        |kind: &&EventType| kind.fields.iter().any(|field| number.contains(&field.name) || name.contains(&field.name));
    kinds.iter().any(tells) && !kinds.iter().any(|kind| kind.fields.iter().any(|field| field.name == REASON))
}

/// The kinds of events that are wanted, and the columns of a row.
pub(crate) struct Kinds {
    request: Request,
    names: Vec<String>,
    columns: Vec<(String, Column)>,
    /// What the schema says beside the columns.
    about: HashMap<String, String>,
}

impl Kinds {
    /// What a trace has of these events and columns; all columns where none are named.
    ///
    /// # Errors
    /// If it has no such event or column.
    pub(crate) fn of(
        trace: &dyn Trace,
        names: &[String],
        columns: Option<&[String]>,
        about: HashMap<String, String>,
    ) -> Result<Self, Failure> {
        let facts = trace.facts();
        let file = facts.path.display();
        let kinds = names.iter().map(|name| {
            let wanted = Wanted { names: vec![name.clone()], fields: Vec::new() };
            facts.event_types.iter().find(|event| wanted.matches(event)).ok_or_else(|| {
                let known = facts.event_types.iter().map(|event| event.name.as_str());
                Failure::Usage(format!("{file} describes no event `{name}`: {}", instead(name, known)))
            })
        });
        let kinds: Vec<&EventType> = kinds.collect::<Result<_, _>>()?;
        if kinds.is_empty() {
            return Err(Failure::Usage("name at least one event, such as kvm_exit".to_owned()));
        }
        let fields = fields_of(&kinds)?;
        let called = |field: &str| {
            if OWN.iter().any(|(own, _)| *own == field) { format!("field_{field}") } else { field.to_owned() }
        };
        let reason = have_reason(&kinds).then(|| REASON.to_owned());
        let own = OWN.iter().map(|(own, _)| (*own).to_owned());
        let known: Vec<String> = own.chain(fields.iter().map(|(name, _)| called(name))).chain(reason).collect();
        let wanted: Vec<String> = match columns {
            Some(columns) => columns.to_vec(),
            // The name of the event says nothing where there is one kind.
            None => known.iter().filter(|name| kinds.len() > 1 || *name != "event").cloned().collect(),
        };
        let (mut of_rows, mut asked): (Vec<(String, Column)>, Vec<Vec<String>>) = (Vec::new(), Vec::new());
        for name in wanted {
            let column = match known.iter().position(|column| *column == name) {
                None => {
                    let instead = instead(&name, known.iter().map(String::as_str));
                    let of = names.join(", ");
                    return Err(Failure::Usage(format!("{of} in {file} has no column `{name}`: {instead}")));
                }
                Some(place) if place < OWN.len() => Column::Own(OWN[place].1),
                Some(place) => match fields.get(place - OWN.len()) {
                    Some((field, kind)) => {
                        asked.push(vec![(*field).to_owned()]);
                        Column::Field(*kind, asked.len() - 1)
                    }
                    None => {
                        asked.extend(reason_fields());
                        Column::Reason(asked.len() - 3, vendor::of(trace))
                    }
                },
            };
            of_rows.push((name, column));
        }
        if asked.len() > MOST_FIELDS {
            return Err(Failure::Usage(format!(
                "name at most {MOST_FIELDS} fields in columns; these are {}",
                asked.len()
            )));
        }
        let wanted = |name: &String| Wanted { names: vec![name.clone()], fields: asked.clone() };
        let request = Request { events: names.iter().map(wanted).collect() };
        Ok(Self { request, names: kinds.iter().map(|kind| kind.name.clone()).collect(), columns: of_rows, about })
    }

    /// What is asked of the trace.
    pub(crate) fn request(&self) -> &Request {
        &self.request
    }

    /// The columns as Arrow has them.
    pub(crate) fn schema(&self) -> SchemaRef {
        let field = |(name, column): &(String, Column)| {
            let unit = if *column == Column::Own(Own::Time) { "ns" } else { "" };
            let about = HashMap::from([("unit".to_owned(), unit.to_owned())]);
            let can_be_missing = !matches!(column, Column::Own(Own::Time | Own::Cpu | Own::Event));
            Field::new(name, column.data_type(), can_be_missing).with_metadata(about)
        };
        let fields: Vec<Field> = self.columns.iter().map(field).collect();
        Arc::new(Schema::new_with_metadata(fields, self.about.clone()))
    }
}

/// All fields of these events, each once.
fn fields_of<'f>(kinds: &[&'f EventType]) -> Result<Vec<(&'f str, FieldKind)>, Failure> {
    let mut fields: Vec<(&str, FieldKind)> = Vec::new();
    for kind in kinds {
        for field in &kind.fields {
            match fields.iter().find(|(name, _)| *name == field.name) {
                None => fields.push((&field.name, field.kind)),
                Some((_, same)) if *same == field.kind => {}
                Some(_) => {
                    let all: Vec<&str> = kinds.iter().map(|kind| kind.name.as_str()).collect();
                    return Err(Failure::Usage(format!(
                        "field `{}` is of another type in {} than in the others of {}: ask for one at a time",
                        field.name,
                        kind.name,
                        all.join(", ")
                    )));
                }
            }
        }
    }
    Ok(fields)
}

impl Column {
    fn data_type(&self) -> DataType {
        match self {
            Self::Field(FieldKind::Unsigned, _) => DataType::UInt64,
            Self::Own(Own::Cpu) => DataType::UInt32,
            Self::Own(Own::Tid) => DataType::Int32,
            Self::Own(Own::Event) | Self::Field(FieldKind::Text, _) | Self::Reason(..) => DataType::Utf8,
            // Times are subtracted from each other.
            Self::Own(Own::Time) | Self::Field(FieldKind::Signed, _) => DataType::Int64,
            Self::Field(FieldKind::Float, _) => DataType::Float64,
            Self::Field(FieldKind::Bytes, _) => DataType::Binary,
        }
    }
}

/// Values of one column.
enum Values {
    U64(UInt64Builder),
    I64(Int64Builder),
    F64(Float64Builder),
    U32(UInt32Builder),
    I32(Int32Builder),
    Text(StringBuilder),
    Bytes(BinaryBuilder),
}

/// Rows that were told, column by column.
pub(crate) struct Columns<'k> {
    kinds: &'k Kinds,
    schema: SchemaRef,
    values: Vec<Values>,
    rows: usize,
}

impl<'k> Columns<'k> {
    /// No rows yet.
    pub(crate) fn new(kinds: &'k Kinds) -> Self {
        let values = kinds.columns.iter().map(|(_, column)| match column.data_type() {
            DataType::UInt64 => Values::U64(UInt64Builder::new()),
            DataType::UInt32 => Values::U32(UInt32Builder::new()),
            DataType::Int32 => Values::I32(Int32Builder::new()),
            DataType::Int64 => Values::I64(Int64Builder::new()),
            DataType::Float64 => Values::F64(Float64Builder::new()),
            DataType::Binary => Values::Bytes(BinaryBuilder::new()),
            _ => Values::Text(StringBuilder::new()),
        });
        Self { kinds, schema: kinds.schema(), values: values.collect(), rows: 0 }
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.rows
    }

    /// Adds an event.
    pub(crate) fn push(&mut self, event: &Event<'_>, at_ns: u64) {
        self.rows += 1;
        let text = |content: &[u8]| String::from_utf8_lossy(content).into_owned();
        for ((_, column), values) in self.kinds.columns.iter().zip(&mut self.values) {
            match (column, values) {
                (Column::Own(Own::Time), Values::I64(values)) => values.append_value(at_ns.cast_signed()),
                (Column::Reason(at, silent), Values::Text(values)) => {
                    let is_exit = event.get(*at).is_some() || event.content(at + 2).is_some();
                    values.append_option(is_exit.then(|| reason(event, *at, at + 1, at + 2, *silent).name()));
                }
                (Column::Own(Own::Cpu), Values::U32(values)) => values.append_value(event.cpu),
                (Column::Own(Own::Tid), Values::I32(values)) => {
                    values.append_option((event.tid != NO_TID).then_some(event.tid));
                }
                (Column::Own(Own::Event), Values::Text(values)) => {
                    values.append_value(self.kinds.names.get(usize::from(event.kind)).map_or("", String::as_str));
                }
                (Column::Field(_, at), Values::U64(values)) => values.append_option(event.get(*at)),
                // The 64 bits of a field are those of its type.
                (Column::Field(_, at), Values::I64(values)) => {
                    values.append_option(event.get(*at).map(|value| value as i64));
                }
                (Column::Field(_, at), Values::F64(values)) => values.append_option(event.get(*at).map(f64::from_bits)),
                (Column::Field(_, at), Values::Text(values)) => values.append_option(event.content(*at).map(text)),
                (Column::Field(_, at), Values::Bytes(values)) => values.append_option(event.content(*at)),
                (column, _) => unreachable!("{column:?} has values of its own type"),
            }
        }
    }

    /// The rows as a batch; there are none afterwards.
    ///
    /// # Errors
    /// If Arrow refuses them, which is a mistake in the program.
    pub(crate) fn take(&mut self) -> Result<RecordBatch, ArrowError> {
        self.rows = 0;
        let arrays = self.values.iter_mut().map(|values| -> ArrayRef {
            match values {
                Values::U64(values) => Arc::new(values.finish()),
                Values::I64(values) => Arc::new(values.finish()),
                Values::F64(values) => Arc::new(values.finish()),
                Values::U32(values) => Arc::new(values.finish()),
                Values::I32(values) => Arc::new(values.finish()),
                Values::Text(values) => Arc::new(values.finish()),
                Values::Bytes(values) => Arc::new(values.finish()),
            }
        });
        RecordBatch::try_new(Arc::clone(&self.schema), arrays.collect())
    }
}
