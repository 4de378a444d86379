//! All questions, asked of one recording.
//!
//! What every output begins with: the Sections of all questions that the recording can answer, what was wrong with it,
//! and which questions failed; one that fails does not cost the others.

use crate::{About, Case, Error, QUESTIONS};
use base::in_order;
use base::recording::Recording;
use base::{Cell, Finding, Problem, Problems, Section};
use std::borrow::{Borrow, Cow};

/// What a recording answered.
pub struct Answers {
    /// Of the questions that it could answer, in their order.
    pub sections: Vec<Section>,
    /// Damage met while opening and answering; the last one says how many more there are, if any.
    pub problems: Vec<Problem>,
    /// Why the other questions have no answer.
    pub failed: Vec<Error>,
}

/// What stands above an answer that the narrowing of a question does not touch.
const NOT_NARROWED: &str =
    "--level, --vm, --vcpu, --from and --to do not narrow this: it is about machines as they are set up.";

impl Error {
    /// True if the user asked for what the recording does not hold: then no other question answers what was asked either.
    pub fn is_of_what_was_asked(&self) -> bool {
        matches!(self, Error::NoSuch(_) | Error::Outside(_))
    }
}

impl Answers {
    /// Asks every question about what happened and how machines are set up.
    pub fn of(case: &Case) -> Self {
        Self::about(case, &[About::Happened, About::Setup])
    }

    /// Asks every question about these.
    pub fn about(case: &Case, wanted: &[About]) -> Self {
        let (input, given) = (case.input(), case.given());
        let mut of_questions = Vec::new();
        let (mut sections, mut failed) = (Vec::new(), Vec::new());
        for question in QUESTIONS.iter().filter(|question| wanted.contains(&question.about)) {
            match (question.answer)(case) {
                Ok(Some(mut answer)) => {
                    of_questions.extend(answer.problems);
                    if question.about == About::Setup && given.narrow.is_narrowed() {
                        answer.section.about.push(NOT_NARROWED.to_owned());
                    }
                    sections.push(answer.section);
                }
                Ok(None) => {}
                Err(error) => failed.push(error),
            }
        }
        order(&mut sections);
        let mut problems = Problems::default();
        problems.extend(case.problems().cloned().chain(of_questions));
        let mut answers = Self { sections, problems: told(&input.recording.title(), &problems), failed };
        if !input.recording.shown.is_empty() {
            answers.name_as_asked(&input.recording);
        }
        answers
    }

    /// Names files as the user did: where an archive was unpacked means nothing to anybody.
    fn name_as_asked(&mut self, recording: &Recording) {
        let mut texts: Vec<&mut String> = Vec::new();
        for section in &mut self.sections {
            texts.push(&mut section.summary);
            texts.extend(section.about.iter_mut().chain(&mut section.next));
            texts.extend(section.unknown.iter_mut().map(|unknown| &mut unknown.text));
            for finding in &mut section.findings {
                texts.extend([&mut finding.subject, &mut finding.title]);
                texts.extend(&mut finding.explains);
                texts.extend(finding.evidence.iter_mut().flat_map(|seen| [&mut seen.what, &mut seen.place]));
                texts.extend(finding.fix.iter_mut().chain(&mut finding.undo));
            }
            for cell in section.tables.iter_mut().flat_map(|table| &mut table.rows).flatten() {
                texts.extend(if let Cell::Text(text) = cell { Some(text) } else { None });
            }
        }
        texts.extend(self.problems.iter_mut().flat_map(|problem| [&mut problem.file, &mut problem.text]));
        for text in texts {
            if let Cow::Owned(named) = recording.as_named(text) {
                *text = named;
            }
        }
    }
}

/// A finding and the place of its section.
struct Of(usize, Finding);

impl Borrow<Finding> for Of {
    fn borrow(&self) -> &Finding {
        &self.1
    }
}

/// Orders the findings of each section as one list of them all does.
fn order(sections: &mut [Section]) {
    let of = |(at, section): (usize, &mut Section)| {
        std::mem::take(&mut section.findings).into_iter().map(move |finding| Of(at, finding)).collect::<Vec<_>>()
    };
    let all = sections.iter_mut().enumerate().flat_map(of).collect();
    for Of(at, finding) in in_order(all) {
        sections[at].findings.push(finding);
    }
}

/// All problems that were kept, and how many were not.
fn told(title: &str, problems: &Problems) -> Vec<Problem> {
    let mut told = problems.list().to_vec();
    if problems.beyond_cap() > 0 {
        let text = "further problems of other kinds, not listed";
        let more = Problem::at(title, None, "", "", 0, text);
        told.push(Problem { count: problems.beyond_cap(), ..more });
    }
    told
}
