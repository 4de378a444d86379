//! How do the tools print events?
//!
//! ```text
//! trace-cmd report -R    "       CPU 0/KVM-170   [000]    61.000000100: kvm_exit:   exit_reason=24 guest_rip=0x10000"
//! trace_pipe             "       CPU 0/KVM-170     [000] d..1.    61.000000: kvm_exit: vcpu 0 reason VMRESUME rip 0x10000"
//! ```
//! In: a [`Schema`] and records. Out: one text file. Losses are lines of their own, as each tool writes them. What
//! stands behind the event's name is `field=value` in the first form; in the second it follows each event's print format,
//! which the caller renders, for this crate does not know the events. Source of the layouts: trace-cmd 3.1.6 and
//! `trace_print_context` in kernel/trace/trace_output.c, Linux 6.12.

use super::{FieldSchema, Loss, Record, Schema, Shape, Sink, Value, unknown_event};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Makes the text behind an event's name; `None` leaves the event out.
pub(crate) type Render = Box<dyn Fn(&Record) -> Option<String>>;

/// Which tool's text.
pub enum Form {
    /// `trace-cmd report -R`, times in ns if asked for (`-t`), else in us.
    Raw {
        /// True for nine digits.
        nanoseconds: bool,
    },
    /// `trace_pipe`, with the print formats that the caller renders.
    Printed(Render),
}

/// Takes records and prints them.
pub struct Text {
    out: BufWriter<File>,
    schema: Schema,
    form: Form,
    comms: BTreeMap<i32, String>,
}

impl Text {
    /// Begins a text at `path`. Ticks are nanoseconds here.
    ///
    /// # Errors
    /// If the file cannot be made.
    pub fn create(path: &Path, schema: &Schema, form: Form, comms: &[(i32, String)], cpus: u32) -> io::Result<Self> {
        let mut out = BufWriter::new(File::create(path)?);
        match form {
            Form::Raw { .. } => writeln!(out, "cpus={cpus}")?,
            Form::Printed(_) => writeln!(out, "# tracer: nop\n#")?,
        }
        Ok(Self { out, schema: schema.clone(), form, comms: comms.iter().cloned().collect() })
    }
}

impl Sink for Text {
    fn record(&mut self, record: &Record) -> io::Result<()> {
        let event = self.schema.events.get(record.event).ok_or_else(|| unknown_event(record))?;
        let comm = match record.tid {
            0 => "<idle>",
            tid => self.comms.get(&tid).map_or("<...>", String::as_str),
        };
        let (tid, cpu, name) = (record.tid, record.cpu, &event.name);
        match &self.form {
            Form::Raw { nanoseconds } => {
                let time = if *nanoseconds { nanosecond_time(record.ticks) } else { microsecond_time(record.ticks) };
                write!(self.out, "{comm:>16}-{tid:<5} [{cpu:03}] {time}: {:<21} ", format!("{name}:"))?;
                for (index, field) in event.fields.iter().enumerate() {
                    write!(self.out, " {}={}", field.name, raw(field, record.value(index)))?;
                }
                writeln!(self.out)
            }
            Form::Printed(render) => match render(record) {
                Some(body) => {
                    let time = microsecond_time(record.ticks);
                    writeln!(self.out, "{comm:>16}-{tid:<7} [{cpu:03}] d..1. {time}: {name}: {body}")
                }
                None => Ok(()),
            },
        }
    }

    fn lost(&mut self, loss: &Loss) -> io::Result<()> {
        let cpu = loss.cpu;
        match (&self.form, loss.events) {
            (Form::Raw { .. }, Some(events)) => writeln!(self.out, "CPU:{cpu} [{events} EVENTS DROPPED]"),
            (Form::Raw { .. }, None) => writeln!(self.out, "CPU:{cpu} [EVENTS DROPPED]"),
            (Form::Printed(_), Some(events)) => writeln!(self.out, "CPU:{cpu} [LOST {events} EVENTS]"),
            (Form::Printed(_), None) => writeln!(self.out, "CPU:{cpu} [LOST EVENTS]"),
        }
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        self.out.flush()
    }
}

fn nanosecond_time(ns: u64) -> String {
    format!("{:>5}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000)
}

/// Rounded to the nearest, as trace-cmd and the kernel's `ns2usecs` do.
fn microsecond_time(ns: u64) -> String {
    let us = (ns + 500) / 1_000;
    format!("{:>5}.{:06}", us / 1_000_000, us % 1_000_000)
}

/// A value as `trace-cmd report -R` shows it by our print formats: longs and unsigned 64-bit fields in hexadecimal, all
/// else in decimal.
fn raw(field: &FieldSchema, value: &Value) -> String {
    match (field.shape, value) {
        (Shape::Integer { .. } | Shape::Long { .. }, value) if field.bare_hex => format!("{:x}", value.integer()),
        (Shape::Integer { signed: true, .. } | Shape::Long { signed: true }, value) => {
            (value.integer() as i64).to_string()
        }
        (Shape::Integer { bytes: 8, .. } | Shape::Long { .. }, value) => format!("{:#x}", value.integer()),
        (Shape::Integer { .. }, value) => value.integer().to_string(),
        (Shape::Chars { .. } | Shape::Dynamic, value) => String::from_utf8_lossy(value.content()).into_owned(),
        (Shape::Bytes { .. }, value) => {
            let bytes: Vec<_> = value.content().iter().map(|byte| format!("{byte:02x}")).collect();
            format!("ARRAY[{}]", bytes.join(", "))
        }
    }
}
