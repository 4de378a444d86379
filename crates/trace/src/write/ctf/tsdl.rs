//! Metadata of CTF 1.8 in its own language, laid out as LTTng does.

use super::{EventHeader, Style};
use crate::format::Endian;
use crate::write::layout::Machine;
use crate::write::{FieldSchema, Schema, Shape};
use std::fmt::Write;

/// Size, alignment and sign of the integers named in the text.
const ALIASES: [(&str, u32, u32); 7] = [
    ("uint8_t", 8, 8),
    ("uint16_t", 16, 8),
    ("uint32_t", 32, 8),
    ("uint64_t", 64, 8),
    ("unsigned long", 64, 8),
    ("uint5_t", 5, 1),
    ("uint27_t", 27, 1),
];

/// The integers that carry time.
const TIMES: [(&str, u32, u32); 3] = [("uint27_clock_t", 27, 1), ("uint32_clock_t", 32, 8), ("uint64_clock_t", 64, 8)];

pub(super) fn text(schema: &Schema, style: &Style) -> String {
    let mut out = String::from("/* CTF 1.8 */\n\n");
    for (name, size, align) in ALIASES {
        let _ = writeln!(out, "typealias integer {{ size = {size}; align = {align}; signed = false; }} := {name};");
    }
    let uuid = uuid(&style.uuid);
    let order = match style.endian {
        Endian::Little => "le",
        Endian::Big => "be",
    };
    let _ = write!(
        out,
        "\ntrace {{\n\tmajor = 1;\n\tminor = 8;\n\tuuid = \"{uuid}\";\n\tbyte_order = {order};\n\
         \tpacket.header := struct {{\n\t\tuint32_t magic;\n\t\tuint8_t  uuid[16];\n\t\tuint32_t stream_id;\n\
         \t\tuint64_t stream_instance_id;\n\t}};\n}};\n\nenv {{\n"
    );
    for (name, value) in &style.env {
        let _ = match value.parse::<u64>() {
            Ok(number) => writeln!(out, "\t{name} = {number};"),
            Err(_) => writeln!(out, "\t{name} = \"{value}\";"),
        };
    }
    let Style { clock_name, clock_hz, clock_offset, .. } = style;
    let (seconds, rest) = (clock_offset / clock_hz.max(&1), clock_offset % clock_hz.max(&1));
    let _ = write!(
        out,
        "}};\n\nclock {{\n\tname = \"{clock_name}\";\n\tfreq = {clock_hz}; /* Frequency, in Hz */\n\
         \toffset_s = {seconds};\n\toffset = {rest};\n}};\n\n"
    );
    for (name, size, align) in TIMES {
        let _ = writeln!(
            out,
            "typealias integer {{ size = {size}; align = {align}; signed = false; map = clock.{clock_name}.value; }} \
             := {name};"
        );
    }
    out.push_str(
        "\nstruct packet_context {\n\tuint64_clock_t timestamp_begin;\n\tuint64_clock_t timestamp_end;\n\
         \tuint64_t content_size;\n\tuint64_t packet_size;\n\tuint64_t packet_seq_num;\n\
         \tunsigned long events_discarded;\n\tuint32_t cpu_id;\n};\n\n",
    );
    let (id, time, last) = match style.header {
        EventHeader::Compact => ("uint5_t", "uint27_clock_t", 30),
        EventHeader::Large => ("uint16_t", "uint32_clock_t", 65_534),
    };
    let extended = last + 1;
    let _ = write!(
        out,
        "struct event_header {{\n\tenum : {id} {{ compact = 0 ... {last}, extended = {extended} }} id;\n\
         \tvariant <id> {{\n\t\tstruct {{\n\t\t\t{time} timestamp;\n\t\t}} compact;\n\
         \t\tstruct {{\n\t\t\tuint32_t id;\n\t\t\tuint64_clock_t timestamp;\n\t\t}} extended;\n\
         \t}} v;\n}} align(8);\n\nstream {{\n\tid = 0;\n\tevent.header := struct event_header;\n\
         \tpacket.context := struct packet_context;\n"
    );
    if style.tid_context {
        let tid = integer(32, true, 10);
        let _ = writeln!(out, "\tevent.context := struct {{\n\t\t{tid} _tid;\n\t}};");
    }
    out.push_str("};\n");
    for (id, event) in schema.events.iter().enumerate() {
        let name = &event.name;
        let _ =
            write!(out, "\nevent {{\n\tname = \"{name}\";\n\tid = {id};\n\tstream_id = 0;\n\tfields := struct {{\n");
        event.fields.iter().for_each(|field| member(&mut out, field));
        out.push_str("\t};\n};\n");
    }
    out
}

fn member(out: &mut String, field: &FieldSchema) {
    let name = &field.name;
    let _ = match field.shape {
        Shape::Integer { bytes, signed } => {
            writeln!(out, "\t\t{} _{name};", integer(u32::from(bytes) * 8, signed, 10))
        }
        Shape::Long { signed } => writeln!(out, "\t\t{} _{name};", integer(64, signed, 10)),
        Shape::Chars { bytes } => writeln!(
            out,
            "\t\tinteger {{ size = 8; align = 8; signed = 1; encoding = UTF8; base = 10; }} _{name}[{bytes}];"
        ),
        Shape::Bytes { bytes } => writeln!(out, "\t\t{} _{name}[{bytes}];", integer(8, false, 16)),
        Shape::Dynamic => writeln!(out, "\t\tstring _{name};"),
    };
}

fn integer(size: u32, signed: bool, base: u32) -> String {
    let signed = u8::from(signed);
    format!("integer {{ size = {size}; align = 8; signed = {signed}; encoding = none; base = {base}; }}")
}

/// The same text in packets of 4,096 bytes.
pub(super) fn packets(schema: &Schema, style: &Style) -> Vec<u8> {
    const MAGIC: u64 = 0x75d1_1d57;
    const PACKET_BYTES: usize = 4096;
    const HEAD_BYTES: usize = 37;
    let machine = Machine { endian: style.endian, long_bytes: 8 };
    let text = text(schema, style);
    let text = text.trim_start_matches("/* CTF 1.8 */\n\n");
    let mut out = Vec::new();
    for content in text.as_bytes().chunks(PACKET_BYTES - HEAD_BYTES) {
        let start = out.len();
        machine.put(&mut out, MAGIC, 4);
        out.extend_from_slice(&style.uuid);
        machine.put(&mut out, 0, 4);
        machine.put(&mut out, (HEAD_BYTES + content.len()) as u64 * 8, 4);
        machine.put(&mut out, PACKET_BYTES as u64 * 8, 4);
        let (compression, encryption, checksum, major, minor) = (0, 0, 0, 1, 8);
        out.extend_from_slice(&[compression, encryption, checksum, major, minor]);
        out.extend_from_slice(content);
        out.resize(start + PACKET_BYTES, 0);
    }
    out
}

/// `01020304-0506-0708-090a-0b0c0d0e0f10`
pub(super) fn uuid(bytes: &[u8; 16]) -> String {
    let mut text = String::new();
    for (index, byte) in bytes.iter().enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        let _ = write!(text, "{byte:02x}");
    }
    text
}
