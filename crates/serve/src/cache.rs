//! The recordings opened last. A recording whose files have changed since is opened anew.
//!
//! Opening may take seconds, as a packed recording is unpacked. Whoever asks for it meanwhile waits for it; requests for others
//! do not: the list is locked for as long as it takes to find or make a place in it.

use crate::error::Refused;
use crate::folder::Place;
use crate::opened::Opened;
use crate::reading::Progress;
use analysis::Given;
use base::recording::MANIFEST;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::SystemTime;

/// How many are kept: two to compare, and the two before. A timeline takes some 13 bytes per slice.
const KEPT: usize = 4;

/// A few opened recordings, the one asked for last at the end.
#[derive(Default)]
pub(crate) struct Cache {
    /// What the user of the server states of all of them.
    pub given: Given,
    kept: Mutex<Vec<Kept>>,
}

struct Kept {
    id: String,
    stamp: Stamp,
    opened: Slot,
}

/// A recording that was opened, is being opened, or cannot be.
type Slot = Arc<OnceLock<Result<Arc<Opened>, Refused>>>;

/// Length and time of each file.
pub(crate) type Stamp = Vec<Option<(u64, SystemTime)>>;

impl Cache {
    /// Nothing yet, of recordings of which the user states this.
    pub(crate) fn new(given: Given) -> Self {
        Self { given, ..Self::default() }
    }

    /// The recording called `id`; `place` is where it lies, with its manifest as it is now.
    ///
    /// # Errors
    /// If it has to be opened and cannot be.
    pub(crate) fn get(&self, id: &str, place: Place) -> Result<Arc<Opened>, Refused> {
        let slot = self.slot(id, stamp(&place));
        let opened = slot.get_or_init(|| Opened::new(place, &self.given).map(Arc::new)).clone();
        if opened.is_err() {
            // Whoever asks next tries again: what was missing may be there by then.
            self.locked().retain(|kept| !Arc::ptr_eq(&kept.opened, &slot));
        }
        opened
    }

    /// The place of a recording whose files are as `stamp` says, which is the last to be given up from now on.
    fn slot(&self, id: &str, stamp: Stamp) -> Slot {
        let mut kept = self.locked();
        let known = kept.iter().position(|kept| kept.id == id).map(|place| kept.remove(place));
        let opened = known.filter(|known| known.stamp == stamp).map(|known| known.opened).unwrap_or_default();
        if kept.len() >= KEPT {
            kept.remove(0);
        }
        kept.push(Kept { id: id.to_owned(), stamp, opened: opened.clone() });
        opened
    }

    /// The recording called `id`, if it is kept and its files are those of `stamp`.
    pub(crate) fn opened_before(&self, id: &str, stamp: &Stamp) -> Option<Arc<Opened>> {
        let kept = self.locked();
        let slot = kept.iter().find(|kept| kept.id == id && kept.stamp == *stamp)?;
        slot.opened.get()?.as_ref().ok().cloned()
    }

    /// How far the reading of the recording called `id` is; it may be being opened, or not be asked for at all. Waits for nothing.
    pub(crate) fn progress(&self, id: &str) -> Progress {
        let kept = self.locked();
        let opened = kept.iter().find(|kept| kept.id == id).and_then(|kept| kept.opened.get()?.as_ref().ok());
        opened.map_or_else(Progress::default, |opened| opened.progress())
    }

    fn locked(&self) -> MutexGuard<'_, Vec<Kept>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn all(&self) -> Vec<(String, Arc<Opened>)> {
        let open = |kept: &Kept| Some((kept.id.clone(), kept.opened.get()?.as_ref().ok()?.clone()));
        let mut all: Vec<_> = self.locked().iter().filter_map(open).collect();
        all.sort_by(|a, b| a.0.cmp(&b.0));
        all
    }
}

/// What tells whether the files at `place` have changed since.
pub(crate) fn stamp(place: &Place) -> Stamp {
    let of = |path: &Path| {
        let about = path.metadata().ok()?;
        Some((about.len(), about.modified().ok()?))
    };
    match place {
        Place::Packed(path) | Place::File(path, _) => vec![of(path)],
        Place::Dataset(path) => {
            let rows = fleet::Local::open(path).and_then(|dataset| dataset.rows()).unwrap_or_default();
            rows.iter().map(|row| of(row)).collect()
        }
        Place::Open(recording) => {
            let parts = recording.parts.iter().map(|part| of(&recording.root.join(&part.path)));
            std::iter::once(of(&recording.root.join(MANIFEST))).chain(parts).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn a_recording_that_is_being_opened_keeps_nobody_who_asks_for_another() {
        let cache = Cache::default();
        let ((begun, has_begun), (go, may_end)) = (channel(), channel());
        let (slow, again) = (cache.slot("slow", Vec::new()), cache.slot("slow", Vec::new()));
        assert!(Arc::ptr_eq(&slow, &again), "who asks for the same waits for the same");
        std::thread::scope(|threads| {
            threads.spawn(move || {
                let open = || {
                    begun.send(()).unwrap();
                    may_end.recv().unwrap();
                    Err(Refused::missing("gone"))
                };
                slow.get_or_init(open).is_err()
            });
            has_begun.recv().unwrap();
            assert!(cache.slot("other", Vec::new()).set(Err(Refused::missing("gone"))).is_ok());
            assert!(cache.all().is_empty());
            assert_eq!(cache.progress("slow"), Progress::default(), "who asks how far it is does not wait for it");
            go.send(()).unwrap();
        });
    }

    #[test]
    fn what_cannot_be_opened_is_tried_again() {
        let (cache, place) = (Cache::default(), tempfile::tempdir().unwrap());
        let missing = || Place::Packed(place.path().join("none.kvmscope"));
        for _ in 0..2 {
            assert!(cache.get("none", missing()).is_err());
            assert!(cache.locked().is_empty());
        }
    }
}
