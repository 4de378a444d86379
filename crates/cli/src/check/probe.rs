//! `check --probe`: a test guest is run, and what it caused is noted in the snapshot.

use base::Problem;
use host::fired::{FIRED_FILE, text};
use lab::journal::Journal;
use lab::tracefs::Mounted;
use lab::tracefs::probe::what_fires;
use process::interrupt::Interrupt;
use std::path::Path;

/// Rounds of each test program, as in `record`'s self-check.
const ROUNDS: u32 = 20;

/// Runs the guest under a tracing instance of its own, and writes the counts into `snapshot`. Where it cannot be run the
/// rest of the answer stands, with the reason among its problems.
pub(super) fn fire(journal: &Journal, snapshot: &Path, interrupt: &Interrupt) -> Option<Problem> {
    let scratch = interrupt.temporary("kvmscope-probe").map_err(|error| lab::Error::Denied(error.to_string()));
    let tried = scratch.and_then(|scratch| {
        interrupt.whole(|| what_fires(Mounted::at(Path::new("/"), journal)?.tracefs(), journal, scratch.path(), run))
    });
    let written = tried.and_then(|fired| {
        let caused = fired.counts.iter().map(|(name, count)| (name.as_str(), *count));
        let silent = fired.silent.iter().map(|name| (name.as_str(), 0));
        let path = snapshot.join(FIRED_FILE);
        std::fs::write(&path, text(caused.chain(silent))).map_err(|error| lab::Error::io(path, error))
    });
    let said = |error: lab::Error| {
        let sentence = format!("no test guest was run, so which events fire is unknown: {error}");
        Problem::at("--probe".to_owned(), None, "a test guest", "none", 0, sentence)
    };
    written.err().map(said)
}

#[cfg(target_arch = "x86_64")]
fn run() -> Result<(), lab::Error> {
    lab::guest::self_check(Path::new("/dev/kvm"), ROUNDS).map(drop)
}

#[cfg(not(target_arch = "x86_64"))]
fn run() -> Result<(), lab::Error> {
    Err(lab::Error::Absent("the test guests are x86 code".to_owned()))
}
