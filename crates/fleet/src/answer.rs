//! The answer about a fleet.

use analysis::fleet::Fleet;
use analysis::{Answers, Case, Given};
use base::recording::Recording;
use std::sync::Arc;

/// What `kvmscope fleet report` says of a fleet.
///
/// # Errors
/// If a case of nothing cannot be opened, which is a mistake in the program.
pub fn answer(fleet: Fleet) -> Result<(Recording, Answers), crate::Error> {
    let recording = Recording::of_nothing(concat!("kvmscope fleet ", env!("CARGO_PKG_VERSION")));
    let given = Given::query(Arc::new(fleet));
    let case = Case::new(analysis::open(recording.clone())?, given);
    Ok((recording, Answers::of(&case)))
}
