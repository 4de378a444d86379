//! One file that a colleague opens from a mail: an answer as a page that needs nothing else.
//!
//! ```text
//! [Section] + [Problem] + Drawing -->  policy, style, words, tables, drawings    complete without any script
//!                                -->  data: report, timeline, pyramid, chains   for the script, and for programs
//! ```
//! The page loads nothing and sends nothing; its policy forbids both. The same input gives the same bytes: the only
//! times in it are the recording's own. Sections, figures and tables are rendered as they come; no question is known by
//! name. [docs/use/report.md](../../../docs/use/report.md) describes the page for its readers.

mod axis;
mod chains;
mod curves;
mod data;
mod drawing;
mod dumbbells;
pub(crate) mod escape;
mod figure;
mod finding;
mod flow;
pub mod fragment;
mod gauge;
mod histogram;
mod ladder;
mod levels;
mod look;
mod matrix;
mod points;
mod policy;
mod program;
mod pyramid;
mod spans;
mod stack;
mod table;
mod timeline;
mod topology;
mod waterfall;

pub use chains::{Chosen, MOST_SLICES, Picked, Shown};
pub use drawing::{Drafting, Drawing};

use crate::json::Answered;
use crate::text;
use base::recording::Emulator;
use base::{Finding, Section, Severity, Table, in_order, number};
use data::Data;
use escape::Safe;
use std::fmt::Write as _;

/// How long a page may become unless the user says otherwise: mail servers take it.
pub const MOST_BYTES: u64 = 8_000_000;

/// The page's style.
const STYLE: &str = include_str!("html/style.css");

#[derive(Clone, Copy)]
pub struct Page<'a> {
    pub answered: Answered<'a>,
    /// Its vCPUs over time, if it has any.
    pub drawn: Option<&'a Drawing>,
    /// The page's length at most.
    pub most_bytes: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rendered {
    pub text: String,
    /// What is not on it because the recording is too long or the page would be, in sentences; the page states them, too.
    pub bounds: Vec<String>,
}

/// Why there is no page.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Words and drawings alone are longer than allowed.
    #[error(
        "the page takes {needed} without any data, more than --html-max allows; raise --html-max, or narrow the \
         report with --from and --to or --vm"
    )]
    TooLong {
        /// Its length in words.
        needed: String,
    },
    /// The report could not be put on the page.
    #[error("the page's data: {0}")]
    Data(#[from] std::io::Error),
}

/// The page. What does not fit is left out, first the lanes beside those of the vCPUs, then the data of the finest zooms,
/// and the page says so.
///
/// # Errors
/// [`Error::TooLong`] if it would be too long without any data.
pub fn render(page: &Page<'_>) -> Result<Rendered, Error> {
    let mut beside = page.drawn.is_some_and(Drawing::has_lanes_beside);
    let mut data = Data::new(&page.answered, page.drawn, beside)?;
    let mut left_out: Vec<&str> = Vec::new();
    let written = |beside| body(page, beside).expect("a String takes all that is written");
    let mut body = written(beside);
    loop {
        let text = whole(page, &body, &left_out, &data.element()?);
        if text.len() as u64 <= page.most_bytes {
            return Ok(Rendered { text, bounds: bounds(page, &left_out) });
        }
        if beside {
            beside = false;
            (body, data) = (written(false), Data::new(&page.answered, page.drawn, false)?);
            left_out.push("the lanes of CPUs and other threads");
            continue;
        }
        match data.shrink() {
            Some(what) if !left_out.contains(&what) => left_out.push(what),
            Some(_) => {}
            None => return Err(Error::TooLong { needed: number::bytes(text.len() as f64) }),
        }
    }
}

/// What is not on the page.
fn bounds(page: &Page<'_>, left_out: &[&str]) -> Vec<String> {
    page.drawn.map(Drawing::bounds).into_iter().flatten().chain(left_out_sentence(left_out)).collect()
}

/// Says what does not fit.
fn left_out_sentence(left_out: &[&str]) -> Option<String> {
    let left_out: Vec<String> = left_out.iter().map(|what| what.to_string()).collect();
    (!left_out.is_empty()).then(|| format!("Left out to keep the page short: {}.", number::list(&left_out)))
}

fn whole(page: &Page<'_>, body: &str, left_out: &[&str], data: &str) -> String {
    let title = title(page);
    let note = left_out_sentence(left_out).map_or(String::new(), |sentence| format!("<p>{sentence}</p>\n"));
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{} - kvmscope</title>\n<style id=\"static-style\">{STYLE}</style>\n\
         {}</head>\n<body>\n{body}<footer>\n{note}<p>Written by kvmscope {}. Numbers are measured in this recording unless \
         they say modelled or published.</p>\n</footer>\n{data}{}</body>\n</html>\n",
        policy::policy(&[&[STYLE], program::styles()].concat(), program::scripts()),
        Safe(title),
        program::style_elements(),
        env!("CARGO_PKG_VERSION"),
        program::script_elements()
    )
}

fn body(page: &Page<'_>, beside: bool) -> Result<String, std::fmt::Error> {
    let sections = page.answered.sections;
    let mut out = look::definitions();
    head(page, &mut out)?;
    let emulated = if page.answered.recording.emulated.is_some() { " class=\"emulated-times\"" } else { "" };
    writeln!(out, "<main id=\"report\"{emulated}>")?;
    for section in sections {
        answer(section, page.answered.recording.emulated, &mut out)?;
    }
    findings(sections, &mut out)?;
    if let Some(drawn) = page.drawn {
        timeline::render(&drawn.overview, beside, &mut out)?;
        chains::render(drawn, &mut out)?;
    }
    for section in sections {
        numbers(section, sections.len() > 1, &mut out)?;
    }
    not_known(page, &mut out)?;
    let steps = text::next_steps(sections);
    list("next", "Next", &steps, &mut out)?;
    out.push_str("</main>\n");
    Ok(out)
}

/// What a title has room for.
const LONGEST_TITLE: usize = 90;

/// What the page is about: both sides of a comparison, the recording, or what was answered where none is: two plans have one question.
fn title(page: &Page<'_>) -> String {
    let own = page.answered.recording.title();
    match (page.answered.compared, page.answered.sections.first()) {
        ([before, .., after], _) => format!("{} and {}", before.title(), after.title()),
        (_, Some(section)) if own.is_empty() => answered(section),
        _ => own,
    }
}

/// The first sentence of an answer, as far as a title has room.
fn answered(section: &Section) -> String {
    let first = section.summary.split(". ").next().unwrap_or_default().trim().trim_end_matches('.');
    match first.char_indices().nth(LONGEST_TITLE) {
        None if first.is_empty() => section.question.to_owned(),
        None => first.to_owned(),
        Some((end, _)) => format!("{}…", first[..end].rsplit_once(' ').map_or(&first[..end], |(words, _)| words)),
    }
}

/// What was recorded, where, and the mark of emulated time.
fn head(page: &Page<'_>, out: &mut String) -> std::fmt::Result {
    let recording = page.answered.recording;
    out.push_str("<header class=\"top\">\n<p class=\"brand\">kvmscope report</p>\n");
    // What is about no recording has the question below as its heading.
    if !recording.title().is_empty() {
        writeln!(out, "<h1>{}</h1>", Safe(title(page)))?;
    }
    out.push_str(&mark(recording.emulated));
    if let Some(created) = &recording.created {
        writeln!(out, "<p class=\"quiet\">recorded {}</p>", Safe(created))?;
    }
    out.write_str("</header>\n")
}

fn mark(emulated: Option<Emulator>) -> String {
    emulated.map_or(String::new(), |emulator| {
        let name = emulator.name();
        format!("<p class=\"emulated\">Emulated by {name}: counts and order are real, times are not.</p>\n")
    })
}

/// The question and its answer: the words, the picture that says it at a glance, a Section's first, and what both rest on.
fn answer(section: &Section, emulated: Option<Emulator>, out: &mut String) -> std::fmt::Result {
    let (id, question) = (Safe(section.id), Safe(section.question));
    writeln!(out, "<section class=\"answer\" id=\"{id}\">\n<h2>{question}</h2>")?;
    writeln!(out, "<p class=\"summary\">{}</p>", Safe(&section.summary))?;
    if let Some(figure) = section.figures.first() {
        figure::render(section.id, figure, out)?;
    }
    // The mark at the top says it once for the whole page.
    for about in section.about.iter().filter(|about| emulated.is_none() || !about.starts_with("EMULATED")) {
        writeln!(out, "<p class=\"quiet\">{}</p>", Safe(about))?;
    }
    out.write_str("</section>\n")
}

/// What to change: the findings of all sections in one list, worst first.
fn findings(sections: &[Section], out: &mut String) -> std::fmt::Result {
    let findings: Vec<&Finding> = sections.iter().flat_map(|section| &section.findings).collect();
    if findings.is_empty() {
        return Ok(());
    }
    let counts = [Severity::High, Severity::Medium, Severity::Low, Severity::Info].map(|severity| {
        let count = findings.iter().filter(|finding| finding.severity == severity).count();
        (count > 0).then(|| format!("{count} {}", severity.name()))
    });
    let counts: Vec<String> = counts.into_iter().flatten().collect();
    write!(
        out,
        "<section id=\"findings\">\n<h2>Findings <span class=\"quiet\">{}</span></h2>\n<div class=\"cards\">\n",
        counts.join(", ")
    )?;
    finding::render(&in_order(findings), out)?;
    out.write_str("</div>\n</section>\n")
}

/// Figures and tables; where several questions were answered, those of which.
fn numbers(section: &Section, several: bool, out: &mut String) -> std::fmt::Result {
    let leads = |table: &&Table| table.shown.as_ref().is_some_and(|shown| shown.leads);
    if section.tables.iter().any(|table| leads(&table)) {
        out.push_str("<div class=\"tables\">\n");
        section.tables.iter().filter(leads).try_for_each(|table| table::render(section.id, table, out))?;
        out.push_str("</div>\n");
    }
    // The first stands with the answer.
    for figure in section.figures.iter().skip(1) {
        figure::render(section.id, figure, out)?;
    }
    if section.tables.iter().all(|table| table.shown.is_none() || leads(&table)) {
        return Ok(());
    }
    let of = if several { section.question } else { "" };
    writeln!(out, "<div class=\"tables\">\n<h2>Numbers <span class=\"quiet\">{}</span></h2>", Safe(of))?;
    section.tables.iter().filter(|table| !leads(table)).try_for_each(|table| table::render(section.id, table, out))?;
    out.write_str("</div>\n")
}

/// What is not known, what was lost, what was damaged.
fn not_known(page: &Page<'_>, out: &mut String) -> std::fmt::Result {
    let unknown: Vec<String> =
        page.answered.sections.iter().flat_map(|section| &section.unknown).map(text::unknown_sentence).collect();
    list("unknown", "Not known", &unknown, out)?;
    let (damage, said): (Vec<_>, Vec<_>) = page.answered.problems.iter().partition(|problem| problem.count > 0);
    let sentences = |problems: Vec<_>| problems.into_iter().map(text::problem_sentence).collect::<Vec<String>>();
    list("damage", text::DAMAGE, &sentences(damage), out)?;
    list("remarks", text::REMARKS, &sentences(said), out)
}

fn list(id: &str, title: &str, items: &[impl std::fmt::Display], out: &mut String) -> std::fmt::Result {
    if items.is_empty() {
        return Ok(());
    }
    writeln!(out, "<section id=\"{id}\">\n<h2>{title}</h2>\n<ul class=\"said\">")?;
    for item in items {
        writeln!(out, "<li>{}</li>", Safe(item))?;
    }
    out.write_str("</ul>\n</section>\n")
}
