//! Every command that the cookbook shows in a block marked `sh` runs as it stands, and the README's sample is what the program prints.
//!
//! The blocks run in an empty directory with a link to the bundled recordings, so that what they write is gone after.
//! Commands that need root or another machine stand in blocks without the mark.

use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The contents of all blocks marked `sh`.
fn blocks(text: &str) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut open: Option<Vec<&str>> = None;
    for line in text.lines() {
        match (&mut open, line) {
            (None, "```sh") => open = Some(Vec::new()),
            (None, _) => {}
            (Some(_), "```") => blocks.extend(open.take().map(|lines| lines.join("\n"))),
            (Some(lines), _) => lines.push(line),
        }
    }
    blocks
}

#[test]
fn every_command_of_the_cookbook_runs() {
    let cookbook = std::fs::read_to_string(root().join("docs/use/cookbook.md")).unwrap();
    let directory = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(root().join("fixtures"), directory.path().join("fixtures")).unwrap();
    let programs = Path::new(env!("CARGO_BIN_EXE_kvmscope")).parent().unwrap().to_owned();
    let others = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths(std::iter::once(programs).chain(std::env::split_paths(&others))).unwrap();
    let blocks = blocks(&cookbook);
    let commands: usize = blocks.iter().map(|block| block.matches("kvmscope report").count()).sum();
    assert!(commands >= 6, "the cookbook shows {commands} commands that run");
    let evenings = blocks[0].lines().filter(|line| line.starts_with("# ")).count();
    assert!(evenings >= 10, "the cookbook begins with {evenings} evenings");
    // A reader who tries a command again stands in the same folder.
    for block in blocks.iter().chain(&blocks) {
        let script = format!("set -e\n{block}");
        let output =
            Command::new("sh").args(["-c", &script]).current_dir(directory.path()).env("PATH", &path).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{block}\n--> {} {errors}", output.status);
    }
    for written in ["answer.json", "answer.txt", "tables/flow.vcpus.csv"] {
        let length = directory.path().join(written).metadata().map(|file| file.len()).unwrap_or(0);
        assert!(length > 100, "{written} has {length} bytes");
    }
}

/// What the README leaves out of the sample, it leaves out at lines of three dots.
#[test]
fn the_sample_of_the_readme_is_what_the_program_prints() {
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    let sample = readme.split("```text\n").nth(1).and_then(|rest| rest.split("\n```").next()).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_kvmscope"))
        .args(["report", "fixtures/nested-vmx-shadow-off-hog"])
        .envs([("COLUMNS", "100"), ("LC_ALL", "C.UTF-8")])
        .current_dir(root())
        .output()
        .unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<&str> = sample.lines().collect();
    let parts: Vec<String> =
        lines.split(|line| line.trim() == "...").map(|part| part.join("\n").trim_matches('\n').to_owned()).collect();
    assert!(parts.len() > 2, "{parts:?}");
    for part in parts {
        assert!(printed.contains(&part), "the report has no\n{part}\nin\n{printed}");
    }
}
