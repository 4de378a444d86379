//! `kvmscope pack`: a recording as one file, which every command reads.

use crate::arguments::{Stdin, opened};
use anyhow::bail;
use archive::EXTENSION;
use base::number::{exact_bytes, many};
use clap::Args;
use process::exit::{Exit, complain, print};
use process::interrupt::Interrupt;
use std::ffi::OsString;
use std::path::PathBuf;

/// Pack a recording into one file, which every command can read
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    kvmscope pack web\n  \
    kvmscope pack web -o ticket-4711.kvmscope && kvmscope report ticket-4711.kvmscope\n\n\
    The file is a tar archive in zstd with recording.json first: `tar --zstd -xf web.kvmscope` unpacks it.\n\
    Exit status: 0 packed, 1 something could not be read or the file already exists.")]
pub(crate) struct Pack {
    /// A recording directory, or a bare trace file (assumed to be of L0)
    #[arg(value_name = "PATH")]
    path: PathBuf,
    /// The new file [default: NAME.kvmscope in this directory]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl Pack {
    /// Packs it and says how large it is.
    pub(crate) fn run(&self) -> anyhow::Result<Exit> {
        let (stdin, interrupt) = (Stdin::default(), Interrupt::watch()?);
        let recording = opened(&self.path, &stdin, &interrupt)?;
        recording.problems.iter().for_each(|problem| complain(&anyhow::Error::msg(problem.text.clone())));
        let place = self.output.clone().unwrap_or_else(|| {
            let mut name = OsString::from(recording.title());
            name.push(format!(".{EXTENSION}"));
            name.into()
        });
        if place.symlink_metadata().is_ok() {
            bail!(archive::Error::Taken(place));
        }
        let new = interrupt.new_file(&place, 0o600)?;
        let files = archive::pack_into(&recording, new, &place)?;
        let bytes = std::fs::metadata(&place)?.len();
        print(&format!("{}: {} in {}", place.display(), many(files, "file"), exact_bytes(bytes)))?;
        Ok(Exit::Answered)
    }
}
