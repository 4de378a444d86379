//! Names of what is not whole yet.
//!
//! Root writes recordings below directories that others may write, `/tmp` for one: a name known beforehand could be a link by then. And a
//! program that is killed leaves what it was filling, which the next one that writes into the directory removes.
//!
//! ```text
//! NAME  <--renamed--  .NAME.<processes>-<pid>.<random>.new
//! ```

use std::ffi::OsString;
use std::fs;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher, RandomState};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// How the name of a draft ends.
const END: &str = ".new";

/// What nobody has touched for so long, nobody fills any more. Process ids of other hosts, containers and boots mean nothing here.
const ABANDONED_AFTER: Duration = Duration::from_secs(24 * 3_600);

/// A hidden name beside `place` for what is not whole yet; another one at each call.
pub fn draft_beside(place: &Path) -> PathBuf {
    // The standard library keys its hashers with random numbers of the operating system.
    let random = RandomState::new().hash_one(place);
    let mut name = OsString::from(".");
    name.push(place.file_name().unwrap_or_default());
    name.push(format!(".{:08x}-{}.{random:016x}{END}", processes(), std::process::id()));
    place.with_file_name(name)
}

/// Removes drafts beside `place` whose programs were killed, whatever they were to be called. What cannot be removed stays.
pub fn remove_abandoned_drafts(place: &Path) {
    let parent = place.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let now = SystemTime::now();
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let Some(maker) = maker(&entry.file_name().to_string_lossy()) else { continue };
        let age = entry.metadata().ok().and_then(|about| now.duration_since(about.modified().ok()?).ok());
        if has_ended(maker, Path::new("/proc")).unwrap_or_else(|| age.is_some_and(|age| age > ABANDONED_AFTER)) {
            let path = entry.path();
            let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
            let _ = if is_directory { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
        }
    }
}

/// Who made the draft of this name: its processes and its id among them; `None` for a file of somebody else's.
fn maker(name: &str) -> Option<(u32, u32)> {
    let (rest, random) = name.strip_prefix('.')?.strip_suffix(END)?.rsplit_once('.')?;
    let (of, pid) = rest.rsplit_once('.')?.1.split_once('-')?;
    let is_hexadecimal = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let fits = of.len() == 8 && random.len() == 16 && is_hexadecimal(of) && is_hexadecimal(random);
    fits.then_some((u32::from_str_radix(of, 16).ok()?, pid.parse().ok()?))
}

/// Whether that program has ended; `None` if it is of other processes than one can see here.
fn has_ended((of, pid): (u32, u32), proc: &Path) -> Option<bool> {
    let is_ours = of == processes() && proc.join("self").exists();
    is_ours.then(|| !proc.join(pid.to_string()).exists())
}

/// Which processes have their ids in common: those of a namespace (pid_namespaces(7)), of one boot of a host.
fn processes() -> u32 {
    let namespace = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    let boot = fs::read("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    // The same in all programs: this hasher has no key.
    BuildHasherDefault::<DefaultHasher>::default().hash_one((namespace, boot)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_draft_s_name_is_another_at_each_call() {
        let place = Path::new("/tmp/cut");
        assert_ne!(draft_beside(place), draft_beside(place));
        assert!(draft_beside(place).to_string_lossy().starts_with("/tmp/.cut."));
    }

    #[test]
    fn drafts_of_killed_programs_are_removed_and_no_others() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().join("cut");
        let draft = |of: u32, pid: u32| format!(".cut.{of:08x}-{pid}.0123456789abcdef.new");
        // Above the largest process id there is (PID_MAX_LIMIT, include/linux/threads.h).
        let (gone, running, elsewhere) =
            (draft(processes(), 1 << 23), draft(processes(), std::process::id()), draft(processes() ^ 1, 1 << 23));
        let old = draft(processes() ^ 1, 7);
        let of_another = gone.replacen("cut", "web 2.kvmscope", 1);
        for name in [&gone, &running, &elsewhere, &old, &of_another] {
            fs::create_dir_all(directory.path().join(name).join("L0")).unwrap();
        }
        let others = [".cutter.new", ".cut.mine", ".cut.mine.new", ".cut.0-7.new", "cut.new"];
        others.iter().for_each(|name| fs::write(directory.path().join(name), b"").unwrap());
        let days_ago = SystemTime::now() - 2 * ABANDONED_AFTER;
        for name in [&old[..]].iter().chain(&others) {
            fs::File::open(directory.path().join(name)).unwrap().set_modified(days_ago).unwrap();
        }
        remove_abandoned_drafts(&place);
        let mut left: Vec<String> = fs::read_dir(directory.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        left.sort();
        let mut expected = [&[running.as_str(), &elsewhere], &others[..]].concat();
        expected.sort_unstable();
        assert_eq!(left, expected);
    }
}
