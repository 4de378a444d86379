//! Which files below a root match a pattern?
//!
//! ```text
//! proc/<pid>/task/*/stat      <pid> a process, <vm> a process that runs a VM, * anything within a name
//! sys/block/*/queue/{a,b}     either of several
//! sys/fs/cgroup/**/cpu.max    any number of directories, at most DEPTH
//! ```
//! Only directories named by a pattern are listed, so that the cost follows the pattern and not the size of `/sys`.
//! Symbolic links are followed where the pattern names a level, as `/sys/class/net/eth0` is one; `**` follows none.

use std::io;
use std::path::Path;

/// How deep `**` goes: libvirt's cgroups lie at `machine.slice/<scope>/libvirt/vcpu0`.
const DEPTH: usize = 6;

/// The paths below `root` that match `pattern`, relative to it, in the order of their names (numbers as numbers).
///
/// `is_vm` decides which processes run a VM. A path may be a file, a link or a directory. What the kernel
/// does not let be listed or looked at matches nothing; `unreached` hears its path.
pub(super) fn find(
    root: &Path,
    pattern: &str,
    is_vm: &dyn Fn(&str) -> bool,
    unreached: &mut dyn FnMut(&str, &io::Error),
) -> Vec<String> {
    let mut found = Vec::new();
    for pattern in alternatives(pattern) {
        let parts: Vec<&str> = pattern.split('/').collect();
        Walk { root, is_vm, unreached, found: &mut found }.below("", &parts);
    }
    found
}

struct Walk<'a> {
    root: &'a Path,
    is_vm: &'a dyn Fn(&str) -> bool,
    unreached: &'a mut dyn FnMut(&str, &io::Error),
    found: &'a mut Vec<String>,
}

impl Walk<'_> {
    /// Matches what lies in `directory` against the first of `parts`, and goes on with the rest.
    fn below(&mut self, directory: &str, parts: &[&str]) {
        let Some((part, rest)) = parts.split_first() else { return };
        if *part == "**" {
            self.anywhere_below(directory, rest, DEPTH);
        } else if is_literal(part) {
            self.step(join(directory, part), rest);
        } else {
            for name in self.names(directory) {
                if self.matches(part, &name) {
                    self.step(join(directory, &name), rest);
                }
            }
        }
    }

    /// Goes on at `path`, which matches so far.
    fn step(&mut self, path: String, rest: &[&str]) {
        if !rest.is_empty() {
            self.below(&path, rest);
        } else {
            match std::fs::symlink_metadata(self.root.join(&path)) {
                Ok(_) => self.found.push(path),
                Err(error) if is_gone(&error) => {}
                Err(error) => (self.unreached)(&path, &error),
            }
        }
    }

    fn anywhere_below(&mut self, directory: &str, rest: &[&str], depth: usize) {
        self.below(directory, rest);
        if depth == 0 {
            return;
        }
        for name in self.names(directory) {
            let path = join(directory, &name);
            let is_directory = std::fs::symlink_metadata(self.root.join(&path)).is_ok_and(|about| about.is_dir());
            if is_directory {
                self.anywhere_below(&path, rest, depth - 1);
            }
        }
    }

    fn matches(&self, part: &str, name: &str) -> bool {
        let is_number = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit());
        match part {
            "<pid>" => is_number,
            "<vm>" => is_number && (self.is_vm)(name),
            _ => matches(part.as_bytes(), name.as_bytes()),
        }
    }

    fn names(&mut self, directory: &str) -> Vec<String> {
        names(&self.root.join(directory)).unwrap_or_else(|error| {
            if !is_gone(&error) {
                (self.unreached)(directory, &error);
            }
            Vec::new()
        })
    }
}

/// True if there is nothing to read, also because a process ended or a device went away meanwhile.
pub fn is_gone(error: &io::Error) -> bool {
    /// ESRCH and ENODEV: include/uapi/asm-generic/errno-base.h, Linux 6.12.
    const NO_SUCH: [i32; 2] = [3, 19];
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
        || error.raw_os_error().is_some_and(|number| NO_SUCH.contains(&number))
}

/// The names in a directory, `cpu2` before `cpu10`.
pub(super) fn names(directory: &Path) -> io::Result<Vec<String>> {
    let entries = std::fs::read_dir(directory)?;
    let mut names: Vec<String> = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
    names.sort_by_cached_key(|name| {
        let stem = name.trim_end_matches(|character: char| character.is_ascii_digit());
        (stem.to_owned(), name[stem.len()..].parse::<u64>().ok(), name.clone())
    });
    Ok(names)
}

fn join(directory: &str, name: &str) -> String {
    if directory.is_empty() { name.to_owned() } else { format!("{directory}/{name}") }
}

fn is_literal(part: &str) -> bool {
    !part.contains('*') && part != "<pid>" && part != "<vm>"
}

/// Whether `name` is `pattern`, in which `*` stands for any characters.
fn matches(pattern: &[u8], name: &[u8]) -> bool {
    match pattern.split_first() {
        None => name.is_empty(),
        Some((b'*', rest)) => (0..=name.len()).any(|skipped| matches(rest, &name[skipped..])),
        Some((byte, rest)) => name.split_first().is_some_and(|(first, left)| first == byte && matches(rest, left)),
    }
}

/// A pattern without braces for each choice of their alternatives; braces may hold braces.
fn alternatives(pattern: &str) -> Vec<String> {
    let Some(open) = pattern.find('{') else { return vec![pattern.to_owned()] };
    let (mut depth, mut begin, mut choices) = (0, open + 1, Vec::new());
    for (at, byte) in pattern.bytes().enumerate().skip(open) {
        depth += i32::from(byte == b'{') - i32::from(byte == b'}');
        if (depth == 1 && byte == b',') || depth == 0 {
            choices.push(&pattern[begin..at]);
            begin = at + 1;
        }
        if depth == 0 {
            break;
        }
    }
    let (before, after) = (&pattern[..open], &pattern[begin..]);
    choices.iter().flat_map(|choice| alternatives(&format!("{before}{choice}{after}"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[&str]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for file in files {
            let path = root.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, file).unwrap();
        }
        root
    }

    fn found(root: &tempfile::TempDir, pattern: &str) -> Vec<String> {
        let mut unreached = |path: &str, error: &io::Error| panic!("{path}: {error}");
        find(root.path(), pattern, &|pid| pid == "20", &mut unreached)
    }

    #[test]
    fn stars_braces_and_processes() {
        let root = tree(&["proc/20/stat", "proc/3/stat", "proc/self/stat", "proc/20/task/20/comm", "proc/stat"]);
        assert_eq!(found(&root, "proc/<pid>/stat"), ["proc/3/stat", "proc/20/stat"]);
        assert_eq!(found(&root, "proc/<vm>/{stat,task/*/comm}"), ["proc/20/stat", "proc/20/task/20/comm"]);
        assert_eq!(found(&root, "proc/s*t"), ["proc/stat"]);
        assert!(found(&root, "proc/nothing/{a,b}/*").is_empty());
    }

    #[test]
    fn braces_in_braces() {
        assert_eq!(alternatives("a/{b,c/{d,e}/f}/g"), ["a/b/g", "a/c/d/f/g", "a/c/e/f/g"]);
        assert_eq!(alternatives("{a,b}{c,d}"), ["ac", "ad", "bc", "bd"]);
    }

    #[test]
    fn numbers_are_ordered_as_numbers() {
        let root = tree(&["sys/cpu10/x", "sys/cpu2/x", "sys/cpuidle/x"]);
        assert_eq!(found(&root, "sys/cpu*/x"), ["sys/cpu2/x", "sys/cpu10/x", "sys/cpuidle/x"]);
    }

    #[test]
    fn two_stars_go_down_and_follow_no_link() {
        let root = tree(&["cg/cpu.max", "cg/a/cpu.max", "cg/a/b/c/cpu.max", "cg/1/2/3/4/5/6/7/cpu.max"]);
        std::os::unix::fs::symlink("..", root.path().join("cg/a/up")).unwrap();
        assert_eq!(found(&root, "cg/**/cpu.max"), ["cg/cpu.max", "cg/a/cpu.max", "cg/a/b/c/cpu.max"]);
    }

    #[test]
    fn what_cannot_be_listed_or_looked_at_is_told() {
        let root = tree(&["proc/1/stat"]);
        std::os::unix::fs::symlink("loop", root.path().join("proc/loop")).unwrap();
        let mut told = Vec::new();
        for pattern in ["proc/loop/*", "proc/loop/stat", "proc/2/stat"] {
            find(root.path(), pattern, &|_| false, &mut |path, _| told.push(path.to_owned()));
        }
        assert_eq!(told, ["proc/loop", "proc/loop/stat"]);
    }
}
