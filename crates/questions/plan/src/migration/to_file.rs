//! The answer of a plan about guests that are saved to files and woken.

use super::model::hibernation::{Asked, COPY_BYTES_PER_S, Hibernated, Range};
use super::tables;
use base::number::{bytes, counted, duration};
use base::{Section, Unknown};

const QUESTION: &str = "How large are the files of saved guests, and how fast do they wake?";

pub(super) fn section(asked: &Asked) -> Section {
    let said = Hibernated::of(asked);
    let mut section = Section::new("migration", QUESTION);
    section.about = vec![format!(
        "{} saved at once; the file system writes {}/s and reads {}/s.",
        counted(asked.guests.into(), "guest", "guests"),
        bytes(asked.write_bytes_per_s),
        bytes(asked.read_bytes_per_s)
    )];
    let between = |Range { low, high }: Range, print: fn(f64) -> String| format!("{} to {}", print(low), print(high));
    let time = |seconds: f64| duration(seconds * 1e9);
    section.summary = format!(
        "Each guest's file takes {}. It is durable after {}, and woken the guest answers after {}: the first of several as if it were alone, \
         the last one after all the others. This is modelled, not measured.",
        between(said.saved_bytes, bytes),
        between(said.save_s, time),
        between(said.wake_s, time)
    );
    section.tables = vec![tables::prediction(&said.kept(asked).said), tables::memory(&asked.memory)];
    let unknown = |what: &str, text: String| Unknown { what: what.into(), amount: None, unit: String::new(), text };
    let copies = format!(
        "How fast this QEMU saves and loads on one core; the longest times assume {}/s.",
        bytes(COPY_BYTES_PER_S)
    );
    let swap = "Memory that was not read since the host began may be in swap: reading that is not included.";
    section.unknown = vec![unknown("copy", copies), unknown("swap", swap.to_owned())];
    section
}
