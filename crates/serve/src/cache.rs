//! The recordings opened last. A recording whose files have changed since is opened anew.

use crate::error::Refused;
use crate::folder::Place;
use crate::opened::Opened;
use base::recording::MANIFEST;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

/// How many are kept: two to compare, and the two before. A timeline takes some 13 bytes per slice.
const KEPT: usize = 4;

/// A few opened recordings, the one asked for last at the end.
#[derive(Default)]
pub struct Cache {
    kept: Mutex<Vec<Kept>>,
}

struct Kept {
    id: String,
    stamp: Stamp,
    opened: Arc<Opened>,
}

/// Length and time of each file.
pub type Stamp = Vec<Option<(u64, SystemTime)>>;

impl Cache {
    /// The recording called `id`; `place` is where it lies, with its manifest as it is now.
    ///
    /// # Errors
    /// If it has to be opened and cannot be.
    pub fn get(&self, id: &str, place: Place) -> Result<Arc<Opened>, Refused> {
        let stamp = stamp(&place);
        // Opening is quick (headers), but for a packed recording; what takes long happens later, without this lock.
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let known = kept.iter().position(|kept| kept.id == id).map(|place| kept.remove(place));
        let opened = match known {
            Some(known) if known.stamp == stamp => known.opened,
            _ => Arc::new(Opened::new(place)?),
        };
        if kept.len() >= KEPT {
            kept.remove(0);
        }
        kept.push(Kept { id: id.to_owned(), stamp, opened: opened.clone() });
        Ok(opened)
    }

    /// The recording called `id`, if it is kept and its files are those of `stamp`.
    pub fn opened_before(&self, id: &str, stamp: &Stamp) -> Option<Arc<Opened>> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.iter().find(|kept| kept.id == id && kept.stamp == *stamp).map(|kept| kept.opened.clone())
    }

    /// All that are kept, by id.
    pub fn all(&self) -> Vec<(String, Arc<Opened>)> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all: Vec<_> = kept.iter().map(|kept| (kept.id.clone(), kept.opened.clone())).collect();
        all.sort_by(|a, b| a.0.cmp(&b.0));
        all
    }
}

/// What tells whether the files at `place` have changed since.
pub fn stamp(place: &Place) -> Stamp {
    let of = |path: &Path| {
        let about = path.metadata().ok()?;
        Some((about.len(), about.modified().ok()?))
    };
    match place {
        Place::Packed(path) => vec![of(path)],
        Place::Open(recording) => {
            let parts = recording.parts.iter().map(|part| of(&recording.root.join(&part.path)));
            std::iter::once(of(&recording.root.join(MANIFEST))).chain(parts).collect()
        }
    }
}
