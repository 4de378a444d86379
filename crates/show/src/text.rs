//! Sections for people at a terminal.
//!
//! In: Sections, problems of the input, and a [`Page`]. Out: text no wider than the page, except commands and paths,
//! which stay whole so that they can be pasted. Order: facts about the recording and the answer as a paragraph, of each
//! section; the findings of all sections, worst first; figures, tables and what is unknown, of each section; what was
//! damaged, what to do next. Colour only repeats what words and order say.

mod brief;
mod curves;
mod dumbbells;
mod figure;
mod finding;
mod flow;
mod gauge;
mod histogram;
mod levels;
mod line;
mod matrix;
mod paint;
mod points;
mod rule;
mod spans;
mod table;
mod topology;
mod waterfall;

use base::in_order;
use base::{Finding, Problem, Section, Shown, Table, Unknown, number};
use line::{Lines, heading};
use paint::{Paint, Role};

pub use brief::render as render_brief;
pub use rule::render as render_rule;

// What pages in HTML say in the same words.
pub(crate) use finding::{cost, explained, gives_back};
pub(crate) use table::shown_cell;

/// The page a text is rendered for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Page {
    pub width: usize,
    /// Whether terminal colours are used.
    pub colour: bool,
    /// Whether the terminal shows nothing but ASCII.
    pub ascii: bool,
}

impl Default for Page {
    fn default() -> Self {
        Self { width: 100, colour: false, ascii: false }
    }
}

/// A command that shows more, and what it shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step<'a> {
    pub command: String,
    /// In a few words.
    pub shows: &'a str,
}

/// The narrowest page; narrower ones are rendered like this and left to the terminal to break.
const NARROWEST: usize = 50;

/// Prose wider than this is tiring to read; tables and bars use the whole page.
const WIDEST_PROSE: usize = 110;

/// Problems told one by one; a person reads the first dozen.
const MOST_PROBLEMS: usize = 12;

/// Renders `sections`, and the `problems` of the input behind them.
pub fn render(sections: &[Section], problems: &[Problem], page: &Page) -> String {
    let page = Page { width: page.width.max(NARROWEST), ..*page };
    let mut out = Lines::new(page);
    let several = sections.len() > 1;
    for section in sections {
        if several {
            question(section, &mut out);
        }
        render_answer(section, &mut out);
    }
    render_findings(sections, &mut out);
    for section in sections {
        if several && has_details(section) {
            out.gap();
            heading(&format!("{} in detail", section.id).to_uppercase(), "", &mut out);
        }
        render_details(section, &mut out);
    }
    render_problems(problems, &mut out);
    render_next(sections, &[], &mut out);
    let text = out.into_text();
    if page.ascii { line::ascii(&text) } else { text }
}

/// Renders one table, also where a terminal shows it only when asked; nothing if it is for programs alone.
pub fn render_table(of: &Table, page: &Page) -> String {
    let mut out = Lines::new(Page { width: page.width.max(NARROWEST), ..*page });
    let shown = of.shown.map(|shown| Shown { in_terminals: true, ..shown });
    table::render(&Table { shown, ..of.clone() }, &mut out);
    out.into_text()
}

fn question(section: &Section, out: &mut Lines) {
    out.gap();
    heading(section.question, "", out);
}

fn render_answer(section: &Section, out: &mut Lines) {
    out.gap();
    let prose = out.page.width.min(WIDEST_PROSE);
    for about in &section.about {
        out.wrapped("", "", about, out.page.width);
    }
    if !section.summary.is_empty() {
        out.gap();
        out.wrapped("", "", &section.summary, prose);
    }
}

/// The findings of all sections in one list: a reader acts on the worst, whichever question found it.
fn render_findings(sections: &[Section], out: &mut Lines) {
    let findings: Vec<&Finding> = sections.iter().flat_map(|section| &section.findings).collect();
    if findings.is_empty() {
        return;
    }
    let findings = in_order(findings);
    out.gap();
    heading("FINDINGS", "", out);
    let room = finding::label_room(&findings);
    findings.iter().for_each(|finding| finding::render(finding, room, out));
}

fn has_details(section: &Section) -> bool {
    section.figures.iter().any(|figure| figure.in_terminals)
        || !section.unknown.is_empty()
        || section.tables.iter().any(|table| table.shown.is_some_and(|shown| shown.in_terminals))
}

/// Tables that give the overview, figures, the other tables, and what is not known.
fn render_details(section: &Section, out: &mut Lines) {
    let leads = |table: &&Table| table.shown.as_ref().is_some_and(|shown| shown.leads);
    section.tables.iter().filter(leads).for_each(|table| table::render(table, out));
    section.figures.iter().filter(|figure| figure.in_terminals).for_each(|figure| figure::render(figure, out));
    section.tables.iter().filter(|table| !leads(table)).for_each(|table| table::render(table, out));
    render_unknown(&section.unknown, out);
}

fn render_unknown(unknown: &[Unknown], out: &mut Lines) {
    if unknown.is_empty() {
        return;
    }
    out.gap();
    heading("NOT KNOWN", "", out);
    for item in unknown {
        out.wrapped("   ", "     ", &unknown_sentence(item), out.page.width.min(WIDEST_PROSE));
    }
}

/// What is not known, with its amount: the sentence usually says it itself, with its unit or with words around it.
pub(crate) fn unknown_sentence(item: &Unknown) -> String {
    let said = |amount: f64| {
        let spellings = [number::amount(amount, &item.unit), number::plain(amount)];
        spellings.iter().any(|spelling| item.text.contains(spelling.as_str()))
    };
    match item.amount {
        Some(amount) if !said(amount) => format!("{}: {}", number::amount(amount, &item.unit), item.text),
        _ => item.text.clone(),
    }
}

/// The sentence usually names the file itself; if not, the file and the place come before it.
fn located(problem: &Problem, place: &str, text: &str, counts: &str) -> String {
    if text.starts_with(&problem.file) {
        format!("{text}{counts}")
    } else {
        format!("{}{place}: {text}{counts}", problem.file)
    }
}

fn render_problems(problems: &[Problem], out: &mut Lines) {
    let (damage, said): (Vec<&Problem>, Vec<&Problem>) = problems.iter().partition(|problem| problem.count > 0);
    for (title, problems) in [(DAMAGE, damage), (REMARKS, said)] {
        if problems.is_empty() {
            continue;
        }
        out.gap();
        heading(&title.to_uppercase(), "", out);
        for problem in problems.iter().take(MOST_PROBLEMS) {
            out.wrapped("   ", "     ", &problem_sentence(problem), out.page.width);
        }
        if let Some(more) = problems.len().checked_sub(MOST_PROBLEMS).filter(|more| *more > 0) {
            out.line(&format!("   + {}, see --json", number::many(more as u64, "more kind")));
        }
    }
}

/// What stands above problems of what is damaged.
pub(crate) const DAMAGE: &str = "Damage in the input";

/// What stands above remarks, of what was read otherwise than it stands there, or not at all.
pub(crate) const REMARKS: &str = "About the input";

/// Damage as one sentence: which file, where in it, what, how often, how much of it was passed over.
pub(crate) fn problem_sentence(problem: &Problem) -> String {
    let place = problem.offset.map_or(String::new(), |offset| format!(" at byte {offset:#x}"));
    let mut text = problem.text.clone();
    if text.is_empty() {
        text = format!("expected {}, found {}", problem.expected, problem.found);
    }
    let mut counts = Vec::new();
    if problem.count > 1 {
        counts.push(format!("{} times", number::thousands(problem.count)));
    }
    if problem.bytes_skipped > 0 {
        counts.push(format!("{} skipped", number::exact_bytes(problem.bytes_skipped)));
    }
    let counts = if counts.is_empty() { String::new() } else { format!(" ({})", counts.join(", ")) };
    located(problem, &place, &text, &counts)
}

/// The last lines say what to do next, once, whichever section said it first; `rest` are commands that show more.
fn render_next(sections: &[Section], rest: &[Step<'_>], out: &mut Lines) {
    let steps = next_steps(sections);
    if steps.is_empty() && rest.is_empty() {
        return;
    }
    out.gap();
    let room = rest.iter().map(|step| line::width(&step.command)).max().unwrap_or(0);
    let more = rest.iter().map(|Step { command, shows }| {
        let blanks = " ".repeat(room - line::width(command));
        format!("{}{blanks}   # {shows}", out.paint.on(command, Role::Command))
    });
    let steps = steps.into_iter().map(|step| out.paint.on(step, Role::Command));
    let steps: Vec<String> = more.chain(steps).collect();
    let one_line = steps.join("   ");
    let mark = out.paint.on("Next:", Role::Heading);
    if rest.is_empty() && line::visible(&one_line) + 6 <= out.page.width {
        out.line(&format!("{mark} {one_line}"));
    } else {
        out.line(&mark);
        for step in steps {
            out.line(&format!("   {step}"));
        }
    }
}

pub(crate) fn next_steps(sections: &[Section]) -> Vec<&str> {
    let mut steps: Vec<&str> = Vec::new();
    for step in sections.iter().flat_map(|section| &section.next) {
        if !steps.contains(&step.as_str()) {
            steps.push(step);
        }
    }
    steps
}

impl Page {
    fn paint(&self) -> Paint {
        Paint { on: self.colour }
    }
}
