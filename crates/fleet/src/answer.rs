//! The answer about a fleet.

use analysis::fleet::Fleet;
use analysis::{About, Answers, Case, Given, Input};
use base::Section;
use base::recording::Recording;
use std::sync::Arc;

/// What `kvmscope fleet report` says of a fleet.
///
/// # Errors
/// If the question fails.
pub fn answer(fleet: Fleet) -> Result<(Recording, Vec<Section>), crate::Error> {
    let recording = Recording::of_nothing(concat!("kvmscope fleet ", env!("CARGO_PKG_VERSION")));
    let given = Given { fleet: Some(Arc::new(fleet)), ..Given::default() };
    let case = Case::new(Input::open(recording.clone())?, given);
    let Answers { sections, failed, .. } = Answers::about(&case, &[About::Fleet]);
    match failed.into_iter().next() {
        Some(error) => Err(error.into()),
        None => Ok((recording, sections)),
    }
}
