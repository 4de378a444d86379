//! One recording with what was asked of it so far.
//!
//! Nothing is computed before somebody asks, and nothing twice: the answers of all questions, and the timeline, which
//! takes a walk over the trace of its own. Whoever asks for what is being computed waits for it.

use crate::compared::{self, Comparisons};
use crate::error::Refused;
use crate::events::{self, Rows};
use crate::folder::Place;
use crate::narrowed::Narrowed;
use crate::reading::{Progress, Purpose, Reading};
use analysis::facts::timeline::draw;
use analysis::{Answers, Case, Given, Input, QUESTIONS};
use archive::{Links, Unpacked};
use base::nearest::instead;
use base::recording::{Recording, Shown};
use base::timeline::Drawn;
use base::{Level, Narrow, Section};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use tempfile::TempDir;

pub(crate) struct Opened {
    pub input: Arc<Input>,
    case: Case,
    /// How far that is, for who waits.
    reading: Arc<Reading>,
    /// Where its files lie as long as it is open, if they came in one file.
    _unpacked: Option<Unpacked>,
    /// Where its pieces lie as long as it is open, if it is a text.
    _pieces: Option<TempDir>,
    answered: OnceLock<Result<Arc<Answered>, String>>,
    narrowed: Narrowed,
    compared: Comparisons,
    drawn: OnceLock<Drawn>,
    rows: Vec<Known>,
}

/// What is known of the rows of a trace, once somebody asked.
#[derive(Default)]
struct Known {
    total: OnceLock<u64>,
    counting: AtomicBool,
}

pub(crate) struct Answered {
    pub sections: Vec<Section>,
    /// What `kvmscope report --json` prints.
    pub json: Vec<u8>,
}

impl Opened {
    /// Opens the traces; `given` is what the user of the server states of all recordings.
    ///
    /// # Errors
    /// If none of them can be opened.
    pub(crate) fn new(place: Place, given: &Given) -> Result<Self, Refused> {
        let mut pieces = None;
        let (recording, unpacked, given) = match place {
            Place::Open(recording) => (*recording, None, given.clone()),
            Place::Packed(path) => {
                let unpacked = archive::private()
                    .map_err(|source| archive::Error::Io { path: std::env::temp_dir(), source })
                    .and_then(|directory| archive::unpack(&path, Links::Never, directory))
                    .map_err(unanswered)?;
                (unpacked.recording().map_err(unanswered)?, Some(unpacked), given.clone())
            }
            Place::File(path, run) => (of_file(&path, run, &mut pieces)?, None, given.clone()),
            Place::Dataset(path) => {
                let all = fleet::Local::open(&path).and_then(|dataset| dataset.fleet()).map_err(unanswered)?;
                let recording =
                    Recording { root: path, ..Recording::of_nothing(concat!("kvmscope ", env!("CARGO_PKG_VERSION"))) };
                (recording, None, Given::query(Arc::new(all)))
            }
        };
        let shown = recording.shown.clone();
        let named = |error: analysis::Error| Refused::unanswered(Shown::rename(&shown, &error.to_string()));
        let input = Arc::new(analysis::open(recording).map_err(named)?);
        let reading = Arc::new(Reading::default());
        let case = Case::new(Arc::clone(&input), given).with_progress(reading.hear(Purpose::Answers));
        let rows = input.parts.iter().map(|_| Known::default()).collect();
        let (answered, narrowed) = (OnceLock::new(), Narrowed::default());
        let compared = Comparisons::default();
        let drawn = OnceLock::new();
        Ok(Self {
            input,
            case,
            reading,
            _unpacked: unpacked,
            _pieces: pieces,
            answered,
            narrowed,
            compared,
            drawn,
            rows,
        })
    }

    /// The answers, of all of it or of what `narrow` leaves.
    ///
    /// # Errors
    /// If no question has one.
    pub(crate) fn answered(&self, narrow: &Narrow) -> Result<Arc<Answered>, Refused> {
        if narrow.is_narrowed() {
            let given = Given { narrow: narrow.clone(), ..self.case.given().clone() };
            return self.narrowed.get(narrow, || answer(&Case::new(Arc::clone(&self.input), given)));
        }
        let answered = self.answered.get_or_init(|| {
            let answered = answer(&self.case).map(Arc::new);
            self.reading.end();
            answered
        });
        answered.clone().map_err(Refused::unanswered)
    }

    /// What differs between it, recorded before a change, and `after`.
    ///
    /// # Errors
    /// If both are the same recording, or have nothing in common that can be compared.
    pub(crate) fn compared(&self, after: &Arc<Self>, witness: Option<Level>) -> Result<Arc<Answered>, Refused> {
        if std::ptr::eq(self, Arc::as_ptr(after)) {
            return Err(Refused::wrong("a recording cannot be compared with itself; name another one"));
        }
        self.compared.get((after, witness), || compared::answer(self, after, witness))
    }

    /// The same recording, to be compared: what is read of its traces is read once.
    pub(crate) fn to_compare(&self, witness: Option<Level>) -> Case {
        self.case.asked_with(self.given(witness))
    }

    /// What the user of the server states, with the level whose record counts.
    fn given(&self, witness: Option<Level>) -> Given {
        let given = self.case.given().clone();
        Given { narrow: Narrow { witness, ..given.narrow.clone() }, ..given }
    }

    /// The answers of all of it, where somebody has asked for them already.
    pub(crate) fn answered_before(&self) -> Option<Arc<Answered>> {
        self.answered.get()?.clone().ok()
    }

    /// The section called `id` with `controls` set so, as that level saw it.
    ///
    /// # Errors
    /// If there is no such section, if it has no such control, or if that has no such value.
    pub(crate) fn set(
        &self,
        id: &str,
        controls: BTreeMap<String, String>,
        witness: Option<Level>,
    ) -> Result<Section, Refused> {
        let answered = self.answered(&Narrow { witness, ..Narrow::default() })?;
        let section = find(&answered.sections, id)?;
        for (name, value) in &controls {
            let control = section.controls.iter().find(|control| control.id == *name).ok_or_else(|| {
                let known = section.controls.iter().map(|control| control.id.as_str());
                Refused::wrong(format!("{id} has no control `{name}`: {}", instead(name, known)))
            })?;
            if !control.values.contains(value) {
                let known = control.values.iter().map(String::as_str);
                return Err(Refused::wrong(format!("`{name}`: {}", instead(value, known))));
            }
        }
        let case = self.case.asked_with(Given { controls, ..self.given(witness) });
        let questions = QUESTIONS.iter().filter(|question| question.id == id);
        let answer = questions.map(|question| (question.answer)(&case)).find_map(Result::transpose);
        match answer {
            Some(Ok(answer)) => Ok(answer.section),
            Some(Err(error)) => Err(Refused::unanswered(error.to_string())),
            None => Err(Refused::unanswered(format!("nothing answers `{id}` with these settings"))),
        }
    }

    /// The timeline and the chains.
    pub(crate) fn drawn(&self) -> &Drawn {
        self.drawn.get_or_init(|| {
            let hear = &mut self.reading.hear(Purpose::Timeline);
            let drawn = draw(&self.input, self.case.given(), self.case.ledger(), hear);
            self.reading.end();
            drawn
        })
    }

    /// How far the reading is that somebody waits for.
    pub(crate) fn progress(&self) -> Progress {
        self.reading.progress()
    }

    /// `limit` rows of events of trace `part`, from row `offset` on, and how many it has, if that is known by now: the
    /// first who asks has them counted.
    ///
    /// # Errors
    /// If there is no such part.
    pub(crate) fn events(self: &Arc<Self>, part: usize, offset: u64, limit: usize) -> Result<Rows, Refused> {
        let traces = self.input.parts.len();
        let missing = || Refused::missing(format!("no part {part}; traces in this recording: {traces}"));
        let known = self.rows.get(part).ok_or_else(missing)?;
        let behind_end = known.total.get().is_some_and(|total| offset >= *total);
        let mut rows = Rows::default();
        if !behind_end && limit > 0 {
            rows = events::rows(&self.case, part, offset, limit);
        }
        if let Some(total) = rows.total {
            let _ = known.total.set(total); // Counted meanwhile: it is the same number.
        }
        rows.total = known.total.get().copied();
        if rows.total.is_none() && !known.counting.swap(true, Ordering::Relaxed) {
            let this = Arc::clone(self);
            std::thread::spawn(move || this.count(part));
        }
        Ok(rows)
    }

    fn count(&self, part: usize) {
        self.rows[part].total.get_or_init(|| events::count(&self.case, part));
    }
}

fn unanswered(error: impl std::fmt::Display) -> Refused {
    Refused::unanswered(error.to_string())
}

/// A run of the file, whose pieces lie in `pieces` where it is a text.
fn of_file(path: &Path, run: Option<usize>, pieces: &mut Option<TempDir>) -> Result<Recording, Refused> {
    let scratch = || Ok(pieces.insert(archive::private()?).path().to_owned());
    let name = Path::new(path.file_name().unwrap_or_default());
    let mut runs = intake::of_file(path, name, scratch).map_err(unanswered)?;
    let (count, name) = (runs.len(), name.display());
    match run.unwrap_or(1) {
        _ if run.is_none() && count > 1 => {
            Err(Refused::wrong(format!("{name} has {count} runs; the list of recordings has the id of each")))
        }
        run if (1..=count).contains(&run) => Ok(runs.swap_remove(run - 1)),
        run => Err(Refused::missing(format!("{name} has no run {run}"))),
    }
}

/// The section called `id`.
///
/// # Errors
/// If there is none.
pub(crate) fn find<'s>(sections: &'s [Section], id: &str) -> Result<&'s Section, Refused> {
    sections.iter().find(|known| known.id == id).ok_or_else(|| {
        let known: Vec<&str> = sections.iter().map(|section| section.id).collect();
        Refused::missing(format!("no section `{id}`; there is {}", known.join(", ")))
    })
}

fn answer(case: &Case) -> Result<Answered, String> {
    let Answers { sections, problems, failed } = Answers::of(case);
    let input = case.input();
    if sections.is_empty() {
        let nothing = || format!("{} has no events that a question can use", input.recording.title());
        let why = failed.first().map_or_else(nothing, ToString::to_string);
        return Err(Shown::rename(&input.recording.shown, &why).into_owned());
    }
    let mut json = Vec::new();
    let shown =
        show::json::Answered { recording: &input.recording, compared: &[], sections: &sections, problems: &problems };
    show::json::write(&mut json, "report", &[shown]).map_err(|error| error.to_string())?;
    Ok(Answered { sections, json })
}
