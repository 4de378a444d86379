//! Who, where, when and which event does a line tell of?
//!
//! ```text
//! trace-cmd report        qemu-kvm-98    [000]            9.710054: kvm_exit:  reason ...
//! trace-cmd report -l     qemu-kvm-98      0d..1.         9.710054: kvm_exit:  reason ...
//! trace, trace_pipe       qemu-kvm-98    (  98) [000] d..1.  9.710054: kvm_exit: vcpu 0 reason ...
//! perf script             qemu-kvm 98/98 [000]            9.710054: 1 kvm:kvm_exit: vcpu 0 reason ...
//! trace -o latency-format qemu-kvm-98      0d..1.  9710054us : kvm_exit: vcpu 0 reason ...
//! ```
//! Before the thread may stand what others put there: marks of a quotation (`> `, `# `), the kernel log's time (`[  12.345] `),
//! and the file of which trace-cmd report prints several (`host.dat:`).
//! A thread's name may hold spaces, dashes, brackets and colons, so the line is understood from its time stamp to the
//! left: the first place where CPU, flags, time and event fit together decides.
//! Sources: `trace_print_context` and `trace_print_lat_fmt` in kernel/trace/trace_output.c (Linux 6.12),
//! `tracecmd_print_event` in trace-cmd 3.1, `perf_sample__fprintf_start` in tools/perf/builtin-script.c.

use crate::batch::NO_TID;
use base::Clock;

/// One line that tells of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Line<'l> {
    /// The file it comes from, where trace-cmd printed several; else empty.
    pub file: &'l str,
    /// Name of the running thread.
    pub comm: &'l str,
    pub tid: i32,
    /// Its process, where the line names it.
    pub tgid: Option<i32>,
    /// The CPU, where the line names one.
    pub cpu: Option<u32>,
    pub time: Stamp,
    /// Group of the event, where the line names one.
    pub system: &'l str,
    pub event: &'l str,
    pub body: &'l str,
}

/// A time as it is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stamp {
    /// Seconds: as nanoseconds, and how many digits stood behind the point.
    Seconds {
        ns: u64,
        /// 6 or 9.
        digits: u8,
    },
    /// A bare integer: ticks of a clock whose rate the text does not tell.
    Ticks(u64),
}

/// A line that says that events are missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LossLine {
    /// The CPU that lost them.
    pub cpu: u32,
    /// How many; 0 if the line does not say.
    pub events: u64,
}

impl<'l> Line<'l> {
    /// Parses a line; `None` if it tells of no event.
    pub(super) fn parse(text: &'l str) -> Option<Self> {
        let (file, text) = split_file(without_log_time(without_quotation(text)));
        let colons = memchr::memchr_iter(b':', text.as_bytes()).take(MOST_COLONS);
        colons.filter_map(|colon| Self::parse_at(text, colon)).next().map(|line| Self { file, ..line })
    }

    /// Parses a line whose time ends at `colon`.
    fn parse_at(text: &'l str, colon: usize) -> Option<Self> {
        let (before, after) = (&text[..colon], text[colon + 1..].strip_prefix([' ', '\t'])?);
        // trace-cmd prints a time of more than 12 digits without a space: `[000]100003220336:`.
        // The latency format marks long delays between time and colon: `12345us+: `, `12345us : `.
        let before = before.trim_end_matches([' ', '+', '!', '#', '*', '@', '$']);
        let start = before.rfind([' ', '\t', ']'])? + 1;
        let time = Stamp::parse(&before[start..])?;
        let (system, event, body) = event(after)?;
        let Place { comm, tid, tgid, cpu } = place(before[..start].trim_end())?;
        // perf may leave out the CPU, but it always prints seconds.
        if cpu.is_none() && matches!(time, Stamp::Ticks(_)) {
            return None;
        }
        Some(Self { file: "", comm, tid, tgid, cpu, time, system, event, body })
    }
}

impl Stamp {
    /// Nanoseconds, where ticks are those of `clock`.
    pub(super) fn ns(self, clock: &Clock) -> u64 {
        match self {
            Stamp::Seconds { ns, .. } => ns,
            Stamp::Ticks(ticks) => clock.ns(ticks),
        }
    }

    fn parse(text: &str) -> Option<Self> {
        if let Some(us) = text.strip_suffix("us") {
            return Some(Stamp::Seconds { ns: digits(us)?.checked_mul(1_000)?, digits: 6 });
        }
        let Some((seconds, fraction)) = text.split_once('.') else { return digits(text).map(Stamp::Ticks) };
        let scale = 9u32.checked_sub(u32::try_from(fraction.len()).ok()?)?;
        let part = digits(fraction)? * 10u64.pow(scale);
        let ns = digits(seconds)?.checked_mul(1_000_000_000)?.checked_add(part)?;
        Some(Stamp::Seconds { ns, digits: fraction.len() as u8 })
    }
}

/// A time stands behind the thread's name, which has at most 15 bytes, and the log's time: more colons before it are no
/// line of a trace, and each is looked at once more.
const MOST_COLONS: usize = 32;

/// Takes off the marks with which mails and pages set off what they quote, and a letter with a colon, by which people tell lines apart
/// (` B: qemu-98 [003] ..`). No task's name begins with one.
fn without_quotation(text: &str) -> &str {
    let text = text.trim_start_matches(['>', '#', '|', ' ', '\t']);
    match text.as_bytes() {
        [letter, b':', b' ', ..] if letter.is_ascii_uppercase() => text[3..].trim_start(),
        _ => text,
    }
}

/// `L0`, `L1`: the level whose recording a line is of, where people put two together.
fn is_level(word: &str) -> bool {
    matches!(word.as_bytes(), [b'L', b'0'..=b'9', b':'])
}

/// Takes off `[   12.345678] `, the time of a line in the kernel's log (`ftrace_dump`).
fn without_log_time(text: &str) -> &str {
    let inside = text.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    match inside {
        Some((time, rest)) if time.contains('.') && Stamp::parse(time.trim()).is_some() => rest.trim_start(),
        _ => text,
    }
}

/// Splits off `host.dat:`, or the level that stands there in its place.
fn split_file(text: &str) -> (&str, &str) {
    match split_word(text) {
        (file, rest) if file.ends_with(".dat:") || is_level(file) => (&file[..file.len() - 1], rest.trim_start()),
        _ => ("", text),
    }
}

impl LossLine {
    /// Parses `CPU:3 [LOST 12 EVENTS]` (ftrace), `CPU:3 [12 EVENTS DROPPED]` (trace-cmd) and their like.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let rest = text.trim().strip_prefix("CPU")?.trim_start_matches([':', ' ']);
        if !rest.contains("LOST") && !rest.contains("DROPPED") {
            return None;
        }
        let mut numbers = rest.split(|c: char| !c.is_ascii_digit()).filter(|number| !number.is_empty());
        let cpu = numbers.next()?.parse().ok()?;
        Some(Self { cpu, events: numbers.next().and_then(|number| number.parse().ok()).unwrap_or(0) })
    }
}

/// Splits `system:event: body`, with perf's period before it.
fn event(text: &str) -> Option<(&str, &str, &str)> {
    let text = text.trim_start();
    let (first, rest) = split_word(text);
    if let Some(call) = system_call(text) {
        return Some(call);
    }
    let (name, body) = if digits(first).is_some() { split_word(rest.trim_start()) } else { (first, rest) };
    let name = name.strip_suffix(':')?;
    // perf appends modifiers: `cycles:P`, `cpu-clock:u`. A group is a word of its own.
    let (system, event) = match name.split_once(':') {
        Some((event, modifiers)) if modifiers.len() <= 3 && modifiers.chars().all(|c| "ukhpPGHIDSWeb".contains(c)) => {
            ("", event)
        }
        Some((system, event)) => (system, event.split(':').next().unwrap_or(event)),
        // Whoever adds a print of his own to a mail names it so: `<hack>: DR6 = 0x..`.
        None => ("", name.strip_prefix('<').and_then(|name| name.strip_suffix('>')).unwrap_or(name)),
    };
    let is_name = |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || "_-./=,".contains(c));
    let starts = event.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    (starts && is_name(event) && is_name(system)).then(|| (system, event, body.trim()))
}

/// `sys_read(fd: 3, buf: 7f.., count: 1000)` and `sys_read -> 0x10`: ftrace puts no name of an event before system calls
/// (`print_syscall_enter` and `print_syscall_exit` in kernel/trace/trace_syscalls.c, Linux 6.12).
fn system_call(text: &str) -> Option<(&str, &str, &str)> {
    let end = text.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_')?;
    let (name, rest) = text.split_at(end);
    let is_call = rest.starts_with('(') && rest.trim_end().ends_with(')') || rest.starts_with(" -> 0x");
    (name.starts_with("sys_") && is_call).then_some(("syscalls", name, rest))
}

/// Where an event happened.
struct Place<'l> {
    comm: &'l str,
    tid: i32,
    tgid: Option<i32>,
    cpu: Option<u32>,
}

/// Splits `comm-pid (tgid) [cpu] flags` and its relatives, from the right.
fn place(text: &str) -> Option<Place<'_>> {
    let (rest, last) = split_last_word(text);
    let (rest, cpu) = if let Some(cpu) = bracketed(last) {
        (rest, Some(cpu))
    } else if let Some(cpu) = latency_column(last) {
        (rest, Some(cpu))
    } else if let Some(cpu) = bracketed(split_last_word(rest).1) {
        // `last` is the column of interrupt and preemption flags.
        (split_last_word(rest).0, Some(cpu))
    } else {
        (text, None)
    };
    let (rest, tgid) = tgid_of(rest.trim_end());
    let (before, last) = split_last_word(rest);
    // perf script: `comm pid/tid` or `comm tid`.
    let (pid, tid) = last.rsplit_once('/').map_or((None, last), |(pid, tid)| (number(pid), tid));
    if let (Some(tid), false) = (number(tid), before.is_empty()) {
        return Some(Place { comm: before.trim(), tid, tgid: pid.or(tgid), cpu });
    }
    // ftrace: `comm-tid`; a line without a CPU is none of its own.
    let (comm, tid) = rest.rsplit_once('-')?;
    let tid = number(tid)?;
    cpu.is_some().then(|| Place { comm: comm.trim(), tid, tgid, cpu })
}

/// `[003]`.
fn bracketed(word: &str) -> Option<u32> {
    digits(word.strip_prefix('[')?.strip_suffix(']')?)?.try_into().ok()
}

/// `3d..1.`: the CPU and the flags of the latency format.
fn latency_column(word: &str) -> Option<u32> {
    let flags = word.trim_start_matches(|c: char| c.is_ascii_digit());
    let cpu = &word[..word.len() - flags.len()];
    let is_flags = flags.len() >= 4 && flags.chars().all(|c| c == '.' || c.is_ascii_alphanumeric() || c == '#');
    if is_flags && flags.starts_with(|c| ".dDbB".contains(c)) { digits(cpu)?.try_into().ok() } else { None }
}

/// Takes off `(  123)`, which is the process, or `(-----)`, which is an unknown one.
fn tgid_of(text: &str) -> (&str, Option<i32>) {
    let Some(inside) = text.strip_suffix(')') else { return (text, None) };
    let Some(open) = inside.rfind('(') else { return (text, None) };
    let tgid = inside[open + 1..].trim();
    match digits(tgid) {
        Some(tgid) => (inside[..open].trim_end(), tgid.try_into().ok()),
        None if tgid.chars().all(|c| c == '-') => (inside[..open].trim_end(), None),
        None => (text, None),
    }
}

/// The word at the start and the rest.
fn split_word(text: &str) -> (&str, &str) {
    text.split_at(text.find([' ', '\t']).unwrap_or(text.len()))
}

/// What lies before the last word, and that word.
fn split_last_word(text: &str) -> (&str, &str) {
    let text = text.trim_end();
    match text.rfind([' ', '\t']) {
        Some(at) => (text[..at].trim_end(), &text[at + 1..]),
        None => ("", text),
    }
}

/// A number of decimal digits and nothing else.
fn digits(text: &str) -> Option<u64> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) { None } else { text.parse().ok() }
}

/// A thread id; perf prints -1 where it knows none.
fn number(text: &str) -> Option<i32> {
    if text == "-1" { Some(NO_TID) } else { digits(text)?.try_into().ok() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str) -> (&str, i32, Option<u32>, Stamp, &str, &str, &str) {
        let line = Line::parse(text).unwrap_or_else(|| panic!("{text:?} is a line"));
        (line.comm, line.tid, line.cpu, line.time, line.system, line.event, line.body)
    }

    const US: Stamp = Stamp::Seconds { ns: 9_710_054_000, digits: 6 };

    #[test]
    fn the_same_event_is_read_from_every_tool() {
        let kvm =
            |text| assert_eq!(parts(text), ("CPU 0/KVM", 98, Some(3), US, "", "kvm_exit", "reason x: y"), "{text}");
        kvm("       CPU 0/KVM-98    [003]     9.710054: kvm_exit:             reason x: y");
        kvm("   CPU 0/KVM-98      3d..1.     9.710054: kvm_exit:             reason x: y");
        kvm("       CPU 0/KVM-98      [003] d..1.     9.710054: kvm_exit: reason x: y");
        kvm("       CPU 0/KVM-98      (   77) [003] d..1.     9.710054: kvm_exit: reason x: y");
        kvm("       CPU 0/KVM-98      (-----) [003]     9.710054: kvm_exit: reason x: y");
        kvm("CPU 0/KVM    98 [003]     9.710054: kvm_exit: reason x: y");
        kvm("CPU 0/KVM    77/98    [003]     9.710054:          1 kvm_exit: reason x: y");
    }

    #[test]
    fn names_of_threads_may_hold_everything() {
        let tid = |text: &str| {
            let line = Line::parse(text).unwrap();
            (line.comm.to_owned(), line.tid)
        };
        assert_eq!(tid("  <idle>-0 [001] 1.000001: a: b"), ("<idle>".into(), 0));
        assert_eq!(tid("  <...>-12 [001] 1.000001: a: b"), ("<...>".into(), 12));
        assert_eq!(tid("  a [0] b: c-1-12 [001] 1.000001: a: b"), ("a [0] b: c-1".into(), 12));
        assert_eq!(tid("kworker/0:1-ev 12 [001] 1.000001: sched:a: b"), ("kworker/0:1-ev".into(), 12));
        assert_eq!(tid("(sd-pam)  12 [001] 1.000001: sched:a: b"), ("(sd-pam)".into(), 12));
    }

    #[test]
    fn perf_prints_groups_modifiers_periods_and_no_cpu() {
        let line = parts("qemu  12 9.710054:     250000 cycles:P:  ffffffff81 [unknown]");
        assert_eq!(line, ("qemu", 12, None, US, "", "cycles", "ffffffff81 [unknown]"));
        for text in ["qemu  12 [000] 9.710054: kvm:kvm_entry: vcpu 0", "qemu 12 9.710054: 1 kvm:kvm_entry:u: vcpu 0"] {
            let line = parts(text);
            assert_eq!((line.4, line.5, line.6), ("kvm", "kvm_entry", "vcpu 0"));
        }
        assert_eq!(Line::parse("Chapter 3 12: intro: how it began"), None);
    }

    #[test]
    fn what_others_put_before_a_line_is_not_the_threads_name() {
        let line = "qemu-kvm-98 [003] 9.710054: kvm_exit: reason x";
        for before in ["> ", ">> > ", "# ", "    | ", "[  123.456790] ", " B: ", "> A:  "] {
            let quoted = format!("{before}{line}");
            assert_eq!(Line::parse(&quoted), Line::parse(line), "{quoted}");
        }
        let of_a_file = format!("  host.dat:  {line}");
        let read = Line::parse(&of_a_file).unwrap();
        assert_eq!((read.file, read.comm, read.tid), ("host.dat", "qemu-kvm", 98));
        let of_level = format!("L1: {line}");
        assert_eq!(Line::parse(&of_level).map(|line| (line.file, line.comm)), Some(("L1", "qemu-kvm")));
        assert_eq!(parts(&format!("b: {line}")).0, "b: qemu-kvm", "a name of a task");
        assert_eq!(parts("qemu-kvm-98 [003] 9.710054: <hack>: DR6").5, "hack", "a print of somebody's own");
    }

    #[test]
    fn the_latency_format_counts_microseconds() {
        for time in ["9710054us : ", "9710054us+: ", "9710054us!: "] {
            let text = format!("qemu-sys-1234    1d..1 {time}kvm_entry: vcpu 0");
            assert_eq!(parts(&text), ("qemu-sys", 1234, Some(1), US, "", "kvm_entry", "vcpu 0"), "{text}");
        }
        assert_eq!(Line::parse("bash-1977    1d... 0us : trace_hardirqs_off <-do_softirq"), None);
    }

    #[test]
    fn times_are_seconds_or_ticks() {
        let time = |text: &str| Line::parse(&format!("a-1 [000] {text}: x: y")).map(|line| line.time);
        assert_eq!(time("1.000000001"), Some(Stamp::Seconds { ns: 1_000_000_001, digits: 9 }));
        assert_eq!(time("26729156544"), Some(Stamp::Ticks(26_729_156_544)));
        let glued = parts("  <idle>-0     [000]100003220336: softirq_raise:  vec=9");
        assert_eq!((glued.0, glued.2, glued.3), ("<idle>", Some(0), Stamp::Ticks(100_003_220_336)));
        assert_eq!(time("99999999999999999999.1"), None);
    }

    #[test]
    fn lost_events_are_read_as_ftrace_and_trace_cmd_print_them() {
        let loss = |cpu, events| Some(LossLine { cpu, events });
        assert_eq!(LossLine::parse("CPU:3 [LOST 12 EVENTS]"), loss(3, 12));
        assert_eq!(LossLine::parse("CPU:3 [12 EVENTS DROPPED]"), loss(3, 12));
        assert_eq!(LossLine::parse("CPU:3 [LOST EVENTS]"), loss(3, 0));
        assert_eq!(LossLine::parse("CPU 3: 12 LOST"), loss(3, 12));
        assert_eq!(LossLine::parse("CPU 0/KVM-9 [003] 1.0: x: y"), None);
    }
}
