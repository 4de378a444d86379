//! JSON that a terminal may show: names keep every character, and none of them commands it.
//!
//! JSON escapes what lies below U+0020 (RFC 8259, section 7). A C1 control such as U+009B begins a command of a terminal as well, and a
//! right-to-left override reverses what stands beside it: such characters are written as `\u009b`, which readers give back as they were.

use base::plain::misleads;
use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};
use std::io::{self, Write};

/// Writes `value` on one line.
///
/// # Errors
/// If `out` refuses.
pub(crate) fn to_writer(out: impl Write, value: &impl Serialize) -> io::Result<()> {
    Ok(value.serialize(&mut Serializer::with_formatter(out, Safe))?)
}

struct Safe;

impl Formatter for Safe {
    fn write_string_fragment<W: Write + ?Sized>(&mut self, out: &mut W, fragment: &str) -> io::Result<()> {
        for piece in fragment.split_inclusive(misleads) {
            match piece.chars().next_back().filter(|&last| misleads(last)) {
                None => out.write_all(piece.as_bytes())?,
                Some(last) => {
                    out.write_all(&piece.as_bytes()[..piece.len() - last.len_utf8()])?;
                    let mut units = [0; 2];
                    last.encode_utf16(&mut units).iter().try_for_each(|unit| write!(out, "\\u{unit:04x}"))?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_control_is_written_as_its_number_and_read_back_as_it_was() {
        let names = ["plain", "\u{9b}2Jx", "a\u{202e}b\u{7f}", "\u{1b}\n\"é日"];
        let mut written = Vec::new();
        to_writer(&mut written, &names).unwrap();
        let text = String::from_utf8(written).unwrap();
        assert!(!text.contains(misleads), "{text:?}");
        assert!(text.contains(r#""plain","\u009b2Jx","a\u202eb\u007f","\u001b\n\"é日""#), "{text}");
        assert_eq!(serde_json::from_str::<[String; 4]>(&text).unwrap(), names);
    }
}
