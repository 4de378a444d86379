//! What a shell completes besides commands and options: budgets, cards and the VMs of this host.

use clap_complete::engine::{ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter};
use std::ffi::OsStr;
use std::path::Path;

/// A built-in budget, or a file.
pub(crate) fn budgets() -> ArgValueCompleter {
    ArgValueCompleter::new(|begun: &OsStr| {
        let mut candidates = beginning(begun, analysis::facts::budget::BUILT_IN.iter().map(|(name, _)| *name));
        candidates.extend(PathCompleter::file().complete(begun));
        candidates
    })
}

/// A card that the planner knows.
pub(crate) fn cards() -> ArgValueCompleter {
    ArgValueCompleter::new(|begun: &OsStr| beginning(begun, analysis::datapath::NICS.iter().map(|nic| nic.model)))
}

/// A VM that runs here.
pub(crate) fn vms() -> ArgValueCompleter {
    ArgValueCompleter::new(|begun: &OsStr| beginning(begun, lab::tracefs::vm_names(Path::new("/proc"))))
}

fn beginning(begun: &OsStr, names: impl IntoIterator<Item = impl Into<String>>) -> Vec<CompletionCandidate> {
    let begun = begun.to_string_lossy();
    let names = names.into_iter().map(Into::into).filter(|name: &String| name.starts_with(&*begun));
    names.map(CompletionCandidate::new).collect()
}
