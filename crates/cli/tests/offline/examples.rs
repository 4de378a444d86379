//! Every example of every `--help` is understood, and runs where it needs neither root nor this host.

use crate::program::commands;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").canonicalize().unwrap()
}

fn program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_kvmscope"))
}

fn help(command: &str) -> String {
    let output = Command::new(program()).args(command.split(' ')).arg("--help").output().unwrap();
    assert!(output.status.success(), "{command}");
    String::from_utf8(output.stdout).unwrap()
}

/// The lines of a help that begin with the program's name, with what is continued on the next; pipes end before the first
/// program that is not ours.
fn examples(command: &str) -> Vec<String> {
    let help = help(command);
    let mut examples: Vec<String> = Vec::new();
    let mut continued = false;
    for line in help.lines().skip_while(|line| !line.starts_with("Example")) {
        let line = line.trim();
        if continued {
            if let Some(last) = examples.last_mut() {
                *last = format!("{} {line}", last.trim_end_matches('\\'));
            }
        } else if line.starts_with("kvmscope ") {
            examples.push(line.to_owned());
        }
        continued = line.ends_with('\\');
    }
    examples.into_iter().map(|example| example.split(" | ").next().unwrap_or_default().to_owned()).collect()
}

/// A folder in which the files of the examples are there.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let links = [
        ("fixtures", ""),
        ("trace.dat", "nested-vmx-shadow-off-hog/L0/trace.dat"),
        ("host.dat", "svm-linux/L0/trace.dat"),
        ("guest.dat", "svm-linux/L1/trace.dat"),
        ("recording", "nested-vmx-shadow-off-hog"),
        ("host-recording", "nested-vmx-shadow-off-hog"),
        ("before", "vmx-linux-shadow-off"),
        ("after", "vmx-linux-shadow-on"),
        ("sosreport-host1", "hosts-sosreport"),
        ("host", "hosts-intel/L0/host/0"),
        ("guest", "hosts-intel/L1/host/0"),
        ("ticket.txt", "seed-vhost/L0/notes/5-lscpu.txt"),
        ("top.txt", "seed-vhost/L0/notes/1-top-before.txt"),
    ];
    for (name, of) in links {
        symlink(fixtures().join(of), folder.path().join(name)).unwrap();
    }
    folder
}

/// Runs an example in `folder`; its status and what it complained of.
fn run(example: &str, folder: &Path) -> (i32, String) {
    let search = std::env::var_os("PATH").unwrap_or_default();
    let paths = std::iter::once(program().parent().unwrap().to_owned()).chain(std::env::split_paths(&search));
    let path = std::env::join_paths(paths).unwrap();
    let output = Command::new("sh").args(["-c", example]).current_dir(folder).env("PATH", path).output().unwrap();
    (output.status.code().unwrap_or(-1), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn examples_run_on_the_bundled_recordings() {
    let folder = folder();
    let (mut understood, mut answered) = (0, 0);
    for command in [
        "report",
        "cut",
        "export",
        "compare",
        "join",
        "plan chain",
        "plan migration",
        "plan nested",
        "check",
        "explain",
    ] {
        let examples = examples(command);
        assert!(examples.len() >= 2, "kvmscope {command} --help has examples");
        // What names no file is about this host.
        let of_a_file = |example: &&String| {
            command != "check" || ["fixtures/", "--paste", "--root"].iter().any(|at| example.contains(at))
        };
        for example in examples.iter().filter(of_a_file) {
            let (status, complaint) = run(example, folder.path());
            assert!(!complaint.starts_with("error:"), "{example}: {complaint}");
            understood += 1;
            answered += usize::from([0, 3].contains(&status));
        }
    }
    // A VM called web, a minute 1.5 and a System.map are in nobody's fixtures.
    assert!(understood >= 25 && answered * 3 >= understood * 2, "{answered} of {understood} examples were answered");
}

#[test]
fn every_command_has_an_example_and_a_page() {
    let commands = commands();
    let has_own = |command: &String| commands.iter().any(|other| other.starts_with(&format!("{command} ")));
    // Without labs these say where they are.
    let is_told = |command: &&String| cfg!(feature = "labs") || !["bench", "lab"].contains(&command.as_str());
    for command in commands.iter().filter(|command| !has_own(command)).filter(is_told) {
        let help = help(command);
        assert!(help.contains(&format!("\n  kvmscope {command}")), "{command} has no example: {help}");
    }
    assert!(commands.len() > 20 && !commands.iter().any(|command| command == "man" || command.ends_with(" inside")));
}
