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
}
