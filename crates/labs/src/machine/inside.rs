//! What does this program do when it is the first process of the lab's machine?
//!
//! ```text
//! mount -> load modules -> the work that the orders name -> power off
//! ```
//! In: [`Orders`], a file of the initramfs, and all [`Work`] that this program can do. Out: lines on the console, which
//! [`super::emulator`] shows, and whatever the work leaves; a recording is handed over as a cpio archive on the disk, which
//! `machine::harvest` reads. Whatever goes wrong is said on the console too.

use super::{cpio, initramfs, prepare};
use base::recording::{ClockPair, Part};
use lab::Error;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fs::File;
use std::io::{BufWriter, ErrorKind, Seek, SeekFrom, Write};
use std::path::Path;
use std::time::Duration;

/// Before each line that is meant for whoever started the lab.
pub(crate) const SAYS: &str = "kvmscope lab: ";
/// The last such line of a machine that did its work.
pub(crate) const DONE: &str = "done";
/// The beginning of the last such line of one that did not.
pub(crate) const FAILED: &str = "failed: ";
/// Names of the recording's files in the archive begin with it.
pub const FILES: &str = "recording/";
/// What those files are, as JSON.
pub(crate) const HARVEST: &str = "harvest.json";
/// Where a recording that is made in the machine lies meanwhile.
pub const RECORDING: &str = "/tmp/recording";
/// Of each CPU. An emulated machine is slow to empty it.
pub(crate) const BUFFER_KIB: u64 = 16 << 10;
/// How often the recorder is asked to do what has piled up.
pub const POLL: Duration = Duration::from_millis(200);

/// Something that the first process of a machine can do.
#[derive(Clone, Copy)]
pub struct Work {
    /// What orders call it.
    pub name: &'static str,
    /// Does it, as the details of the orders say.
    pub run: fn(Value) -> Result<(), Error>,
}

/// What a machine that boots into this program is told.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Orders {
    pub work: String,
    /// Modules that are loaded before it, in order.
    pub modules: Vec<String>,
    pub parameters: Vec<(String, String)>,
    /// What only that work understands.
    pub details: Value,
}

impl Orders {
    /// Orders to do `work`; modules are added by [`initramfs::write`].
    ///
    /// # Errors
    /// If the details cannot be written down.
    pub fn new(work: Work, details: &impl Serialize) -> Result<Self, Error> {
        let details = serde_json::to_value(details).map_err(|error| Error::io(initramfs::JOB, error.into()))?;
        Ok(Self { work: work.name.to_owned(), modules: Vec::new(), parameters: Vec::new(), details })
    }
}

/// The details of orders, as the work that they are for has them.
///
/// # Errors
/// If they are of another work.
pub fn details<T: DeserializeOwned>(details: Value) -> Result<T, Error> {
    serde_json::from_value(details).map_err(|error| Error::io(initramfs::JOB, error.into()))
}

/// What a machine hands over beside files.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Harvest {
    pub parts: Vec<Part>,
    /// What its clocks showed when it began to record and when it ended, where they were read.
    pub clock_pairs: Vec<ClockPair>,
}

/// Does what the orders say, which is one of `works`, and switches the machine off. Never returns a success: the machine is gone then.
///
/// # Errors
/// If this process is not the first one of a machine.
pub fn run(works: &[Work]) -> Result<(), Error> {
    if std::process::id() != 1 {
        let sentence = "this runs only as the first process of a machine of the lab";
        return Err(Error::Denied(sentence.to_owned()));
    }
    match work(works) {
        Ok(()) => say(DONE),
        Err(error) => say(&format!("{FAILED}{error}")),
    }
    rustix::fs::sync();
    prepare::power_off()
}

/// Says something to whoever started the lab.
pub fn say(line: &str) {
    println!("{SAYS}{line}");
}

fn work(works: &[Work]) -> Result<(), Error> {
    let text = std::fs::read(initramfs::JOB).map_err(|error| Error::io(initramfs::JOB, error))?;
    let orders: Orders = serde_json::from_slice(&text).map_err(|error| Error::io(initramfs::JOB, error.into()))?;
    let unknown = || Error::Absent(format!("this program does not know the work `{}`", orders.work));
    let work = works.iter().find(|work| work.name == orders.work).ok_or_else(unknown)?;
    prepare::mount_all()?;
    prepare::load(&orders.modules, &orders.parameters)?;
    (work.run)(orders.details)
}

/// Writes all files below `root`, and what they are, to the disk, from `offset` on.
///
/// # Errors
/// If something cannot be read or written.
pub(crate) fn hand_over(disk: &str, offset: u64, root: &Path, harvest: &Harvest) -> Result<(), Error> {
    let io = |error| Error::io(disk, error);
    let mut disk = File::options().write(true).open(disk).map_err(io)?;
    disk.seek(SeekFrom::Start(offset)).map_err(io)?;
    let mut archive = cpio::Archive::new(BufWriter::with_capacity(1 << 20, &disk));
    archive.file(HARVEST, &serde_json::to_vec(harvest).map_err(|error| io(error.into()))?).map_err(io)?;
    let mut directories = vec![root.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(&directory).map_err(|error| Error::io(&directory, error))? {
            let path = entry.map_err(|error| Error::io(&directory, error))?.path();
            if path.is_dir() {
                directories.push(path);
            } else if let Ok(name) = path.strip_prefix(root) {
                archive.copy(&format!("{FILES}{}", name.display()), &path).map_err(io)?;
            }
        }
    }
    archive.finish().and_then(|mut out| out.flush()).map_err(io)?;
    match disk.sync_all() {
        // Memory has nothing to wait for.
        Err(error) if error.kind() == ErrorKind::InvalidInput => Ok(()),
        written => written.map_err(io),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::WORKS;

    #[test]
    fn orders_arrive_as_they_were_given_and_are_for_one_work_alone() {
        let [level, route, _] = WORKS;
        let orders = Orders::new(route, &crate::netns::router::Router { ports: Vec::new() }).unwrap();
        let text = serde_json::to_vec(&orders).unwrap();
        let orders: Orders = serde_json::from_slice(&text).unwrap();
        assert_eq!((orders.work.as_str(), WORKS.iter().filter(|work| work.name == orders.work).count()), ("route", 1));
        let refused = (level.run)(orders.details).unwrap_err();
        assert!(refused.to_string().starts_with(initramfs::JOB), "a router is no level: {refused}");
    }
}
