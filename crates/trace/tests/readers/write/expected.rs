//! What other programs should print of the records of `support`.

use super::support::schema;
use kvmscope_trace::write::{Record, Shape, Value};

/// One line per record: time in ns, CPU, event, fields; numbers in decimal as far as the field is signed.
pub(super) fn expected_lines(records: &[Record], long_bytes: u8) -> Vec<String> {
    let schema = schema();
    let line = |record: &Record| {
        let event = &schema.events[record.event];
        let mut line = format!("{} {} {}", record.ticks, record.cpu, event.name);
        for (field, value) in event.fields.iter().zip(&record.values) {
            let shown = match (value, field.shape) {
                (Value::Integer(value), Shape::Integer { signed: true, .. }) => format!("{}", *value as i64),
                (Value::Integer(value), Shape::Long { .. }) if long_bytes == 4 => format!("{}", *value as u32),
                (Value::Integer(value), _) => format!("{value}"),
                (other, _) => String::from_utf8_lossy(other.content()).replace(' ', "_"),
            };
            line.push_str(&format!(" {}={shown}", field.name));
        }
        line
    };
    records.iter().map(line).collect()
}

/// A number in decimal, as trace-cmd and perf print that of field `name`; everything else as it is.
pub(super) fn decimal(name: &str, text: &str) -> String {
    let bare_hex = matches!(name, "h" | "l");
    let digits = text.strip_prefix("0x").or(bare_hex.then_some(text));
    let number = digits.and_then(|digits| u64::from_str_radix(digits, 16).ok());
    number.map_or_else(|| text.to_owned(), |number| number.to_string())
}
