//! How does any text become plain lines, before anybody asks what they are?
//!
//! ```text
//! bytes --> letters         UTF-16, UTF-8 with a mark, bytes that are no text
//!       --> no markup       a page's tags, entities, colours of a terminal, lines that were drawn over
//!       --> lines           without marks of quotations, fences, differences, numbers in front
//! ```
//! Every line keeps its number in the file, so that what is said of it can be found. Sources: The Unicode Standard 16.0, 23.8
//! (byte order mark); RFC 3676, 4.5 (quotations of mails); GNU diffutils manual, 2.2.2 (unified format).

use crate::numbered::unnumber;
use crate::printable;
use crate::wrapped;
use std::borrow::Cow;

/// A line as it is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Its number in the file, from 1 on.
    pub number: u32,
    pub text: String,
}

/// A text, ready to be read.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Normal {
    pub lines: Vec<Line>,
    /// Whether anything is not as it stands in the file, but for line ends.
    pub changed: bool,
}

/// Blanks that are not those of a keyboard, as pages and word processors put them: The Unicode Standard 16.0, 6.2.
const BLANKS: [char; 5] = ['\u{a0}', '\u{2007}', '\u{202f}', '\u{2009}', '\u{3000}'];

impl Normal {
    /// Reads a whole file.
    pub fn of(bytes: &[u8]) -> Self {
        let text = letters(bytes);
        let is_recoded = matches!(text, Cow::Owned(_));
        let marked = text.starts_with('\u{feff}');
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        let unfolded = printable::decoded(text);
        let bare = without_markup(&unfolded);
        let changed = marked || is_recoded || matches!(bare, Cow::Owned(_)) || matches!(unfolded, Cow::Owned(_));
        let mut normal = Self { lines: Vec::new(), changed };
        for (line, number) in bare.split('\n').zip(1..) {
            let line = line.strip_suffix('\r').unwrap_or(line);
            let shown = overwritten(line);
            normal.changed |= shown.len() != line.len();
            normal.lines.push(Line { number, text: shown.to_owned() });
        }
        if normal.lines.last().is_some_and(|line| line.text.is_empty()) {
            normal.lines.pop();
        }
        for step in [unquote, unname, open_fences, undo_diff, unnumber] {
            normal.changed |= step(&mut normal.lines);
        }
        normal.changed |= wrapped::join(&mut normal.lines);
        normal
    }

    /// A text of its lines.
    pub fn text(&self) -> String {
        joined(&self.lines)
    }
}

/// The lines as one text.
pub(crate) fn joined(lines: &[Line]) -> String {
    let mut text = String::with_capacity(lines.iter().map(|line| line.text.len() + 1).sum());
    for line in lines {
        text.push_str(&line.text);
        text.push('\n');
    }
    text
}

/// The letters of a file, whatever it writes them with.
pub(crate) fn letters(bytes: &[u8]) -> Cow<'_, str> {
    let units = |of: fn([u8; 2]) -> u16| -> String {
        let pairs = bytes.chunks_exact(2).map(|pair| of([pair[0], pair[1]]));
        char::decode_utf16(pairs).map(|letter| letter.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
    };
    match bytes {
        [0xff, 0xfe, ..] => units(u16::from_le_bytes).into(),
        [0xfe, 0xff, ..] => units(u16::from_be_bytes).into(),
        _ if is_wide(bytes, 1) => units(u16::from_le_bytes).into(),
        _ if is_wide(bytes, 0) => units(u16::from_be_bytes).into(),
        _ => String::from_utf8_lossy(bytes),
    }
}

/// Whether every other byte is zero, as in UTF-16 of ASCII: at even or odd places.
fn is_wide(bytes: &[u8], zero_at: usize) -> bool {
    let first = &bytes[..bytes.len().min(256) & !1];
    first.len() >= 8 && first.chunks_exact(2).all(|pair| pair[zero_at] == 0 && pair[1 - zero_at] != 0)
}

/// Text without colours, without the tags of a page, and with the blanks and quotes of a keyboard.
fn without_markup(text: &str) -> Cow<'_, str> {
    let mut text = Cow::Borrowed(text);
    if text.contains('\u{1b}') {
        text = anstream::adapter::strip_str(&text).to_string().into();
    }
    if is_page(&text) {
        text = of_page(&text).into();
    }
    if text.contains("&lt;") || text.contains("&gt;") || text.contains("&nbsp;") {
        text = entities(&text).into();
    }
    let typeset =
        |letter: char| BLANKS.contains(&letter) || "\u{200b}\u{2018}\u{2019}\u{201c}\u{201d}".contains(letter);
    if text.contains(typeset) {
        let typed = |letter: char| match letter {
            '\u{200b}' => None,
            '\u{2018}' | '\u{2019}' => Some('\''),
            '\u{201c}' | '\u{201d}' => Some('"'),
            letter if BLANKS.contains(&letter) => Some(' '),
            letter => Some(letter),
        };
        text = text.chars().filter_map(typed).collect::<String>().into();
    }
    text
}

/// Whether a text is a page of HTML.
fn is_page(text: &str) -> bool {
    let start = base::plain::beginning(text.trim_start(), 1_024).to_ascii_lowercase();
    start.starts_with("<!doctype html") || start.starts_with("<html") || start.contains("<html>")
}

/// What a page shows, and the traces that systrace embeds (`<script class="trace-data" type="application/text">`). Lines stay
/// where they are.
fn of_page(page: &str) -> String {
    let mut shown = String::with_capacity(page.len());
    let mut rest = page;
    while let Some(at) = rest.find('<') {
        shown.push_str(&rest[..at]);
        rest = &rest[at..];
        let end = rest.find('>').map_or(rest.len(), |end| end + 1);
        let tag = &rest[..end];
        rest = &rest[end..];
        keep_line_ends(tag, &mut shown);
        let lower = base::plain::beginning(tag, 256).to_ascii_lowercase();
        for (begin, until) in [("<script", "</script"), ("<style", "</style")] {
            if lower.starts_with(begin) && !lower.contains("trace-data") {
                let inside = rest.find(until).unwrap_or(rest.len());
                keep_line_ends(&rest[..inside], &mut shown);
                rest = &rest[inside..];
            }
        }
    }
    shown.push_str(rest);
    shown
}

fn keep_line_ends(hidden: &str, shown: &mut String) {
    shown.extend(hidden.bytes().filter(|byte| *byte == b'\n').map(char::from));
}

/// The letters that pages write as entities. An XML document has them by right, inside its values.
fn entities(text: &str) -> String {
    if text.contains("<domain") || text.contains("<?xml") {
        return text.to_owned();
    }
    let named = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'"), ("&nbsp;", " "), ("&amp;", "&")];
    named.iter().fold(text.to_owned(), |text, (entity, letter)| text.replace(entity, letter))
}

/// What a terminal shows of a line that was drawn over: the last of what stands between carriage returns.
fn overwritten(line: &str) -> &str {
    line.rsplit('\r').find(|shown| !shown.trim().is_empty()).unwrap_or(line)
}

/// Takes off the marks of quotations, of any depth. A single `>` may end an XML tag: it is a mark where a blank follows or a line
/// beside it has one too.
fn unquote(lines: &mut [Line]) -> bool {
    let is_marked = |line: &Line| line.text.trim_start().starts_with('>');
    let marked: Vec<bool> = lines.iter().map(is_marked).collect();
    let mut changed = false;
    for at in 0..lines.len() {
        let beside = at.checked_sub(1).is_some_and(|above| marked[above]) || marked.get(at + 1) == Some(&true);
        if marked[at] && (beside || lines[at].text.trim_start().starts_with("> ")) {
            lines[at].text = quoted(&lines[at].text).to_owned();
            changed = true;
        }
        // A column of bars on the left alone; tables have them on both sides.
        let bare = lines[at].text.trim();
        if let Some(inside) = bare.strip_prefix("| ").filter(|_| !bare.ends_with('|') && !bare.contains(" | ")) {
            lines[at].text = inside.to_owned();
            changed = true;
        }
    }
    changed
}

/// Lines of one person in a chat: `<mk> text`, or `<mk>` where it is blank.
const SAID_BY_ONE: usize = 3;

/// Takes off who said it, where several lines in a row have the same nickname before them. Tags of markup have no blank behind them.
fn unname(lines: &mut [Line]) -> bool {
    let nick = |line: &Line| -> Option<(usize, usize)> {
        let bare = line.text.trim_start();
        let end = bare.strip_prefix('<')?.find('>')? + 2;
        let name = bare[1..end - 1].trim_start_matches(['@', '+', ' ']);
        let fits = !name.is_empty()
            && name.len() <= 30
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-[]\\^{}|`".contains(&byte));
        let rest = &bare[end..];
        let before = line.text.len() - bare.len();
        (fits && (rest.is_empty() || rest.starts_with(' '))).then_some((before, before + end))
    };
    let nicks: Vec<Option<(usize, usize)>> = lines.iter().map(nick).collect();
    let (mut at, mut changed) = (0, false);
    while at < lines.len() {
        let Some((from, to)) = nicks[at] else {
            at += 1;
            continue;
        };
        let name = lines[at].text[from..to].to_owned();
        let is_same = |place: usize| nicks[place].is_some_and(|(from, to)| lines[place].text[from..to] == name);
        let end = (at..lines.len()).find(|place| !is_same(*place)).unwrap_or(lines.len());
        let speaks = |place: &usize| nicks[*place].is_some_and(|(_, to)| lines[*place].text.len() > to + 1);
        if end - at >= SAID_BY_ONE && (at..end).filter(speaks).count() * 2 > end - at {
            for place in at..end {
                let to = nicks[place].map_or(0, |(_, to)| to);
                let text = &lines[place].text[to..];
                lines[place].text = text.strip_prefix(' ').unwrap_or(text).to_owned();
            }
            changed = true;
        }
        at = end;
    }
    changed
}

/// What stands behind marks: at most one blank of each is theirs.
fn quoted(mut line: &str) -> &str {
    while let Some(inside) = line.trim_start().strip_prefix('>') {
        line = inside.strip_prefix(' ').unwrap_or(inside);
    }
    line
}

/// Fences of Markdown, Jira and forums are no lines of what they hold.
fn open_fences(lines: &mut [Line]) -> bool {
    const FENCES: [&str; 8] = ["```", "~~~", "{code", "{noformat", "[code", "[/code", "<pre", "</pre"];
    let mut changed = false;
    for line in lines {
        let bare = line.text.trim_start();
        if FENCES.iter().any(|fence| bare.starts_with(fence)) && bare.len() < 60 {
            line.text.clear();
            changed = true;
        }
    }
    changed
}

/// What a difference leads to: its lines with `+` and those that both have; what it takes away is none.
fn undo_diff(lines: &mut [Line]) -> bool {
    let is_hunk = |line: &Line| line.text.starts_with("@@ -");
    let is_added = |line: &Line| line.text.strip_prefix('+').is_some_and(|rest| rest.starts_with([' ', '<', '\t']));
    let is_diff = lines.iter().any(is_hunk) || lines.iter().filter(|line| is_added(line)).count() > 1;
    if !is_diff {
        return false;
    }
    for line in lines {
        let head = ["@@ -", "+++ ", "--- ", "diff --git ", "index "].iter().any(|head| line.text.starts_with(head));
        if head || (line.text.starts_with('-') && !line.text.starts_with("--")) {
            line.text.clear();
        } else if let Some(added) = line.text.strip_prefix('+') {
            line.text = format!(" {added}");
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<(u32, String)> {
        let lines = Normal::of(text.as_bytes()).lines;
        lines.into_iter().filter(|line| !line.text.trim().is_empty()).map(|line| (line.number, line.text)).collect()
    }

    fn texts(text: &str) -> Vec<String> {
        read(text).into_iter().map(|(_, text)| text).collect()
    }

    #[test]
    fn letters_are_read_however_they_are_written() {
        let wide = |text: &str, of: fn(u16) -> [u8; 2]| text.encode_utf16().flat_map(of).collect::<Vec<u8>>();
        for bytes in [
            "\u{feff}T: 0 C: 1\r\nA\u{a0}b\n".as_bytes().to_vec(),
            wide("\u{feff}T: 0 C: 1\r\nA b\r\n", u16::to_le_bytes),
            wide("\u{feff}T: 0 C: 1\nA b\n", u16::to_be_bytes),
            wide("T: 0 C: 1\nA b", u16::to_le_bytes),
        ] {
            let normal = Normal::of(&bytes);
            assert_eq!(normal.text(), "T: 0 C: 1\nA b\n");
            assert!(normal.changed);
        }
        assert!(!Normal::of(b"T: 0 C: 1\r\nA b\r\n").changed, "line ends alone change nothing");
    }

    #[test]
    fn colours_pages_and_what_was_drawn_over_leave_what_people_see() {
        assert_eq!(texts("\u{1b}[01;31mkvm_exit\u{1b}[0m: a\nT: 1\rT: 2\u{1b}[K\n"), ["kvm_exit: a", "T: 2"]);
        let page = "<!DOCTYPE html>\n<html><head><style>a{}\n</style><script>var x;\n</script></head>\n<body>\n\
                    <script class=\"trace-data\" type=\"application/text\">\n a-1 [000] 1.000000: x: &lt;idle&gt;\n</script></body></html>\n";
        assert_eq!(read(page), [(7, " a-1 [000] 1.000000: x: <idle>".to_owned())]);
        assert_eq!(texts("<domain>\n<name>a&lt;b</name>\n"), ["<domain>", "<name>a&lt;b</name>"]);
    }

    #[test]
    fn quotations_fences_and_differences_are_marks() {
        assert_eq!(texts("> > T: 0\n>> T: 1\n> prose\n"), ["T: 0", "T: 1", "prose"]);
        assert_eq!(texts("<domain type='kvm'\n>\n<a/>\n"), ["<domain type='kvm'", ">", "<a/>"]);
        assert_eq!(texts("```text\nlscpu\n```\n{code}\nx\n{code}\n"), ["lscpu", "x"]);
        let diff = "@@ -1,3 +1,4 @@\n   <vcpu>4</vcpu>\n-  <cputune/>\n+  <cputune>\n+  </cputune>\n";
        assert_eq!(read(diff).iter().map(|(number, _)| *number).collect::<Vec<_>>(), [2, 4, 5]);
        assert_eq!(texts(diff)[1], "   <cputune>");
        assert_eq!(texts("| a b\n| c |\n| d | e |\n"), ["a b", "| c |", "| d | e |"]);
    }

    #[test]
    fn nicknames_of_a_chat_are_marks() {
        let text = "<mk> # perf kvm stat live\n<mk>\n<mk>   hlt  8112\n<mk>   msr  12\n<you> well\n<a> x\n<a> y\n";
        assert_eq!(texts(text), ["# perf kvm stat live", "  hlt  8112", "  msr  12", "<you> well", "<a> x", "<a> y"]);
        let xml = "<cpu>\n<cpu>\n<cpu>\n<cpu> 1\n";
        assert_eq!(texts(xml), xml.lines().collect::<Vec<_>>());
    }
}
