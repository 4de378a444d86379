//! Which lines are one excerpt of a printed trace?
//!
//! From its first event, with the tracer's comments above, to the last one before somebody's own words. Between two excerpts nothing
//! is known, so they are never one. Marks that lines were left out (`[...]`) stay inside, as long as time goes on behind them:
//! the reader knows what they mean. So do a few words on what is to be seen, where the same thread's events go on behind them at once.
//!
//! Mended on the way: lines that a mailer wrapped, where what they break off is certain; times with a decimal comma; and the
//! reverse order in which `tac` and some viewers print.

use crate::commands::typed;
use crate::normal::Line;
use crate::split::{Kind, Piece};
use std::ops::Range;
use trace::text::{Told, told};

/// The excerpt whose first event is at a line, with the comments above it.
pub(crate) fn at(lines: &[Line], at: usize) -> Option<(Piece, Range<usize>)> {
    let first = event(lines, at)?;
    let mut excerpt = Excerpt::default();
    let start = (0..at).rev().take_while(|above| is_header(&lines[*above].text)).last().unwrap_or(at);
    excerpt.lines.extend(lines[start..at].iter().cloned());
    excerpt.take(first);
    let mut end = at + excerpt.taken;
    while end < lines.len() {
        let line = &lines[end];
        if let Some(next) = event(lines, end) {
            let goes_back = excerpt.pending_cut && next.time < excerpt.latest;
            if goes_back || excerpt.pending_words > 0 && !excerpt.is_continued_by(&next) {
                break;
            }
            excerpt.flush(&lines[end - excerpt.pending..end]);
            excerpt.take(next);
            end += excerpt.taken;
            continue;
        }
        match told(&line.text) {
            Told::Lost | Told::Broken => {
                excerpt.flush(&lines[end - excerpt.pending..end]);
                excerpt.lines.push(line.clone());
            }
            Told::Between if typed(&line.text).is_none() => excerpt.pending += 1,
            Told::Cut => {
                excerpt.pending += 1;
                excerpt.pending_cut = true;
            }
            Told::Other if is_remark(&line.text) && excerpt.pending_words < MOST_WORDS => {
                excerpt.pending += 1;
                excerpt.pending_words += 1;
            }
            _ => break,
        }
        end += 1;
    }
    // What stands behind the last event is not the excerpt's.
    let end = end - excerpt.pending;
    Some((excerpt.finish(), start..end))
}

/// Lines of words on what is to be seen that may stand between two events.
const MOST_WORDS: usize = 4;

/// Time between two events, ns, with words between them, that is one recording's: our own threshold. Nobody tells what was left out.
const CONTINUED_NS: u64 = 1_000_000;

/// Events before these words among which the thread is looked for that goes on behind them.
const LOOKED_BACK: usize = 32;

/// Whether somebody remarks on what is to be seen. What ends with a colon begins something else.
fn is_remark(text: &str) -> bool {
    !text.trim_end().ends_with(':') && typed(text).is_none() && with_point(text).is_none()
}

/// The thread and the CPU of an event, as they are printed.
fn place(text: &str) -> Option<&str> {
    text.split_once(']').map(|(place, _)| place.trim())
}

/// An event, maybe out of several lines.
struct Event {
    line: Line,
    time: u64,
    lines: usize,
    mended: Option<Mended>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mended {
    Joined,
    Comma,
    Unnamed,
}

#[derive(Default)]
struct Excerpt {
    lines: Vec<Line>,
    times: Vec<u64>,
    /// Lines behind the last event that belong to the excerpt only if another event follows.
    pending: usize,
    pending_cut: bool,
    pending_words: usize,
    latest: u64,
    taken: usize,
    joined: usize,
    commas: usize,
    unnamed: usize,
}

impl Excerpt {
    fn flush(&mut self, pending: &[Line]) {
        self.lines.extend(pending.iter().cloned());
        (self.pending, self.pending_cut, self.pending_words) = (0, false, 0);
    }

    /// Whether an event behind somebody's words goes on with what stands before them.
    fn is_continued_by(&self, next: &Event) -> bool {
        let is_soon = (self.latest..=self.latest.saturating_add(CONTINUED_NS)).contains(&next.time);
        let of = place(&next.line.text);
        is_soon && of.is_some() && self.lines.iter().rev().take(LOOKED_BACK).any(|line| place(&line.text) == of)
    }

    fn take(&mut self, event: Event) {
        self.joined += usize::from(event.mended == Some(Mended::Joined));
        self.commas += usize::from(event.mended == Some(Mended::Comma));
        self.unnamed += usize::from(event.mended == Some(Mended::Unnamed));
        self.taken = event.lines;
        self.latest = self.latest.max(event.time);
        self.times.push(event.time);
        self.lines.push(event.line);
    }

    fn finish(mut self) -> Piece {
        let mut mended = Vec::new();
        if self.joined > 0 {
            mended.push(format!("lines that were wrapped were joined: {}", self.joined));
        }
        if self.commas > 0 {
            mended.push("times with a decimal comma were read".to_owned());
        }
        if self.unnamed > 0 {
            mended.push(
                "no thread is named: events on one CPU were taken for those of one thread, numbered by its CPU"
                    .to_owned(),
            );
        }
        let backwards = self.times.windows(2).filter(|pair| pair[0] > pair[1]).count();
        if backwards >= 2 && self.times.is_sorted_by(|one, next| one >= next) {
            let numbers: Vec<u32> = self.lines.iter().map(|line| line.number).collect();
            let comments = self.lines.iter().take_while(|line| is_header(&line.text)).count();
            self.lines[comments..].reverse();
            self.lines.iter_mut().zip(numbers).for_each(|(line, number)| line.number = number);
            mended.push("its lines are in reverse order, and were read from the last to the first".to_owned());
        }
        Piece { mended, ..Piece::of(Kind::Trace, &self.lines) }
    }
}

/// The event at a line: as it stands, with its comma, or with the lines behind that belong to it.
fn event(lines: &[Line], at: usize) -> Option<Event> {
    let line = &lines[at];
    if let Some((time, text)) = unnamed(&line.text) {
        let line = Line { number: line.number, text };
        return Some(Event { line, time, lines: 1, mended: Some(Mended::Unnamed) });
    }
    let (time, text, comma) = match told(&line.text) {
        Told::Event(time) => (Some(time), line.text.clone(), false),
        _ => match with_point(&line.text) {
            Some((time, text)) => (Some(time), text, true),
            None => (None, line.text.clone(), false),
        },
    };
    let is_start = time.is_some() || told(&text) == Told::Broken;
    if !is_start {
        return None;
    }
    let (mut text, mut taken) = (text, 1);
    while let Some(next) = lines.get(at + taken) {
        if taken > MOST_JOINED || !goes_on(&text, &next.text) {
            break;
        }
        text = format!("{} {}", text.trim_end(), next.text.trim());
        taken += 1;
    }
    let time = match (time, told(&text)) {
        (Some(time), _) => time,
        (None, Told::Event(time)) => time,
        _ => return None,
    };
    let mended = match (taken > 1, comma) {
        (true, _) => Some(Mended::Joined),
        (false, true) => Some(Mended::Comma),
        (false, false) => None,
    };
    Some(Event { line: Line { number: line.number, text }, time, lines: taken, mended })
}

/// The line with a thread in place of the one that `perf script -F cpu,time,event,trace` leaves out: `[001] 770.850287: kvm:kvm_exit: ..`.
/// Without switches of tasks nothing else is on that CPU between two events of KVM's.
fn unnamed(text: &str) -> Option<(u64, String)> {
    let bare = text.trim_start();
    let (cpu, rest) = bare.strip_prefix('[')?.split_once(']')?;
    let is_cpu = cpu.len() >= 3 && cpu.bytes().all(|byte| byte.is_ascii_digit());
    if !is_cpu || !rest.split_once(": ")?.1.trim_start().starts_with("kvm:") {
        return None;
    }
    let text = format!("unnamed-{} {bare}", cpu.parse::<u32>().ok()?.checked_add(1)?);
    match told(&text) {
        Told::Event(time) => Some((time, text)),
        _ => None,
    }
}

/// Lines that one event was wrapped into: `kvm_exit` of Linux 6.12 has 200 letters, mails have 70 in a line.
const MOST_JOINED: usize = 6;

/// Names before values in what KVM's and the scheduler's events print (arch/x86/kvm/trace.h, include/trace/events/sched.h, Linux 6.12): a
/// line that ends with one lacks its value, and one that begins with one belongs to the line before.
const NAMES: &str = "vcpu rip reason info info1 info2 intr_info error_code address addr gpa val vector dest size count at len nested_rip event_inj \
    nested_ctl ext_inf1 ext_inf2 ext_int ext_int_err gsi level ==>";

/// Whether `next` is the rest of a line that ends with `text`.
fn goes_on(text: &str, next: &str) -> bool {
    let starts = match told(next) {
        Told::Other => false,
        // A number in hex may also be an address of a stack.
        Told::Between => next.trim().is_empty() || next.trim_start().starts_with('#'),
        _ => true,
    };
    if starts || with_point(next).is_some() || typed(next).is_some() {
        return false;
    }
    let last = text.split_whitespace().next_back().unwrap_or("");
    let first = next.split_whitespace().next().unwrap_or("");
    let name = |word: &str| NAMES.split(' ').any(|known| known == word.trim_end_matches([':', ',']));
    let is_field = |word: &str| {
        word.split_once('=').is_some_and(|(name, _)| {
            name.ends_with("_pid") || name.ends_with("_comm") || name.ends_with("_prio") || name.ends_with("_state")
        })
    };
    let lacks = last.ends_with([':', ',', '=']) || name(last);
    lacks || name(first) && text.len() > SHORTEST_WRAPPED || is_field(first)
}

/// Mailers wrap at 65 letters or more; a shorter line was not wrapped.
const SHORTEST_WRAPPED: usize = 50;

/// The line with a point in its time, and that time: `100,000000:` as the locale of whoever printed it wrote it.
fn with_point(text: &str) -> Option<(u64, String)> {
    let digits = |text: &str| text.len() - text.trim_end_matches(|letter: char| letter.is_ascii_digit()).len();
    let at = text.match_indices(',').map(|(at, _)| at).take(8).find(|at| {
        let behind = &text[at + 1..];
        let end = behind.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(behind.len());
        digits(&text[..*at]) > 0 && matches!(end, 6 | 9) && behind[end..].starts_with(':')
    })?;
    let text = format!("{}.{}", &text[..at], &text[at + 1..]);
    match told(&text) {
        Told::Event(time) => Some((time, text)),
        _ => None,
    }
}

/// What tracers print above their first event.
fn is_header(text: &str) -> bool {
    let text = text.trim();
    !text.is_empty() && told(text) == Told::Between && typed(text).is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_without_a_thread_has_that_of_its_cpu() {
        let (time, text) = unnamed("    [001]   770.850287:     kvm:kvm_entry: vcpu 0, rip 0x100146").unwrap();
        assert_eq!((time, text.starts_with("unnamed-2 [001] ")), (770_850_287_000, true));
        for other in [
            "[001] 770.850287: sched:sched_switch: x",
            "[ 1.000001] kvm:x: y",
            "qemu-1 [001] 1.000001: kvm:kvm_exit: x",
        ] {
            assert_eq!(unnamed(other), None);
        }
    }
    use crate::normal::Normal;
    use crate::split::split;

    fn excerpts(text: &str) -> Vec<(Vec<String>, Vec<String>)> {
        let split = split(Normal::of(text.as_bytes()));
        let of = |piece: Piece| (piece.lines.iter().map(|line| line.text.clone()).collect(), piece.mended);
        split.pieces.into_iter().filter(|piece| piece.kind == Kind::Trace).map(of).collect()
    }

    const ENTRY: &str = "qemu-4 [001] 100.000001: kvm_entry: vcpu 0, rip 0x1";
    const EXIT: &str = "qemu-4 [001] 100.000011: kvm_exit: reason HLT rip 0x1 info 0 0";

    #[test]
    fn words_between_events_part_them_and_marks_do_not() {
        let found =
            excerpts(&format!("Bad host:\n{ENTRY}\n{EXIT}\nGood host:\n\n{ENTRY}\n[...]\n{EXIT}\n[...]\n{ENTRY}\n"));
        let sizes: Vec<usize> = found.iter().map(|(lines, _)| lines.len()).collect();
        assert_eq!(sizes, [2, 3, 1], "behind the last mark time goes back");
    }

    #[test]
    fn wrapped_lines_are_joined_where_it_is_certain() {
        let wrapped = "  CPU 0/KVM-4000    [001] 100.000010: kvm_exit:             vcpu 0 reason\nEPT_VIOLATION rip 0x1 info1 0x0181 info2\n0x0000 intr_info 0x0 error_code 0x0\n qemu-5 [000] 100.000020:\nkvm_entry: vcpu 1, rip 0x3\n";
        let (lines, mended) = &excerpts(wrapped)[0];
        assert_eq!(
            lines[0],
            "  CPU 0/KVM-4000    [001] 100.000010: kvm_exit:             vcpu 0 reason EPT_VIOLATION rip 0x1 info1 0x0181 info2 0x0000 intr_info 0x0 error_code 0x0"
        );
        assert_eq!(lines[1], " qemu-5 [000] 100.000020: kvm_entry: vcpu 1, rip 0x3");
        assert_eq!(mended, &["lines that were wrapped were joined: 2"]);
        let words = excerpts(&format!("{EXIT}\nHowever, this host is slow\n"));
        assert_eq!(words[0].0.len(), 1);
    }

    #[test]
    fn reversed_lines_and_decimal_commas_are_read() {
        let (lines, mended) = &excerpts("a-1 [0] 3.000000: x: y\na-1 [0] 2.000000: x: y\na-1 [0] 1.000000: x: y\n")[0];
        assert!(lines[0].contains(" 1.000000") && mended[0].contains("reverse"), "{lines:?}");
        let (lines, mended) = &excerpts("a-1 [000] 1,000000: x: y\n")[0];
        assert_eq!((lines[0].as_str(), mended.len()), ("a-1 [000] 1.000000: x: y", 1));
    }
}
