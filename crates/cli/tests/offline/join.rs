//! `kvmscope join` as its users meet it.

use crate::program::{fixture, kvmscope};
use base::recording::{Emulator, Recording};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A recording of one machine, made of a fixture's trace.
fn part(directory: &Path, name: &str, id: &str, level: u8) -> PathBuf {
    let root = directory.join(name);
    fs::create_dir_all(root.join(id)).unwrap();
    fs::copy(fixture("nested-svm-toy/L0/trace.dat"), root.join(id).join("trace.dat")).unwrap();
    let manifest = format!(
        r#"{{"schema":"kvmscope-recording/1","emulated":"tcg",
            "machines":[{{"id":"{id}","level":{level},"parent":null}}],
            "parts":[{{"path":"{id}/trace.dat","machine":"{id}","kind":"trace.dat","state":"complete"}}]}}"#
    );
    fs::write(root.join("recording.json"), manifest).unwrap();
    root
}

#[test]
fn a_host_and_two_guests_become_one_recording_that_report_answers() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    let (host, web, db) = (part(at, "host", "L0", 0), part(at, "web", "L1", 1), part(at, "db", "L1", 1));
    let all = at.join("all");
    let (code, said, complaints) = kvmscope(&[Path::new("join"), &host, &web, &db, Path::new("-o"), &all]);
    assert_eq!(code, 0, "{complaints}");
    assert!(said.contains("3 parts of L0, L1 (a guest of L0), L1-db (a guest of L0)"), "{said}");
    assert!(complaints.contains("L1 of db is called L1-db"), "{complaints}");
    let joined = Recording::open(&all).unwrap();
    assert_eq!((joined.emulated, joined.machines.len()), (Some(Emulator::Tcg), 3));
    let inode = |path: PathBuf| fs::metadata(path).unwrap().ino();
    assert_eq!(inode(all.join("L1-db/trace.dat")), inode(db.join("L1/trace.dat")), "linked, not copied");
    let (code, answer, complaints) = kvmscope(&[Path::new("report"), &all]);
    assert_eq!(code, 0, "{complaints}");
    assert!(answer.contains("EMULATED by QEMU TCG"), "{answer}");
}

#[test]
fn what_does_not_go_together_is_wrong_use_and_a_missing_part_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    let (host, web) = (part(at, "host", "L0", 0), part(at, "web", "L1", 1));
    let join = |more: &[&str]| {
        let more: Vec<&Path> = more.iter().map(Path::new).collect();
        let out = at.join("out");
        kvmscope(&[&[Path::new("join"), &host, &web, Path::new("-o"), &out], more.as_slice()].concat())
    };
    let (code, _, complaints) = join(&["--parent", "L0=L1"]);
    assert_eq!(code, 2);
    assert!(complaints.contains("cannot be the host"), "{complaints}");
    assert_eq!(join(&["--parent", "L0"]).0, 2);
    fs::remove_file(web.join("L1/trace.dat")).unwrap();
    let (code, _, complaints) = join(&[]);
    assert_eq!(code, 1);
    assert!(complaints.contains("web/L1/trace.dat is in the manifest but missing"), "{complaints}");
    assert!(!at.join("out").exists());
}
