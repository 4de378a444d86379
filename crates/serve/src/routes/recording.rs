//! What lies in the folder, and what one recording answers.

use super::asked::{Asked, Named, WitnessQuery, witness};
use super::{Answer, Served, at_work, json};
use crate::chains::MOST;
use crate::error::Refused;
use crate::folder::Listing;
use crate::opened::{Opened, find};
use crate::page::with_type;
use axum::extract::State;
use base::recording::Emulator;
use base::{Level, Narrow, Span};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Default, Serialize)]
struct Listed {
    id: String,
    title: String,
    created: Option<String>,
    emulated: Option<Emulator>,
    levels: Vec<String>,
    bytes: u64,
    /// How many recordings it holds, where it is a data set of them.
    recordings: Option<u64>,
    /// It is being made, and `/api/live` tells how it goes.
    live: bool,
    /// Why it cannot be opened.
    problem: Option<String>,
}

pub(super) async fn list(State(shared): Served) -> Answer {
    at_work(move || {
        let Listing { found, left_out, .. } = shared.folder.list();
        let listed = found.into_iter().map(|found| {
            let mut listed = Listed {
                id: found.id,
                title: found.title,
                bytes: found.bytes,
                recordings: found.recordings,
                ..Listed::default()
            };
            match found.recording {
                Ok(recording) => {
                    let levels: BTreeSet<u8> = recording.machines.iter().map(|machine| machine.level).collect();
                    listed.levels = levels.into_iter().map(|level| Level::At(level).to_string()).collect();
                    listed.live = shared.watched.read(&recording.root).is_some_and(|(_, live)| live);
                    (listed.created, listed.emulated) = (recording.created, recording.emulated);
                }
                Err(sentence) => listed.problem = Some(sentence),
            }
            listed
        });
        json(&serde_json::json!({ "recordings": listed.collect::<Vec<_>>(), "left_out": left_out }))
    })
    .await
}

pub(super) async fn brief(State(shared): Served, Named(id): Named<String>) -> Answer {
    at_work(move || json(&shared.briefs.get(&id, shared.folder.place(&id)?, &shared.cache))).await
}

/// How far the reading is that other requests wait for.
pub(super) async fn progress(State(shared): Served, Named(id): Named<String>) -> Answer {
    at_work(move || {
        shared.folder.place(&id)?;
        json(&shared.cache.progress(&id))
    })
    .await
}

/// A part of the recording, in ns since its first event; what is not given is where it begins and ends. And which level's
/// record counts.
#[derive(Deserialize)]
pub(super) struct Part {
    t0: Option<u64>,
    t1: Option<u64>,
    witness: Option<String>,
}

impl Part {
    fn narrow(&self, opened: &Opened) -> Result<Narrow, Refused> {
        let witness = witness(self.witness.as_deref(), opened)?;
        Ok(Narrow { window: self.window()?, witness, ..Narrow::default() })
    }

    fn window(&self) -> Result<Option<Span>, Refused> {
        let Self { t0, t1, .. } = *self;
        let window = Span { from_ns: t0.unwrap_or(0), to_ns: t1.unwrap_or(u64::MAX) };
        if window.length_ns() == 0 {
            let Span { from_ns, to_ns } = window;
            return Err(Refused::wrong(format!("t0 = {from_ns} must be before t1 = {to_ns}, both in ns")));
        }
        Ok((t0.is_some() || t1.is_some()).then_some(window))
    }
}

pub(super) async fn report(State(shared): Served, Named(id): Named<String>, Asked(part): Asked<Part>) -> Answer {
    at_work(move || {
        let opened = shared.open(&id)?;
        let answered = opened.answered(&part.narrow(&opened)?)?;
        Ok(with_type(answered.json.clone(), "application/json"))
    })
    .await
}

/// What differs between a recording and another one, made after a change.
pub(super) async fn compared(
    State(shared): Served,
    Named((id, other)): Named<(String, String)>,
    Asked(WitnessQuery { witness: by }): Asked<WitnessQuery>,
) -> Answer {
    at_work(move || {
        let (before, after) = (shared.open(&id)?, shared.open(&other)?);
        let level = witness(by.as_deref(), &before)?;
        witness(by.as_deref(), &after)?;
        let answered = before.compared(&after, level)?;
        Ok(with_type(answered.json.clone(), "application/json"))
    })
    .await
}

/// A section as it is with its controls set as the address says.
pub(super) async fn section(
    State(shared): Served,
    Named((id, section)): Named<(String, String)>,
    Asked(mut controls): Asked<BTreeMap<String, String>>,
) -> Answer {
    at_work(move || {
        let mut bytes = Vec::new();
        let opened = shared.open(&id)?;
        let level = witness(controls.remove("witness").as_deref(), &opened)?;
        let section = opened.set(&section, controls, level)?;
        show::json::write_section(&mut bytes, &section).map_err(|error| Refused::unanswered(error.to_string()))?;
        Ok(with_type(bytes, "application/json"))
    })
    .await
}

#[derive(Deserialize)]
pub(super) struct As {
    #[serde(default)]
    format: Format,
    t0: Option<u64>,
    t1: Option<u64>,
    witness: Option<String>,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Format {
    #[default]
    Json,
    Arrow,
}

pub(super) async fn table(
    State(shared): Served,
    Named((id, section, table)): Named<(String, String, String)>,
    Asked(As { format, t0, t1, witness }): Asked<As>,
) -> Answer {
    at_work(move || {
        let opened = shared.open(&id)?;
        let answered = opened.answered(&Part { t0, t1, witness }.narrow(&opened)?)?;
        let sections = &answered.sections;
        let found = find(sections, &section)?;
        let found = found.table(&table).ok_or_else(|| {
            let known: Vec<&str> = found.tables.iter().map(|table| table.spec.name).collect();
            Refused::missing(format!("{section} has no table `{table}`; there is {}", known.join(", ")))
        })?;
        match format {
            Format::Json => {
                let mut bytes = Vec::new();
                show::json::write_table(&mut bytes, found).map_err(|error| Refused::unanswered(error.to_string()))?;
                Ok(with_type(bytes, "application/json"))
            }
            Format::Arrow => {
                let emulated = opened.input.recording.emulated.map(Emulator::name);
                let bytes = columnar::bytes(found, emulated, columnar::Format::Arrow)
                    .map_err(|error| Refused::unanswered(error.to_string()))?;
                Ok(with_type(bytes, "application/vnd.apache.arrow.file"))
            }
        }
    })
    .await
}

#[derive(Deserialize)]
pub(super) struct Page {
    #[serde(default)]
    offset: u64,
    limit: Option<usize>,
    /// Which of the recording's traces, by its place.
    #[serde(default)]
    part: usize,
}

pub(super) async fn events(State(shared): Served, Named(id): Named<String>, Asked(page): Asked<Page>) -> Answer {
    at_work(move || {
        let limit = page.limit.unwrap_or(1_000).min(MOST);
        json(&shared.open(&id)?.events(page.part, page.offset, limit)?)
    })
    .await
}
