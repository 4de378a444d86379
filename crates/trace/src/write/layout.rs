//! Where do a record's fields lie on a given machine, and how does its kernel say so?
//!
//! In: an [`EventSchema`] and a [`Machine`]. Out: an [`EventFormat`] with C's offsets, its text as tracefs prints it,
//! and the bytes of a record. The four common fields are those of `trace_define_common_fields`
//! (kernel/trace/trace_events.c, Linux 6.12); `__data_loc` is described in include/trace/stages/stage1_struct_define.h.

use super::{EventSchema, FieldSchema, Record, Schema, Shape, Value};
use crate::format::{Endian, EventFormat, Field, Storage};
use std::fmt::Write;

/// What decides how records lie in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Machine {
    /// Byte order.
    pub endian: Endian,
    /// Bytes of a C `long`: 4 or 8. 64-bit fields are aligned to it, as i386 and x86-64 do.
    pub long_bytes: u8,
}

impl Machine {
    /// x86-64.
    pub const X86_64: Self = Self { endian: Endian::Little, long_bytes: 8 };

    /// Adds the low `bytes` bytes of `value` in this machine's order.
    pub fn put(self, out: &mut Vec<u8>, value: u64, bytes: usize) {
        match self.endian {
            Endian::Little => out.extend_from_slice(&value.to_le_bytes()[..bytes]),
            Endian::Big => out.extend_from_slice(&value.to_be_bytes()[8 - bytes..]),
        }
    }

    /// Overwrites the bytes of `out` from `at` on.
    pub(super) fn put_at(self, out: &mut [u8], at: usize, value: u64, bytes: usize) {
        match self.endian {
            Endian::Little => out[at..at + bytes].copy_from_slice(&value.to_le_bytes()[..bytes]),
            Endian::Big => out[at..at + bytes].copy_from_slice(&value.to_be_bytes()[8 - bytes..]),
        }
    }
}

/// Number of the first event; the kernel's own (`print`, `function`) lie below.
const FIRST_ID: u32 = 100;

/// Gives each event of `schema` a number and its fields their places.
pub fn place_all(schema: &Schema, machine: Machine) -> Vec<EventFormat> {
    schema.events.iter().zip(FIRST_ID..).map(|(event, id)| place(event, id, machine)).collect()
}

/// Gives `schema` the number `id` and its fields their places.
pub fn place(schema: &EventSchema, id: u32, machine: Machine) -> EventFormat {
    let common = [
        ("unsigned short", "common_type", 0, 2, false),
        ("unsigned char", "common_flags", 2, 1, false),
        ("unsigned char", "common_preempt_count", 3, 1, false),
        ("int", "common_pid", 4, 4, true),
    ];
    let common = common.map(|(c_type, name, offset, size, signed)| Field {
        name: name.to_owned(),
        type_text: c_type.to_owned(),
        offset,
        size,
        signed,
        storage: Storage::Integer,
    });
    let mut end = 8;
    let mut fields = Vec::with_capacity(schema.fields.len());
    for field in &schema.fields {
        let placed = place_field(field, end, machine);
        end = placed.offset + placed.size;
        fields.push(placed);
    }
    let print_fmt = schema.print_fmt.clone().unwrap_or_else(|| plain_print_fmt(schema));
    EventFormat {
        system: schema.system.clone(),
        name: schema.name.clone(),
        id,
        common: common.to_vec(),
        fields,
        print_fmt,
    }
}

fn place_field(field: &FieldSchema, end: u32, machine: Machine) -> Field {
    let long = u32::from(machine.long_bytes);
    let (size, align, signed, storage) = match field.shape {
        Shape::Integer { bytes, signed } => (u32::from(bytes), u32::from(bytes).min(long), signed, Storage::Integer),
        Shape::Long { signed } => (long, long, signed, Storage::Integer),
        Shape::Chars { bytes } => (u32::from(bytes), 1, false, Storage::Chars),
        Shape::Bytes { bytes } => (u32::from(bytes), 1, false, Storage::Bytes),
        Shape::Dynamic => (4, 4, false, Storage::DataLoc(true)),
    };
    let offset = end.next_multiple_of(align);
    Field { name: field.name.clone(), type_text: field.c_type.clone(), offset, size, signed, storage }
}

/// A print format that lists the fields: `"vcpu_id=%u rip=0x%lx", REC->vcpu_id, REC->rip`.
fn plain_print_fmt(schema: &EventSchema) -> String {
    let mut words = Vec::new();
    let mut arguments = String::new();
    for FieldSchema { name, shape, bare_hex, .. } in &schema.fields {
        let conversion = match shape {
            Shape::Integer { bytes: 8, .. } if *bare_hex => "%llx",
            Shape::Integer { .. } if *bare_hex => "%x",
            Shape::Long { .. } if *bare_hex => "%lx",
            Shape::Integer { bytes: 8, signed: true } => "%lld",
            Shape::Integer { bytes: 8, .. } => "0x%llx",
            Shape::Integer { signed: true, .. } => "%d",
            Shape::Integer { .. } => "%u",
            Shape::Long { signed: true } => "%ld",
            Shape::Long { .. } => "0x%lx",
            Shape::Chars { .. } | Shape::Dynamic => "%s",
            Shape::Bytes { .. } => continue,
        };
        words.push(format!("{name}={conversion}"));
        let argument = if *shape == Shape::Dynamic { format!("__get_str({name})") } else { format!("REC->{name}") };
        arguments.push_str(", ");
        arguments.push_str(&argument);
    }
    format!("\"{}\"{arguments}", words.join(" "))
}

/// The format text as tracefs prints it.
pub fn text(format: &EventFormat) -> String {
    let mut text = format!("name: {}\nID: {}\nformat:\n", format.name, format.id);
    for field in &format.common {
        field_line(&mut text, field);
    }
    text.push('\n');
    for field in &format.fields {
        field_line(&mut text, field);
    }
    let _ = write!(text, "\nprint fmt: {}\n", format.print_fmt);
    text
}

fn field_line(text: &mut String, field: &Field) {
    let Field { name, type_text, offset, size, signed, storage } = field;
    let brackets = match storage {
        Storage::Chars | Storage::Bytes => format!("[{size}]"),
        _ => String::new(),
    };
    let signed = u8::from(*signed);
    let _ = writeln!(text, "\tfield:{type_text} {name}{brackets};\toffset:{offset};\tsize:{size};\tsigned:{signed};");
}

/// Writes the bytes of `record` to `out`, which is emptied first.
pub fn encode(format: &EventFormat, record: &Record, machine: Machine, out: &mut Vec<u8>) {
    let fixed = format.fields.iter().map(|field| field.offset + field.size).max().unwrap_or(8);
    out.clear();
    out.resize(fixed as usize, 0);
    machine.put_at(out, 0, u64::from(format.id), 2);
    machine.put_at(out, 4, record.tid as u64, 4);
    for (index, field) in format.fields.iter().enumerate() {
        let (at, size) = (field.offset as usize, field.size as usize);
        let value = record.value(index);
        match field.storage {
            Storage::Integer => machine.put_at(out, at, value.integer(), size),
            Storage::Chars => {
                let content = cut(value, size.saturating_sub(1));
                out[at..at + content.len()].copy_from_slice(content);
            }
            Storage::Bytes => {
                let content = cut(value, size);
                out[at..at + content.len()].copy_from_slice(content);
            }
            Storage::DataLoc(_) | Storage::RelLoc(_) => {
                let content = cut(value, usize::from(u8::MAX));
                let place = ((content.len() + 1) << 16 | out.len()) as u64;
                out.extend_from_slice(content);
                out.push(0);
                machine.put_at(out, at, place, 4);
            }
        }
    }
}

/// At most `most` bytes of text or bytes.
fn cut(value: &Value, most: usize) -> &[u8] {
    let content = value.content();
    &content[..content.len().min(most)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kvm_exit() -> EventSchema {
        EventSchema::declared(
            "kvm",
            "kvm_exit",
            "unsigned int exit_reason; unsigned long guest_rip; u32 isa; u64 info1; u64 info2; u32 intr_info; \
             u32 error_code; unsigned int vcpu_id; u64 requests",
        )
    }

    #[test]
    fn offsets_are_those_of_linux_6_18() {
        let format = place(&kvm_exit(), 103, Machine::X86_64);
        let offsets: Vec<_> = format.fields.iter().map(|field| field.offset).collect();
        assert_eq!(offsets, [8, 16, 24, 32, 40, 48, 52, 56, 64]);
    }

    #[test]
    fn our_own_parser_reads_the_text_back() {
        let format = place(&kvm_exit(), 103, Machine::X86_64);
        assert_eq!(EventFormat::parse("kvm", &text(&format)).unwrap(), format);
    }

    #[test]
    fn dynamic_text_lies_behind_the_fixed_part() {
        let schema = EventSchema::declared("kvm", "failed", "__data_loc char[] msg; u32 err");
        let format = place(&schema, 7, Machine { endian: Endian::Big, long_bytes: 4 });
        let record =
            Record { ticks: 0, cpu: 0, tid: 5, event: 0, values: vec!["VMX".into(), Value::Integer(0x0102_0304)] };
        let mut bytes = Vec::new();
        encode(&format, &record, Machine { endian: Endian::Big, long_bytes: 4 }, &mut bytes);
        assert_eq!(bytes, [0, 7, 0, 0, 0, 0, 0, 5, 0, 4, 0, 16, 1, 2, 3, 4, b'V', b'M', b'X', 0]);
    }
}
