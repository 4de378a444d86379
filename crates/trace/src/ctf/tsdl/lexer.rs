//! The words of TSDL: identifiers, numbers, strings, punctuation; comments and white space are passed over.
//!
//! CTF 1.8.3 appendix C takes its lexical grammar from C99.

use crate::Error;
use crate::ctf::metadata::Metadata;

/// One word and where it starts in the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Token {
    pub word: Word,
    /// Byte in the text.
    pub at: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Word {
    Name(String),
    /// An unsigned number; its sign is a mark of its own.
    Number(u64),
    /// A string with its escapes resolved, or a character.
    Quoted(String),
    Mark(&'static str),
    End,
}

/// Longest first, so that `...` is not read as three dots.
const MARKS: [&str; 18] = ["...", ":=", "{", "}", "[", "]", "(", ")", "<", ">", ";", ":", ",", "=", "*", ".", "-", "+"];

impl std::fmt::Display for Word {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Word::Name(name) => write!(f, "`{name}`"),
            Word::Number(number) => write!(f, "{number}"),
            Word::Quoted(text) => write!(f, "{text:?}"),
            Word::Mark(mark) => write!(f, "`{mark}`"),
            Word::End => f.write_str("the end of the text"),
        }
    }
}

/// Cuts the text into words; the last one is [`Word::End`].
///
/// # Errors
/// At a comment or string without end, a number too large, or a character that TSDL does not know.
pub(super) fn words(metadata: &Metadata) -> Result<Vec<Token>, Error> {
    let text = &metadata.text;
    let bytes = text.as_bytes();
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let rest = &text[at..];
        match byte {
            b' ' | b'\t' | b'\r' | b'\n' | 0x0B | 0x0C | 0 => at += 1,
            b'/' if rest.starts_with("/*") => {
                let end = rest[2..].find("*/");
                at += 4 + end.ok_or_else(|| metadata.damaged(at, "`*/`", "a comment without end"))?;
            }
            b'/' if rest.starts_with("//") => at += rest.find('\n').unwrap_or(rest.len()),
            b'#' => at += rest.find('\n').unwrap_or(rest.len()),
            b'"' | b'\'' => {
                let (content, length) =
                    quoted(rest).ok_or_else(|| metadata.damaged(at, "a closing quote", "the end of the text"))?;
                tokens.push(Token { word: Word::Quoted(content), at });
                at += length;
            }
            b'0'..=b'9' => {
                let length = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
                let number = number(&rest[..length])
                    .ok_or_else(|| metadata.damaged(at, "a number of 64 bits", format!("`{}`", &rest[..length])))?;
                tokens.push(Token { word: Word::Number(number), at });
                at += length;
            }
            b'_' | b'a'..=b'z' | b'A'..=b'Z' => {
                let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
                let length = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
                tokens.push(Token { word: Word::Name(rest[..length].to_owned()), at });
                at += length;
            }
            _ => {
                let mark = MARKS.into_iter().find(|mark| rest.starts_with(mark));
                let first = rest.chars().next().unwrap_or_default();
                if first == '\u{FEFF}' {
                    at += first.len_utf8();
                    continue;
                }
                let mark = mark.ok_or_else(|| metadata.damaged(at, "TSDL", format!("the character {first:?}")))?;
                tokens.push(Token { word: Word::Mark(mark), at });
                at += mark.len();
            }
        }
    }
    tokens.push(Token { word: Word::End, at });
    Ok(tokens)
}

/// Decimal, `0x` hexadecimal, `0b` binary or `0` octal, with C's suffixes.
fn number(word: &str) -> Option<u64> {
    let lower = word.to_ascii_lowercase();
    let (digits, base) = match lower.as_bytes() {
        [b'0', b'x', ..] => (&lower[2..], 16),
        [b'0', b'b', ..] => (&lower[2..], 2),
        [b'0', _, ..] => (&lower[1..], 8),
        _ => (&lower[..], 10),
    };
    let digits = digits.trim_end_matches(['u', 'l']);
    // `0` with a suffix leaves nothing after its octal prefix.
    if digits.is_empty() && base == 8 {
        return Some(0);
    }
    u64::from_str_radix(digits, base).ok()
}

/// Content of the quoted text at the start of `rest`, and its length with the quotes.
fn quoted(rest: &str) -> Option<(String, usize)> {
    let mut chars = rest.char_indices();
    let quote = chars.next()?.1;
    let mut content = String::new();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => match chars.next()?.1 {
                'n' => content.push('\n'),
                't' => content.push('\t'),
                'r' => content.push('\r'),
                '0' => content.push('\0'),
                other => content.push(other),
            },
            c if c == quote => return Some((content, at + 1)),
            c => content.push(c),
        }
    }
    None
}
