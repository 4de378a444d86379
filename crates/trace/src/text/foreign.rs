//! Which text is this, if it is not one that is read, and what should be given instead?
//!
//! People paste what they have. A text that has the names of our events in it is answered by what it is.

use super::line::Line;

/// Bytes at the start of a text that decide.
pub(super) const LOOKED_AT: usize = 64 << 10;

/// What a latency tracer's own text is answered with.
pub(super) const LATENCY_TRACER: &str = "this is latency-tracer text, which has one worst case of functions and no KVM \
     events; record with trace-cmd record -e kvm -e sched and use its trace.dat, or the text of trace-cmd report";

const NO_TIME: &str = "its event lines have no timestamps, so nothing can be measured; use the unmodified output of \
                       trace-cmd report, ftrace's trace_pipe or perf script, or the recording itself";

const WRAPPED: &str = "its lines are wrapped (after the timestamp), as mail programs do; use the unmodified output, \
                       or the recording itself";

const BABELTRACE: &str = "this is output of babeltrace2; use the CTF trace itself: the directory with the file \
                          metadata";

const KVM_STAT: &str = "this is output of perf kvm stat report, which has sums and no events; use its perf.data, or \
                        record with perf record -a -e 'kvm:*' -e sched:sched_switch";

const NO_EVENTS: &str = "this is a trace of ftrace that has no events: its buffer was empty, or all were read before; record while \
                         the guests run, such as with kvmscope record --seconds 10";

const FIELDS: &str = "its lines have events, but not thread, thread id, CPU and time as trace-cmd report, ftrace's \
                      trace_pipe and perf script -F comm,pid,tid,cpu,time,event,trace print them; use one of those, \
                      or the recording itself";

const FOREWORD: &str = "more than 100 lines before its first event are not trace lines; use only the trace lines, or \
                        the recording itself";

/// Names that say that a text is about our events.
const EVENTS: &[&str] = &["kvm_entry", "kvm_exit", "sched_switch", "kvm_x86_entry", "kvm_x86_exit"];

/// Why the text that starts with `first` is not read; `None` if it has nothing of ours.
pub(super) fn reason(first: &[u8]) -> Option<&'static str> {
    let text = String::from_utf8_lossy(&first[..first.len().min(LOOKED_AT)]);
    if text.contains('\0') {
        return None;
    }
    if text.contains("VM-EXIT") && text.contains("Samples%") {
        return Some(KVM_STAT);
    }
    let is_comment = |line: &str| line.trim().is_empty() || line.trim_start().starts_with('#');
    if text.contains("# tracer:") && text.lines().all(is_comment) {
        return Some(NO_EVENTS);
    }
    let lines = || text.lines().filter(|line| EVENTS.iter().any(|name| line.contains(name)));
    let mut has_events = lines().peekable();
    has_events.peek()?;
    if lines().any(|line| line.trim_start().starts_with('[') && line.contains("] (+")) {
        return Some(BABELTRACE);
    }
    if lines().any(|line| Line::parse(line).is_some()) {
        return Some(FOREWORD);
    }
    let is_time = |word: &str| word.contains('.') && word.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let ends_with_time = |line: &str| {
        let word = line.trim_end().rsplit(' ').next().unwrap_or("");
        word.strip_suffix(':').is_some_and(is_time)
    };
    if text.lines().any(ends_with_time) {
        return Some(WRAPPED);
    }
    let has_time = |line: &str| line.split_whitespace().any(|word| is_time(word.trim_end_matches(':')));
    Some(if lines().any(has_time) { FIELDS } else { NO_TIME })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_paste_is_answered_by_what_it_is() {
        for (text, expected) in [
            ("[14:13:38.953671123] (+?.?) host kvm_x86_exit: { cpu_id = 3 }, { exit_reason = 48 }\n", Some(BABELTRACE)),
            ("             VM-EXIT    Samples  Samples%     Time%\n  HLT  1234  45.00%\n", Some(KVM_STAT)),
            ("qemu-5665  [000] ....   280.971121:\n kvm_exit: reason EXTERNAL_INTERRUPT rip 0x22da\n", Some(WRAPPED)),
            ("# qemu-1234 [001] kvm_exit: reason CPUID rip 0x7c00\n", Some(NO_TIME)),
            ("preempt_test  20677.199579:      kvm:kvm_exit: reason HLT rip 0x4\n", Some(FIELDS)),
            ("# tracer: nop\n#\n# entries-in-buffer/entries-written: 0/0   #P:4\n#\n", Some(NO_EVENTS)),
            ("Dear all,\nthe machine is slow.\n", None),
        ] {
            assert_eq!(reason(text.as_bytes()), expected, "{text}");
        }
    }
}
