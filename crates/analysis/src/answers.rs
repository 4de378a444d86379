//! All questions, asked of one recording.
//!
//! What every output begins with: the Sections of all questions that the recording can answer, what was wrong with it,
//! and which questions failed; one that fails does not cost the others.

use crate::fleet::Fleet;
use crate::{About, Case, Error, QUESTIONS};
use base::in_order;
use base::recording::Recording;
use base::{Cell, Finding, Level, Problem, Problems, Section, Table};
use facts::budget::Verdict;
use std::borrow::{Borrow, Cow};
use std::collections::BTreeSet;
use std::sync::Arc;

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

impl Answers {
    /// Asks every question about what happened and how machines are set up, and about what the recording plans.
    pub fn of(case: &Case) -> Self {
        if case.given().queries.get::<Arc<Fleet>>().is_some() {
            return Self::about(case, &[About::Fleet]);
        }
        let planned = case.input().plan.as_ref().map(|_| About::Plan);
        Self::about(case, &[About::Happened, About::Setup].into_iter().chain(planned).collect::<Vec<_>>())
    }

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
                    join(&mut sections, answer.section);
                }
                Ok(None) => {}
                Err(error) => failed.push(error),
            }
        }
        // Who has an answer to show comes before who can only say what is missing; and a bed that was built for its packets is asked of
        // them, whoever else ran on its host.
        let is_bare = |section: &Section| section.figures.is_empty() && section.findings.is_empty();
        // After a breach a page begins with who broke the budget.
        let is_broken = wanted.contains(&About::Happened)
            && case
                .judged()
                .iter()
                .any(|judged| judged.judgement.verdict == Verdict::Fail && judged.whose.run.is_none());
        let first = if is_broken { "latency" } else { "datapath" };
        sections.sort_by_key(|section| (is_bare(section), section.id != first));
        link(&mut sections);
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

/// Adds a section to those of an answer. What happened and how machines are set up may be of one subject: readers find both by its id, in one
/// section, unless both have the same table.
fn join(sections: &mut Vec<Section>, later: Section) {
    let has = |one: &Section, table: &Table| one.tables.iter().any(|own| own.spec.name == table.spec.name);
    let is_same = |one: &&mut Section| one.id == later.id && !later.tables.iter().any(|table| has(one, table));
    let Some(section) = sections.iter_mut().find(is_same) else { return sections.push(later) };
    section.summary = [section.summary.as_str(), later.summary.as_str()].join("\n\n").trim().to_owned();
    section.about.extend(later.about);
    section.tables.extend(later.tables);
    section.figures.extend(later.figures);
    section.controls.extend(later.controls);
    section.unknown.extend(later.unknown);
    section.next.extend(later.next);
    section.findings = in_order(std::mem::take(&mut section.findings).into_iter().chain(later.findings).collect());
}

/// A finding and the place of its section.
struct Of(usize, Finding);

impl Borrow<Finding> for Of {
    fn borrow(&self) -> &Finding {
        &self.1
    }
}

/// Causes in one answer whose victims another one finds too, by their rules: where the machine was looked at and where its trace was.
const ACROSS: &[(&str, &str)] = &[("PLC-OVERCOMMIT", "FLW-PREEMPT")];

/// A cause explains findings about threads of the same level that are all among its own.
fn link(sections: &mut [Section]) {
    let threads = |finding: &Finding| -> BTreeSet<i32> {
        let about = finding.evidence.iter().flat_map(|seen| &seen.about);
        about.filter_map(|about| if let base::About::Thread { tid } = about { Some(*tid) } else { None }).collect()
    };
    let findings = || sections.iter().flat_map(|section| &section.findings);
    let victims: Vec<(String, &str, Level, BTreeSet<i32>)> = findings()
        .filter(|finding| ACROSS.iter().any(|(_, victim)| *victim == finding.rule))
        .map(|finding| (finding.id(), finding.rule, finding.level, threads(finding)))
        .collect();
    for cause in sections.iter_mut().flat_map(|section| &mut section.findings) {
        let own = threads(cause);
        let of_this = |(_, rule, level, threads): &&(String, &str, Level, BTreeSet<i32>)| {
            let linked = ACROSS.contains(&(cause.rule, rule)) && *level == cause.level;
            linked && !threads.is_empty() && threads.is_subset(&own)
        };
        let ids: Vec<String> = victims.iter().filter(of_this).map(|(id, ..)| id.clone()).collect();
        cause.explains.extend(ids);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::{Hit, Rule};
    use base::{About, Evidence, Severity};

    fn section(id: &'static str, rule: &'static str, level: Level, tids: &[i32]) -> Section {
        let rule = Rule { id: rule, per: "VM", ..Rule::checked_by(()) };
        let about = tids.iter().map(|tid| About::Thread { tid: *tid });
        let hit = Hit::new("x", Severity::Low, "").with(Evidence::new("seen", "here").about(about));
        Section { findings: vec![rule.finding(hit, level)], ..Section::new(id, "?") }
    }

    #[test]
    fn two_questions_of_one_subject_are_one_section_unless_both_have_a_table() {
        const SPEC: base::table::TableSpec =
            base::table::TableSpec { section: "any", name: "runs", version: 1, row: "", columns: &[], shown: None };
        let mut sections = Vec::new();
        for (id, rule) in [("flow", "FLW-A"), ("migration", "MIG-A"), ("migration", "MIG-B")] {
            join(&mut sections, Section { summary: rule.to_owned(), ..section(id, rule, Level::L0, &[]) });
        }
        let rules = |section: &Section| section.findings.iter().map(|finding| finding.rule).collect::<Vec<_>>();
        assert_eq!((sections.len(), rules(&sections[1])), (2, vec!["MIG-A", "MIG-B"]));
        assert_eq!(sections[1].summary, "MIG-A\n\nMIG-B");
        for _ in 0..2 {
            join(&mut sections, Section { tables: vec![Table::new(&SPEC)], ..Section::new("migration", "?") });
        }
        assert_eq!(sections.len(), 3, "one that has the table too stands for itself");
    }

    #[test]
    fn an_overcommitted_host_explains_that_its_threads_were_preempted() {
        let explained = |cause: &'static str, level: Level, tids: &[i32]| {
            let mut sections =
                [section("flow", "FLW-PREEMPT", Level::L0, &[11, 12]), section("placement", cause, level, tids)];
            link(&mut sections);
            sections[1].findings[0].explains.len()
        };
        assert_eq!(explained("PLC-OVERCOMMIT", Level::L0, &[10, 11, 12]), 1);
        assert_eq!(explained("PLC-OVERCOMMIT", Level::L0, &[11, 13]), 0, "thread 12 waits for something else");
        assert_eq!(explained("PLC-OVERCOMMIT", Level::L1, &[11, 12]), 0, "threads of another machine");
        assert_eq!(explained("PLC-STACKED", Level::L0, &[11, 12]), 0, "no cause of that");
    }
}
