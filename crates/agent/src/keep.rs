//! Which recordings stay: the latest ones, as many and as large as allowed.
//!
//! Their names tell when they were made, by a clock that may have been wrong: hosts are ahead at boot, until they hear of a time server. What
//! is called after a time to come was made before that, so it is the oldest.

use anyhow::Context;
use base::Utc;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// How names of recordings of the agent begin, before the time; nothing else in its directory is ever removed.
pub(crate) const ROUNDS: &str = "kvmscope-agent-";
pub(crate) const FLIGHTS: &str = "kvmscope-flight-";

/// A time as names have it: `20261122T003138Z`.
const TIME: &str = "DDDDDDDDTDDDDDDZ";

#[derive(Debug, Clone)]
pub(crate) struct Keep {
    pub directory: PathBuf,
    /// Which ones: [`ROUNDS`] or [`FLIGHTS`].
    pub prefix: &'static str,
    pub most: usize,
    pub most_bytes: u64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Kept {
    pub recordings: usize,
    pub bytes: u64,
}

impl Keep {
    /// Where a recording goes that begins `now`. Where the clock was set back, something may be there already.
    pub(crate) fn place(&self, now: SystemTime) -> PathBuf {
        let at = |seconds| {
            self.directory.join(format!("{}{}", self.prefix, Utc::of(now + Duration::from_secs(seconds)).name()))
        };
        (0..).map(at).find(|place| place.symlink_metadata().is_err()).unwrap_or_else(|| at(0))
    }

    /// Removes the oldest ones until those that stay, and `coming_bytes` more, are within the limits. The last one stays, whatever its size, and
    /// so does `made`.
    ///
    /// # Errors
    /// If the directory cannot be read, or one of them not be removed.
    pub(crate) fn prune(&self, coming_bytes: u64, now: SystemTime, made: Option<&Path>) -> anyhow::Result<Kept> {
        let mut all = self.all(now)?;
        all.sort_by_key(|(path, _)| made == Some(path));
        let sum = |all: &[(PathBuf, u64)]| all.iter().map(|(_, bytes)| bytes).sum::<u64>();
        while all.len() > 1 && (all.len() > self.most || sum(&all).saturating_add(coming_bytes) > self.most_bytes) {
            let (oldest, _) = all.remove(0);
            remove(&oldest)?;
        }
        Ok(Kept { recordings: all.len(), bytes: sum(&all) })
    }

    /// Removes the oldest one, where a disk is full; `false` if there is none.
    ///
    /// # Errors
    /// As those of [`Keep::prune`].
    pub(crate) fn make_room(&self, now: SystemTime) -> anyhow::Result<bool> {
        match self.all(now)?.first() {
            Some((oldest, _)) => remove(oldest).map(|()| true),
            None => Ok(false),
        }
    }

    /// Bytes of the largest one, which the next one may be as well.
    pub(crate) fn largest_bytes(&self, now: SystemTime) -> u64 {
        self.all(now).map(|all| all.iter().map(|(_, bytes)| *bytes).max().unwrap_or(0)).unwrap_or(0)
    }

    /// All of them.
    ///
    /// # Errors
    /// If the directory cannot be read.
    pub(crate) fn recordings(&self, now: SystemTime) -> anyhow::Result<Vec<PathBuf>> {
        Ok(self.all(now)?.into_iter().map(|(path, _)| path).collect())
    }

    /// Names of times to come: by the clock of the host they were made later than `now`.
    pub(crate) fn ahead(&self, now: SystemTime) -> Vec<PathBuf> {
        let all = self.all(now).unwrap_or_default().into_iter();
        all.map(|(path, _)| path).filter(|path| self.is_ahead(path, now)).collect()
    }

    /// All of them with their sizes, the oldest first.
    fn all(&self, now: SystemTime) -> anyhow::Result<Vec<(PathBuf, u64)>> {
        let entries = std::fs::read_dir(&self.directory).with_context(|| self.directory.display().to_string())?;
        let is_own = |path: &PathBuf| {
            let is_directory = path.symlink_metadata().is_ok_and(|about| about.is_dir());
            is_directory && path.file_name().and_then(|name| name.to_str()).is_some_and(|name| self.is_of_agent(name))
        };
        let mut all: Vec<(PathBuf, u64)> = entries
            .flatten()
            .map(|entry| entry.path())
            .filter(is_own)
            .map(|path| {
                let bytes = bytes_of(&path);
                (path, bytes)
            })
            .collect();
        all.sort();
        all.sort_by_key(|(path, _)| !self.is_ahead(path, now));
        Ok(all)
    }

    /// True for the prefix and a time.
    fn is_of_agent(&self, name: &str) -> bool {
        let Some(time) = name.strip_prefix(self.prefix) else { return false };
        let fits = |(is, should): (char, char)| if should == 'D' { is.is_ascii_digit() } else { is == should };
        time.len() == TIME.len() && time.chars().zip(TIME.chars()).all(fits)
    }

    fn is_ahead(&self, recording: &Path, now: SystemTime) -> bool {
        let now = format!("{}{}", self.prefix, Utc::of(now).name());
        recording.file_name().is_some_and(|name| name.as_encoded_bytes() > now.as_bytes())
    }
}

fn remove(recording: &Path) -> anyhow::Result<()> {
    std::fs::remove_dir_all(recording).with_context(|| format!("{} cannot be removed", recording.display()))
}

/// Of a file, or of all files below a directory; links count as nothing and are not followed.
fn bytes_of(path: &Path) -> u64 {
    let Ok(about) = path.symlink_metadata() else { return 0 };
    if !about.is_dir() {
        return if about.is_file() { about.len() } else { 0 };
    }
    let Ok(entries) = std::fs::read_dir(path) else { return 0 };
    entries.flatten().map(|entry| bytes_of(&entry.path())).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(directory: &Path, name: &str, bytes: usize) {
        let place = directory.join(name).join("L0");
        std::fs::create_dir_all(&place).unwrap();
        std::fs::write(place.join("trace.dat"), vec![0; bytes]).unwrap();
    }

    fn names(directory: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(directory).unwrap().flatten();
        let mut names: Vec<String> = entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// 2026-11-28T10:33:00Z.
    fn now() -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_795_861_980)
    }

    /// Recordings of that day, made at these times, 100 bytes each.
    fn recordings(directory: &Path, times: &[&str]) {
        times.iter().for_each(|time| made(directory, &format!("kvmscope-agent-20261128T{time}Z"), 100));
    }

    fn keep(directory: &Path, most: usize, most_bytes: u64) -> Keep {
        Keep { directory: directory.to_owned(), prefix: ROUNDS, most, most_bytes }
    }

    #[test]
    fn the_oldest_go_first_and_what_is_not_the_agents_never() {
        let place = tempfile::tempdir().unwrap();
        let keep = |most, most_bytes| keep(place.path(), most, most_bytes);
        let others = ["a-recording-of-somebody", "kvmscope-flight-20261128T090000Z", "kvmscope-agent-mine"];
        others.iter().for_each(|name| made(place.path(), name, 900));
        std::os::unix::fs::symlink(place.path().join(others[0]), place.path().join("kvmscope-agent-20000101T000000Z"))
            .unwrap();
        recordings(place.path(), &["100000", "101000", "102000"]);
        let left = || names(place.path()).into_iter().filter(|name| name.len() == 31).skip(1).collect::<Vec<_>>();
        assert_eq!(keep(3, 1_000).prune(0, now(), None).unwrap(), Kept { recordings: 3, bytes: 300 });
        assert_eq!(keep(3, 1_000).largest_bytes(now()), 100);
        assert_eq!(keep(2, 1_000).prune(0, now(), None).unwrap(), Kept { recordings: 2, bytes: 200 });
        assert_eq!(left(), ["kvmscope-agent-20261128T101000Z", "kvmscope-agent-20261128T102000Z"]);
        assert_eq!(keep(9, 250).prune(100, now(), None).unwrap(), Kept { recordings: 1, bytes: 100 });
        assert_eq!(
            keep(9, 10).prune(0, now(), None).unwrap(),
            Kept { recordings: 1, bytes: 100 },
            "the last one stays"
        );
        assert!(keep(9, 10).make_room(now()).unwrap() && !keep(9, 10).make_room(now()).unwrap());
        assert_eq!(names(place.path()).len(), 4, "{:?}", names(place.path()));
    }

    #[test]
    fn what_was_made_by_a_clock_that_was_ahead_goes_first_and_what_was_just_made_never() {
        let place = tempfile::tempdir().unwrap();
        let keep = |most| keep(place.path(), most, 1_000);
        made(place.path(), "kvmscope-agent-20991230T000000Z", 100);
        recordings(place.path(), &["113000", "103000"]);
        assert_eq!(keep(9).ahead(now()).len(), 2);
        keep(2).prune(0, now(), None).unwrap();
        assert_eq!(names(place.path()), ["kvmscope-agent-20261128T103000Z", "kvmscope-agent-20991230T000000Z"]);
        let just_made = keep(1).place(now());
        made(place.path(), just_made.file_name().unwrap().to_str().unwrap(), 100);
        keep(1).prune(0, now() - Duration::from_secs(3_600), Some(&just_made)).unwrap();
        assert_eq!(names(place.path()), ["kvmscope-agent-20261128T103300Z"]);
        assert_eq!(
            keep(1).place(now()),
            place.path().join("kvmscope-agent-20261128T103301Z"),
            "nothing is written over"
        );
    }
}
