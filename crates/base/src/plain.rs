//! Text of others, shown as it reads and nothing else.
//!
//! Names of threads, VMs, files and symbols come from the traced machines, where whoever runs there chooses them. Control
//! characters can command a terminal; bidirectional marks (Unicode Standard Annex 9) reverse what stands beside them; and
//! characters without a width make two different names look alike. All of them are shown as U+FFFD, by every output.

use std::borrow::Cow;

/// What stands in place of a character that misleads.
pub const REPLACEMENT: char = '\u{fffd}';

/// Whether `character` changes how its surroundings read, or cannot be seen. A line's end counts: where lines are wanted,
/// whoever prints them keeps it.
pub fn misleads(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{061c}' // ARABIC LETTER MARK
            | '\u{200b}'..='\u{200f}' // zero-width space, joiners, left-to-right and right-to-left marks
            | '\u{2028}'..='\u{202e}' // line and paragraph separators, embeddings, overrides
            | '\u{2060}'..='\u{2069}' // word joiner, invisible operators, isolates
            | '\u{feff}' // zero-width no-break space
        )
}

/// `text` without what misleads.
pub fn plain(text: &str) -> Cow<'_, str> {
    if text.contains(misleads) { Cow::Owned(text.replace(misleads, "\u{fffd}")) } else { Cow::Borrowed(text) }
}

/// The same for several lines, whose ends stay.
pub fn plain_lines(text: &str) -> Cow<'_, str> {
    let misleads = |character: char| character != '\n' && misleads(character);
    if text.contains(misleads) { Cow::Owned(text.replace(misleads, "\u{fffd}")) } else { Cow::Borrowed(text) }
}

/// As much of the beginning of `text` as fits into `most_bytes` without cutting a character.
pub fn beginning(text: &str, most_bytes: usize) -> &str {
    let mut end = most_bytes.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// A sentence without the numbers that Rust puts behind a system's error (`No such file or directory (os error 2)`): the words do.
pub fn without_os_numbers(sentence: &str) -> String {
    let mut pieces = sentence.split(" (os error ");
    let mut words = pieces.next().unwrap_or_default().to_owned();
    pieces.for_each(|piece| words.push_str(piece.split_once(')').map_or(piece, |(_, rest)| rest)));
    words
}

/// What somebody's text begins with, as a message quotes it; `None` for bytes that are no text.
pub fn first_line(bytes: &[u8]) -> Option<&str> {
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        // Who read no more than a beginning may have cut a character.
        Err(cut) if cut.error_len().is_none() => std::str::from_utf8(&bytes[..cut.valid_up_to()]).unwrap_or_default(),
        Err(_) => return None,
    };
    let is_text = !text.contains(|character: char| character.is_control() && !character.is_whitespace());
    let line = text.lines().map(str::trim).find(|line| is_text && !line.is_empty())?;
    Some(beginning(line, MOST_QUOTED_BYTES))
}

/// A line of a terminal.
const MOST_QUOTED_BYTES: usize = 80;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_the_system_are_words() {
        let said = std::io::Error::from_raw_os_error(2).to_string();
        assert_eq!(
            without_os_numbers(&format!("a.dat: {said}; name another")),
            "a.dat: No such file or directory; name another"
        );
        assert_eq!(without_os_numbers("no trace"), "no trace");
    }

    #[test]
    fn what_reverses_hides_or_commands_is_replaced() {
        assert_eq!(
            plain("\u{202e}live-3402\u{1b}[2J\u{200b}x\u{2066}"),
            "\u{fffd}live-3402\u{fffd}[2J\u{fffd}x\u{fffd}"
        );
        assert_eq!(plain_lines("two\nlines\r\u{1b}]52;c;x\u{7}"), "two\nlines\u{fffd}\u{fffd}]52;c;x\u{fffd}");
        assert_eq!(
            (beginning("é日x", 4), beginning("é日x", 5), beginning("é", 9), beginning("é", 0)),
            ("é", "é日", "é", "")
        );
        assert!(matches!(plain("qemu-kvm é 日本 עברית"), Cow::Borrowed(_)), "letters of any script stay");
    }

    #[test]
    fn a_text_is_quoted_by_its_first_line_and_other_bytes_are_none() {
        assert_eq!(first_line(b"\n  Failed to apply  \nmore"), Some("Failed to apply"));
        assert_eq!(first_line("ä".as_bytes().split_last().unwrap().1), None, "nothing is left of a cut character");
        assert_eq!(first_line(&"xä".as_bytes()[..2]), Some("x"));
        assert_eq!(first_line("é".repeat(100).as_bytes()).map(str::len), Some(80));
        assert_eq!([first_line(b""), first_line(b" \n"), first_line(b"\x7fELF"), first_line(b"\xff\xfex")], [None; 4]);
    }
}
