//! `kvmscope check` as its users meet it.

use crate::program::{kvmscope, utf8};
use serde_json::Value;
use std::fs;

fn json(arguments: &[&str]) -> Value {
    let (code, out, complaints) = kvmscope(&[arguments, &["--json"]].concat());
    assert_eq!((code, complaints.as_str()), (0, ""));
    serde_json::from_str(&out).unwrap()
}

/// State of a feature at a level.
fn state(answer: &Value, level: &str, feature: &str) -> Option<String> {
    let table = &answer["sections"][0]["tables"]["features"];
    let names: Vec<&str> = table["columns"].as_array().unwrap().iter().map(|c| c["name"].as_str().unwrap()).collect();
    assert_eq!(names[..5], ["machine", "level", "feature", "state", "evidence"]);
    let rows = table["rows"].as_array().unwrap();
    let row = rows.iter().find(|row| row[1] == level && row[2] == feature)?;
    Some(row[3].as_str().unwrap().to_owned())
}

#[test]
fn this_host_is_a_snapshot_taken_a_moment_ago() {
    let answer = json(&["check"]);
    assert_eq!((&answer["schema"], &answer["command"]), (&"kvmscope/1".into(), &"check".into()));
    let section = &answer["sections"][0];
    assert_eq!(section["id"], "nesting");
    let flags = fs::read_to_string("/proc/cpuinfo").unwrap();
    let guest = flags.contains(" hypervisor ");
    assert_eq!(state(&answer, "L0", "hypervisor_below").unwrap(), if guest { "on" } else { "off" });
    let named = json(&["check", "--root", "L2=/"]);
    assert_eq!(state(&named, "L2", "hypervisor_below"), state(&answer, "L0", "hypervisor_below"));
}

#[test]
fn a_machine_is_l0_in_every_command_until_its_user_gives_its_level() {
    let place = tempfile::tempdir().unwrap();
    let kept = place.path().join("kept");
    let guest = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/hosts-pvm/L1/host/0");
    assert_eq!(kvmscope(&["snapshot", "--root", guest, "-o", utf8(&kept)]).0, 0);
    let answers = [
        json(&["check"]),
        json(&["check", "--root", guest]),
        json(&["check", utf8(&kept)]),
        json(&["report", utf8(&kept)]),
        #[cfg(feature = "labs")]
        json(&["bench", "clock", "--launches", "1"]),
    ];
    for answer in &answers {
        let machine = &answer["recording"]["machines"][0];
        assert_eq!((&machine["id"], &machine["level"]), (&"L0".into(), &0.into()), "{}", answer["command"]);
    }
    for answer in &answers[1..4] {
        let findings = answer["sections"][0]["findings"].as_array().unwrap();
        let below: Vec<&Value> = findings.iter().filter(|finding| finding["level"] == "below L0").collect();
        assert!(!below.is_empty() && below.iter().all(|finding| finding["needs"] == "outer level"), "{below:?}");
        let outer = findings.iter().filter(|finding| finding["needs"] == "outer level");
        assert!(outer.clone().all(|finding| finding["level"] == "below L0"), "L0 is not its own host: {findings:?}");
    }
    let text = kvmscope(&["check", "--all", "--root", guest]).1;
    assert!(text.contains("levels count from this machine") && text.contains("below L0, run"), "{text}");
    assert!(!text.contains("L?"), "{text}");
    let said = kvmscope(&["check", "--all", "--root", &format!("L1={guest}")]).1;
    assert!(said.contains("at L0, run") && !said.contains("levels count from"), "{said}");
}

#[test]
fn a_tree_without_files_answers_unknown_and_finds_nothing() {
    let tree = tempfile::tempdir().unwrap();
    fs::create_dir(tree.path().join("proc")).unwrap();
    let answer = json(&["check", "--root", utf8(tree.path())]);
    let section = &answer["sections"][0];
    for row in section["tables"]["features"]["rows"].as_array().unwrap() {
        assert_eq!(row[3], "unknown", "{row}");
    }
    assert_eq!(section["findings"].as_array().unwrap().len(), 0);
}

#[test]
fn wrong_use_and_nothing_to_answer_are_told_apart() {
    let tree = tempfile::tempdir().unwrap();
    fs::create_dir(tree.path().join("proc")).unwrap();
    let here = utf8(tree.path());
    assert_eq!(kvmscope(&["check", "--root", here, "--root", here]).0, 2);
    assert_eq!(kvmscope(&["check", "--root", "L?=x"]).0, 2);
    let (code, _, complaints) = kvmscope(&["check", "--root", utf8(&tree.path().join("proc"))]);
    assert_eq!(code, 1);
    assert!(complaints.contains("neither `proc` nor `sys`"), "{complaints}");
}

#[test]
fn a_test_guest_settles_whether_exits_can_be_traced() {
    let journal = tempfile::tempdir().unwrap();
    let answer = json(&["check", "--probe", "--journal", utf8(journal.path())]);
    if let Some(problem) = answer["problems"].as_array().unwrap().iter().find(|problem| problem["file"] == "--probe") {
        return println!("skipped: check --probe: {}", problem["text"]);
    }
    assert_ne!(state(&answer, "L0", "trace_kvm_exit").unwrap(), "unknown");
    let left = fs::read_dir(journal.path()).unwrap().count();
    assert_eq!(left, 0, "the tracing instance is undone");
    assert_eq!(kvmscope(&["check", "--probe", "--root", "x"]).0, 2);
}
