//! The answers of one recording narrowed to windows, or as one of its levels saw it, those asked for last.
//!
//! They cost a walk over the trace, as those of the whole recording do; a page asks for the same window for each of its
//! views.

use crate::error::Refused;
use crate::opened::Answered;
use base::Narrow;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// How many are kept. Their tables take some 100 KB each.
const KEPT: usize = 8;

type Slot = Arc<OnceLock<Result<Arc<Answered>, String>>>;

/// A few of them, the one asked for last at the end.
#[derive(Default)]
pub(crate) struct Narrowed {
    kept: Mutex<Vec<(Narrow, Slot)>>,
}

impl Narrowed {
    /// The answers of what `narrow` leaves; whoever asks for what is being computed waits for it.
    ///
    /// # Errors
    /// What `answer` says.
    pub(crate) fn get(
        &self,
        narrow: &Narrow,
        answer: impl FnOnce() -> Result<Answered, String>,
    ) -> Result<Arc<Answered>, Refused> {
        let answered = self.slot(narrow).get_or_init(|| answer().map(Arc::new)).clone();
        answered.map_err(Refused::unanswered)
    }

    fn slot(&self, narrow: &Narrow) -> Slot {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let known = kept.iter().position(|(known, _)| known == narrow).map(|place| kept.remove(place));
        let found = known.unwrap_or_else(|| (narrow.clone(), Slot::default()));
        if kept.len() >= KEPT {
            kept.remove(0);
        }
        kept.push(found.clone());
        found.1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Span;

    fn answered() -> Answered {
        Answered { sections: Vec::new(), json: Vec::new() }
    }

    #[test]
    fn a_window_is_answered_once_until_enough_others_were_asked_for() {
        let narrowed = Narrowed::default();
        let window = |n: u64| Narrow { window: Some(Span { from_ns: n, to_ns: n + 1 }), ..Narrow::default() };
        let mut asked = 0;
        let mut get = |n| {
            let answer = || {
                asked += 1;
                Ok(answered())
            };
            assert!(narrowed.get(&window(n), answer).is_ok());
            asked
        };
        assert_eq!([get(0), get(0), get(1), get(0)], [1, 1, 2, 2]);
        for n in 2..2 + KEPT as u64 {
            get(n);
        }
        assert_eq!(get(0), 3 + KEPT, "0 was the oldest and left");
    }

    #[test]
    fn what_failed_says_why() {
        let refused = Narrowed::default().get(&Narrow::default(), || Err("nothing there".to_owned()));
        assert_eq!(refused.err().map(|refused| refused.sentence), Some("nothing there".to_owned()));
    }
}
