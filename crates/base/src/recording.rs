//! The directory in which the recording half and the reading half meet.
//!
//! `recording.json` (CONTRACTS: schema `kvmscope-recording/2`) names the machines, their levels, and the parts: traces,
//! host snapshots, bench results, samples of latencies. Bare files are taken too: [`Recording::of_files`] builds the manifest on the spot.
//!
//! ```text
//! directory with recording.json  --manifest-->  Recording     paths must stay inside the directory
//! directory without              --found----->  Recording     <machine>/trace.dat, <machine>/ctf/, ...
//! bare file, CTF directory       --found----->  Recording     one machine, L0 unless said otherwise
//! ```

mod clock_pairs;
mod clocks_file;
mod cut_from;
mod destination;
mod disturbed;
mod draft;
mod ended;
mod found;
mod join;
mod live;
mod manifest;
mod names;
mod new_file;
mod note;
mod part;
mod part_files;
mod private;
mod processes;
pub mod result_file;
mod tsc;

pub use clock_pairs::{ClockPair, Moment, WallClock, WallTime};
pub use cut_from::{CUT_FROM_FILE, CutFrom, CutTrace, Running, VcpuThread};
pub use destination::Destination;
pub use disturbed::{Burst, Disturbed, TRUTH_FILE};
pub use draft::Draft;
pub use ended::{Ended, EndedBy};
pub use found::{Named, is_of_migration, is_of_switch};
pub use join::{Joined, ParentLink, PartSource, join};
pub use live::Live;
pub use names::{draft_beside, remove_abandoned_drafts};
pub use new_file::NewFile;
pub use part::{Part, PartKind, PartState};
pub use part_files::{PartFile, part_files};
pub use private::{make as make_private, take as take_private, temporary};
pub use processes::{PROCESSES_FILE, VmProcess, VmProcesses};
pub use result_file::ResultFile;
pub use tsc::{TSC_FILE, TscReading, TscReadings, TscScaling};

use crate::{Level, Problem};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::path::{Path, PathBuf};

/// Name of a budget inside its machine's directory.
pub const BUDGET_FILE: &str = "budget.toml";

/// Name of a prediction below its machine.
pub const PREDICTION_FILE: &str = "prediction.json";
/// Guests that were saved and woken.
pub const HIBERNATION_FILE: &str = "hibernation.json";

/// Name of a plan below its machine.
pub(crate) const PLAN_FILE: &str = "plan.toml";

/// Name of the manifest inside a recording's directory.
pub const MANIFEST: &str = "recording.json";

/// A recording: its manifest and where it lies.
#[derive(Debug, Clone)]
pub struct Recording {
    /// The directory; part paths are relative to it.
    pub root: PathBuf,
    /// When it was made, as the recorder wrote it.
    pub created: Option<String>,
    /// What made it.
    pub tool: Option<String>,
    /// The mark of a recording whose structure is true and whose nanoseconds are not.
    pub emulated: Option<Emulator>,
    /// The machines, outermost first.
    pub machines: Vec<Machine>,
    /// The files.
    pub parts: Vec<Part>,
    /// What clocks of the machines showed at one instant, when recording began and ended.
    pub clock_pairs: Vec<ClockPair>,
    /// Why a flight recorder stopped; `None` for all other recordings.
    pub ended: Option<Ended>,
    /// What was wrong with the manifest and could be survived.
    pub problems: Vec<Problem>,
    /// Private copies of what the user named: an unpacked archive, standard input.
    pub shown: Vec<Shown>,
}

/// A private copy, and what people call it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    /// Where the copy lies.
    pub place: PathBuf,
    /// What the user named; `-` is standard input.
    pub name: PathBuf,
}

impl Shown {
    /// `text` with the names that the user gave, where it names any of these private copies.
    pub fn rename<'a>(all: &[Self], text: &'a str) -> Cow<'a, str> {
        all.iter().fold(Cow::Borrowed(text), |text, shown| {
            let place = shown.place.to_string_lossy();
            if text.contains(&*place) { text.replace(&*place, &shown.name.to_string_lossy()).into() } else { text }
        })
    }
}

crate::named! {
    /// What emulated the hardware.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Emulator {
        /// QEMU's TCG.
        Tcg = "QEMU TCG",
        /// Bochs.
        Bochs = "Bochs",
    }
}

/// One machine of a recording.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// Unique in the recording: `L0`, `L1`.
    pub id: String,
    /// 0 for the outermost recorded machine.
    pub level: u8,
    /// The machine it is a guest of.
    pub parent: Option<String>,
    /// Its name, where known.
    #[serde(default)]
    pub name: Option<String>,
    /// Which computer it was, where its recorder read that.
    #[serde(flatten)]
    pub identity: Identity,
}

impl Machine {
    /// The id of a machine that the user did not name. Levels count from it (see [`Level`]), also where it is a guest
    /// itself: what a command records, checks and benches is `L0` in all of them.
    pub const RECORDED: &str = "L0";

    /// The id of a machine of which nobody told whether it is a host or a guest: its level is unknown.
    pub const UNTOLD: &str = "L?";
}

impl Default for Machine {
    /// The machine that a command looks at, where the user named no other.
    fn default() -> Self {
        let id = Self::RECORDED.to_owned();
        Self { id, level: 0, parent: None, name: None, identity: Identity::default() }
    }
}

/// Which computer, and since which boot: what tells whether a change that was proposed for a machine is one for this host.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// A hash of its machine-id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine_id: Option<String>,
    /// The kernel's random number of the boot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot_id: Option<String>,
}

impl Recording {
    /// ` on L1`, behind who did something there; nothing where one machine alone was looked at and nobody gave its level.
    pub fn on(&self, machine: &str) -> String {
        match self.machines.as_slice() {
            [only] if only.level == 0 && only.id == Machine::RECORDED => String::new(),
            _ if machine == Machine::UNTOLD => String::new(),
            _ => format!(" on {machine}"),
        }
    }

    /// Opens what the user named: a recording's directory, with or without its manifest, a CTF trace's directory, or
    /// a bare file, which is taken as recorded at L0.
    ///
    /// # Errors
    /// If nothing is there, if a directory holds neither a manifest nor anything by its default name, or if the
    /// manifest is of another schema or points outside its directory.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let about = std::fs::metadata(path).map_err(|source| Error::Io { path: path.to_owned(), source })?;
        if !about.is_dir() {
            return Self::of_files(&[Named::at_l0(path)], None);
        }
        if path.join(MANIFEST).exists() { manifest::read(path) } else { found::in_directory(path, Vec::new()) }
    }

    /// Whether a directory has a manifest, or parts by their default names: what is listed as a recording.
    pub fn is_in(directory: &Path) -> bool {
        directory.join(MANIFEST).is_file() || found::is_by_names(directory)
    }

    /// A recording of nothing: what an answer is about that needs none, made by `tool`.
    pub fn of_nothing(tool: &str) -> Self {
        Self {
            root: PathBuf::new(),
            created: None,
            tool: Some(tool.to_owned()),
            emulated: None,
            machines: Vec::new(),
            parts: Vec::new(),
            problems: Vec::new(),
            clock_pairs: Vec::new(),
            ended: None,
            shown: Vec::new(),
        }
    }

    /// A recording as `tool` begins it: nothing is in it yet, and where it will lie is not known.
    pub fn made(tool: &str, created: String) -> Self {
        Self { created: Some(created), ..Self::of_nothing(tool) }
    }

    /// Takes bare files and CTF directories as the parts of one recording.
    ///
    /// # Errors
    /// If one of them is not there, or if two machines share a name and not a level.
    pub fn of_files(files: &[Named], emulated: Option<Emulator>) -> Result<Self, Error> {
        found::of_files(files, emulated)
    }

    /// The same recording with more files and CTF directories; machines that it does not know are added below the others.
    ///
    /// # Errors
    /// If one of them is not there, or is a second trace of a machine.
    pub fn with_files(self, files: &[Named]) -> Result<Self, Error> {
        found::add_files(self, files)
    }

    /// Writes the manifest into the recording's directory: whole or not at all, also when the machine stops.
    ///
    /// # Errors
    /// If the operating system refuses.
    pub fn write(&self) -> Result<(), Error> {
        manifest::write(self)
    }

    /// The text of its manifest.
    ///
    /// # Errors
    /// If a name in it is no text.
    pub fn manifest_text(&self) -> Result<Vec<u8>, Error> {
        manifest::text(self)
    }

    /// What people call the recording: its directory's name, or the file's. LTTng calls the trace of every session `kernel`,
    /// or `64-bit` below `ust`: of those it is the session's directory.
    pub fn title(&self) -> String {
        let named = match self.parts.first() {
            Some(part) if self.root.as_os_str().is_empty() => part.path.as_path(),
            _ => self.root.as_path(),
        };
        let absolute = std::path::absolute(named).unwrap_or_else(|_| named.to_owned());
        let is_ctf =
            self.root.as_os_str().is_empty() && self.parts.first().is_some_and(|part| part.kind == PartKind::Ctf);
        let of_lttng = |path: &Path| {
            let name = path.file_name().and_then(|name| name.to_str());
            name.is_some_and(|name| matches!(name, "kernel" | "ust" | "uid" | "64-bit" | "32-bit"))
                || path.parent().is_some_and(|above| above.ends_with("ust/uid"))
        };
        let session = absolute.ancestors().find(|path| !is_ctf || !of_lttng(path)).unwrap_or(&absolute);
        let title = session.file_name().map_or_else(|| named.to_string_lossy(), std::ffi::OsStr::to_string_lossy);
        crate::plain::plain(&title).into_owned()
    }

    /// `text` with the names that the user gave, where it names private copies.
    pub fn as_named<'a>(&self, text: &'a str) -> Cow<'a, str> {
        Shown::rename(&self.shown, text)
    }

    /// Level of the machine called `id`; unknown if the manifest does not name it.
    pub fn level_of(&self, id: &str) -> Level {
        let mut told = self.machines.iter().filter(|machine| machine.id != Machine::UNTOLD);
        told.find(|machine| machine.id == id).map_or(Level::Unknown, |machine| Level::At(machine.level))
    }
}

/// Why a recording could not be read, as a sentence.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The refusal.
        source: std::io::Error,
    },
    /// A directory holds nothing that we know.
    #[error(
        "{} has no recording: no recording.json, no trace with a default name (L0/trace.dat, L0/ctf, L0/perf.data) \
         and no CTF metadata; name the trace file itself", path.display()
    )]
    Empty {
        /// The directory.
        path: PathBuf,
    },
    /// A recording is where a new one should go.
    #[error("{} already exists; --force replaces it", path.display())]
    Taken {
        /// The place.
        path: PathBuf,
    },
    /// Something that is no recording is where a new one should go.
    #[error("{} already exists and is not a recording, so it is not replaced; name another directory", path.display())]
    Foreign {
        /// The place.
        path: PathBuf,
    },
    /// A directory of somebody else is where a new recording should go.
    #[error(
        "{} belongs to another user, who could change the recording; name a directory that does not exist yet",
        path.display()
    )]
    Others {
        /// The place.
        path: PathBuf,
    },
    /// Files named by the user do not go together.
    #[error("{0}")]
    Named(String),
    /// Something in a part that is not carried to another place.
    #[error("{} {reason}", path.display())]
    NotCarried {
        /// The file or directory.
        path: PathBuf,
        /// What it is.
        reason: &'static str,
    },
    /// The manifest is not what it should be.
    #[error("{}: {reason}", path.display())]
    Manifest {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
}
