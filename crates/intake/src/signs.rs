//! How pieces begin and end that are neither results nor traces: objects of JSON, migrations, switches.

use crate::commands::typed;
use crate::normal::Line;
use base::recording::{is_of_migration, is_of_switch};

/// Lines of an object: what QEMU says of a migration has some fifty, lscpu some hundred, iperf3 of many streams some thousand.
const MOST_LINES: usize = 20_000;

/// Where the object of JSON ends that begins at a line; none where its braces do not close. Each line that is looked at is taken from
/// `left`.
pub(crate) fn object(lines: &[Line], at: usize, left: &mut usize) -> Option<usize> {
    // Python prints its dictionaries behind whatever a log puts before them.
    if !lines[at].text.trim_start().starts_with('{') && !lines[at].text.contains("{'") {
        return None;
    }
    let (mut depth, mut quoted, mut escaped) = (0_i64, false, false);
    for (place, line) in lines.iter().enumerate().skip(at).take(MOST_LINES) {
        *left = left.checked_sub(1)?;
        for byte in line.text.bytes() {
            match byte {
                _ if escaped => escaped = false,
                b'\\' if quoted => escaped = true,
                b'"' => quoted = !quoted,
                b'{' if !quoted => depth += 1,
                b'}' if !quoted => depth -= 1,
                _ => {}
            }
        }
        if depth <= 0 {
            return Some(place + 1);
        }
    }
    None
}

/// Whether an object is QEMU's answer to `query-migrate`.
pub(crate) fn is_migration_object(text: &str) -> bool {
    let has = |name: &str| text.contains(&format!("\"{name}\"")) || text.contains(&format!("'{name}'"));
    has("status") && (has("ram") || has("expected-downtime")) || text.contains(":vmstate_downtime")
}

/// Lines of settings before the status, in QEMU 10.0.
const MOST_HEAD: usize = 12;

/// Where what QEMU or libvirt print of a migration ends, if it begins at a line: lines of a name and a value.
pub(crate) fn migration(lines: &[Line], at: usize) -> Option<usize> {
    // The monitor says first what is switched on.
    let is_head = ["capabilities:", "globals:"].iter().any(|head| lines[at].text.trim_start().starts_with(head));
    let leads =
        || lines[at..].iter().take(MOST_HEAD).any(|line| line.text.trim_start().starts_with("Migration status:"));
    if !(is_of_migration(lines[at].text.as_bytes()) || is_head && leads()) {
        return None;
    }
    let is_pair = |line: &Line| {
        let text = line.text.trim();
        let name = text.split_once(':').map(|(name, _)| name);
        text.is_empty()
            || name.is_some_and(|name| name.len() < 40 && name.split_whitespace().count() <= 4)
            || text.starts_with('{')
    };
    Some(end(lines, at, |line| is_pair(line) || is_of_migration(line.text.as_bytes())))
}

/// Where what a switch printed ends, if it begins at a line.
pub(crate) fn switch(lines: &[Line], at: usize) -> Option<usize> {
    is_of_switch(lines[at].text.as_bytes()).then(|| end(lines, at, |line| !is_prose(&line.text)))
}

/// Where what a program counted ends, if it begins at a line: `perf kvm stat`, `kvm_stat`, `perf stat` of KVM's events.
pub(crate) fn counts(lines: &[Line], at: usize) -> Option<usize> {
    if !is_counts(&lines[at].text) {
        return None;
    }
    let end = end(lines, at, |line| !is_prose(&line.text));
    // Counters of others than KVM are nobody's.
    let has_rows = |line: &Line| {
        is_row_of_exits(&line.text)
            || is_row_of_batch(&line.text)
            || ["kvm:", "%Total", OF_DEBUGFS].iter().any(|sign| line.text.contains(sign))
    };
    lines[at..end].iter().any(has_rows).then_some(end)
}

/// Where KVM's own counters lie.
const OF_DEBUGFS: &str = "/sys/kernel/debug/kvm/";

/// The head of such a text, or a row of `perf kvm stat` without one.
fn is_counts(text: &str) -> bool {
    const HEADS: [&str; 4] =
        ["kvm statistics - ", "Performance counter stats for", "Analyze events for", "Total Samples:"];
    let text = text.trim();
    HEADS.iter().any(|head| text.starts_with(head))
        || text.contains("VM-EXIT") && text.contains("Samples")
        || text.starts_with("Event ") && text.contains("%Total")
        || is_row_of_exits(text)
        || is_row_of_batch(text)
        || text.starts_with(OF_DEBUGFS)
        || text.starts_with("==> ") && text.contains(OF_DEBUGFS)
}

/// `HLT 40833 95.85% 99.69% 1.16us ..`, maybe wrapped behind that.
fn is_row_of_exits(text: &str) -> bool {
    let words: Vec<&str> = text.split_whitespace().collect();
    let [name, count, share, ..] = words.as_slice() else { return false };
    let is_name = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '0');
    is_name && count.bytes().all(|byte| byte.is_ascii_digit()) && share.ends_with('%') && share.contains('.')
}

/// `kvm_exit(HLT)   912300   9215` of `kvm_stat -1`.
fn is_row_of_batch(text: &str) -> bool {
    let words: Vec<&str> = text.split_whitespace().collect();
    let [name, total, more] = words.as_slice() else { return false };
    let is_number = |word: &str| word.bytes().all(|byte| byte.is_ascii_digit());
    name.starts_with("kvm_") && is_number(total) && is_number(more)
}

/// The end of the lines that `goes_on` holds for, before the next command; blank lines at the end are not among them.
fn end(lines: &[Line], at: usize, goes_on: impl Fn(&Line) -> bool) -> usize {
    let stops = |line: &Line| typed(&line.text).is_some() || !goes_on(line);
    let end = (at + 1..lines.len()).find(|place| stops(&lines[*place])).unwrap_or(lines.len());
    (at..end).rev().find(|place| !lines[*place].text.trim().is_empty()).map_or(at + 1, |last| last + 1)
}

/// A sentence of somebody's: several words, none of them with a digit, nothing that programs put between names and values.
fn is_prose(text: &str) -> bool {
    let text = text.trim().trim_end_matches([':', '.', ',']);
    let is_word = |word: &str| word.bytes().all(|byte| byte.is_ascii_alphabetic() || b"',.-?!".contains(&byte));
    text.split_whitespace().count() >= 4 && text.split_whitespace().all(is_word)
}
