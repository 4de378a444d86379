//! Marks that are none of the text: those of quoted mails and of Markdown, and entities of pages.

use std::borrow::Cow;

/// Takes the marks of a mail that quotes them from lines: `> `, as often as it was answered. A single `>` may end an XML tag;
/// it is a mark where a line beside it has one too. Fences of Markdown are marks as well. Returns how many lines held nothing
/// but marks.
pub(super) fn unquote(lines: &mut [&str]) -> usize {
    let marked = |line: &&str| line.trim_start().starts_with('>');
    let (mut above, mut empty) = (false, 0);
    for at in 0..lines.len() {
        let line = lines[at];
        let is_marked = marked(&line);
        if is_marked && (above || line.trim_start().starts_with("> ") || lines.get(at + 1).is_some_and(marked)) {
            lines[at] = line.trim_start_matches(|letter: char| letter == '>' || letter.is_whitespace());
            empty += usize::from(lines[at].is_empty());
        }
        if ["```", "~~~"].iter().any(|fence| lines[at].trim_start().starts_with(fence)) {
            lines[at] = "";
            empty += 1;
        }
        above = is_marked;
    }
    empty
}

/// Text copied from a page's source has its angle brackets as entities; XML within is XML only without them.
pub(super) fn plain(text: &str) -> Cow<'_, str> {
    if text.contains("&lt;domain") || text.contains("&lt;interface") || text.contains("&lt;cputune") {
        text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&amp;", "&").into()
    } else {
        text.into()
    }
}
