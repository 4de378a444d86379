//! A mail as it was sent, in quoted-printable: `=3D` for a letter, and `=` at the end of a line that goes on in the next one.
//!
//! Lines keep their numbers: what goes on in a later line is taken up into the first one, and leaves blank lines behind. Source: RFC 2045, 6.7.

use std::borrow::Cow;

/// Lines that end so from which a text without a header is one.
const LEAST_FOLDED: usize = 3;

/// The carriage return of a line that was written elsewhere.
const RETURN: &str = "=0D";

/// The text, decoded where it is such a mail.
pub(crate) fn decoded(text: &str) -> Cow<'_, str> {
    // Most texts have no such mark at all.
    if !text.contains("=\n") && !text.contains("=\r\n") && !text.contains("=0D\n") {
        return Cow::Borrowed(text);
    }
    let says = text.lines().any(|line| {
        line.to_ascii_lowercase().starts_with("content-transfer-encoding:") && line.contains("quoted-printable")
    });
    let folded = text.lines().filter(|line| line.ends_with('=') || line.ends_with(RETURN)).count();
    // Without a header: many folded lines, and every other sign of equality is a letter in two digits.
    // A rule of such signs below a head is none: only the last of a line may have nothing behind it.
    let is_coded = |line: &str| {
        let rests: Vec<&str> = line.split('=').skip(1).collect();
        let last = rests.len().saturating_sub(1);
        rests.iter().enumerate().all(|(at, rest)| letter(rest.as_bytes()).is_some() || at == last && rest.is_empty())
    };
    if !says && (folded < LEAST_FOLDED || !text.lines().all(is_coded)) {
        return Cow::Borrowed(text);
    }
    let mut bytes: Vec<u8> = Vec::with_capacity(text.len());
    let mut owed = 0;
    for line in text.lines() {
        let (line, goes_on) = match line.strip_suffix('=') {
            Some(line) => (line, true),
            None => (line, false),
        };
        push(line.strip_suffix(RETURN).unwrap_or(line), &mut bytes);
        if goes_on {
            owed += 1;
            continue;
        }
        bytes.extend(std::iter::repeat_n(b'\n', owed + 1));
        owed = 0;
    }
    bytes.extend(std::iter::repeat_n(b'\n', owed));
    String::from_utf8_lossy(&bytes).into_owned().into()
}

/// A line's letters.
fn push(line: &str, into: &mut Vec<u8>) {
    let mut rest = line.as_bytes();
    while let Some(at) = rest.iter().position(|byte| *byte == b'=') {
        into.extend_from_slice(&rest[..at]);
        match letter(&rest[at + 1..]) {
            Some(letter) => {
                into.push(letter);
                rest = &rest[at + 3..];
            }
            None => {
                into.push(b'=');
                rest = &rest[at + 1..];
            }
        }
    }
    into.extend_from_slice(rest);
}

/// The letter of the two digits that a text begins with.
fn letter(text: &[u8]) -> Option<u8> {
    let digit = |byte: &u8| char::from(*byte).to_digit(16).filter(|_| !byte.is_ascii_lowercase());
    let (high, low) = (digit(text.first()?)?, digit(text.get(1)?)?);
    u8::try_from(high * 16 + low).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mail_that_says_so_is_decoded_and_lines_keep_their_numbers() {
        let mail = "Content-Transfer-Encoding: quoted-printable\n\ngpa 0xfe=\ne000b0 val 0x0\nx=3D1\nJ=C3=BCrgen\n";
        assert_eq!(
            decoded(mail),
            "Content-Transfer-Encoding: quoted-printable\n\ngpa 0xfee000b0 val 0x0\n\nx=1\nJ\u{fc}rgen\n"
        );
    }

    #[test]
    fn lines_that_were_ended_elsewhere_end_once() {
        let mail = "Content-Transfer-Encoding: quoted-printable\n\nsetup: 4 ms=0D\n=0D\nnormal: 1 pages=0D\n";
        assert!(decoded(mail).ends_with("\n\nsetup: 4 ms\n\nnormal: 1 pages\n"), "{}", decoded(mail));
    }

    #[test]
    fn a_text_without_a_header_is_one_where_nothing_else_fits() {
        let text = "a=\nb\nc=\nd\ne=3D=\nf\n";
        assert_eq!(decoded(text), "ab\n\ncd\n\ne=f\n\n");
        for other in ["x=\ny=5\nz=\na=\n", "a=\nb\n", "rip=0x10=\nb=\nc=\n", "A ==\na ==\n====\n"] {
            assert_eq!(decoded(other), other);
        }
    }
}
