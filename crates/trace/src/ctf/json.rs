//! What do the JSON fragments (the metadata of CTF 2) describe?
//!
//! In: texts each after a record separator (RFC 7464). Out: a [`Schema`], or an error with the place of the fragment.
//! Property and role names: CTF2-SPEC-2.0 sections 5.3 (field classes), 5.5 to 5.9 (fragments). Attributes, extensions,
//! namespaces and uids change nothing for decoding and are passed over.
//!
//! Drafts of CTF 2 are read where they say the same in other words: enumerations were types of their own, a field location
//! was an array that begins with its origin, clock classes had names instead of ids and an `offset`
//! (src/bin/lttng-sessiond/ctf2-trace-class-visitor.cpp of lttng-tools in 2022, and CTF2-PROP-2.0).

use super::metadata::{Metadata, RECORD_SEPARATOR};
use super::model::{
    Choice, Class, ClockClass, EventClass, Float, Integer, Leb, Length, Path, Range, Role, Schema, Scope, StreamClass,
};
use crate::format::Endian;
use crate::{Error, Format};
use rustc_hash::FxHashMap;
use serde_json::{Map, Value};
use std::sync::Arc;

/// Deepest nesting of field classes.
const DEEPEST: usize = 64;
/// Largest alignment in bits; anything above is damage.
const LARGEST_ALIGN: u64 = 1 << 16;

/// What is wrong with a fragment: what was expected, what was found.
type Wrong = (String, String);

/// Reads a sequence of fragments.
///
/// # Errors
/// If a fragment is no JSON, misses what it needs, or describes a field that cannot be read.
pub(super) fn parse(metadata: &Metadata) -> Result<Schema, Error> {
    let mut fragments = Fragments { schema: Schema::new(Format::Ctf2), aliases: FxHashMap::default() };
    let text = &metadata.text;
    let mut at = 0;
    for record in text.split(char::from(RECORD_SEPARATOR)) {
        let place = at;
        at += record.len() + 1;
        if record.trim_start_matches('\u{FEFF}').trim().is_empty() {
            continue;
        }
        let fragment: Map<String, Value> = serde_json::from_str(record)
            .map_err(|error| metadata.damaged(place, "a JSON object after a record separator", error.to_string()))?;
        fragments.take(&fragment).map_err(|(expected, found)| metadata.damaged(place, expected, found))?;
    }
    Ok(fragments.schema)
}

struct Fragments {
    schema: Schema,
    /// Field classes by name, with the number of their levels.
    aliases: FxHashMap<String, (Arc<Class>, usize)>,
}

fn wrong(expected: impl Into<String>, found: impl Into<String>) -> Wrong {
    (expected.into(), found.into())
}

impl Fragments {
    fn take(&mut self, fragment: &Map<String, Value>) -> Result<(), Wrong> {
        match text(fragment, "type")? {
            "preamble" => match fragment.get("version").and_then(Value::as_u64) {
                Some(2) => Ok(()),
                _ => Err(wrong("version 2", format!("{:?}", fragment.get("version")))),
            },
            "field-class-alias" => {
                let value = fragment.get("field-class").ok_or_else(|| wrong("the property `field-class`", "none"))?;
                let mut height = 0;
                let class = self.class(value, 0, &mut height)?;
                self.aliases.insert(text(fragment, "name")?.to_owned(), (class, height));
                Ok(())
            }
            "trace-class" => {
                self.schema.packet_header = self.optional(fragment, "packet-header-field-class")?;
                for (name, value) in fragment.get("environment").and_then(Value::as_object).into_iter().flatten() {
                    let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                    self.schema.env.insert(name.clone(), value);
                }
                Ok(())
            }
            "clock-class" => {
                let clock = clock(fragment)?;
                self.schema.clocks.push(clock);
                Ok(())
            }
            "data-stream-class" => {
                let stream = StreamClass {
                    id: number_or(fragment, "id", 0),
                    packet_context: self.optional(fragment, "packet-context-field-class")?,
                    event_header: self.optional(fragment, "event-record-header-field-class")?,
                    event_context: self.optional(fragment, "event-record-common-context-field-class")?,
                    clock: either(fragment, "default-clock-class-id", "default-clock-class-name")
                        .and_then(Value::as_str)
                        .map(str::to_owned),
                    events: Vec::new(),
                };
                self.schema.streams.push(stream);
                Ok(())
            }
            "event-record-class" => {
                let event = EventClass {
                    id: number_or(fragment, "id", 0),
                    name: fragment.get("name").and_then(Value::as_str).unwrap_or_default().to_owned(),
                    context: self.optional(fragment, "specific-context-field-class")?,
                    payload: self.optional(fragment, "payload-field-class")?,
                };
                let home = number_or(fragment, "data-stream-class-id", 0);
                let stream = self.schema.streams.iter_mut().find(|stream| stream.id == home);
                let stream = stream.ok_or_else(|| wrong("a data stream class described before", format!("{home}")))?;
                stream.events.push(event);
                Ok(())
            }
            // Fragments of later minor versions describe nothing that is needed here.
            _ => Ok(()),
        }
    }

    fn optional(&self, object: &Map<String, Value>, name: &str) -> Result<Option<Arc<Class>>, Wrong> {
        object.get(name).map(|value| self.class(value, 0, &mut 0)).transpose()
    }

    /// The class that `value` describes, `depth` levels inside others; `deepest` becomes the deepest level met.
    fn class(&self, value: &Value, depth: usize, deepest: &mut usize) -> Result<Arc<Class>, Wrong> {
        let depth = depth + 1;
        let mut reach = |depth: usize| {
            *deepest = depth.max(*deepest);
            if depth > DEEPEST { Err(wrong("field classes nested at most 64 deep", "deeper ones")) } else { Ok(()) }
        };
        reach(depth)?;
        let object = match value {
            Value::String(alias) => {
                let found = self.aliases.get(alias);
                let (class, height) =
                    found.ok_or_else(|| wrong("the name of a field class alias", format!("{alias:?}")))?;
                reach(depth + height)?;
                return Ok(class.clone());
            }
            Value::Object(object) => object,
            other => return Err(wrong("a field class", other.to_string())),
        };
        let kind = text(object, "type")?;
        let mut nested = |name: &str| match object.get(name) {
            Some(value) => self.class(value, depth, deepest),
            None => Err(wrong(format!("the property `{name}` of a {kind}"), "none")),
        };
        let class = match kind {
            "fixed-length-bit-array"
            | "fixed-length-bit-map"
            | "fixed-length-boolean"
            | "fixed-length-unsigned-integer"
            | "fixed-length-signed-integer"
            | "fixed-length-unsigned-enumeration"
            | "fixed-length-signed-enumeration" => Class::Integer(integer(object, kind.contains("-signed-"))?),
            "fixed-length-floating-point-number" => Class::Float(float(object)?),
            "variable-length-unsigned-integer"
            | "variable-length-signed-integer"
            | "variable-length-unsigned-enumeration"
            | "variable-length-signed-enumeration" => {
                Class::Leb(Leb { signed: kind.contains("-signed-"), labels: labels(object), roles: roles(object) })
            }
            "null-terminated-string" => {
                let (unit, order) = encoding(object);
                Class::Text { unit, order }
            }
            "static-length-string" => Class::Counted { length: fixed_length(object)?, text: encoding(object).0 == 1 },
            "dynamic-length-string" => Class::Counted { length: field_length(object)?, text: encoding(object).0 == 1 },
            "static-length-blob" => Class::Counted { length: fixed_length(object)?, text: false },
            "dynamic-length-blob" => Class::Counted { length: field_length(object)?, text: false },
            "structure" => {
                let mut members = Vec::new();
                for member in list(object, "member-classes") {
                    let member = member.as_object().ok_or_else(|| wrong("a member class", member.to_string()))?;
                    let class = member.get("field-class").ok_or_else(|| wrong("the class of a member", "none"))?;
                    members.push((text(member, "name")?.to_owned(), self.class(class, depth, deepest)?));
                }
                Class::structure(alignment(object, "minimum-alignment")?, members)
            }
            "static-length-array" | "dynamic-length-array" => {
                let length = if kind.starts_with("static") { fixed_length(object)? } else { field_length(object)? };
                let align = alignment(object, "minimum-alignment")?;
                Class::Array { length, align, element: nested("element-field-class")? }
            }
            "optional" => {
                let ranges = match object.get("selector-field-ranges") {
                    Some(ranges) => self::ranges(ranges),
                    // A boolean selector: true is anything but 0.
                    None => vec![(1, i128::from(u64::MAX))],
                };
                let selector = location(object, "selector-field-location")?;
                Class::Optional { selector, ranges, class: nested("field-class")? }
            }
            "variant" => {
                let mut options = Vec::new();
                for (at, option) in list(object, "options").iter().enumerate() {
                    let option = option.as_object().ok_or_else(|| wrong("an option", option.to_string()))?;
                    let class = option.get("field-class").ok_or_else(|| wrong("the class of an option", "none"))?;
                    let name = option.get("name").and_then(Value::as_str);
                    let ranges = option.get("selector-field-ranges").map(self::ranges).unwrap_or_default();
                    options.push(Choice {
                        name: name.map_or_else(|| at.to_string(), str::to_owned),
                        ranges: Some(ranges),
                        class: self.class(class, depth, deepest)?,
                    });
                }
                Class::Variant { selector: location(object, "selector-field-location")?, options }
            }
            other => return Err(wrong("a type of field class", format!("{other:?}"))),
        };
        Ok(Arc::new(class))
    }
}

fn text<'v>(object: &'v Map<String, Value>, name: &str) -> Result<&'v str, Wrong> {
    let value = object.get(name);
    value
        .and_then(Value::as_str)
        .ok_or_else(|| wrong(format!("the property `{name}` as a string"), format!("{value:?}")))
}

/// A property, or what a draft called it.
fn either<'v>(object: &'v Map<String, Value>, name: &str, in_draft: &str) -> Option<&'v Value> {
    object.get(name).or_else(|| object.get(in_draft))
}

fn number_or(object: &Map<String, Value>, name: &str, default: u64) -> u64 {
    object.get(name).and_then(Value::as_u64).unwrap_or(default)
}

fn list<'v>(object: &'v Map<String, Value>, name: &str) -> &'v [Value] {
    object.get(name).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn alignment(object: &Map<String, Value>, name: &str) -> Result<u32, Wrong> {
    let align = number_or(object, name, 1);
    if align.is_power_of_two() && align <= LARGEST_ALIGN {
        return Ok(align as u32);
    }
    Err(wrong("an alignment that is a power of two", align.to_string()))
}

/// Byte order, and whether the bit order runs against it (CTF2-SPEC-2.0 section 5.3.4: by default it does not).
fn order(object: &Map<String, Value>, bits: u64) -> Result<(Endian, bool), Wrong> {
    let order = match text(object, "byte-order")? {
        "little-endian" => Endian::Little,
        "big-endian" => Endian::Big,
        other => return Err(wrong("little-endian or big-endian", format!("{other:?}"))),
    };
    let high_first = match object.get("bit-order").and_then(Value::as_str) {
        Some("first-to-last") => false,
        Some("last-to-first") => true,
        Some(other) => return Err(wrong("first-to-last or last-to-first", format!("{other:?}"))),
        None => order == Endian::Big,
    };
    let swapped = high_first != (order == Endian::Big);
    if swapped && !bits.is_multiple_of(8) {
        return Err(wrong("whole bytes where bit order and byte order differ", format!("{bits} bits")));
    }
    Ok((order, swapped))
}

fn bits(object: &Map<String, Value>) -> Result<u64, Wrong> {
    let bits = number_or(object, "length", 0);
    if (1..=64).contains(&bits) { Ok(bits) } else { Err(wrong("a length from 1 to 64 bits", bits.to_string())) }
}

fn integer(object: &Map<String, Value>, signed: bool) -> Result<Integer, Wrong> {
    let bits = bits(object)?;
    let (order, swapped) = order(object, bits)?;
    let align = alignment(object, "alignment")?;
    let (labels, roles) = (labels(object), roles(object));
    Ok(Integer { bits: bits as u8, align, signed, order, swapped, text: false, clock: None, labels, roles })
}

fn float(object: &Map<String, Value>) -> Result<Float, Wrong> {
    let bits = number_or(object, "length", 0);
    if bits != 32 && bits != 64 {
        return Err(wrong("a floating-point number of 32 or 64 bits", format!("{bits} bits")));
    }
    let (order, swapped) = order(object, bits)?;
    Ok(Float { bits: bits as u8, align: alignment(object, "alignment")?, order, swapped })
}

/// Bytes of a code unit, and their order.
fn encoding(object: &Map<String, Value>) -> (u8, Endian) {
    match object.get("encoding").and_then(Value::as_str) {
        Some("utf-16be") => (2, Endian::Big),
        Some("utf-16le") => (2, Endian::Little),
        Some("utf-32be") => (4, Endian::Big),
        Some("utf-32le") => (4, Endian::Little),
        _ => (1, Endian::Little),
    }
}

fn fixed_length(object: &Map<String, Value>) -> Result<Length, Wrong> {
    let length = object.get("length").and_then(Value::as_u64);
    length.map(Length::Fixed).ok_or_else(|| wrong("the property `length`", format!("{:?}", object.get("length"))))
}

fn field_length(object: &Map<String, Value>) -> Result<Length, Wrong> {
    Ok(Length::Field(location(object, "length-field-location")?))
}

/// `{"origin": ..., "path": [...]}`, in drafts `[origin, ...]`. A null in the path goes up to the structure around, where a
/// search from the inside out arrives by itself.
fn location(object: &Map<String, Value>, name: &str) -> Result<Path, Wrong> {
    let (origin, path) = match object.get(name) {
        Some(Value::Object(value)) => (value.get("origin").and_then(Value::as_str), list(value, "path")),
        Some(Value::Array(value)) => match value.split_first() {
            Some((origin, path)) => (Some(origin.as_str().unwrap_or_default()), path),
            None => return Err(wrong(format!("the property `{name}` with an origin"), "an empty array")),
        },
        other => return Err(wrong(format!("the property `{name}` as an object"), format!("{other:?}"))),
    };
    let scope = match origin {
        Some("packet-header") => Some(Scope::PacketHeader),
        Some("packet-context") => Some(Scope::PacketContext),
        Some("event-record-header") => Some(Scope::EventHeader),
        Some("event-record-common-context") => Some(Scope::StreamContext),
        Some("event-record-specific-context") => Some(Scope::EventContext),
        Some("event-record-payload") => Some(Scope::Payload),
        Some(other) => return Err(wrong("an origin of a field location", format!("{other:?}"))),
        None => None,
    };
    let names: Vec<String> = path.iter().filter_map(Value::as_str).map(str::to_owned).collect();
    if names.is_empty() { Err(wrong("a path with a name", "none")) } else { Ok(Path { scope, names }) }
}

fn ranges(value: &Value) -> Vec<Range> {
    let end = |value: &Value| value.as_i64().map(i128::from).or_else(|| value.as_u64().map(i128::from));
    let range = |range: &Value| Some((end(range.get(0)?)?, end(range.get(1)?)?));
    value.as_array().into_iter().flatten().filter_map(range).collect()
}

fn labels(object: &Map<String, Value>) -> Vec<(i128, i128, String)> {
    let mappings = object.get("mappings").and_then(Value::as_object).into_iter().flatten();
    mappings.flat_map(|(name, value)| ranges(value).into_iter().map(|(a, b)| (a, b, name.clone()))).collect()
}

fn roles(object: &Map<String, Value>) -> Vec<Role> {
    let role = |value: &Value| match value.as_str()? {
        "packet-magic-number" => Some(Role::Magic),
        "data-stream-class-id" => Some(Role::StreamId),
        "data-stream-id" => Some(Role::StreamInstance),
        "packet-total-length" => Some(Role::PacketSize),
        "packet-content-length" => Some(Role::ContentSize),
        "packet-end-default-clock-timestamp" => Some(Role::End),
        "packet-sequence-number" => Some(Role::Sequence),
        "discarded-event-record-counter-snapshot" => Some(Role::Discarded),
        "event-record-class-id" => Some(Role::EventId),
        "default-clock-timestamp" => Some(Role::Time),
        _ => None,
    };
    list(object, "roles").iter().filter_map(role).collect()
}

fn clock(fragment: &Map<String, Value>) -> Result<ClockClass, Wrong> {
    let name = |property: &str| fragment.get(property).and_then(Value::as_str).map(str::to_owned);
    let id = name("id").or_else(|| name("name")).unwrap_or_default();
    let offset = either(fragment, "offset-from-origin", "offset").and_then(Value::as_object);
    let part = |part: &str| offset.and_then(|offset| offset.get(part)).and_then(Value::as_i64).unwrap_or(0);
    let frequency = number_or(fragment, "frequency", 0);
    if frequency == 0 {
        return Err(wrong("the frequency of a clock", format!("{:?}", fragment.get("frequency"))));
    }
    let name = name("name").unwrap_or_else(|| id.clone());
    Ok(ClockClass { id, name, frequency, offset_s: part("seconds"), offset_ticks: part("cycles") })
}
