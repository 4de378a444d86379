//! The first page: what to act on, in a few lines each, and where the rest is.
//!
//! ```text
//! facts about what was read
//! FINDINGS   the first ten lines: how bad, what; below it the id, and the first command
//! what the others answer, what is not known, damage
//! Next       the commands that show the rest
//! ```
//! Findings of one rule that are equally bad are one line, `.. (and 15 more VMs)`, and so is a cause with what it explains.

use super::line::{Lines, heading, width, wrap};
use super::paint::Role;
use super::{Page, Step, WIDEST_PROSE, render_next, render_problems, unknown_sentence};
use base::in_order;
use base::{Finding, Level, Problem, Section, Severity, number};

/// Lines of findings; a person acts on the first ones.
const MOST_LINES: usize = 10;

/// Unknowns on the first page.
const MOST_UNKNOWN: usize = 4;

/// Where titles begin: behind the widest severity.
const TITLES_AT: usize = 9;

/// Ids up to this width share a line with their command.
const WIDEST_ID: usize = 30;

struct Line<'a> {
    finding: &'a Finding,
    /// Further findings of its rule that are as bad.
    alike: u64,
    explains: u64,
}

/// Renders the first page of `sections`; `rest` are commands that show more.
pub fn render(sections: &[Section], problems: &[Problem], rest: &[Step<'_>], page: &Page) -> String {
    let page = Page { width: page.width.max(super::NARROWEST), ..*page };
    let mut out = Lines::new(page);
    for about in sections.iter().flat_map(|section| &section.about) {
        out.wrapped("", "", about, page.width);
    }
    findings(sections, &mut out);
    // What is wrong has been said.
    for section in sections.iter().filter(|section| section.findings.is_empty() && !section.summary.is_empty()) {
        out.gap();
        out.wrapped("", "", &section.summary, page.width.min(WIDEST_PROSE));
    }
    unknown(sections, &mut out);
    render_problems(problems, &mut out);
    render_next(sections, rest, &mut out);
    let text = out.into_text();
    if page.ascii { super::line::ascii(&text) } else { text }
}

fn findings(sections: &[Section], out: &mut Lines) {
    let lines = lines(in_order(sections.iter().flat_map(|section| &section.findings).collect()));
    if lines.is_empty() {
        return;
    }
    out.gap();
    heading("FINDINGS", "", out);
    let shown = &lines[..lines.len().min(MOST_LINES)];
    let ids = shown.iter().map(|line| width(&line.finding.id())).filter(|id| *id <= WIDEST_ID);
    let room = ids.max().unwrap_or(0);
    shown.iter().for_each(|line| render_line(line, room, out));
    let left = &lines[shown.len()..];
    if !left.is_empty() {
        let counts = [Severity::High, Severity::Medium, Severity::Low, Severity::Info].map(|severity| {
            let count = left.iter().filter(|line| line.finding.severity == severity).count();
            (count > 0).then(|| format!("{count} {}", severity.name()))
        });
        let counts: Vec<String> = counts.into_iter().flatten().collect();
        out.line(&format!(" + {}: {}", number::many(left.len() as u64, "more line"), number::list(&counts)));
    }
}

/// Findings in their order as lines: what a listed one explains, and what is like a listed one, has none of its own.
fn lines(findings: Vec<&Finding>) -> Vec<Line<'_>> {
    let mut lines: Vec<Line<'_>> = Vec::new();
    for finding in findings {
        let id = finding.id();
        if let Some(cause) = lines.iter_mut().find(|line| line.finding.explains.contains(&id)) {
            cause.explains += 1;
            continue;
        }
        let is_alike =
            |line: &&mut Line<'_>| (line.finding.rule, line.finding.severity) == (finding.rule, finding.severity);
        match lines.iter_mut().find(is_alike) {
            // A cause has victims of its own, which are counted on its own line.
            Some(line) if finding.explains.is_empty() => line.alike += 1,
            _ => lines.push(Line { finding, alike: 0, explains: 0 }),
        }
    }
    lines
}

fn render_line(line: &Line<'_>, room: usize, out: &mut Lines) {
    let Line { finding, alike, explains } = *line;
    let severity = out.paint.on(finding.severity.name(), Role::Severity(finding.severity));
    let blanks = " ".repeat(TITLES_AT.saturating_sub(1 + width(finding.severity.name())));
    let mut title = finding.title.clone();
    if alike > 0 {
        title.push_str(&format!(" (and {})", number::many(alike, &format!("more {}", finding.per))));
    }
    if explains > 0 {
        title.push_str(&format!("; explains {}", number::many(explains, "more finding")));
    }
    let prose = out.page.width.min(WIDEST_PROSE).saturating_sub(TITLES_AT);
    let mut before = format!(" {severity}{blanks}");
    for words in wrap(&title, prose, prose) {
        out.line(&format!("{before}{}", out.paint.on(&words, Role::Heading)));
        before = " ".repeat(TITLES_AT);
    }
    let id = finding.id();
    let place = match finding.level {
        Level::L0 | Level::Unknown => String::new(),
        elsewhere => format!("{}: ", elsewhere.place()),
    };
    // The change itself, which commands that look may precede; remarks that stand in place of a command are told where the finding is.
    let change = finding.changes.first().map(base::Change::command);
    let command = || finding.fix.iter().find(|line| !line.starts_with('#'));
    let Some(command) = change.as_ref().or_else(command) else {
        return out.line(&format!("{before}{}", out.paint.on(&id, Role::Quiet)));
    };
    let quiet = out.paint.on(&id, Role::Quiet);
    let painted = format!("{place}{}", out.paint.on(command, Role::Command));
    let gap = " ".repeat(room.saturating_sub(width(&id)) + 2);
    if width(&id) <= room && TITLES_AT + room + 2 + width(&place) + width(command) <= out.page.width {
        out.line(&format!("{before}{quiet}{gap}{painted}"));
    } else {
        out.line(&format!("{before}{quiet}"));
        out.line(&format!("{before}{painted}"));
    }
}

fn unknown(sections: &[Section], out: &mut Lines) {
    let all: Vec<_> = sections.iter().flat_map(|section| &section.unknown).collect();
    if all.is_empty() {
        return;
    }
    out.gap();
    heading("NOT KNOWN", "", out);
    for item in all.iter().take(MOST_UNKNOWN) {
        out.wrapped("   ", "     ", &unknown_sentence(item), out.page.width.min(WIDEST_PROSE));
    }
    if let Some(more) = all.len().checked_sub(MOST_UNKNOWN).filter(|more| *more > 0) {
        out.line(&format!("   + {more} more"));
    }
}
