//! What did the files of a machine say, which were not readable, and when were they read?
//!
//! In: a directory that holds `proc` and `sys`: `host/0` of a recording, a report of another tool, or `/` itself.
//! Out: text of files by their paths as on the machine, names in directories, targets of links, times of reading.
//!
//! ```text
//! host/0/proc/... sys/...    copies, without links
//!        times.json          {"clock": "monotonic", "files": {"proc/stat": ns, ...}}
//!        links.json          {"sys/class/net/eth0/device": "../../../0000:00:03.0", ...}
//!        unreadable.txt      path: reason, a line each
//!        cpuid.json timing.json kvm.json kernel-log.txt libvirt/     what the processor, KVM, the kernel and libvirt say
//!        commands/           what ethtool and Open vSwitch's tools print
//! ```
//! A file is there, or not there, or was not readable: these are three answers, and only the second is "no".

mod files;
mod gathered;
mod pattern;
mod records;
mod trees;
mod vms;

pub use files::{FILES, How, LINKS, Wanted};
pub use gathered::{COMMANDS, DOMAINS, OTHERS, OUTPUTS, output_name};
pub use pattern::is_gone;
pub use records::{LINKS_FILE, TIMES_FILE, Times, UNREADABLE_FILE};
pub use trees::{is_tree, packed_in, trees_in};

use crate::{Error, budget};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// A machine's files at one moment.
#[derive(Debug, Clone)]
pub struct Snapshot {
    root: PathBuf,
    times: Times,
    links: BTreeMap<String, String>,
    unreadable: BTreeMap<String, String>,
    vms: OnceLock<BTreeSet<String>>,
}

/// What became of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    Text(String),
    /// The machine has no such file.
    Absent,
    /// It was there and could not be read, for that reason.
    Unreadable(String),
}

impl Snapshot {
    /// Opens the directory that holds `proc` and `sys`.
    ///
    /// # Errors
    /// If it cannot be opened or holds neither.
    pub fn open(root: &Path) -> Result<Self, Error> {
        let root = root.canonicalize().map_err(|source| Error::Io { path: root.to_owned(), source })?;
        if !is_tree(&root) {
            return Err(Error::NoSnapshot { path: root });
        }
        let (times, links) = (records::times(&root), records::links(&root));
        let unreadable = records::unreadable(&root);
        Ok(Self { root, times, links, unreadable, vms: OnceLock::new() })
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// What became of the file at `path`, such as `proc/stat`.
    pub fn content(&self, path: &str) -> Content {
        match self.bytes(path, budget::FILE_BYTES) {
            Ok(bytes) => Content::Text(String::from_utf8_lossy(&bytes).into_owned()),
            Err(error) if is_gone(&error) => match self.unreadable.get(path) {
                Some(reason) => Content::Unreadable(reason.clone()),
                None => Content::Absent,
            },
            Err(error) => Content::Unreadable(error.to_string()),
        }
    }

    /// The text of a file, if it could be read.
    pub fn read(&self, path: &str) -> Option<String> {
        match self.content(path) {
            Content::Text(text) => Some(text),
            Content::Absent | Content::Unreadable(_) => None,
        }
    }

    /// The text of a file of one line, without blanks around it.
    pub fn line(&self, path: &str) -> Option<String> {
        let bytes = self.bytes(path, budget::LINE_FILE_BYTES).ok()?;
        // Some tools that copy trees end a file with zero bytes.
        Some(String::from_utf8_lossy(&bytes).trim_end_matches('\0').trim().to_owned())
    }

    /// The names in a directory, `cpu2` before `cpu10`; none if it is not there.
    pub fn names(&self, directory: &str) -> Vec<String> {
        self.inside(directory).and_then(|path| pattern::names(&path)).unwrap_or_default()
    }

    /// The names in a directory with those of links, which a snapshot notes beside its files.
    pub fn entries(&self, directory: &str) -> Vec<String> {
        let mut names = self.names(directory);
        let links = self.links_below(directory).filter_map(|(path, _)| path[directory.len() + 1..].split('/').next());
        let known: BTreeSet<&str> = names.iter().map(String::as_str).collect();
        let new: BTreeSet<&str> = links.filter(|name| !known.contains(name)).collect();
        let new: Vec<String> = new.into_iter().map(str::to_owned).collect();
        names.extend(new);
        names
    }

    /// The paths that match a pattern, as in [`FILES`].
    pub fn find(&self, pattern: &str) -> Vec<String> {
        self.find_and_tell(pattern, &mut |_, _| {})
    }

    /// The same, telling which directories could not be listed, and which files lie where nobody may look.
    pub fn find_and_tell(&self, pattern: &str, unreached: &mut dyn FnMut(&str, &io::Error)) -> Vec<String> {
        pattern::find(&self.root, pattern, &|pid| self.vms().contains(pid), unreached)
    }

    /// Where the link at `path` leads, as the machine had it.
    pub fn link(&self, path: &str) -> Option<String> {
        let live = || Some(std::fs::read_link(self.root.join(path)).ok()?.to_string_lossy().into_owned());
        self.links.get(path).cloned().or_else(live)
    }

    /// Paths of the links that the snapshot knows below `directory`.
    pub fn links_below<'a>(&'a self, directory: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        let below = format!("{directory}/");
        let from = (std::ops::Bound::Included(below.clone()), std::ops::Bound::Unbounded);
        let found = self.links.range(from).take_while(move |(path, _)| path.starts_with(&below));
        found.map(|(path, target)| (path.as_str(), target.as_str()))
    }

    /// When a file was read, in ns of the clock that [`Times`] names; unknown for files that nobody timed.
    pub fn read_at_ns(&self, path: &str) -> Option<u64> {
        self.times.files.get(path).copied()
    }

    /// What was there and not readable, and why.
    pub fn unreadable(&self) -> &BTreeMap<String, String> {
        &self.unreadable
    }

    /// The first `most` bytes of a file.
    ///
    /// # Errors
    /// If it is not there (see [`is_gone`]), is no file, or cannot be read.
    pub fn bytes(&self, path: &str, most: u64) -> io::Result<Vec<u8>> {
        let whole = self.inside(path)?;
        if !std::fs::metadata(&whole)?.is_file() {
            return Err(io::ErrorKind::NotFound.into());
        }
        let mut bytes = Vec::new();
        base::files::open(&whole)?.take(most).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// The whole path of `path`, if it stays below the root: a snapshot from elsewhere may hold links.
    fn inside(&self, path: &str) -> io::Result<PathBuf> {
        let whole = self.root.join(path.trim_start_matches('/'));
        if self.root == Path::new("/") {
            // Nothing is outside, and to resolve a path is a call for each of its parts.
            return Ok(whole);
        }
        let whole = whole.canonicalize()?;
        if whole.starts_with(&self.root) { Ok(whole) } else { Err(io::ErrorKind::NotFound.into()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (file, text) in files {
            let path = root.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    #[test]
    fn absent_and_unreadable_are_two_answers() {
        let root = tree(&[
            ("proc/stat", "cpu 1\n"),
            (UNREADABLE_FILE, "sys/kernel/debug/kvm: Permission denied (os error 13)\n"),
            (TIMES_FILE, r#"{"clock":"monotonic","files":{"proc/stat":7}}"#),
        ]);
        let snapshot = Snapshot::open(root.path()).unwrap();
        assert_eq!(snapshot.line("proc/stat").as_deref(), Some("cpu 1"));
        assert_eq!(snapshot.read_at_ns("proc/stat"), Some(7));
        assert_eq!(snapshot.content("proc/uptime"), Content::Absent);
        assert!(matches!(snapshot.content("sys/kernel/debug/kvm"), Content::Unreadable(why) if why.contains("denied")));
    }

    #[test]
    fn a_link_out_of_the_snapshot_is_not_followed() {
        let root = tree(&[("proc/stat", ""), ("secret", "x")]);
        let inner = root.path().join("inner");
        fs::create_dir_all(inner.join("proc")).unwrap();
        std::os::unix::fs::symlink(root.path().join("secret"), inner.join("proc/stat")).unwrap();
        let snapshot = Snapshot::open(&inner).unwrap();
        assert_eq!(snapshot.read("proc/stat"), None);
        assert_eq!(snapshot.read("../secret"), None);
    }

    #[test]
    fn a_directory_of_something_else_is_no_snapshot() {
        let root = tree(&[("etc/passwd", "")]);
        assert!(Snapshot::open(root.path()).unwrap_err().to_string().contains("kvmscope snapshot"));
    }

    #[test]
    fn links_are_told_as_the_machine_had_them() {
        let root = tree(&[
            ("sys/class/net/lo/mtu", "65536\n"),
            (LINKS_FILE, r#"{"sys/class/net/eth0/device":"../../../virtio0"}"#),
        ]);
        let snapshot = Snapshot::open(root.path()).unwrap();
        assert_eq!(snapshot.link("sys/class/net/eth0/device").as_deref(), Some("../../../virtio0"));
        let below: Vec<_> = snapshot.links_below("sys/class/net/eth0").collect();
        assert_eq!(below, [("sys/class/net/eth0/device", "../../../virtio0")]);
        assert_eq!(snapshot.links_below("sys/class/net/eth").count(), 0);
        assert_eq!(snapshot.entries("sys/class/net"), ["lo", "eth0"]);
        assert_eq!(snapshot.entries("sys/class/net/eth0"), ["device"]);
    }
}
