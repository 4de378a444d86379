//! A rule for people: what it looks at, from where on it fires, why, what to run, its source.

use super::finding::{Said, label_room};
use super::line::{Lines, heading};
use super::{Page, line};
use base::number;
use base::rule::Words;

pub fn render(rule: &Words, page: &Page) -> String {
    let page = Page { width: page.width.max(super::NARROWEST), ..*page };
    let mut out = Lines::new(page);
    heading(&format!("{}, one finding per {}", rule.id, rule.per), "", &mut out);
    let mut said = Said { out: &mut out, at: 1, room: label_room(&[]) };
    said.prose("looks at", rule.looks_at);
    for (index, fact) in rule.requires.iter().enumerate() {
        said.prose(if index == 0 { "requires" } else { "" }, &format!("{}: {}", fact.name(), fact.provided_by()));
    }
    for (index, limit) in rule.limits.iter().enumerate() {
        let amount = number::amount(limit.amount, limit.unit);
        said.prose(if index == 0 { "thresholds" } else { "" }, &format!("{}: {amount}", limit.what));
    }
    said.prose("why", rule.why);
    let lines = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>();
    said.commands("run", &lines(rule.fix));
    said.prose("needs", rule.needs.words());
    said.commands("undo", &lines(rule.undo));
    said.prose("source", rule.source);
    let text = out.into_text();
    if page.ascii { line::ascii(&text) } else { text }
}
