//! Where a new recording goes: `-o DIR`, or a directory named after what made it and when; with `--pack`, or `-o FILE.kvmscope`,
//! one file.
//!
//! ```text
//! -o web --pack, -o web.kvmscope    web/ while it is made, readable as it is --packed--> web.kvmscope, and web/ is gone
//! ```

use anyhow::anyhow;
use archive::EXTENSION;
use base::Utc;
use base::recording::{Destination, Recording, draft_beside};
use clap::{Args, ValueHint};
use process::exit::WrongUse;
use process::interrupt::Interrupt;
use std::path::{Path, PathBuf};

/// Options of every command that makes a recording.
#[derive(Args)]
pub(crate) struct DestinationOptions {
    /// Directory of the new recording, or one file NAME.kvmscope [default: ./kvmscope-WHAT-UTC/, where WHAT is the command]
    #[arg(short, long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    output: Option<PathBuf>,
    /// Pack the recording into one file, NAME.kvmscope, once it is finished
    #[arg(long)]
    pack: bool,
    /// Replace an existing recording, and existing files
    #[arg(long)]
    force: bool,
}

impl DestinationOptions {
    /// Where it goes, if it may: `what` names it where the user did not.
    pub(crate) fn of(&self, what: &str, now: Utc) -> anyhow::Result<Destination> {
        let destination = self.unchecked(what, now)?;
        destination.check()?;
        if let Some(file) = self.file(&destination.path).filter(|file| !self.force && file.symlink_metadata().is_ok()) {
            return Err(WrongUse(format!("{} is already there; --force replaces it", file.display())).into());
        }
        Ok(destination)
    }

    /// The file that the recording in `directory` is to become, if it is.
    fn file(&self, directory: &Path) -> Option<PathBuf> {
        (self.pack || self.output.as_deref().is_some_and(is_packed)).then(|| {
            let mut file = directory.as_os_str().to_owned();
            file.push(format!(".{EXTENSION}"));
            file.into()
        })
    }

    /// What the recording in `directory` is to be called, where that is not its name.
    #[cfg(feature = "labs")]
    pub(crate) fn shown(&self, directory: &Path) -> Vec<base::recording::Shown> {
        let file = self.file(directory);
        file.map(|name| base::recording::Shown { place: directory.to_owned(), name }).into_iter().collect()
    }

    /// Packs a finished recording where that was asked for, and returns where it lies now. No signal comes between.
    pub(crate) fn finished(&self, recording: &Recording, interrupt: &Interrupt) -> anyhow::Result<PathBuf> {
        let directory = &recording.root;
        let Some(file) = self.file(directory) else { return Ok(directory.clone()) };
        let beside = draft_beside(&file);
        interrupt.whole(|| {
            let kept = |error: &dyn std::fmt::Display| {
                anyhow!("{} was not made: {error}; the recording is {}", file.display(), directory.display())
            };
            archive::pack(recording, &beside).map_err(|error| kept(&error))?;
            std::fs::rename(&beside, &file).map_err(|error| kept(&error))?;
            std::fs::remove_dir_all(directory).map_err(|error| anyhow!("{}: {error}", directory.display()))
        })?;
        Ok(file)
    }

    /// The same for a directory of several recordings, which are to be checked each.
    pub(crate) fn unchecked(&self, what: &str, now: Utc) -> anyhow::Result<Destination> {
        let path = self.output.clone().unwrap_or_else(|| format!("kvmscope-{what}-{}", now.name()).into());
        if super::is_dash(&path) {
            return Err(
                WrongUse("a recording is a directory and cannot go to stdout; name one: -o DIR".to_owned()).into()
            );
        }
        // While it is made it is a directory, of the file's name without its end.
        let path = if is_packed(&path) { path.with_extension("") } else { path };
        Ok(Destination { path, replace: self.force })
    }

    /// Refuses to pack, where a command makes several recordings.
    #[cfg(feature = "labs")]
    pub(crate) fn unpacked(&self) -> anyhow::Result<()> {
        let packed = self.pack || self.output.as_deref().is_some_and(is_packed);
        let how = "this makes several recordings; name a directory, and pack one with `kvmscope pack`";
        if packed { Err(WrongUse(how.to_owned()).into()) } else { Ok(()) }
    }

    /// Whether what is there may be replaced.
    #[cfg(feature = "labs")]
    pub(crate) fn replaces(&self) -> bool {
        self.force
    }

    /// Whether the user named a directory.
    #[cfg(feature = "labs")]
    pub(crate) fn is_named(&self) -> bool {
        self.output.is_some()
    }
}

/// True if the name is that of a packed recording.
fn is_packed(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == EXTENSION)
}
