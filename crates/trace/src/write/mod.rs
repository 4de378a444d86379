//! How are events written as a trace that other programs read?
//!
//! ```text
//! Schema --------------------------------------------------\
//! Record, Loss in time order --> Sink --> tracedat | ctf | perfdata | text --> file or directory
//! raw pages of a kernel ---------------> tracedat::TraceDat::write_to -------> file
//! ```
//! The recorder and `cut` write through this module, and so does the generator of traces whose truth is known. In come
//! records in time order, one at a time; a sink holds one page or packet per CPU, never the trace. Out goes what
//! `trace-cmd report`, `babeltrace2` and `perf script` read.

pub mod ctf;
pub mod layout;
pub mod page;
pub mod perfdata;
pub mod repeat;
pub mod text;
pub mod tracedat;

use std::io;

/// The kinds of events of a trace to be written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Schema {
    /// A record names its event by the position in this list.
    pub events: Vec<EventSchema>,
}

/// One kind of event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventSchema {
    /// Group, such as `kvm`.
    pub system: String,
    /// Name, such as `kvm_exit`.
    pub name: String,
    /// Its own fields, in order.
    pub fields: Vec<FieldSchema>,
    /// The line after `print fmt:`; `None` for one made from the fields.
    pub print_fmt: Option<String>,
}

/// One field, without its place, which depends on the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldSchema {
    /// Its name.
    pub name: String,
    /// Its C type without brackets: `unsigned int`, `char`, `u64`.
    pub c_type: String,
    /// What it holds.
    pub shape: Shape,
    /// True if the kernel prints it in hexadecimal without `0x`, which `trace-cmd report -R` follows.
    pub bare_hex: bool,
}

/// What a field holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// An integer of 1, 2, 4 or 8 bytes.
    Integer {
        /// Its size.
        bytes: u8,
        /// True for a signed one.
        signed: bool,
    },
    /// An integer of the machine's `long`, 4 or 8 bytes.
    Long {
        /// True for a signed one.
        signed: bool,
    },
    /// Characters in an array of fixed size, padded with NUL.
    Chars {
        /// Size of the array.
        bytes: u16,
    },
    /// Characters of any length behind the fixed part (`__data_loc`).
    Dynamic,
    /// Bytes in an array of fixed size.
    Bytes {
        /// Size of the array.
        bytes: u16,
    },
}

/// Value of one field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// An integer; a signed one in two's complement.
    Integer(u64),
    /// Text, cut to the field's size.
    Text(String),
    /// Bytes, cut to the field's size.
    Bytes(Vec<u8>),
}

/// One event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Time in ticks of the trace's clock.
    pub ticks: u64,
    /// CPU on which it happened.
    pub cpu: u32,
    /// Thread that was running.
    pub tid: i32,
    /// Position of its kind in the schema.
    pub event: usize,
    /// Values of its fields, in the schema's order; missing ones are 0 or empty.
    pub values: Vec<Value>,
}

/// Events that the recorder could not keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Loss {
    /// When it was over: no later than the next record of the CPU.
    pub ticks: u64,
    /// The CPU whose buffer was full.
    pub cpu: u32,
    /// How many, where the recorder counted.
    pub events: Option<u64>,
}

/// Something that takes records in time order and makes a trace of them.
pub trait Sink {
    /// Adds one event.
    ///
    /// # Errors
    /// If the operating system refuses to write, or the record does not fit the schema or a page.
    fn record(&mut self, record: &Record) -> io::Result<()>;

    /// Marks that events were lost.
    ///
    /// # Errors
    /// If the operating system refuses to write.
    fn lost(&mut self, loss: &Loss) -> io::Result<()>;

    /// Completes the trace.
    ///
    /// # Errors
    /// If the operating system refuses to write.
    fn finish(self: Box<Self>) -> io::Result<()>;
}

impl Schema {
    /// Position of the event called `name`.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.events.iter().position(|event| event.name == name)
    }
}

impl EventSchema {
    /// An event with the fields that `declarations` spell in C, separated by `;`: `unsigned int vcpu_id; char comm[16]`.
    /// `u32 ecx:x` is one that the kernel prints in bare hexadecimal.
    ///
    /// # Panics
    /// If a declaration has no name: schemas are constants of the program, not input.
    pub fn declared(system: &str, name: &str, declarations: &str) -> Self {
        let fields = declarations.split(';').map(str::trim).filter(|text| !text.is_empty()).map(FieldSchema::declared);
        Self { system: system.into(), name: name.into(), fields: fields.collect(), print_fmt: None }
    }
}

impl FieldSchema {
    /// The field that a C declaration spells; `__data_loc char[] name` for text of any length.
    fn declared(declaration: &str) -> Self {
        let (declaration, bare_hex) = match declaration.strip_suffix(":x") {
            Some(declaration) => (declaration, true),
            None => (declaration, false),
        };
        let (left, size) = match declaration.strip_suffix(']').and_then(|text| text.rsplit_once('[')) {
            Some((left, size)) => (left, size.parse::<u16>().ok()),
            None => (declaration, None),
        };
        let split = left.rfind([' ', '*']).expect("a declaration has a type and a name");
        let (c_type, name) = (left[..=split].trim(), &left[split + 1..]);
        let shape = match (c_type, size) {
            ("__data_loc char[]", _) => Shape::Dynamic,
            ("char", Some(bytes)) => Shape::Chars { bytes },
            (_, Some(bytes)) => Shape::Bytes { bytes },
            (_, None) => integer_shape(c_type),
        };
        Self { name: name.to_owned(), c_type: c_type.to_owned(), shape, bare_hex }
    }
}

/// Size and sign of the C types that kernel events use (include/linux/types.h).
fn integer_shape(c_type: &str) -> Shape {
    let integer = |bytes, signed| Shape::Integer { bytes, signed };
    match c_type.trim_start_matches("__") {
        "u64" | "unsigned long long" => integer(8, false),
        "s64" | "long long" => integer(8, true),
        "u16" | "unsigned short" => integer(2, false),
        "u8" | "unsigned char" | "bool" => integer(1, false),
        "int" | "pid_t" | "s32" => integer(4, true),
        "long" => Shape::Long { signed: true },
        "unsigned long" => Shape::Long { signed: false },
        pointer if pointer.ends_with('*') => Shape::Long { signed: false },
        _ => integer(4, false),
    }
}

impl Value {
    /// The integer, 0 for text and bytes.
    pub fn integer(&self) -> u64 {
        match self {
            Value::Integer(value) => *value,
            Value::Text(_) | Value::Bytes(_) => 0,
        }
    }

    /// The content of text and bytes, empty for an integer.
    pub fn content(&self) -> &[u8] {
        match self {
            Value::Integer(_) => &[],
            Value::Text(text) => text.as_bytes(),
            Value::Bytes(bytes) => bytes,
        }
    }
}

impl From<u64> for Value {
    fn from(value: u64) -> Self {
        Value::Integer(value)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Value::Text(text.to_owned())
    }
}

/// The value that stands where a record has none.
const ABSENT: Value = Value::Integer(0);

impl Record {
    /// Value of field `index`, 0 where the record has none.
    pub fn value(&self, index: usize) -> &Value {
        self.values.get(index).unwrap_or(&ABSENT)
    }
}

/// The error of a record whose kind is not in the schema.
fn unknown_event(record: &Record) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, format!("event {} is not in the schema", record.event))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declarations_give_shapes() {
        let event =
            EventSchema::declared("x", "y", "unsigned long rip; char comm[16]; __data_loc char[] msg; void * p");
        let seen: Vec<_> = event.fields.iter().map(|field| (field.name.as_str(), field.shape)).collect();
        assert_eq!(
            seen,
            [
                ("rip", Shape::Long { signed: false }),
                ("comm", Shape::Chars { bytes: 16 }),
                ("msg", Shape::Dynamic),
                ("p", Shape::Long { signed: false }),
            ]
        );
    }
}
