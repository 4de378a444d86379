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
fn decimal(name: &str, text: &str) -> String {
    let bare_hex = matches!(name, "h" | "l");
    let digits = text.strip_prefix("0x").or(bare_hex.then_some(text));
    let number = digits.and_then(|digits| u64::from_str_radix(digits, 16).ok());
    number.map_or_else(|| text.to_owned(), |number| number.to_string())
}

/// `CPU 0/KVM-170 [000] 61.000000100: kvm_exit: reason=24 rip=0x10` becomes `61000000100 0 kvm_exit reason=24 rip=16`; `name` finds the
/// event's name in the word that says which event it is.
pub(super) fn normal(line: &str, name: fn(&str) -> &str) -> String {
    let (_, line) = line.split_once('[').unwrap();
    let (cpu, line) = line.split_once(']').unwrap();
    let mut words = line.split_whitespace();
    let ticks = words.next().unwrap().trim_end_matches(':').replace('.', "");
    let event = name(words.next().unwrap().trim_end_matches(':'));
    let mut normal = format!("{ticks} {} {event}", cpu.parse::<u32>().unwrap_or_else(|_| panic!("no CPU in {line}")));
    for word in words {
        match word.split_once('=') {
            Some((name, value)) => normal.push_str(&format!(" {name}={}", decimal(name, value))),
            None => normal.push_str(&format!("_{word}")),
        }
    }
    normal
}
