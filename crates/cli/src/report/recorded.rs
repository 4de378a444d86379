//! A report on what a command has just recorded.

use super::answer;
use crate::arguments::{OutputOptions, Stdin, opened};
use analysis::{Case, Given};
use process::Progress;
use process::exit::Exit;
use process::interrupt::Interrupt;
use std::path::Path;

/// Reports on what `command` has just recorded, as `kvmscope report` does.
pub(crate) fn of(path: &Path, command: &str, output: &OutputOptions, interrupt: &Interrupt) -> anyhow::Result<Exit> {
    let recording = opened(path, &Stdin::default(), interrupt)?;
    let progress = Progress::new(true);
    let case = Case::new(analysis::open(recording)?, Given::default()).with_progress(progress.hear());
    output.end(command, &[answer(&case, output, progress)?], interrupt)
}
