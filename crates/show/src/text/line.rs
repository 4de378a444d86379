//! Lines of a page: width as a terminal counts it, wrapping, eliding, padding.

use super::Page;
use super::paint::{Paint, Role};
use base::plain::plain;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The lines written so far.
pub(super) struct Lines {
    pub page: Page,
    pub paint: Paint,
    text: String,
}

impl Lines {
    pub(super) fn new(page: Page) -> Self {
        Self { page, paint: page.paint(), text: String::new() }
    }

    /// A line without blanks at its end. Names of the recorded machines may be in it: of control characters only colours pass.
    pub(super) fn line(&mut self, text: &str) {
        let mut rest = text.trim_end();
        while let Some(at) = rest.find(ESCAPE) {
            self.text.push_str(&plain(&rest[..at]));
            let colour = &rest[at..at + colour_bytes(&rest[at..])];
            self.text.push_str(if colour.is_empty() { "\u{fffd}" } else { colour });
            rest = &rest[at + colour.len().max(ESCAPE.len_utf8())..];
        }
        self.text.push_str(&plain(rest));
        self.text.push('\n');
    }

    /// An empty line, unless there is one or the page is still empty.
    pub(super) fn gap(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with("\n\n") {
            self.text.push('\n');
        }
    }

    /// `text` broken at blanks into lines of at most `width`; `first` goes before the first line, `rest` before the
    /// others. Words that are wider stay whole: they are paths, or something to paste.
    pub(super) fn wrapped(&mut self, first: &str, rest: &str, text: &str, width: usize) {
        let mut before = first;
        for line in wrap(text, width.saturating_sub(visible(first)), width.saturating_sub(visible(rest))) {
            self.line(&format!("{before}{line}"));
            before = rest;
        }
    }

    /// Entries of a legend, as many on a line as fit whole, `before` each line.
    pub(super) fn entries(&mut self, before: &str, entries: &[String]) {
        let mut line = String::new();
        for entry in entries {
            let fits = visible(before) + width(&line) + 3 + width(entry) <= self.page.width;
            if !line.is_empty() && !fits {
                self.line(&format!("{before}{line}"));
                line.clear();
            }
            line = if line.is_empty() { entry.clone() } else { format!("{line}   {entry}") };
        }
        if !line.is_empty() {
            self.line(&format!("{before}{line}"));
        }
    }

    pub(super) fn into_text(self) -> String {
        self.text
    }
}

const ESCAPE: char = '\x1b';

/// Bytes of the "select graphic rendition" sequence (ECMA-48, 8.3.117) that `text` begins with; 0 if it begins with something else.
fn colour_bytes(text: &str) -> usize {
    let Some(parameters) = text.strip_prefix("\x1b[") else { return 0 };
    let end = parameters.find(|letter: char| !letter.is_ascii_digit() && letter != ';').unwrap_or(parameters.len());
    if parameters[end..].starts_with('m') { "\x1b[".len() + end + 1 } else { 0 }
}

/// A remark further right than this is too far from the heading that it belongs to.
const REMARK_ENDS: usize = 110;

/// A heading, with a remark at the right where it fits and below where it does not.
pub(super) fn heading(title: &str, remark: &str, out: &mut Lines) {
    let painted = out.paint.on(title, Role::Heading);
    let used = 1 + width(title);
    let remark_width = width(remark);
    if used + 3 + remark_width <= out.page.width {
        let blanks = " ".repeat(out.page.width.min(REMARK_ENDS).saturating_sub(used + remark_width).max(3));
        out.line(&format!(" {painted}{blanks}{}", out.paint.on(remark, Role::Quiet)));
        return;
    }
    for (index, line) in wrap(title, out.page.width - 1, out.page.width - 3).iter().enumerate() {
        let painted = out.paint.on(line, Role::Heading);
        out.line(&format!("{}{painted}", if index == 0 { " " } else { "   " }));
    }
    if !remark.is_empty() {
        out.wrapped("   ", "   ", remark, out.page.width);
    }
}

/// A title in capitals up to its colon; what follows explains it and stays as it is.
pub(super) fn capitals(title: &str) -> String {
    let (subject, rest) = title.split_at(title.find(':').unwrap_or(title.len()));
    format!("{}{rest}", subject.to_uppercase())
}

/// `text` for a terminal that shows ASCII alone. What takes one column takes one column still.
pub(super) fn ascii(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            _ if character.is_ascii() => shown.push(character),
            '█' | '▉' | '▊' | '▋' | '▌' | '▓' | '■' => shown.push('#'),
            '▍' | '▎' | '▏' | '▒' | '┆' => shown.push(':'),
            '▲' => shown.push('^'),
            '△' => shown.push('v'),
            '□' => shown.push('x'),
            '●' => shown.push('*'),
            '◐' | '◧' | '◈' => shown.push('%'),
            '○' => shown.push('o'),
            '◆' | '◇' => shown.push('+'),
            '×' => shown.push('x'),
            '→' => shown.push('>'),
            '·' => shown.push('.'),
            '░' => shown.push(','),
            '─' | '┄' => shown.push('-'),
            '━' => shown.push('='),
            '├' | '┤' | '└' | '│' => shown.push('|'),
            '…' => shown.push('~'),
            other => shown.extend(std::iter::repeat_n('?', other.width().unwrap_or(0))),
        }
    }
    shown
}

/// Columns that `text` takes on a terminal.
pub(super) fn width(text: &str) -> usize {
    text.width()
}

/// The same for text that may carry colour sequences of ours.
pub(super) fn visible(text: &str) -> usize {
    let mut inside = false;
    text.chars()
        .filter(|character| match (inside, character) {
            (false, '\x1b') => {
                inside = true;
                false
            }
            (true, 'm') => {
                inside = false;
                false
            }
            _ => !inside,
        })
        .map(|character| character.width().unwrap_or(0))
        .sum()
}

/// Units that stay on the line of their number.
const UNITS: &[&str] = &["ns", "us", "ms", "s", "%", "B", "kB", "MB", "GB", "TB", "KiB", "MiB", "GiB"];

/// Whether a line is not to be broken between these words: `638.0` and `ms`.
fn belong_together(before: &str, word: &str) -> bool {
    let word = word.trim_end_matches(|end: char| !end.is_alphanumeric() && end != '%');
    before.ends_with(|end: char| end.is_ascii_digit()) && UNITS.contains(&word)
}

/// `text` in lines, the first at most `first` wide, the others `rest`, as far as its words allow.
pub(super) fn wrap(text: &str, first: usize, rest: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for paragraph in text.split('\n') {
        let mut line = String::new();
        let mut used = 0;
        let paragraph = plain(paragraph);
        // Several blanks in a row separate facts of one line and are kept there.
        for piece in pieces(paragraph.trim_end()) {
            let word = width(piece.trim_end());
            let room = if lines.is_empty() { first } else { rest };
            if used > 0 && word > 0 && used + word > room {
                lines.push(line.trim_end().to_owned());
                line.clear();
                used = 0;
            }
            if used > 0 || word > 0 {
                line.push_str(piece);
                used += width(piece);
            }
        }
        lines.push(line.trim_end().to_owned());
    }
    lines
}

/// The pieces between which `paragraph` may be broken, blanks behind them.
fn pieces(paragraph: &str) -> Vec<&str> {
    let mut pieces: Vec<&str> = Vec::new();
    let mut at = 0;
    for word in paragraph.split_inclusive(' ') {
        let end = at + word.len();
        match pieces.last_mut() {
            Some(last) if belong_together(last.trim_end(), word.trim_end()) => *last = &paragraph[at - last.len()..end],
            _ => pieces.push(word),
        }
        at = end;
    }
    pieces
}

/// `text` in at most `room` columns, its middle replaced by `…`: beginnings and ends tell names apart.
pub(super) fn elided(text: &str, room: usize) -> String {
    let text = plain(text);
    if width(&text) <= room {
        return text.into_owned();
    }
    let Some(left) = room.checked_sub(1) else { return String::new() };
    let head = take(text.chars(), left.div_ceil(2));
    let tail: String = take(text.chars().rev(), left - width(&head)).chars().rev().collect();
    format!("{head}…{tail}")
}

/// As many of `characters` as `room` columns hold.
fn take(characters: impl Iterator<Item = char>, room: usize) -> String {
    let mut used = 0;
    characters
        .take_while(|character| {
            used += character.width().unwrap_or(0);
            used <= room
        })
        .collect()
}

/// `text` followed by blanks up to `columns`.
pub(super) fn left(text: &str, columns: usize) -> String {
    format!("{text}{}", " ".repeat(columns.saturating_sub(width(text))))
}

/// `text` preceded by blanks up to `columns`.
pub(super) fn right(text: &str, columns: usize) -> String {
    format!("{}{text}", " ".repeat(columns.saturating_sub(width(text))))
}

/// A bar of `share` (0 to 1) of `columns`, in eighths of a column; what is there at all shows at least one eighth.
pub(super) fn bar(share: f64, columns: usize) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    if !(share.is_finite() && share > 0.0) {
        return String::new();
    }
    let eighths = ((share.min(1.0) * columns as f64 * 8.0).round() as usize).max(1);
    format!("{}{}", "█".repeat(eighths / 8), EIGHTHS[eighths % 8])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_what_commands_a_terminal_only_colours_pass() {
        let mut lines = Lines::new(Page { width: 80, colour: true, ascii: false });
        lines.line("\x1b[1;31mHIGH\x1b[0m evil\x1b[2J\x1b]52;c;x\x07 \x1b[31 \x1b[\x1b\x1b[0m");
        assert_eq!(
            lines.into_text(),
            "\x1b[1;31mHIGH\x1b[0m evil\u{fffd}[2J\u{fffd}]52;c;x\u{fffd} \u{fffd}[31 \u{fffd}[\u{fffd}\x1b[0m\n"
        );
    }

    #[test]
    fn a_unit_stays_with_its_number() {
        assert_eq!(wrap("0 lost, 638.0 ms", 14, 14), ["0 lost,", "638.0 ms"]);
        assert_eq!(wrap("took 46.2 %, then more", 8, 8), ["took", "46.2 %,", "then", "more"]);
        assert_eq!(wrap("vCPU 0 of web", 6, 6), ["vCPU 0", "of web"]);
    }

    #[test]
    fn ascii_takes_the_same_columns() {
        let text = "a…z  ██▌▏  ··├─●─┤◆○  漢字 é";
        assert_eq!(ascii(text), "a~z  ###:  ..|-*-|+o  ???? ?");
        assert_eq!(width(&ascii(text)), width(text));
    }

    #[test]
    fn prose_is_broken_at_blanks_and_long_words_stay_whole() {
        assert_eq!(wrap("one two three four", 9, 10), ["one two", "three four"]);
        assert_eq!(wrap("a /very/long/path/that/is/wide b", 10, 10), ["a", "/very/long/path/that/is/wide", "b"]);
        assert_eq!(wrap("facts   kept   apart", 40, 40), ["facts   kept   apart"]);
        assert_eq!(wrap("facts   kept   apart", 8, 8), ["facts", "kept", "apart"]);
    }

    #[test]
    fn eliding_keeps_both_ends_and_counts_wide_characters() {
        assert_eq!(elided("kvm-nx-lpage-recovery-4711", 11), "kvm-n…-4711");
        assert_eq!(elided("short", 11), "short");
        assert_eq!(width(&elided("漢字漢字漢字漢字", 7)), 7);
        assert_eq!(elided("abc", 0), "");
    }

    #[test]
    fn a_bar_grows_by_eighths_and_never_vanishes() {
        assert_eq!(bar(1.0, 4), "████");
        assert_eq!(bar(0.5625, 2), "█▏");
        assert_eq!(bar(0.000_001, 10), "▏");
        assert_eq!(bar(0.0, 10), "");
        assert_eq!(bar(7.0, 3), "███");
    }
}
