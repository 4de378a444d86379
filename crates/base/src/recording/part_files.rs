//! The files of a part, to be carried elsewhere: into an archive, a joined recording, a cut one.
//!
//! A recording may be somebody else's: a link in it may lead to any file of whoever carries it, a FIFO never ends, and a few bytes can
//! claim to be terabytes. What cannot be carried is refused by its name, never left out in silence.

use super::Error;
use crate::files;
use std::path::{Path, PathBuf};

/// A regular file of a part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartFile {
    /// Where its bytes are, without links.
    pub path: PathBuf,
    /// Where it lies below its part; empty if the part is this file.
    pub below: PathBuf,
}

impl PartFile {
    /// Where it lies once its part lies at `part`.
    pub fn in_part_at(&self, part: &Path) -> PathBuf {
        // To join an empty path would end the name in a slash.
        if self.below.as_os_str().is_empty() { part.to_owned() } else { part.join(&self.below) }
    }
}

/// The files of the part at `part`, in the order of their names. Links to files of the recording at `root` are those files; of bare files,
/// whose root is empty, the part itself may be a link: the user has named it.
///
/// # Errors
/// As [`Error::NotCarried`] by the first that is no file of the recording, if there is none at all, or if most of one is holes
/// ([`files::check_sparse`]); as [`Error::Io`] if the operating system refuses.
pub fn part_files(root: &Path, part: &Path) -> Result<Vec<PartFile>, Error> {
    let real = |path: &Path| path.canonicalize().map_err(|source| Error::Io { path: path.to_owned(), source });
    let (root, part) =
        if root.as_os_str().is_empty() { (real(part)?, &real(part)?) } else { (real(root)?, &part.to_owned()) };
    let mut found = Vec::new();
    add(&root, part, Path::new(""), &mut found)?;
    if found.is_empty() {
        return Err(Error::NotCarried { path: part.clone(), reason: "is a directory without a file" });
    }
    Ok(found)
}

fn add(root: &Path, path: &Path, below: &Path, found: &mut Vec<PartFile>) -> Result<(), Error> {
    let io = |source| Error::Io { path: path.to_owned(), source };
    let is_link = path.symlink_metadata().map_err(io)?.is_symlink();
    // Also where a directory above it is a link.
    let leads_to = path.canonicalize().map_err(io)?;
    let is_inside = leads_to.starts_with(root);
    if !is_inside || is_link && !leads_to.is_file() {
        // A link to a directory could lead round in circles.
        let reason = match is_inside && leads_to.is_dir() && leads_to != *root {
            true => "is a link to a directory: put the directory itself there",
            false => "is a link that leads to no file of the recording: put the file itself there",
        };
        return Err(Error::NotCarried { path: path.to_owned(), reason });
    }
    if !leads_to.is_dir() {
        files::open(&leads_to).and_then(|file| files::check_sparse(&file)).map_err(io)?;
        found.push(PartFile { path: leads_to, below: below.to_owned() });
        return Ok(());
    }
    let entries = std::fs::read_dir(path).and_then(Iterator::collect::<Result<Vec<_>, _>>).map_err(io)?;
    let mut names: Vec<_> = entries.iter().map(std::fs::DirEntry::file_name).collect();
    names.sort_unstable();
    names.iter().try_for_each(|name| add(root, &path.join(name), &below.join(name), found))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, File};
    use std::os::unix::fs::symlink;
    use std::process::Command;

    #[test]
    fn a_link_inside_is_its_file_and_what_is_none_is_refused_by_its_name() {
        let place = tempfile::tempdir().unwrap();
        let (root, trace) = (place.path().join("web"), place.path().join("web/L0/ctf/stream"));
        fs::create_dir_all(trace.parent().unwrap()).unwrap();
        let part = root.join("L0/ctf");
        let refused = || part_files(&root, &part).unwrap_err().to_string();
        assert!(refused().ends_with("L0/ctf is a directory without a file"), "{}", refused());
        fs::write(part.join("metadata"), b"m").unwrap();
        symlink("metadata", &trace).unwrap();
        let below: Vec<_> = part_files(&root, &part).unwrap().into_iter().map(|file| (file.below, file.path)).collect();
        let metadata = part.join("metadata").canonicalize().unwrap();
        assert_eq!(below, [("metadata".into(), metadata.clone()), ("stream".into(), metadata)]);
        fs::write(place.path().join("other"), b"mine").unwrap();
        for elsewhere in ["../../../other", "/proc/version"] {
            fs::remove_file(&trace).unwrap();
            symlink(elsewhere, &trace).unwrap();
            assert!(refused().contains("ctf/stream is a link that leads to no file of the recording"), "{}", refused());
        }
        fs::remove_file(&trace).unwrap();
        symlink("../../L0", &trace).unwrap();
        assert!(
            refused().ends_with("ctf/stream is a link to a directory: put the directory itself there"),
            "{}",
            refused()
        );
        fs::remove_file(&trace).unwrap();
        assert!(Command::new("mkfifo").arg(&trace).status().unwrap().success());
        assert!(refused().ends_with("ctf/stream: it is a FIFO, not a regular file"), "{}", refused());
        fs::remove_file(&trace).unwrap();
        File::create(&trace).unwrap().set_len(8 << 40).unwrap();
        assert!(refused().contains("ctf/stream: it claims 8796093022208 bytes but only 0 are stored"), "{}", refused());
    }

    #[test]
    fn a_bare_file_may_be_named_by_a_link() {
        let place = tempfile::tempdir().unwrap();
        let (file, link) = (place.path().join("kept.dat"), place.path().join("bare.dat"));
        fs::write(&file, b"events").unwrap();
        symlink("kept.dat", &link).unwrap();
        let path = file.canonicalize().unwrap();
        assert_eq!(part_files(Path::new(""), &link).unwrap(), [PartFile { path, below: PathBuf::new() }]);
    }
}
