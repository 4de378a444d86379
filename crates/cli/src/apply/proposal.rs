//! The finding that was meant, with its typed changes: out of a report, a recording, or this host as it is now.

use super::origin::Origin;
use crate::arguments::{Stdin, opened};
use crate::check::places::{SPAN, this_host};
use analysis::facts::budget::Budget;
use analysis::{Answers, Case, Given, Listing};
use anyhow::Context;
use base::recording::{Emulator, Recording};
use base::{Change, Needs};
use process::exit::WrongUse;
use process::interrupt::Interrupt;
use serde_json::Value;
use std::path::Path;

/// A report is some megabytes at most; a file this long is something else.
const MOST_BYTES: u64 = 256 << 20;

/// The rule whose findings are whole placements, in the order in which one would try them.
const PROPOSAL: &str = "PLC-PROPOSAL";

pub(super) struct Proposal {
    pub id: String,
    /// The finding in a line.
    pub title: String,
    pub changes: Vec<Change>,
    /// What it names for a person to run.
    pub fix: Vec<String>,
    pub origin: Origin,
}

impl Proposal {
    /// Looks for `ids` in what `from` names - a report, a recording in any form, or standard input - or asks this host. With a
    /// `budget` findings cost what they did by its goals.
    pub(super) fn find(
        ids: &[String],
        from: Option<&Path>,
        budget: Option<&Budget>,
        interrupt: &Interrupt,
    ) -> anyhow::Result<Vec<Self>> {
        // Kept until the answer is there, with what was unpacked.
        let stdin = Stdin::default();
        match from {
            Some(asked) => {
                let path = stdin.path(asked)?;
                if is_report(&path) {
                    return Self::in_report(ids, &path);
                }
                let recording = opened(&path, &stdin, interrupt)?;
                let title = recording.title();
                Self::in_answers(ids, recording, budget, &title)
            }
            None => {
                // Kept until the answer is there: facts are read from it as they are asked for.
                let scratch = interrupt.temporary("kvmscope-apply")?;
                Self::in_answers(ids, this_host(scratch.path(), None, SPAN)?, budget, "this host")
            }
        }
    }

    /// That no typed change makes it.
    pub(super) fn unmade(&self) -> String {
        format!("kvmscope cannot make the change of {}", self.id)
    }

    /// What a person can run instead.
    pub(super) fn commands(&self) -> String {
        if self.fix.is_empty() { "none".to_owned() } else { self.fix.join("; ") }
    }

    fn in_answers(
        ids: &[String],
        recording: Recording,
        budget: Option<&Budget>,
        place: &str,
    ) -> anyhow::Result<Vec<Self>> {
        let origin = Origin {
            machines: recording.machines.clone(),
            emulated: recording.emulated.map(|emulator| emulator.name().to_owned()),
            created: recording.created.clone(),
            ..Origin::default()
        };
        let given = Given {
            listing: Listing { all_features: true, ..Listing::default() },
            // Who names such a finding asks about real time.
            realtime: ids.iter().any(|id| id.starts_with("LAT-")),
            budget: budget.cloned(),
            ..Given::default()
        };
        let answers = Answers::of(&Case::new(analysis::open(recording)?, given));
        let findings: Vec<_> = answers.sections.into_iter().flat_map(|section| section.findings).collect();
        let known: Vec<String> = findings.iter().map(|finding| finding.id()).collect();
        let chosen = chosen(ids, place, &known, |at| !findings[at].changes.is_empty())?;
        let proposal = |at: usize| {
            let (finding, id) = (&findings[at], known[at].clone());
            let outer = finding.needs == Needs::OuterLevel;
            let origin = Origin { level: finding.level.to_string(), outer, ..origin.clone() };
            Self {
                id,
                title: finding.title.clone(),
                changes: finding.changes.clone(),
                fix: finding.fix.clone(),
                origin,
            }
        };
        Ok(chosen.into_iter().map(proposal).collect())
    }

    fn in_report(ids: &[String], file: &Path) -> anyhow::Result<Vec<Self>> {
        let text = base::files::text(file, MOST_BYTES).with_context(|| file.display().to_string())?;
        let report: Value = serde_json::from_str(&text)
            .map_err(|error| anyhow::anyhow!("{} is not the output of `check --json`: {error}", file.display()))?;
        // Where a report is of several recordings, each section names its own.
        let of_section = |section: &Value| {
            let findings = list(section, "findings");
            let recording = section["recording"].clone();
            findings.into_iter().map(move |finding| (recording.clone(), finding)).collect::<Vec<_>>()
        };
        let findings: Vec<_> = list(&report, "sections").iter().flat_map(of_section).collect();
        let known: Vec<_> = findings.iter().map(|(_, finding)| words(&finding["id"]).unwrap_or_default()).collect();
        let has_changes = |at: usize| !list(&findings[at].1, "changes").is_empty();
        let chosen = chosen(ids, &file.display().to_string(), &known, has_changes)?;
        let proposal = |at: usize| {
            let (path, finding) = &findings[at];
            let recording = match &report["recording"] {
                Value::Array(several) => several.iter().find(|one| one["path"] == *path).cloned().unwrap_or_default(),
                one => one.clone(),
            };
            let id = known[at].clone();
            let changes = serde_json::from_value(finding["changes"].clone()).map_err(|error| {
                anyhow::anyhow!(
                    "{}: this version cannot make the changes of {id} ({error}); nothing was changed",
                    file.display()
                )
            })?;
            Ok(Self {
                id,
                title: words(&finding["title"]).unwrap_or_default(),
                changes,
                fix: list(finding, "fix").iter().filter_map(words).collect(),
                origin: Origin {
                    machines: serde_json::from_value(recording["machines"].clone()).unwrap_or_default(),
                    emulated: words(&recording["emulated"]).map(|mark| {
                        serde_json::from_value(recording["emulated"].clone())
                            .map_or(mark, |known: Emulator| known.name().to_owned())
                    }),
                    created: words(&recording["created"]),
                    level: words(&finding["level"]).unwrap_or_default(),
                    outer: serde_json::to_value(Needs::OuterLevel).is_ok_and(|outer| finding["needs"] == outer),
                },
            })
        };
        chosen.into_iter().map(proposal).collect()
    }
}

fn list(value: &Value, key: &str) -> Vec<Value> {
    value[key].as_array().cloned().unwrap_or_default()
}

fn words(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

/// A report is a bare file that begins as a JSON object does; everything else is a recording.
fn is_report(path: &Path) -> bool {
    use std::io::Read;
    let mut first = [0_u8; 1];
    path.is_file()
        && base::files::open(path).is_ok_and(|mut file| file.read_exact(&mut first).is_ok() && first == *b"{")
}

/// True for the beginning of ids, with a star behind it.
pub(super) fn is_pattern(id: &str) -> bool {
    id.ends_with('*')
}

/// The places of the findings that `ids` mean, each once. A pattern means those that have changes, because others are only for a
/// person to make.
fn chosen(
    ids: &[String],
    place: &str,
    known: &[String],
    has_changes: impl Fn(usize) -> bool,
) -> Result<Vec<usize>, WrongUse> {
    let mut chosen: Vec<usize> = Vec::new();
    for id in ids {
        let more = match id.strip_suffix('*') {
            None => vec![meant(id, place, known)?],
            Some(begins) => (0..known.len()).filter(|at| known[*at].starts_with(begins) && has_changes(*at)).collect(),
        };
        if more.is_empty() {
            return Err(WrongUse(format!("{place} has no finding {id} whose change kvmscope can make")));
        }
        for at in more {
            if !chosen.contains(&at) {
                chosen.push(at);
            }
        }
    }
    Ok(chosen)
}

/// The place of the finding with this id, or with this rule if it is the rule's only one. Of several placements the rule
/// means the first, which brings most for each command.
fn meant(id: &str, place: &str, ids: &[impl AsRef<str>]) -> Result<usize, WrongUse> {
    let of_rule = |known: &str| known.split_once('@').is_some_and(|(rule, _)| rule == id);
    let same = ids.iter().position(|known| known.as_ref() == id);
    let mut of_rule = (0..ids.len()).filter(|at| of_rule(ids[*at].as_ref()));
    let only = of_rule.next().filter(|_| id == PROPOSAL || of_rule.next().is_none());
    same.or(only).ok_or_else(|| {
        let known: Vec<&str> = ids.iter().map(AsRef::as_ref).collect();
        let there =
            if ids.is_empty() { "it has no findings".to_owned() } else { format!("it has {}", known.join(", ")) };
        WrongUse(format!("{place} has no finding {id}, or more than one; {there}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_alone_means_its_only_finding() {
        let ids = ["PLC-STACKED@web", "PLC-SMT@web", "PLC-SMT@db", "NST-PMU", "PLC-PROPOSAL@1", "PLC-PROPOSAL@2"];
        let at = |id: &str| meant(id, "here", &ids).ok();
        assert_eq!(
            [at("PLC-STACKED"), at("PLC-SMT@db"), at("NST-PMU"), at("PLC-SMT"), at("PLC")],
            [Some(0), Some(2), Some(3), None, None]
        );
        let known = ids.map(str::to_owned);
        let all = |ids: &[&str]| {
            let ids: Vec<String> = ids.iter().map(|id| (*id).to_owned()).collect();
            chosen(&ids, "here", &known, |at| at != 1).ok()
        };
        assert_eq!(all(&["PLC-S*", "NST-PMU"]), Some(vec![0, 2, 3]), "what has no change is for a person");
        assert_eq!((all(&["LAT-*"]), all(&["PLC-SMT@web", "PLC-SMT@web"])), (None, Some(vec![1])));
        assert_eq!([at("PLC-PROPOSAL"), at("PLC-PROPOSAL@2"), at("PLC-PROPOSAL@3")], [Some(4), Some(5), None]);
    }
}
