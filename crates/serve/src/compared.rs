//! What a recording, as it was before a change, answers with another one, recorded after it.
//!
//! A comparison takes what was read of each side's traces already, and stays as long as both are open: it hangs on the first of
//! them and knows the second by what was opened, so that one whose files have changed since is compared anew.

use crate::error::Refused;
use crate::opened::{Answered, Opened};
use analysis::{About, Answers};
use base::Level;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

/// How many are kept of one recording: as many as there are others open.
const KEPT: usize = 4;

type Slot = Arc<OnceLock<Result<Arc<Answered>, String>>>;

/// With which recording, and as which level saw both.
type Kept = (Weak<Opened>, Option<Level>, Slot);

/// The comparisons of one recording, the one asked for last at the end.
#[derive(Default)]
pub(crate) struct Comparisons {
    kept: Mutex<Vec<Kept>>,
}

impl Comparisons {
    /// The one with `after`, as a level saw both; whoever asks for what is being computed waits for it.
    ///
    /// # Errors
    /// What `answer` says.
    pub(crate) fn get(
        &self,
        asked: (&Arc<Opened>, Option<Level>),
        answer: impl FnOnce() -> Result<Answered, String>,
    ) -> Result<Arc<Answered>, Refused> {
        let answered = self.slot(asked).get_or_init(|| answer().map(Arc::new)).clone();
        answered.map_err(Refused::unanswered)
    }

    fn slot(&self, (after, witness): (&Arc<Opened>, Option<Level>)) -> Slot {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|(known, ..)| known.strong_count() > 0);
        let is_it = |known: &Weak<Opened>| std::ptr::eq(known.as_ptr(), Arc::as_ptr(after));
        let known = kept.iter().position(|(known, by, _)| is_it(known) && *by == witness);
        let known = known.map(|place| kept.remove(place));
        let found = known.unwrap_or_else(|| (Arc::downgrade(after), witness, Slot::default()));
        if kept.len() >= KEPT {
            kept.remove(0);
        }
        kept.push(found.clone());
        found.2
    }
}

/// What `kvmscope compare BEFORE AFTER --json` prints.
///
/// # Errors
/// If both have nothing in common that can be compared, with the reason.
pub(crate) fn answer(before: &Opened, after: &Opened, witness: Option<Level>) -> Result<Answered, String> {
    let compared = after.to_compare(witness).compared_with(before.to_compare(witness));
    let Answers { sections, problems, failed } = Answers::about(&compared, &[About::Change]);
    if let Some(error) = failed.first() {
        return Err(error.to_string());
    }
    let both = [before.input.recording.clone(), after.input.recording.clone()];
    let shown = show::json::Answered { recording: &both[1], compared: &both, sections: &sections, problems: &problems };
    let mut json = Vec::new();
    show::json::write(&mut json, "compare", &[shown]).map_err(|error| error.to_string())?;
    Ok(Answered { sections, json })
}
