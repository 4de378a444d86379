//! What does a line tell, where people mix a trace with their own words?

use super::line::{Line, LossLine, Stamp};

/// What a line of a text tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Told {
    /// An event, at that time: ns, or ticks of an unknown clock.
    Event(u64),
    /// Events were lost by the recorder.
    Lost,
    /// A tracer's own words: headers, blank lines, stacks, `CPU 2 is empty`.
    Between,
    /// Somebody left out lines: `[...]`.
    Cut,
    /// It begins as an event does, and does not end as one.
    Broken,
    /// Nothing of a trace.
    Other,
}

/// What a line tells.
pub fn told(text: &str) -> Told {
    match Line::parse(text) {
        Some(line) => Told::Event(match line.time {
            Stamp::Seconds { ns, .. } => ns,
            Stamp::Ticks(ticks) => ticks,
        }),
        None => beside_events(text),
    }
}

/// What a line tells that tells of no event.
pub(super) fn beside_events(text: &str) -> Told {
    if LossLine::parse(text).is_some() {
        Told::Lost
    } else if is_between(text) {
        Told::Between
    } else if is_cut(text) {
        Told::Cut
    } else if is_broken(text) {
        Told::Broken
    } else {
        Told::Other
    }
}

/// Lines that tracers put between events: headers, blank lines, stacks, and what trace-cmd says of CPUs (`CPU 2 is empty`).
fn is_between(text: &str) -> bool {
    let text = text.trim();
    let first = text.split_whitespace().next().unwrap_or("");
    let is_address = first.len() >= 6 && first.bytes().all(|byte| byte.is_ascii_hexdigit());
    first.is_empty()
        || is_address
        || first.starts_with('#')
        || first.starts_with("cpus=")
        || first == "=>"
        || first.starts_with("<stack")
        || text.starts_with("version =")
        || text.strip_prefix("CPU ").is_some_and(|rest| rest.ends_with(" is empty"))
}

/// The marks with which people leave out lines: `[...]`, `...`, `<snip>`, and the `--` of grep.
pub(super) fn is_cut(text: &str) -> bool {
    let bare = text.trim();
    let inside =
        bare.trim_matches(|letter: char| letter.is_ascii_punctuation() || letter == ' ' || letter == '\u{2026}');
    match inside {
        "" => bare == "--" || bare.contains("..") || bare.contains('\u{2026}'),
        word => bare.len() < 24 && ["snip", "snipped", "cut", "trimmed"].contains(&word.to_ascii_lowercase().as_str()),
    }
}

/// `comm-123 [004]`, or perf's `comm 123 [004]`: a thread on a CPU.
fn is_broken(text: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let before_cpu = text.match_indices('[').filter_map(|(at, _)| {
        let (cpu, _) = text[at + 1..].split_once(']')?;
        (cpu.len() >= 3 && is_number(cpu)).then(|| text[..at].trim_end())
    });
    before_cpu.take(4).any(|before| {
        let id = before.rsplit([' ', '-', '/']).next().unwrap_or("");
        is_number(id) && before.len() > id.len()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_people_are_told_from_broken_lines_of_a_trace() {
        for (line, expected) in [
            (" qemu-4000 [001] 100.000010: kvm_exit: reason HLT rip 0x0", Told::Event(100_000_010_000)),
            ("           <...>-4083  [004] ....   395.705681: sys_ioctl -> 0x0", Told::Event(395_705_681_000)),
            ("CPU:1 [LOST 12 EVENTS]", Told::Lost),
            ("CPU 2 is empty", Told::Between),
            ("# tracer: nop", Told::Between),
            ("", Told::Between),
            ("[...]", Told::Cut),
            ("...", Told::Cut),
            ("[ ... ]", Told::Cut),
            ("<snip>", Told::Cut),
            ("-------- 8< snip >8 ------", Told::Other),
            ("--", Told::Cut),
            (" qemu-4000 [001] 100.00", Told::Broken),
            ("CPU 0/KVM 12/13 [001]  10", Told::Broken),
            (" qemu-4000  [000] ....   280.971121:", Told::Broken),
            ("and two minutes later, when it hangs:", Told::Other),
            ("^C", Told::Other),
            ("[root@host ~]# cat trace", Told::Other),
        ] {
            assert_eq!(told(line), expected, "{line}");
        }
    }
}
