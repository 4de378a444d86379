//! Lines of results that a mailer broke where nothing else can stand: of the tracer hwlat behind `inner/outer(us):`.

use crate::normal::Line;

/// Joins the lengths, `38/192   ts:1764169384.704861049 count:4`, with what they were broken off.
pub(crate) fn join(lines: &mut Vec<Line>) -> bool {
    let is_open = |text: &str| text.trim_end().ends_with("inner/outer(us):");
    let is_rest = |text: &str| {
        let is_lengths =
            |word: &str| word.contains('/') && word.bytes().all(|byte| byte.is_ascii_digit() || byte == b'/');
        text.split_whitespace().next().is_some_and(is_lengths) && text.contains(" ts:")
    };
    if !lines.iter().any(|line| is_open(&line.text)) {
        return false;
    }
    let count = lines.len();
    let mut joined: Vec<Line> = Vec::with_capacity(count);
    for line in lines.drain(..) {
        match joined.last_mut().filter(|before| is_open(&before.text) && is_rest(&line.text)) {
            Some(before) => before.text = format!("{} {}", before.text.trim_end(), line.text.trim_start()),
            None => joined.push(line),
        }
    }
    *lines = joined;
    lines.len() != count
}
