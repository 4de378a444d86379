//! A text line by line, as a terminal would have shown it: colours and overwritten lines are gone.

use super::Found;
use std::io::{BufRead, Read};

/// A longer line is no line of a result: cyclictest lists some hundred cycle numbers in one.
const LONGEST: u64 = 1 << 16;

/// Calls `hear` with the offset and the text of each line.
pub(super) fn each(input: &mut dyn BufRead, found: &mut Found, mut hear: impl FnMut(u64, &str, &mut Found)) {
    let (mut bytes, mut offset) = (Vec::new(), 0);
    loop {
        bytes.clear();
        match Read::take(&mut *input, LONGEST).read_until(b'\n', &mut bytes) {
            Ok(0) => return,
            Ok(length) => {
                let text = String::from_utf8_lossy(&bytes);
                let shown = shown(text.trim_end_matches(['\n', '\r']));
                hear(offset, &shown, found);
                offset += length as u64;
            }
            Err(error) => return found.damaged(offset, "bytes that can be read", error.to_string(), error.to_string()),
        }
    }
}

/// What a terminal shows of a line: escape sequences take no room, and a carriage return begins the line anew.
fn shown(line: &str) -> String {
    let last = line.rsplit('\r').find(|part| !part.is_empty()).unwrap_or("");
    let mut text = String::with_capacity(last.len());
    let mut characters = last.chars();
    while let Some(character) = characters.next() {
        if character == '\u{1b}' {
            // A control sequence ends with a letter: ECMA-48, section 5.4.
            characters.find(char::is_ascii_alphabetic);
        } else {
            text.push(character);
        }
    }
    text
}

/// The numbers of a line in their order, up to the first word that is none.
pub(super) fn numbers(text: &str) -> Vec<u64> {
    text.split_whitespace().map_while(|word| word.parse().ok()).collect()
}

/// The number behind `name` in a line such as `T: 0 C:   1000 Min:     68`.
pub(super) fn number_after(text: &str, name: &str) -> Option<u64> {
    let (_, rest) = text.split_once(name)?;
    let rest = rest.trim_start();
    let end = rest.find(|character: char| !character.is_ascii_digit()).unwrap_or(rest.len());
    rest[..end].parse().ok()
}

/// `49717.680885282` seconds in ns.
pub(super) fn seconds_ns(text: &str) -> Option<u64> {
    let (seconds, part) = text.split_once('.')?;
    let digits = part.len();
    if digits == 0 || digits > 9 || !part.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let part: u64 = part.parse().ok()?;
    seconds.parse::<u64>().ok()?.checked_mul(1_000_000_000)?.checked_add(part * 10_u64.pow(9 - digits as u32))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_and_what_was_overwritten_are_not_read() {
        assert_eq!(shown("\u{1b}[2;37;40mTimer Latency\u{1b}[0;0;0m"), "Timer Latency");
        assert_eq!(shown("T: 0 C: 1\rT: 0 C: 22 \u{1b}[K"), "T: 0 C: 22 ");
        assert_eq!(shown("\u{1b}"), "");
    }

    #[test]
    fn numbers_are_found_behind_their_names() {
        assert_eq!(numbers("000017 000003\t000028 (sum)"), [17, 3, 28]);
        assert_eq!(number_after("T: 0 (17159) Max:      93", "Max:"), Some(93));
        assert_eq!(number_after("Max: x", "Max:"), None);
        assert_eq!(seconds_ns("49717.680885282"), Some(49_717_680_885_282));
        assert_eq!(seconds_ns("54.029328"), Some(54_029_328_000));
        assert_eq!(
            (seconds_ns("54"), seconds_ns("5.1234567890"), seconds_ns("99999999999999999999.1")),
            (None, None, None)
        );
    }

    #[test]
    fn a_line_without_end_is_read_in_pieces_and_bytes_that_are_no_text_are_read() {
        let mut long = vec![b'x'; (LONGEST * 2) as usize + 7];
        long.extend(b"\n\xff\xfe\n");
        let (mut found, mut lines) = (Found::default(), Vec::new());
        each(&mut long.as_slice(), &mut found, |offset, line, _| lines.push((offset, line.len())));
        assert_eq!(lines, [(0, 65_536), (65_536, 65_536), (131_072, 7), (131_080, 6)]);
    }
}
