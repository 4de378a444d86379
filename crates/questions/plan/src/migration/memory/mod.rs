//! What is in a guest's memory, and how fast is it found? What benches of it measured, beside recorded migrations and for plans.
//!
//! ```text
//! bench zeropages --scans--> table scans
//! bench memory    --survey: counts and samples of each GiB, share: their intervals--> tables memory, working_set, compression, xbzrle, looked
//!                 --rules, with what is asked--> findings
//! ```

pub(super) mod rules;
mod scans;
mod share;
pub(super) mod survey;
pub(super) mod tables;

pub(crate) use scans::SCANS;
pub use survey::Survey;
pub(crate) use tables::LOOKED;
pub use tables::{COMPRESSION, XBZRLE};

use super::blocked::Guest;
use super::history::History;
use super::measured;
use base::number::{bytes, counted, duration, percent};
use base::{Section, Unknown};
use facts::benches::{Benches, OF_MEMORY};
use facts::{Answer, Case, Error};
use rules::Seen;
use survey::PAGE_BYTES;

/// What is known of a guest's memory beside what is asked.
#[derive(Debug, Clone, Default)]
pub struct Looked {
    pub survey: Option<Survey>,
    /// How many channels are to compress, with a CPU each.
    pub compressing_channels: Option<u32>,
    pub guest: Option<Guest>,
    /// What was said of earlier runs like this one, and what they were.
    pub history: History,
}

/// The question, where no migration was recorded.
const QUESTION: &str = "What is in the guest's memory, and how fast is it found?";

/// How recorded migrations went, and what was measured of memory; `None` if there is neither.
///
/// # Errors
/// As of [`measured::answer`].
pub fn answer(case: &Case) -> Result<Option<Answer>, Error> {
    let went = measured::answer(case)?;
    let benches = case.benches().those(|bench| OF_MEMORY.contains(&bench.bench.as_str()));
    if benches.is_empty() {
        return Ok(went);
    }
    let mut answer =
        went.unwrap_or_else(|| Answer { section: Section::new("migration", QUESTION), problems: Vec::new() });
    add(&benches, &mut answer.section);
    Ok(Some(answer))
}

fn add(benches: &Benches, section: &mut Section) {
    section.about.extend(benches.runs.iter().map(|run| run.about()));
    section.about.extend(benches.runs.iter().flat_map(|run| run.bench.notes.clone()));
    let rows = scans::rows(benches);
    let mut sentences = Vec::new();
    if !rows.is_empty() {
        sentences.extend(scans::summary(&rows));
        section.tables.push(scans::table(&rows));
    }
    // A recording holds one survey: a file of that name for each machine.
    if let Some(survey) = benches.runs.iter().find_map(|run| Survey::of(&run.bench)) {
        sentences.extend(summary(&survey));
        let all = [
            tables::memory(&survey),
            tables::working_set(&survey),
            tables::compression(&survey),
            tables::xbzrle(&survey),
            tables::looked(&survey),
        ];
        section.tables.extend(all.into_iter().filter(|table| !table.rows.is_empty()));
        section.unknown.extend(unknown(&survey));
        let looked = Looked { survey: Some(survey), ..Looked::default() };
        section.findings.extend(rules::findings(Seen { looked: &looked, asked: None }));
    }
    if !section.summary.is_empty() && !sentences.is_empty() {
        section.summary.push_str("\n\n");
    }
    section.summary.push_str(&sentences.join(" "));
}

pub(super) fn summary(survey: &Survey) -> Vec<String> {
    let whose = if survey.vm.is_empty() { "the guest".to_owned() } else { survey.vm.clone() };
    let mut sentences = Vec::new();
    if let Some(zero) = survey.zero() {
        let interval = if zero.low == zero.high {
            String::new()
        } else {
            format!(" ({} to {})", percent(zero.low), percent(zero.high))
        };
        sentences.push(format!(
            "Of the {} of memory of {whose}, {} is zeros{interval}; to {} nothing was ever written.",
            bytes(survey.pages * PAGE_BYTES),
            percent(zero.share),
            percent(survey.holes / survey.pages)
        ));
    }
    if let Some(compressed) = &survey.compressed {
        sentences.push(format!(
            "{} makes {:.2} bytes of the rest into one, and one core takes {}/s.",
            compressed.method,
            compressed.ratio,
            bytes(compressed.bytes_per_s)
        ));
    }
    if let Some(last) = survey.dirtied.last() {
        sentences.push(format!(
            "In {} it dirtied {} ({}).",
            duration(last.window_ns as f64),
            counted(last.pages.round() as u64, "page", "pages"),
            last.by
        ));
    }
    if let Some((cpu_ns, read_bytes)) = survey.cost {
        sentences.push(format!("Looking took {} of a CPU and read {}.", duration(cpu_ns), bytes(read_bytes)));
    }
    sentences
}

fn unknown(survey: &Survey) -> Vec<Unknown> {
    let one = |what: &str, amount: Option<f64>, unit: &str, text: &str| Unknown {
        what: what.into(),
        amount,
        unit: unit.into(),
        text: text.into(),
    };
    let swapped = (survey.swapped > 0.0).then(|| {
        one("swapped", Some(survey.swapped), "pages", "What was swapped out was not looked at: it may be zeros or not.")
    });
    let by_us = survey.dirtied.iter().any(|one| one.interval.is_some());
    let dirtied = by_us.then(|| {
        one(
            "same_again",
            None,
            "",
            "A page that was written to and holds what it held before counts as not dirtied, and so does one that was a hole when its GiB was counted.",
        )
    });
    let history = survey.compressed.is_some().then(|| {
        one(
            "compressed_alone",
            None,
            "",
            "Each group was compressed alone; QEMU's channels compress one behind the other and remember the ones before, so that the ratio may be higher.",
        )
    });
    swapped.into_iter().chain(dirtied).chain(history).collect()
}
