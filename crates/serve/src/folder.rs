//! Which recordings lie in the folder, and where does an id of one lead?
//!
//! An id cannot lead out: its path may have only plain names, and what it names is looked up with all links followed
//! and must still lie in the folder, each file of the recording too.

use crate::error::{Error, Refused};
use crate::id::{id_of, id_of_run, path_of};
use axum::http::StatusCode;
use base::recording::{Machine, Part, PartKind, PartState, Recording, Shown};
use intake::Known;
use serde::Serialize;
use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

/// How deep recordings are looked for.
const DEPTH: u32 = 6;

/// Why a data set is not listed that is there and has nothing to show yet.
const EMPTY_DATASET: &str =
    "a data set without recordings; `kvmscope export RECORDING --dataset DATASET` puts one into it";

/// How many files and directories a listing looks at; a folder of more is not one of recordings.
const MOST_ENTRIES: usize = 20_000;

/// Larger files are listed by what they begin with, as traces: text that people paste is smaller.
pub(crate) const MOST_TEXT: u64 = 4 << 20;

/// How many bytes of text one listing reads that none has read before.
const MOST_TEXTS: u64 = 64 << 20;

#[derive(Debug)]
pub(crate) struct Folder {
    root: PathBuf,
    /// Without links.
    canonical: PathBuf,
    /// What files were found to be that were read for a listing, each as long as it has this length and time.
    known: Mutex<BTreeMap<PathBuf, (u64, SystemTime, Known)>>,
}

#[derive(Debug)]
pub(crate) enum Place {
    /// In the folder as it is: its manifest.
    Open(Box<Recording>),
    /// In one file, to be unpacked.
    Packed(PathBuf),
    /// A trace or a text, and which of its runs, counted from 1.
    File(PathBuf, Option<usize>),
    /// A data set of many recordings: its directory.
    Dataset(PathBuf),
}

impl Place {
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Place::Open(recording) => bytes_of_parts(recording),
            Place::Packed(path) | Place::File(path, _) => bytes_of(path, 0),
            Place::Dataset(path) => bytes_of(path, DEPTH),
        }
    }
}

/// A recording of the folder, or a data set.
#[derive(Debug)]
pub(crate) struct Found {
    pub id: String,
    pub title: String,
    /// Its manifest, or why it cannot be read.
    pub recording: Result<Recording, String>,
    /// How many recordings there are, where it is a data set.
    pub recordings: Option<u64>,
    pub bytes: u64,
}

/// What is no recording, and why.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct LeftOut {
    /// Below the folder.
    pub path: String,
    pub why: String,
}

/// All that a folder holds, hidden files aside.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    pub found: Vec<Found>,
    pub left_out: Vec<LeftOut>,
    /// It holds more than is looked at.
    is_cut: bool,
}

impl Listing {
    /// What lies there, or nothing where links in it lead out: of what they lead to nothing is said.
    fn take(&mut self, below: &Path, found: Option<Found>) {
        match found {
            Some(found) => self.found.push(found),
            None => self.leave_out(below, "a link in it leads out of it, and is not followed"),
        }
    }

    fn leave_out(&mut self, below: &Path, why: impl Into<String>) {
        self.left_out.push(LeftOut { path: below.display().to_string(), why: why.into() });
    }
}

impl Folder {
    pub(crate) fn open(root: &Path) -> Result<Self, Error> {
        let refused = |source| Error::Folder { folder: root.to_owned(), source };
        let canonical = root.canonicalize().map_err(refused)?;
        if !canonical.is_dir() {
            return Err(Error::NoFolder(root.to_owned()));
        }
        Ok(Self { root: root.to_owned(), canonical, known: Mutex::default() })
    }

    /// All recordings, by path, and what is none. Hidden files are passed over.
    pub(crate) fn list(&self) -> Listing {
        let (mut listing, mut left) = (Listing::default(), (MOST_ENTRIES, MOST_TEXTS));
        self.walk(Path::new(""), DEPTH, &mut left, &mut listing);
        listing.found.sort_by(|a, b| a.id.cmp(&b.id));
        listing.left_out.sort_by(|a, b| a.path.cmp(&b.path));
        if listing.is_cut {
            listing.leave_out(Path::new(""), format!("it has more than {MOST_ENTRIES} files; no more are looked at"));
        }
        listing
    }

    fn walk(&self, below: &Path, depth: u32, left: &mut (usize, u64), listing: &mut Listing) {
        let path = self.root.join(below);
        let is_dataset = path.join(fleet::MANIFEST).is_file();
        if is_dataset || Recording::is_in(&path) || self.is_tree(&path) {
            let found = if is_dataset { self.found_dataset(below) } else { self.found(below) };
            return match found {
                Some(Found { recordings: Some(0), .. }) => listing.leave_out(below, EMPTY_DATASET),
                found => listing.take(below, found),
            };
        }
        let entries = match std::fs::read_dir(&path) {
            Ok(entries) => entries,
            Err(error) => return listing.leave_out(below, error.to_string()),
        };
        for entry in entries.flatten().filter(|entry| !entry.file_name().as_bytes().starts_with(b".")) {
            let Some(fewer) = left.0.checked_sub(1) else {
                listing.is_cut = true;
                return;
            };
            left.0 = fewer;
            let Ok(kind) = entry.file_type() else { continue };
            let inner = below.join(entry.file_name());
            if kind.is_symlink() {
                listing.leave_out(&inner, "links are not followed");
            } else if kind.is_dir() && depth == 0 {
                listing.leave_out(&inner, format!("it is more than {DEPTH} directories deep"));
            } else if kind.is_dir() {
                let (found, before) = (listing.found.len(), listing.left_out.len());
                self.walk(&inner, depth - 1, left, listing);
                // A directory of other things is one thing.
                let files = listing.left_out.len() - before;
                if listing.found.len() == found && files > 1 {
                    listing.left_out.truncate(before);
                    listing.leave_out(&inner, format!("{files} files, and none is a trace or a packed recording"));
                }
            } else if is_packed(&entry.path()) {
                listing.take(&inner, self.found(&inner));
            } else {
                match self.known(&entry.path(), &mut left.1) {
                    Ok(Known::Whole) => listing.take(&inner, self.found(&inner)),
                    Ok(Known::Runs(count)) => {
                        (1..=count).for_each(|run| listing.take(&inner, self.found_run(&inner, (run, count))));
                    }
                    Ok(Known::Nothing) => {
                        listing.leave_out(&inner, "neither a trace, a packed recording nor text that is read")
                    }
                    Err(why) => listing.leave_out(&inner, why),
                }
            }
        }
    }

    /// What lies there; `None` if links in it lead out.
    fn found(&self, below: &Path) -> Option<Found> {
        let recording = match self.recording(below) {
            Ok(recording) => Ok(recording),
            Err(refused) if refused.status == StatusCode::FORBIDDEN => return None,
            Err(refused) => Err(refused.sentence),
        };
        let path = self.root.join(below);
        let (title, bytes) = match &recording {
            Ok(recording) if path.is_file() => (recording.title(), bytes_of(&path, 0)),
            Ok(recording) => (recording.title(), bytes_of_parts(recording)),
            Err(_) => {
                let name = path.file_name().unwrap_or(self.canonical.as_os_str());
                (name.to_string_lossy().into_owned(), bytes_of(&path, DEPTH))
            }
        };
        Some(Found { id: id_of(below), title, recording, recordings: None, bytes })
    }

    /// What the file is; of `left` bytes it may read.
    fn known(&self, path: &Path, left: &mut u64) -> Result<Known, String> {
        let about = base::files::open(path).and_then(|file| file.metadata()).map_err(|error| error.to_string())?;
        let (bytes, written) = (about.len(), about.modified().unwrap_or(SystemTime::UNIX_EPOCH));
        if bytes == 0 {
            return Err("it is empty".to_owned());
        }
        let mut all = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((of, at, known)) = all.get(path)
            && (*of, *at) == (bytes, written)
        {
            return Ok(*known);
        }
        let unread = if bytes > MOST_TEXT {
            let most = base::number::bytes(MOST_TEXT as f64);
            Some(format!("no trace by its beginning, and a list reads no text above {most}: `kvmscope FILE` does"))
        } else if bytes > *left {
            let most = base::number::bytes(MOST_TEXTS as f64);
            Some(format!("not examined yet: a list reads {most} of new text, and the next one continues"))
        } else {
            None
        };
        if let Some(why) = unread {
            return if trace::looks_like_trace(path) { Ok(Known::Whole) } else { Err(why) };
        }
        *left -= bytes;
        let known = intake::known(path).map_err(|error| error.to_string())?;
        if all.len() >= MOST_ENTRIES {
            all.clear();
        }
        all.insert(path.to_owned(), (bytes, written, known));
        Ok(known)
    }

    /// One run of so many in a text. Whose it is says only the text, which is not read for that.
    fn found_run(&self, below: &Path, (run, of): (usize, usize)) -> Option<Found> {
        let found = self.found(below)?;
        let recording = found.recording.map(|_| Recording::of_nothing(""));
        let found = Found { recording, ..found };
        Some(match of {
            1 => found,
            _ => Found { id: id_of_run(below, run), title: format!("{}, run {run}", found.title), ..found },
        })
    }

    /// The data set there; `None` if links in it lead out.
    fn found_dataset(&self, below: &Path) -> Option<Found> {
        let path = self.root.join(below);
        self.check_inside(&path).and_then(|()| self.check_below(&path, false)).ok()?;
        let listed = fleet::Local::open(&path).and_then(|dataset| dataset.recordings());
        let name = path.file_name().unwrap_or(self.canonical.as_os_str());
        Some(Found {
            id: id_of(below),
            title: name.to_string_lossy().into_owned(),
            recordings: listed.as_ref().ok().map(|all| all.len() as u64),
            recording: listed.map(|_| Recording::of_nothing("")).map_err(|error| error.to_string()),
            bytes: bytes_of(&path, DEPTH),
        })
    }

    /// Where the recording called `id` lies.
    ///
    /// # Errors
    /// If there is none in the folder, or if a link in it leads out of the folder.
    pub(crate) fn place(&self, id: &str) -> Result<Place, Refused> {
        let missing = || Refused::missing(format!("this folder has no recording `{id}`"));
        let (below, run) = path_of(id).ok_or_else(missing)?;
        if !self.root.join(&below).exists() {
            return Err(missing());
        }
        let path = self.root.join(&below);
        if is_packed(&path) {
            self.check_inside(&path)?;
            return Ok(Place::Packed(path));
        }
        if path.is_file() {
            self.check_inside(&path)?;
            return Ok(Place::File(path, run));
        }
        if path.join(fleet::MANIFEST).is_file() {
            self.check_inside(&path)?;
            self.check_below(&path, false)?;
            return Ok(Place::Dataset(path));
        }
        self.recording(&below).map(|recording| Place::Open(Box::new(recording)))
    }

    fn recording(&self, below: &Path) -> Result<Recording, Refused> {
        let path = self.root.join(below);
        self.check_inside(&path)?;
        if !Recording::is_in(&path) && self.is_tree(&path) {
            self.check_below(&path, true)?;
            return self.tree(below);
        }
        self.check_below(&path, false)?;
        if is_packed(&path) {
            let manifest = archive::manifest(&path).and_then(|unpacked| unpacked.recording());
            return manifest.map_err(|error| Refused::unanswered(error.to_string()));
        }
        let recording = Recording::open(&path).map_err(|error| Refused::unanswered(error.to_string()))?;
        for part in &recording.parts {
            self.check_inside(&recording.root.join(&part.path))?;
        }
        Ok(recording)
    }

    /// Refuses a path that leads out of the folder.
    fn check_inside(&self, path: &Path) -> Result<(), Refused> {
        match path.canonicalize() {
            Ok(canonical) if !canonical.starts_with(&self.canonical) => Err(self.leads_out(path)),
            // A link to nothing leads nowhere; whoever needs the file says that it is missing.
            _ => Ok(()),
        }
    }

    /// Whether a directory has the files of a machine, as a sosreport has; this machine's own root is no copy of one.
    fn is_tree(&self, path: &Path) -> bool {
        host::snapshot::is_tree(path) && path.canonicalize().is_ok_and(|path| path != Path::new("/"))
    }

    /// A tree of a machine's files as a recording of that machine.
    fn tree(&self, below: &Path) -> Result<Recording, Refused> {
        let path = self.canonical.join(below);
        host::Snapshot::open(&path).map_err(|error| Refused::unanswered(error.to_string()))?;
        let machine = Machine { identity: host::identity(&path), ..Machine::default() };
        let part = Part {
            path: path.clone(),
            machine: machine.id.clone(),
            kind: PartKind::Host,
            clock: None,
            state: PartState::Complete,
        };
        let shown = vec![Shown { place: path, name: self.root.join(below) }];
        Ok(Recording { machines: vec![machine], parts: vec![part], shown, ..Recording::of_nothing("") })
    }

    /// Refuses a directory that holds a link out of the folder, or to a directory where `may_link` does not allow these: who goes through
    /// all directories would go in circles.
    fn check_below(&self, path: &Path, may_link: bool) -> Result<(), Refused> {
        if !path.is_dir() {
            return Ok(());
        }
        for entry in std::fs::read_dir(path).into_iter().flatten().flatten() {
            let (inner, Ok(kind)) = (entry.path(), entry.file_type()) else { continue };
            if kind.is_dir() {
                self.check_below(&inner, may_link)?;
            } else if kind.is_symlink() {
                self.check_inside(&inner)?;
                if inner.is_dir() && !may_link {
                    return Err(self.leads_out(&inner));
                }
            }
        }
        Ok(())
    }

    fn leads_out(&self, path: &Path) -> Refused {
        let shown = path.strip_prefix(&self.root).unwrap_or(path).display();
        Refused::forbidden(format!("{shown} is a link that points outside its recording; it is not followed"))
    }

    /// The folder as the user named it.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }
}

/// True for a recording that is one file.
fn is_packed(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == archive::EXTENSION) && archive::format_of(path).is_some()
}

fn bytes_of_parts(recording: &Recording) -> u64 {
    recording.parts.iter().map(|part| bytes_of(&recording.root.join(&part.path), DEPTH)).sum()
}

fn bytes_of(path: &Path, depth: u32) -> u64 {
    let Ok(about) = path.symlink_metadata() else { return 0 };
    if !about.is_dir() {
        return about.len();
    }
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    if depth == 0 { 0 } else { entries.map(|entry| bytes_of(&entry.path(), depth - 1)).sum() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_out_of_the_folder_are_refused() {
        let place = tempfile::tempdir().unwrap();
        let (folder, outside) = (place.path().join("in"), place.path().join("out"));
        std::fs::create_dir_all(folder.join("web/L0")).unwrap();
        std::fs::create_dir_all(&outside).unwrap();
        std::fs::write(outside.join("trace.dat"), b"\x17\x08\x44tracing7").unwrap();
        std::os::unix::fs::symlink(outside.join("trace.dat"), folder.join("web/L0/trace.dat")).unwrap();
        std::os::unix::fs::symlink(&outside, folder.join("link")).unwrap();
        std::os::unix::fs::symlink(outside.join("trace.dat"), folder.join("bare.dat")).unwrap();
        let folder = Folder::open(&folder).unwrap();
        for id in ["web", "link", "bare.dat", "link~2Ftrace.dat"] {
            let refused = folder.place(id).unwrap_err();
            assert_eq!(refused.status, axum::http::StatusCode::FORBIDDEN, "{id}: {}", refused.sentence);
        }
        let listing = folder.list();
        assert!(listing.found.is_empty());
        let left_out: Vec<&str> = listing.left_out.iter().map(|one| one.path.as_str()).collect();
        assert_eq!(left_out, ["bare.dat", "link", "web"]);
    }

    /// What was gathered on a machine is one thing, whatever of it could be read by itself; so is a folder whose parts have their default
    /// names.
    #[test]
    fn a_machines_files_are_one_recording() {
        let place = tempfile::tempdir().unwrap();
        let (proc, log) = (place.path().join("report/proc"), place.path().join("run/L0/qmp/source.log"));
        std::fs::create_dir_all(proc.join("4242")).unwrap();
        std::fs::create_dir_all(place.path().join("report/sys/class/net")).unwrap();
        std::fs::write(proc.join("cmdline"), "isolcpus=2-3\n").unwrap();
        std::os::unix::fs::symlink("../net", place.path().join("report/sys/class/net/up")).unwrap();
        std::fs::create_dir_all(log.parent().unwrap()).unwrap();
        std::fs::write(&log, "{\"QMP\": {\"version\": {}}}\n").unwrap();
        let folder = Folder::open(place.path()).unwrap();
        let listing = folder.list();
        let ids: Vec<&str> = listing.found.iter().map(|found| found.id.as_str()).collect();
        assert_eq!((ids, &listing.left_out), (vec!["report", "run"], &Vec::new()));
        let Ok(Place::Open(recording)) = folder.place("report") else { panic!("a recording") };
        assert_eq!((recording.title().as_str(), recording.parts[0].kind), ("report", PartKind::Host));
        std::os::unix::fs::symlink("/etc/passwd", proc.join("4242/comm")).unwrap();
        assert_eq!(folder.place("report").unwrap_err().status, axum::http::StatusCode::FORBIDDEN);
    }
}
