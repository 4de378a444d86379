//! What the list of recordings shows of one beside its manifest: how long is it, and what is its worst finding?
//!
//! That takes an answer to every question, so the list is sent without it, and a page asks for one recording after
//! another. They are answered one at a time, and leave the cache of opened recordings as it is: somebody looks at those.

use crate::cache::{Cache, Stamp, stamp};
use crate::error::Refused;
use crate::folder::Place;
use crate::opened::{Answered, Opened};
use base::figure::{Drawing, TimePart};
use base::in_order;
use base::number::many;
use base::table::Row;
use base::{Cell, Figure, Narrow, Section, Severity};
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Larger recordings are not read for a list: an answer takes some 0.3 s for 100 MB of a binary trace, but 20 times that
/// for the same events as text.
const MOST_BYTES: u64 = 64 << 20;

/// The same of packed recordings, which may be a hundred times as large when they are unpacked.
const MOST_PACKED_BYTES: u64 = 4 << 20;

/// The same of data sets: their tables are read as fast as bytes come, some 10 ms for a recording of 100 KB.
const MOST_DATASET_BYTES: u64 = 16 << 20;

/// How many are kept, of some 300 bytes each; then all are forgotten, and answered anew when somebody asks.
const KEPT: usize = 4_096;

/// What one recording answers, in brief.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Brief {
    /// Wall time of its vCPUs; null where it has none.
    duration_ns: Option<u64>,
    answer: String,
    /// Where all vCPU time went, for a bar; empty where it has no vCPU.
    time: Vec<Part>,
    findings: usize,
    /// The first of the most severe ones.
    worst: Option<Worst>,
    /// Which hosts of a data set were emulated, `8 of 10 hosts`: of one recording its manifest says so.
    emulated: Option<String>,
    /// Why no question has an answer.
    problem: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct Part {
    label: String,
    hue: String,
    share: f64,
}

/// A finding in one line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Worst {
    severity: Severity,
    rule: &'static str,
    title: String,
}

impl Brief {
    fn of(answered: Result<Arc<Answered>, Refused>) -> Self {
        match answered {
            Ok(answered) => Self::of_sections(&answered.sections),
            Err(refused) => Self { problem: Some(refused.sentence), ..Self::default() },
        }
    }

    fn of_sections(sections: &[Section]) -> Self {
        let findings = || sections.iter().flat_map(|section| &section.findings);
        let worst = in_order(findings().collect()).into_iter().next();
        Self {
            duration_ns: sections.iter().find(|section| section.id == "flow").and_then(wall_ns),
            answer: sections.iter().find_map(first_sentence).unwrap_or_default(),
            time: sections.iter().flat_map(|section| &section.figures).find_map(time).unwrap_or_default(),
            findings: findings().count(),
            worst: worst.map(|worst| Worst { severity: worst.severity, rule: worst.rule, title: worst.title.clone() }),
            emulated: sections.iter().find_map(emulated),
            problem: None,
        }
    }
}

fn emulated(section: &Section) -> Option<String> {
    let hosts = section.table("hosts").filter(|_| section.id == "fleet")?;
    let emulated = hosts.rows().filter(|row| matches!(row.cell("emulated"), Some(Cell::Text(_)))).count();
    (emulated > 0).then(|| format!("{emulated} of {}", many(hosts.rows.len() as u64, "host")))
}

/// The first sentence of its summary.
fn first_sentence(section: &Section) -> Option<String> {
    let paragraph = section.summary.split("\n\n").next().filter(|text| !text.is_empty())?;
    Some(paragraph.split_once(". ").map_or_else(|| paragraph.to_owned(), |(first, _)| format!("{first}.")))
}

fn time(figure: &Figure) -> Option<Vec<Part>> {
    let Drawing::Levels(levels) = &figure.drawing else { return None };
    let part = |part: &TimePart| Part { label: part.label.clone(), hue: part.hue.clone(), share: part.share };
    Some(levels.time.iter().map(part).collect())
}

/// True for a recording that is not read for a list.
fn is_large(place: &Place) -> bool {
    let most = match place {
        Place::Open(_) | Place::File(..) => MOST_BYTES,
        Place::Packed(_) => MOST_PACKED_BYTES,
        Place::Dataset(_) => MOST_DATASET_BYTES,
    };
    place.bytes() > most
}

/// The longest wall time of a vCPU: that of the whole recording, but for vCPUs that ended early.
fn wall_ns(flow: &Section) -> Option<u64> {
    let wall = |row: Row<'_>| match row.cell("wall_ns") {
        Some(Cell::U64(wall_ns)) => Some(*wall_ns),
        _ => None,
    };
    flow.table("vcpus")?.rows().filter_map(wall).max()
}

/// Those that were asked for, by id, each as long as the files of its recording stay as they are.
#[derive(Default)]
pub(crate) struct Briefs {
    known: Mutex<BTreeMap<String, (Stamp, Brief)>>,
}

impl Briefs {
    /// That of the recording called `id`, which lies at `place`; `None` for one too large to be read for this, unless
    /// somebody has opened it.
    pub(crate) fn get(&self, id: &str, place: Place, cache: &Cache) -> Option<Brief> {
        let stamp = stamp(&place);
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((of, brief)) = known.get(id)
            && *of == stamp
        {
            return Some(brief.clone());
        }
        let answered = match cache.opened_before(id, &stamp) {
            Some(opened) => opened.answered(&Narrow::default()),
            None if is_large(&place) => return None,
            None => Opened::new(place, &cache.given).and_then(|opened| opened.answered(&Narrow::default())),
        };
        let brief = Brief::of(answered);
        if known.len() >= KEPT {
            known.clear();
        }
        known.insert(id.to_owned(), (stamp, brief.clone()));
        Some(brief)
    }
}
