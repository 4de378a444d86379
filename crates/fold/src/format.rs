//! Where the fields of an event lie, by its own description.

use crate::emit::Field;
use std::path::{Path, PathBuf};

/// An event of this kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Described {
    pub id: u64,
    fields: Vec<(String, Field)>,
}

impl Described {
    /// The field of that name, if it is a number.
    pub(crate) fn field(&self, name: &str) -> Option<Field> {
        let (_, field) = self.fields.iter().find(|(known, _)| known == name)?;
        matches!(field.bytes, 1 | 2 | 4 | 8).then_some(*field)
    }

    /// A text of 16 bytes, as names of tasks are.
    pub(crate) fn text(&self, name: &str) -> Option<Field> {
        let (_, field) = self.fields.iter().find(|(known, _)| known.split('[').next() == Some(name))?;
        (field.bytes == 16).then_some(*field)
    }
}

/// The directory of events below a host's root directory.
pub(crate) fn events(host: &Path) -> Option<PathBuf> {
    let places = ["sys/kernel/tracing/events", "sys/kernel/debug/tracing/events"];
    places.into_iter().map(|place| host.join(place)).find(|path| path.is_dir())
}

/// One more than the highest number that a CPU of this host may ever have.
pub(crate) fn possible_cpus(host: &Path) -> Option<usize> {
    let text = std::fs::read_to_string(host.join("sys/devices/system/cpu/possible")).ok()?;
    highest(&text)?.checked_add(1)
}

/// Of `0-3,8-11` it is 11.
fn highest(list: &str) -> Option<usize> {
    list.trim().rsplit([',', '-']).next()?.parse().ok()
}

/// An event `system/name`; `None` if this kernel has none, or describes it in another way.
pub(crate) fn described(events: &Path, name: &str) -> Option<Described> {
    let directory = events.join(name);
    let id = std::fs::read_to_string(directory.join("id")).ok()?.trim().parse().ok()?;
    let format = std::fs::read_to_string(directory.join("format")).ok()?;
    Some(Described { id, fields: fields(&format) })
}

/// `field:int prev_prio; offset:28; size:4; signed:1;`, with tabs in between.
fn fields(format: &str) -> Vec<(String, Field)> {
    let field = |line: &str| {
        let mut parts = line.trim().strip_prefix("field:")?.split(';');
        let name = parts.next()?.rsplit([' ', '*']).next()?.to_owned();
        let mut number =
            |key: &str| parts.next()?.trim().strip_prefix(key)?.trim_start_matches(':').parse::<i16>().ok();
        let (offset, bytes) = (number("offset")?, number("size")?);
        Some((name, Field { offset, bytes: u8::try_from(bytes).ok()? }))
    };
    format.lines().filter_map(field).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_cpu_is_the_last_of_the_list() {
        assert_eq!(["0-3,8-11\n", "0", "0,64", ""].map(highest), [Some(11), Some(0), Some(64), None]);
    }

    #[test]
    fn fields_are_found_by_name() {
        let format = "name: sched_switch\nID: 316\nformat:\n\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
            \tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\tfield:long prev_state;\toffset:32;\tsize:8;\tsigned:1;\n\
            \tfield:broken\n";
        let described = Described { id: 316, fields: fields(format) };
        assert_eq!(described.field("prev_state"), Some(Field { offset: 32, bytes: 8 }));
        assert_eq!(described.field("prev_comm[16]"), None, "text is no number");
        assert_eq!(described.text("prev_comm"), Some(Field { offset: 8, bytes: 16 }));
        assert_eq!(described.field("next_pid"), None);
    }
}
