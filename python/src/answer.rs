//! What a command answers, shared by the report and all that is taken out of it.

use crate::error::Failure;
use crate::table::signed;
use arrow_array::RecordBatch;
use base::Problem;
use base::Section;
use base::recording::{Emulator, Recording};
use serde_json::Value;
use std::sync::{Arc, OnceLock};

/// The answers of one command, and what was made of them by now.
pub struct Answer {
    command: &'static str,
    recording: Recording,
    compared: Vec<Recording>,
    /// Its sections.
    pub sections: Vec<Section>,
    /// Damage of the input.
    pub problems: Vec<Problem>,
    /// Why other questions have no answer.
    pub failed: Vec<String>,
    parts: Vec<Parts>,
}

/// What was made of a section, once somebody asked.
#[derive(Default)]
struct Parts {
    words: OnceLock<Value>,
    batches: Vec<OnceLock<RecordBatch>>,
}

impl Answer {
    /// What `command` found out about `recording`; the other recordings of a comparison are in `compared`.
    ///
    /// # Errors
    /// If there is no answer: for the reason of the first question that has none, else by saying `nothing`.
    pub fn new(
        command: &'static str,
        (recording, compared): (Recording, Vec<Recording>),
        answers: analysis::Answers,
        nothing: impl FnOnce(&Recording) -> String,
    ) -> Result<Arc<Self>, Failure> {
        let analysis::Answers { sections, problems, failed } = answers;
        let (asked, failed): (Vec<_>, Vec<_>) = failed.into_iter().partition(analysis::Error::is_of_what_was_asked);
        if let Some(error) = asked.into_iter().next() {
            return Err(error.into());
        }
        if sections.is_empty() {
            return Err(failed.into_iter().next().map_or_else(|| Failure::NoAnswer(nothing(&recording)), Into::into));
        }
        let parts = |section: &Section| Parts {
            words: OnceLock::new(),
            batches: section.tables.iter().map(|_| OnceLock::new()).collect(),
        };
        let parts = sections.iter().map(parts).collect();
        let failed = failed.iter().map(ToString::to_string).collect();
        Ok(Arc::new(Self { command, recording, compared, sections, problems, failed, parts }))
    }

    /// What is shown of it.
    pub fn shown(&self) -> show::json::Answered<'_> {
        let Self { recording, compared, sections, problems, .. } = self;
        show::json::Answered { recording, compared, sections, problems }
    }

    /// What `--json` prints.
    pub fn json(&self) -> Vec<u8> {
        let mut out = Vec::new();
        show::json::write(&mut out, self.command, &[self.shown()]).expect("a Vec takes all that is written");
        out
    }

    /// The section at `place` as in `--json`, without its tables.
    pub fn words(&self, place: usize) -> &Value {
        self.parts[place].words.get_or_init(|| show::json::words(&self.sections, place).unwrap_or_default())
    }

    /// A table of the section at `place`.
    ///
    /// # Errors
    /// If Arrow refuses it, which is a mistake in the program.
    pub fn batch(&self, place: usize, table: usize) -> Result<&RecordBatch, Failure> {
        let kept = &self.parts[place].batches[table];
        if let Some(batch) = kept.get() {
            return Ok(batch);
        }
        let emulated = self.recording.emulated.map(Emulator::name);
        let made = columnar::record_batch(&self.sections[place].tables[table], emulated).map_err(Failure::no_answer)?;
        let made = signed(made).map_err(Failure::no_answer)?;
        Ok(kept.get_or_init(|| made))
    }

    /// The whole of it as text, as the program prints it.
    pub fn text(&self) -> String {
        show::text::render(&self.sections, &self.problems, &show::text::Page::default())
    }

    /// What emulated the hardware.
    pub fn emulated(&self) -> Option<Emulator> {
        self.recording.emulated
    }

    /// What it is about, in a few words.
    pub fn title(&self) -> String {
        self.recording.title()
    }
}
