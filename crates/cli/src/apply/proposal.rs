//! The finding that was meant, with its typed changes: out of a report, a recording, or this host as it is now.

use crate::check::places::{SPAN, this_host};
use crate::exit::WrongUse;
use analysis::{Answers, Input, Options};
use anyhow::{Context, bail};
use base::Change;
use base::recording::Recording;
use serde_json::Value;
use std::path::Path;
use std::time::SystemTime;

/// A report is some megabytes at most; a file this long is something else.
const MOST_BYTES: u64 = 256 << 20;

/// What a finding proposes.
pub struct Proposal {
    /// The finding in a line.
    pub title: String,
    /// Its typed changes.
    pub changes: Vec<Change>,
    /// What it names for a person to type.
    pub fix: Vec<String>,
    /// When it was proposed, where that was not just now.
    pub written: Option<SystemTime>,
}

impl Proposal {
    /// Looks for `id` in what `from` names, or asks this host.
    pub fn find(id: &str, from: Option<&Path>) -> anyhow::Result<Self> {
        match from {
            Some(file) if is_report(file) => Self::in_report(id, file),
            Some(path) => {
                let written = path.metadata().and_then(|about| about.modified()).ok();
                let recording = Recording::open(path)?;
                let title = recording.title();
                Ok(Self { written, ..Self::in_answers(id, recording, &title)? })
            }
            None => {
                // Kept until the answer is there: facts are read from it as they are asked for.
                let scratch = tempfile::Builder::new().prefix("kvmscope-apply-").tempdir()?;
                Self::in_answers(id, this_host(scratch.path(), None, SPAN)?, "this host")
            }
        }
    }

    fn in_answers(id: &str, recording: Recording, place: &str) -> anyhow::Result<Self> {
        let input = Input::open(recording)?;
        let options = Options { all_features: true, ..Options::default() };
        let answers = Answers::of(&input, &options, &mut |_, _| {});
        let findings = answers.sections.into_iter().flat_map(|section| section.findings);
        let mut ids = Vec::new();
        for finding in findings {
            if finding.id() == id {
                let (title, changes, fix) = (finding.title, finding.changes, finding.fix);
                return Ok(Self { title, changes, fix, written: None });
            }
            ids.push(finding.id());
        }
        Err(unknown(id, place, &ids).into())
    }

    fn in_report(id: &str, file: &Path) -> anyhow::Result<Self> {
        let about = file.metadata().with_context(|| file.display().to_string())?;
        if about.len() > MOST_BYTES {
            bail!("{}: {} bytes are too many for a report", file.display(), about.len());
        }
        let text = std::fs::read_to_string(file).with_context(|| file.display().to_string())?;
        let report: Value = serde_json::from_str(&text)
            .map_err(|error| anyhow::anyhow!("{} is no output of `check --json`: {error}", file.display()))?;
        let list = |value: &Value, key: &str| value[key].as_array().cloned().unwrap_or_default();
        let findings = list(&report, "sections").into_iter().flat_map(|section| list(&section, "findings"));
        let mut ids = Vec::new();
        for finding in findings {
            let its = finding["id"].as_str().unwrap_or_default();
            if its != id {
                ids.push(its.to_owned());
                continue;
            }
            let changes = serde_json::from_value(finding["changes"].clone()).map_err(|error| {
                anyhow::anyhow!(
                    "{}: the changes of {id} are none that this version makes ({error}); nothing was changed",
                    file.display()
                )
            })?;
            let words = |value: &Value| value.as_str().map(str::to_owned);
            return Ok(Self {
                title: words(&finding["title"]).unwrap_or_default(),
                changes,
                fix: list(&finding, "fix").iter().filter_map(words).collect(),
                written: Some(about.modified()?),
            });
        }
        Err(unknown(id, &file.display().to_string(), &ids).into())
    }
}

/// A report is a bare file that begins as a JSON object does; everything else is a recording.
fn is_report(path: &Path) -> bool {
    use std::io::Read;
    let mut first = [0_u8; 1];
    path.is_file()
        && std::fs::File::open(path).is_ok_and(|mut file| file.read_exact(&mut first).is_ok() && first == *b"{")
}

fn unknown(id: &str, place: &str, ids: &[String]) -> WrongUse {
    let there = if ids.is_empty() { "it has no findings".to_owned() } else { format!("it has {}", ids.join(", ")) };
    WrongUse(format!("{place} has no finding {id} (any more); {there}"))
}
