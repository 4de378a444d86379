//! Which kvm events fire on this host? A test guest is run before recording, and what it caused is said and kept.

use base::recording::{Live, Part, PartKind, PartState};
use lab::Error;
use lab::journal::Journal;
use lab::tracefs::Mounted;
use lab::tracefs::probe::{Fired, what_fires};
use std::path::Path;

/// Rounds of each test program: enough to tell an event that fires each time from one that fires once.
const ROUNDS: u32 = 20;
/// Where the throw-away recording lies meanwhile, inside the new one.
const SCRATCH: &str = "self-check.tmp";

/// What is known of this host's events before it is recorded.
pub(super) struct Checked {
    pub sentence: String,
    /// The same at length, in the recording.
    pub notes: Option<Part>,
}

/// Runs the test guest. A host on which it cannot run is recorded all the same, so nothing here is an error.
pub(super) fn check(host: &Path, journal: &Journal, live: &Live, machine: &str) -> Checked {
    let scratch = live.root().join(SCRATCH);
    let fired = std::fs::create_dir_all(&scratch)
        .map_err(|error| Error::io(&scratch, error))
        .and_then(|()| what_fires(Mounted::at(host, journal)?.tracefs(), journal, &scratch, run));
    // It is empty of anything that is wanted; what cannot be removed does no harm to the recording.
    let _ = std::fs::remove_dir_all(&scratch);
    match fired.and_then(|fired| Ok((keep(&fired, live, machine)?, fired.sentence()))) {
        Ok((notes, sentence)) => Checked { sentence, notes: Some(notes) },
        Err(error) => Checked { sentence: format!("no self-check: {error}"), notes: None },
    }
}

#[cfg(target_arch = "x86_64")]
fn run() -> Result<(), Error> {
    lab::guest::self_check(Path::new("/dev/kvm"), ROUNDS).map(drop)
}

#[cfg(not(target_arch = "x86_64"))]
fn run() -> Result<(), Error> {
    Err(Error::Absent("the test guests are x86 code".to_owned()))
}

fn keep(fired: &Fired, live: &Live, machine: &str) -> Result<Part, Error> {
    let path = Path::new(machine).join("self-check.txt");
    let whole = live.path(&path);
    std::fs::write(&whole, fired.notes()).map_err(|error| Error::io(whole, error))?;
    let (machine, kind, state) = (machine.to_owned(), PartKind::Notes, PartState::Complete);
    Ok(Part { path, machine, kind, clock: None, state })
}
