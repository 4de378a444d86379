//! The program as tests run it, and what they let it read.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Exit status, stdout and stderr of the program.
pub(crate) fn kvmscope(arguments: &[impl AsRef<OsStr>]) -> (i32, String, String) {
    ended(Command::new(env!("CARGO_BIN_EXE_kvmscope")).args(arguments).output().unwrap())
}

/// The same of what has ended.
pub(crate) fn ended(output: Output) -> (i32, String, String) {
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

/// The root of this repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

pub(crate) fn fixture(name: &str) -> PathBuf {
    root().join("fixtures").join(name)
}

/// The same, as an argument.
pub(crate) fn fixture_named(name: &str) -> String {
    fixture(name).to_str().unwrap().to_owned()
}

pub(crate) fn utf8(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Names of everything in `directory`, hidden files too.
pub(crate) fn names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Whether a process has a file without a name open in a directory, or a hidden one.
pub(crate) fn fills_a_file(process: u32, directory: &Path) -> bool {
    let files = std::fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten();
    files.filter_map(|file| std::fs::read_link(file.path()).ok()).any(|file| {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        file.starts_with(directory) && (name.starts_with('.') || name.ends_with("(deleted)"))
    })
}

/// All commands that people type, as their manual pages are called: `plan chain`.
pub(crate) fn commands() -> Vec<String> {
    let pages = tempfile::tempdir().unwrap();
    assert_eq!(kvmscope(&[OsStr::new("man"), pages.path().as_os_str()]).0, 0);
    let command = |name: String| Some(name.strip_prefix("kvmscope-")?.strip_suffix(".1")?.replace('-', " "));
    names(pages.path()).into_iter().filter_map(command).collect()
}

/// Runs, and expects no answer, the exit code, and the words in what is said about it.
pub(crate) fn fails(arguments: &[&str], code: i32, words: &[&str]) {
    let (found, stdout, stderr) = kvmscope(arguments);
    assert_eq!(found, code, "{arguments:?}: {stderr}");
    assert_eq!(stdout, "", "{arguments:?}: stdout is the answer alone");
    for word in words {
        assert!(stderr.contains(word), "{arguments:?} says nothing of `{word}`: {stderr}");
    }
}
