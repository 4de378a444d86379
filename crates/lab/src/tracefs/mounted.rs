//! The tracing file system, mounted for as long as somebody needs it.
//!
//! Where it is mounted already it stays as it is. Else it is mounted, noted in the journal first, and unmounted at the end;
//! after a kill `kvmscope undo` does that. Who finds it mounted by another recorder notes it too: the last one unmounts it.

use super::instance::Tracefs;
use crate::Error;
use crate::journal::{Entry, Journal, Step};
use crate::program::Program;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Where the kernel means it to be mounted (Documentation/trace/ftrace.rst, Linux 6.12).
const PLACE: &str = "sys/kernel/tracing";
const LIMIT: Duration = Duration::from_secs(10);

/// The tracing file system; dropping it unmounts what was mounted for it.
#[derive(Debug)]
pub struct Mounted {
    tracefs: Tracefs,
    proc: PathBuf,
    entry: Option<Entry>,
}

impl Mounted {
    /// Whether it is there, or can be mounted by us.
    ///
    /// # Errors
    /// If it is not, and we are not root.
    pub fn able(host: &Path) -> Result<(), Error> {
        Tracefs::find(host).map(drop).or_else(|missing| match rustix::process::geteuid().is_root() {
            true => Ok(()),
            false => Err(missing),
        })
    }

    /// Finds it below the host's root directory, or mounts it there.
    ///
    /// # Errors
    /// If the kernel has none, if we are not root, or if the journal cannot be written.
    pub fn at(host: &Path, journal: &Journal) -> Result<Self, Error> {
        let proc = journal.proc().to_owned();
        let place = host.join(PLACE);
        let mount = Step::Mount { path: place.clone() };
        let missing = match Tracefs::find(host) {
            Ok(tracefs) => {
                let entry = journal.is_noted(&mount).then(|| -> Result<Entry, Error> {
                    let mut entry = journal.begin("tracefs")?;
                    entry.intend(mount)?;
                    Ok(entry)
                });
                return Ok(Self { tracefs, proc, entry: entry.transpose()? });
            }
            Err(missing) => missing,
        };
        if !place.is_dir() || !rustix::process::geteuid().is_root() {
            return Err(missing);
        }
        let mut entry = journal.begin("tracefs")?;
        let mounted = entry.intend(mount).and_then(|()| {
            let words = ["-t".as_ref(), "tracefs".as_ref(), "tracefs".as_ref(), place.as_os_str()];
            Program::new("mount", "mount").run(&words, LIMIT)?;
            Tracefs::find(host)
        });
        match mounted {
            Ok(tracefs) => Ok(Self { tracefs, proc, entry: Some(entry) }),
            Err(error) => {
                entry.put_back(&proc)?;
                Err(error)
            }
        }
    }

    /// The tracing file system.
    pub fn tracefs(&self) -> &Tracefs {
        &self.tracefs
    }
}

impl Drop for Mounted {
    /// What cannot be unmounted stays in the journal; what somebody else uses by now stays mounted.
    fn drop(&mut self) {
        if let Some(entry) = self.entry.take() {
            let _ = entry.finish(&self.proc);
        }
    }
}
