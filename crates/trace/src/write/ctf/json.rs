//! Metadata of CTF 2: JSON fragments, each after the byte 0x1e and before a line end (RFC 7464).
//!
//! Names have no leading underscore, since CTF 2 knows no reserved words, and roles say what a field is for.

use super::{EventHeader, Style, tsdl};
use crate::format::Endian;
use crate::write::{EventSchema, FieldSchema, Schema, Shape};
use serde_json::{Map, Value, json};

pub(super) fn fragments(schema: &Schema, style: &Style) -> String {
    let classes = Classes { byte_order: byte_order(style.endian) };
    let mut fragments = vec![
        json!({ "type": "preamble", "version": 2, "uuid": style.uuid }),
        json!({
            "type": "trace-class",
            "namespace": "lttng.org,2009",
            "name": "",
            "uid": tsdl::uuid(&style.uuid),
            "environment": environment(style),
            "packet-header-field-class": classes.packet_header(),
        }),
        json!({
            "type": "clock-class",
            "id": style.clock_name,
            "name": style.clock_name,
            "frequency": style.clock_hz,
            "origin": "unix-epoch",
            "offset-from-origin": {
                "seconds": style.clock_offset / style.clock_hz.max(1),
                "cycles": style.clock_offset % style.clock_hz.max(1),
            },
        }),
        classes.stream(style),
    ];
    fragments.extend(schema.events.iter().enumerate().map(|(id, event)| classes.event(id, event)));
    fragments.iter().map(|fragment| format!("\u{1e}{fragment}\n")).collect()
}

fn byte_order(endian: Endian) -> &'static str {
    match endian {
        Endian::Little => "little-endian",
        Endian::Big => "big-endian",
    }
}

fn environment(style: &Style) -> Map<String, Value> {
    let value = |text: &str| text.parse::<u64>().map_or_else(|_| json!(text), |number| json!(number));
    style.env.iter().map(|(name, text)| (name.clone(), value(text))).collect()
}

/// Field classes in one byte order.
struct Classes {
    byte_order: &'static str,
}

impl Classes {
    fn integer(&self, bits: u32, align: u32, signed: bool, roles: &[&str]) -> Value {
        let kind = if signed { "fixed-length-signed-integer" } else { "fixed-length-unsigned-integer" };
        let mut class = json!({ "type": kind, "length": bits, "alignment": align, "byte-order": self.byte_order });
        if !roles.is_empty() {
            class["roles"] = json!(roles);
        }
        class
    }

    fn packet_header(&self) -> Value {
        structure(&[
            ("magic", self.integer(32, 8, false, &["packet-magic-number"])),
            ("uuid", json!({ "type": "static-length-blob", "length": 16, "roles": ["metadata-stream-uuid"] })),
            ("stream_id", self.integer(32, 8, false, &["data-stream-class-id"])),
            ("stream_instance_id", self.integer(64, 8, false, &["data-stream-id"])),
        ])
    }

    fn stream(&self, style: &Style) -> Value {
        let mut stream = json!({
            "type": "data-stream-class",
            "id": 0,
            "default-clock-class-id": style.clock_name,
            "packet-context-field-class": structure(&[
                ("timestamp_begin", self.integer(64, 8, false, &["default-clock-timestamp"])),
                ("timestamp_end", self.integer(64, 8, false, &["packet-end-default-clock-timestamp"])),
                ("content_size", self.integer(64, 8, false, &["packet-content-length"])),
                ("packet_size", self.integer(64, 8, false, &["packet-total-length"])),
                ("packet_seq_num", self.integer(64, 8, false, &["packet-sequence-number"])),
                ("events_discarded", self.integer(64, 8, false, &["discarded-event-record-counter-snapshot"])),
                ("cpu_id", self.integer(32, 8, false, &[])),
            ]),
            "event-record-header-field-class": self.event_header(style.header),
        });
        if style.tid_context {
            let context = structure(&[("tid", self.integer(32, 8, true, &[]))]);
            stream["event-record-common-context-field-class"] = context;
        }
        stream
    }

    fn event_header(&self, header: EventHeader) -> Value {
        let (id_bits, time_bits, align) = match header {
            EventHeader::Compact => (5, 27, 1),
            EventHeader::Large => (16, 32, 8),
        };
        let extended = header.extended_id();
        let mut id = self.integer(id_bits, align, false, &["event-record-class-id"]);
        id["mappings"] = json!({ "compact": [[0, extended - 1]], "extended": [[extended, extended]] });
        let time = |bits, align| self.integer(bits, align, false, &["default-clock-timestamp"]);
        let compact = structure(&[("timestamp", time(time_bits, align))]);
        let full =
            structure(&[("id", self.integer(32, 8, false, &["event-record-class-id"])), ("timestamp", time(64, 8))]);
        let variant = json!({
            "type": "variant",
            "selector-field-location": { "path": ["id"] },
            "options": [
                { "name": "compact", "selector-field-ranges": [[0, extended - 1]], "field-class": compact },
                { "name": "extended", "selector-field-ranges": [[extended, extended]], "field-class": full },
            ],
        });
        let mut header = structure(&[("id", id), ("v", variant)]);
        header["minimum-alignment"] = json!(8);
        header
    }

    fn event(&self, id: usize, event: &EventSchema) -> Value {
        let members: Vec<_> = event.fields.iter().map(|field| (field.name.as_str(), self.payload(field))).collect();
        json!({
            "type": "event-record-class",
            "id": id,
            "data-stream-class-id": 0,
            "name": event.name,
            "payload-field-class": structure(&members),
        })
    }

    fn payload(&self, field: &FieldSchema) -> Value {
        match field.shape {
            Shape::Integer { bytes, signed } => self.integer(u32::from(bytes) * 8, 8, signed, &[]),
            Shape::Long { signed } => self.integer(64, 8, signed, &[]),
            Shape::Chars { bytes } => json!({ "type": "static-length-string", "length": bytes }),
            Shape::Bytes { bytes } => json!({ "type": "static-length-blob", "length": bytes }),
            Shape::Dynamic => json!({ "type": "null-terminated-string" }),
        }
    }
}

fn structure(members: &[(&str, Value)]) -> Value {
    let members: Vec<_> = members.iter().map(|(name, class)| json!({ "name": name, "field-class": class })).collect();
    json!({ "type": "structure", "member-classes": members })
}
