//! Which fields does a printed event hold?
//!
//! In:  the text behind `event:`, and the patterns of `prints.rs` for that event.
//! Out: field names of the binary formats with their values.
//! ```text
//! pattern   reason {exit_reason_name:s} rip {guest_rip:x}< info {info1:x} {info2:x}>
//! {f}     decimal number, a sign allowed   {f:x}  hexadecimal, with or without 0x   {f:-}  the negative of a number
//! {f:w}   one word                         {f:s}  text up to what follows           {f=a|b} 0 for a, 1 for b, ..
//! {f?abc} 1 if abc follows, else absent                < >  may be absent as a whole         one space: one or more
//! ```
//! What follows a pattern's end is ignored. A body that fits no pattern is read as `key=value key=value ..`, which is
//! how `trace-cmd report -R` prints every event and how many events print themselves.

use super::prints::{NUMBER_OF_NAME, is_bare_hex, patterns};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Value<'b> {
    pub text: &'b str,
    /// The number it stands for, if it is one.
    pub number: Option<i128>,
}

/// The fields of `body`, printed for the event called `event`.
pub(super) fn fields<'b>(event: &str, body: &'b str) -> Vec<(&'b str, Value<'b>)> {
    let body = without_complaints(body);
    let mut found = Vec::new();
    for pattern in patterns(event) {
        let mut steps = MOST_STEPS;
        if fit(pattern, body, &mut found, &mut steps).is_some() {
            add_numbers_of_names(&mut found);
            return found;
        }
        found.clear();
    }
    pairs(body, &mut found);
    for (name, value) in &mut found {
        if is_bare_hex(event, name) && !value.text.starts_with("0x") {
            value.number = u64::from_str_radix(value.text, 16).ok().map(i128::from);
        }
    }
    found
}

/// A pattern is given up after so many steps; real bodies need some dozens.
const MOST_STEPS: u32 = 2_000;

/// libtraceevent's plug-ins print `<CANT FIND FIELD rip>` before a body whose layout they do not know.
fn without_complaints(body: &str) -> &str {
    let mut body = body.trim();
    while let Some(rest) = body.strip_prefix("<CANT FIND FIELD ") {
        body = rest.split_once('>').map_or("", |(_, rest)| rest).trim_start();
    }
    body
}

/// Fits `pattern` to the start of `body`; what is left of the body.
fn fit<'b>(
    pattern: &'static str,
    body: &'b str,
    found: &mut Vec<(&'b str, Value<'b>)>,
    steps: &mut u32,
) -> Option<&'b str> {
    *steps = steps.checked_sub(1)?;
    let Some(first) = pattern.bytes().next() else { return Some(body) };
    let before = found.len();
    let tried = match first {
        b'<' => {
            let (group, rest) = pattern[1..].split_once('>')?;
            if let Some(left) = fit(group, body, found, steps)
                && let Some(left) = fit(rest, left, found, steps)
            {
                return Some(left);
            }
            found.truncate(before);
            fit(rest, body, found, steps)
        }
        b'{' => {
            let (field, rest) = pattern[1..].split_once('}')?;
            fit_field(field, rest, body, found, steps)
        }
        b' ' => {
            let spaces = body.bytes().take_while(|byte| *byte == b' ').count();
            (spaces > 0).then(|| &body[spaces..]).and_then(|left| fit(&pattern[1..], left, found, steps))
        }
        // Comparing a letter at a time took most of the time that a text takes.
        _ => {
            let end = memchr::memchr3(b'<', b'{', b' ', pattern.as_bytes()).unwrap_or(pattern.len());
            let (literal, rest) = pattern.split_at(end);
            body.strip_prefix(literal).and_then(|left| fit(rest, left, found, steps))
        }
    };
    if tried.is_none() {
        found.truncate(before);
    }
    tried
}

fn fit_field<'b>(
    field: &'static str,
    rest: &'static str,
    body: &'b str,
    found: &mut Vec<(&'b str, Value<'b>)>,
    steps: &mut u32,
) -> Option<&'b str> {
    if let Some((name, choices)) = field.split_once('=') {
        let (number, choice) = choices.split('|').enumerate().find(|(_, choice)| body.starts_with(choice))?;
        found.push((name, Value { text: choice, number: Some(number as i128) }));
        return fit(rest, &body[choice.len()..], found, steps);
    }
    if let Some((name, flag)) = field.split_once('?') {
        let left = body.strip_prefix(flag);
        found.extend(left.map(|_| (name, Value { text: flag, number: Some(1) })));
        return fit(rest, left.unwrap_or(body), found, steps);
    }
    let (name, kind) = field.split_once(':').unwrap_or((field, ""));
    match kind {
        "s" => {
            // The text ends where the rest of the pattern fits first.
            for end in (Ends { body, at: 1, next: rest.bytes().next() }) {
                found.push((name, Value { text: &body[..end], number: None }));
                if let Some(left) = fit(rest, &body[end..], found, steps) {
                    return Some(left);
                }
                found.pop();
            }
            None
        }
        "w" => {
            let word_end = memchr::memchr(b' ', body.as_bytes()).unwrap_or(body.len());
            let (word, left) = body.split_at(word_end);
            found.push((name, Value { text: word, number: None }));
            if word.is_empty() { None } else { fit(rest, left, found, steps) }
        }
        "x" => {
            let digits = body.strip_prefix("0x").unwrap_or(body);
            let end = digits.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(digits.len());
            let number = u64::from_str_radix(&digits[..end], 16).ok()?;
            found.push((name, Value { text: &digits[..end], number: Some(number.into()) }));
            fit(rest, &digits[end..], found, steps)
        }
        _ => {
            let sign = usize::from(body.starts_with('-'));
            let end = sign + body[sign..].find(|c: char| !c.is_ascii_digit()).unwrap_or(body.len() - sign);
            let text = &body[..end];
            let number = number(text)?;
            found.push((name, Value { text, number: Some(if kind == "-" { -number } else { number }) }));
            fit(rest, &body[end..], found, steps)
        }
    }
}

/// Where a text at the start of `body` may end: at its end if nothing follows in the pattern, else before what follows.
struct Ends<'b> {
    body: &'b str,
    at: usize,
    /// First byte of what follows in the pattern; what `<` begins may be absent.
    next: Option<u8>,
}

impl Iterator for Ends<'_> {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        let left = self.body.as_bytes().get(self.at..)?;
        let step = match self.next {
            None => left.len(),
            Some(b'<') => (0..left.len()).find(|step| self.body.is_char_boundary(self.at + step))?,
            Some(next) => memchr::memchr(next, left)?,
        };
        let end = self.at + step;
        self.at = end + 1;
        (end > 0 && end <= self.body.len()).then_some(end)
    }
}

/// Where a name was printed as its number, because the printer knew no name, the number is given as well.
fn add_numbers_of_names(found: &mut Vec<(&str, Value<'_>)>) {
    for (name_field, number_field) in NUMBER_OF_NAME {
        let Some((_, value)) = found.iter().find(|(name, _)| name == name_field) else { continue };
        let text = value.text;
        let inside = text.strip_prefix("UNKNOWN (").and_then(|text| text.strip_suffix(')')).unwrap_or(text);
        if let Some(number) = number(inside) {
            found.push((*number_field, Value { text, number: Some(number) }));
        }
    }
}

/// Reads `key=value key=value ..`; a value ends where the next key begins.
fn pairs<'b>(body: &'b str, found: &mut Vec<(&'b str, Value<'b>)>) {
    let mut key: Option<(&str, usize)> = None;
    for equals in memchr::memchr_iter(b'=', body.as_bytes()) {
        let start = body[..equals].rfind([' ', '\t']).map_or(0, |at| at + 1);
        let name = &body[start..equals];
        let behind_value = key.is_none_or(|(_, value_start)| start > value_start);
        let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if !is_name || !behind_value {
            continue;
        }
        if let Some((name, value_start)) = key {
            // Many events print commas between their pairs.
            found.push((name, value(body[value_start..start].trim_end().trim_end_matches(','))));
        }
        key = Some((name, equals + 1));
    }
    if let Some((name, value_start)) = key {
        found.push((name, value(&body[value_start..])));
    }
}

fn value(text: &str) -> Value<'_> {
    let text = text.trim();
    Value { text, number: number(text) }
}

/// A decimal number of at most 64 bits, or a hexadecimal one behind 0x.
fn number(text: &str) -> Option<i128> {
    if let Some(hex) = text.strip_prefix("0x") {
        return u64::from_str_radix(hex, 16).ok().map(i128::from);
    }
    let digits = text.strip_prefix('-').unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let number: i128 = text.parse().ok()?;
    (i128::from(i64::MIN)..=i128::from(u64::MAX)).contains(&number).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(event: &str, body: &str) -> String {
        let show = |(name, value): (&str, Value<'_>)| match value.number {
            Some(number) if number < 0 => format!("{name}={number}"),
            Some(number) => format!("{name}={number:#x}"),
            None => format!("{name}={:?}", value.text),
        };
        fields(event, body).into_iter().map(show).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn kvm_exit_is_read_from_every_generation() {
        for (body, expected) in [
            (
                "reason EPT_VIOLATION rip 0x1f info 82 0",
                "exit_reason_name=\"EPT_VIOLATION\" guest_rip=0x1f info1=0x82 info2=0x0",
            ),
            ("reason UNKNOWN (77) rip 0x1f", "exit_reason_name=\"UNKNOWN (77)\" guest_rip=0x1f exit_reason=0x4d"),
            (
                "vcpu 2 reason npf rip 0x1f info1 0x0000000000000006 info2 0x0000000000002000 intr_info 0x00000000 error_code 0x00000001",
                "vcpu_id=0x2 exit_reason_name=\"npf\" guest_rip=0x1f info1=0x6 info2=0x2000 intr_info=0x0 error_code=0x1",
            ),
            (
                "vcpu 2 reason EPT_VIOLATION rip 0x1f info1 0x06 info2 0x20 intr_info 0x0 error_code 0x1 requests 0x9",
                "vcpu_id=0x2 exit_reason_name=\"EPT_VIOLATION\" guest_rip=0x1f info1=0x6 info2=0x20 intr_info=0x0 error_code=0x1 requests=0x9",
            ),
            (
                "[vcpu 2] reason HLT rip 0x1f info 0 0",
                "vcpu_id=0x2 exit_reason_name=\"HLT\" guest_rip=0x1f info1=0x0 info2=0x0",
            ),
            ("exit_reason=123 guest_rip=0x3 isa=2", "exit_reason=0x7b guest_rip=0x3 isa=0x2"),
            // Without rip, or without anything but the reason: what is not printed is absent, never 0.
            ("vcpu 3 reason DR_ACCESS info1 0x7", "vcpu_id=0x3 exit_reason_name=\"DR_ACCESS\" info1=0x7"),
            ("reason MSR_WRITE", "exit_reason_name=\"MSR_WRITE\""),
            (
                "reason EPT_VIOLATION|FAILED_VMENTRY rip 0x1",
                "exit_reason_name=\"EPT_VIOLATION|FAILED_VMENTRY\" guest_rip=0x1",
            ),
            ("TRAP: HSR_EC: 0x0018 (SYS64), PC: 0xf0", "esr_ec=0x18 exit_reason_name=\"SYS64\" vcpu_pc=0xf0"),
            (
                "IRQ: HSR_EC: 0x0000 (UNKNOWN), PC: 0xf0",
                "exit_reason_name=\"IRQ\" esr_ec=0x0 esr_ec_name=\"UNKNOWN\" vcpu_pc=0xf0",
            ),
        ] {
            assert_eq!(all("kvm_exit", body), expected, "{body}");
        }
    }

    #[test]
    fn a_switch_is_read_whatever_the_threads_are_called() {
        assert_eq!(
            all("sched_switch", "kworker/0:1-e v:15 [120] R ==> a ==> b:0 [98]"),
            "prev_comm=\"kworker/0:1-e v\" prev_pid=0xf prev_prio=0x78 prev_state_text=\"R\" next_comm=\"a ==> b\" next_pid=0x0 next_prio=0x62"
        );
        assert_eq!(
            all(
                "sched_switch",
                "prev_comm=a b prev_pid=-1 prev_prio=1 prev_state=R+ ==> next_comm=x next_pid=2 next_prio=3"
            ),
            "prev_comm=\"a b\" prev_pid=-1 prev_prio=0x1 prev_state_text=\"R+\" next_comm=\"x\" next_pid=0x2 next_prio=0x3"
        );
        assert_eq!(
            all(
                "sched_switch",
                "prev_comm=a b prev_pid=7 prev_prio=1 prev_state=256 next_comm=x next_pid=2 next_prio=3"
            ),
            "prev_comm=\"a b\" prev_pid=0x7 prev_prio=0x1 prev_state=0x100 next_comm=\"x\" next_pid=0x2 next_prio=0x3"
        );
    }

    #[test]
    fn the_fpu_is_loaded_or_unloaded() {
        assert_eq!((all("kvm_fpu", "load"), all("kvm_fpu", "unload")), ("load=0x1".into(), "load=0x0".into()));
        assert_eq!(
            all("kvm_nested_vmexit_inject", "reason: DR_ACCESS ext_inf1: 0x2"),
            "exit_code_name=\"DR_ACCESS\" exit_info1=0x2"
        );
    }

    #[test]
    fn a_pattern_that_never_fits_is_given_up() {
        let body = "a ==> a:1 [1] R ==> ".repeat(200);
        let _ = fields("sched_switch", &body);
    }

    #[test]
    fn what_returns_with_an_error_has_no_reason() {
        assert_eq!(all("kvm_userspace_exit", "reason KVM_EXIT_IO (2)"), "reason_name=\"KVM_EXIT_IO\" reason=0x2");
        assert_eq!(all("kvm_userspace_exit", "reason restart (4)"), "errno=-4");
        assert_eq!(all("kvm_userspace_exit", "reason error (11)"), "errno=-11");
    }
}
