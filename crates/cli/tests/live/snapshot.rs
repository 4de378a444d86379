//! `kvmscope snapshot` as its users meet it.

use super::record::text;
use assert_cmd::Command;
use base::recording::{PartKind, Recording};
use std::fs;
use std::path::Path;

fn kvmscope(arguments: &[&str]) -> (i32, String, String) {
    let output = Command::cargo_bin("kvmscope").unwrap().args(arguments).output().unwrap();
    (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
}

fn utf8(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn two_samples_of_this_machine_are_a_recording() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().join("here");
    let (code, said, complaints) = kvmscope(&["snapshot", "--span", "0.5", "--as", "L1:web", "-o", utf8(&place)]);
    assert_eq!((code, complaints.as_str()), (0, ""), "{said}");
    assert!(said.contains("2 samples of"), "{said}");
    let recording = Recording::open(&place).unwrap();
    let parts: Vec<_> = recording.parts.iter().map(|part| (utf8(&part.path), part.kind)).collect();
    assert_eq!(parts, [("L1-web/host/0", PartKind::Host), ("L1-web/host/1", PartKind::Host)]);
    assert_eq!((recording.machines[0].level, recording.machines[0].name.as_deref()), (1, Some("web")));
    let samples = [0, 1].map(|part| host::Snapshot::open(&place.join(&recording.parts[part].path)).unwrap());
    let [before_ns, after_ns] = samples.map(|sample| sample.read_at_ns("proc/stat").unwrap());
    assert!(after_ns - before_ns >= 500_000_000);
    let (code, _, complaints) = kvmscope(&["snapshot", "-o", utf8(&place)]);
    assert_eq!(code, 2);
    assert!(complaints.contains("already exists; --force replaces it"), "{complaints}");
}

#[test]
fn a_copied_tree_gives_one_sample() {
    let directory = tempfile::tempdir().unwrap();
    let (root, place) = (directory.path().join("sos"), directory.path().join("out"));
    fs::create_dir_all(root.join("proc")).unwrap();
    fs::write(root.join("proc/cpuinfo"), "processor : 0\n").unwrap();
    let (code, said, _) = kvmscope(&["snapshot", "--root", utf8(&root), "-o", utf8(&place)]);
    assert_eq!((code, said), (0, format!("{}: 1 file, 14 bytes\n", place.display())));
    assert_eq!(Recording::open(&place).unwrap().parts.len(), 1);
}

#[test]
fn what_is_no_machine_is_refused_and_nothing_is_left_behind() {
    let directory = tempfile::tempdir().unwrap();
    let (root, place) = (directory.path().join("empty"), directory.path().join("out"));
    fs::create_dir(&root).unwrap();
    let (code, said, complaints) = kvmscope(&["snapshot", "--root", utf8(&root), "-o", utf8(&place)]);
    assert_eq!((code, said.as_str()), (1, ""));
    assert!(complaints.contains("neither `proc` nor `sys`"), "{complaints}");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    assert_eq!(kvmscope(&["snapshot", "--span", "0.1"]).0, 2);
    assert_eq!(kvmscope(&["snapshot", "--as", "web"]).0, 2);
}
