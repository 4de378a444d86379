//! What was measured, as a recording.

use base::datapath::DatapathRuns;
use base::recording::{Destination, Draft, Identity, Machine, Part, PartKind, PartState, Recording};
use lab::Error;
use std::path::Path;

/// This computer, as the recording calls it.
const HOST: &str = "L0";

/// Writes a recording to its place; `created` is when it was begun, `what` the options, for its manifest.
///
/// # Errors
/// If it cannot be written.
pub fn record(runs: &DatapathRuns, output: &Destination, created: String, what: &str) -> Result<Recording, Error> {
    let draft = Draft::new(output)?;
    let path = Path::new(HOST).join("datapath/paths.json");
    runs.write(&draft.part(&path)?)?;
    let part =
        Part { path, machine: HOST.to_owned(), kind: PartKind::Datapath, clock: None, state: PartState::Complete };
    let machine = Machine { id: HOST.to_owned(), level: 0, parent: None, name: None, identity: Identity::default() };
    let recording = Recording {
        root: output.path.clone(),
        machines: vec![machine],
        parts: vec![part],
        ..Recording::made(&format!("kvmscope lab ovs {}: {what}", env!("CARGO_PKG_VERSION")), created)
    };
    Ok(draft.finish(recording)?)
}
