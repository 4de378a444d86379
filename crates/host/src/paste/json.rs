//! JSON among other lines: an object that commands print over many of them, and where it ends.

use super::{Pasted, Text};
use crate::budget;
use serde_json::Value;

/// How deep the objects nest that are read here; deeper ones are not theirs. It bounds how far an end is looked for where
/// one beginning follows the other.
const DEEPEST: usize = 16;

/// The object whose first key is `key`, if it begins at that line, and how many lines it takes. What cannot be read of it is
/// noted, and is `Value::Null`.
pub(super) fn object(text: &Text<'_>, at: usize, key: &str, pasted: &mut Pasted) -> Option<(Value, usize)> {
    let first = text.at(at).strip_prefix('{')?.trim_start();
    let first = if first.is_empty() { text.at(at + 1) } else { first };
    first.strip_prefix('"')?.strip_prefix(key)?.strip_prefix('"')?;
    let mut refuse = |why: String, lines: usize| {
        pasted.unread(format!("{}: {why}", text.place(at)));
        Some((Value::Null, lines))
    };
    let Some(lines) = length(text, at) else {
        return refuse("this JSON is not closed, so it was not read".to_owned(), 1);
    };
    let object = text.lines[at..at + lines].join("\n");
    if object.len() > budget::JSON_BYTES {
        return refuse(format!("{} bytes of JSON are not read", object.len()), lines);
    }
    match serde_json::from_str(&object) {
        Ok(value) => Some((value, lines)),
        Err(error) => refuse(format!("this JSON was not read: {error}"), lines),
    }
}

/// How many lines the object takes that begins at a line.
fn length(text: &Text<'_>, at: usize) -> Option<usize> {
    let mut depth = 0;
    for (index, line) in text.lines[at..].iter().enumerate() {
        let (mut is_quoted, mut is_escaped) = (false, false);
        for byte in line.bytes() {
            match byte {
                _ if is_escaped => is_escaped = false,
                b'\\' => is_escaped = is_quoted,
                b'"' => is_quoted = !is_quoted,
                b'{' | b'[' if !is_quoted => depth += 1,
                b'}' | b']' if !is_quoted => {
                    depth -= 1;
                    if depth == 0 {
                        return Some(index + 1);
                    }
                }
                _ => {}
            }
        }
        // A string ends on its line.
        if is_quoted || depth > DEEPEST {
            return None;
        }
    }
    None
}
