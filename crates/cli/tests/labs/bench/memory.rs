//! `bench memory` and the plans that take it, of this process itself: what is asked is whether the answers agree, never a time.

use super::kvmscope;
use serde_json::Value;
use testing::{Workspace, machine};

fn section(arguments: &[&str]) -> Value {
    let (status, out, complaint) = kvmscope(&[arguments, &["--json"]].concat());
    assert_eq!(status, Some(0), "{complaint}");
    let answer: Value = serde_json::from_str(&out).unwrap();
    answer["sections"].as_array().unwrap().iter().find(|section| section["id"] == "migration").unwrap().clone()
}

/// Share, low and high of a kind.
fn share(section: &Value, kind: &str) -> [f64; 3] {
    let rows = section["tables"]["memory"]["rows"].as_array().unwrap();
    let row = rows.iter().find(|row| row[3] == kind).unwrap_or_else(|| panic!("{kind}: {rows:?}"));
    [0, 1, 2].map(|column| row[column].as_f64().unwrap())
}

#[test]
fn a_process_is_looked_at_and_a_plan_takes_what_was_found() {
    let mut memory = vec![0_u8; 96 << 20];
    // A third of it is nothing that compresses.
    let mut state = 1_u64;
    for word in memory[..32 << 20].chunks_mut(8) {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        word.copy_from_slice(&(state | 1).to_le_bytes());
    }
    let (pid, directory) = (std::process::id().to_string(), Workspace::alone());
    let place = directory.path().join("looked");
    let place = place.to_str().unwrap();
    let found = section(&["bench", "memory", "--vm", &pid, "--windows", "50ms,200ms", "-o", place]);
    let [zero, low, high] = share(&found, "zero");
    assert!(low <= zero && zero <= high && zero > 0.3 && zero < 0.95, "{zero} ({low} to {high})");
    assert!(share(&found, "hole")[0] <= zero);
    assert_eq!(found["tables"]["working_set"]["rows"].as_array().unwrap().len(), 2);
    assert!(found["tables"]["looked"]["rows"].as_array().unwrap().iter().any(|row| row[0] == "resident"));
    let planned = section(&["plan", "migration", "--survey", place, "--bandwidth", "10Gbit"]);
    assert_eq!(share(&planned, "zero"), [zero, low, high]);
    assert_eq!(planned["tables"]["working_set"]["rows"], found["tables"]["working_set"]["rows"]);
    // What is stated goes before what was measured.
    let stated = ["--hot", "1M", "--rate", "1M/s", "--ram", "1G", "--zero", "0", "--bandwidth", "10Gbit"];
    let stated = section(&[&["plan", "migration", "--survey", place][..], &stated].concat());
    let bytes =
        stated["tables"]["prediction"]["rows"].as_array().unwrap().iter().find(|row| row[0] == "bytes").unwrap()[3]
            .as_f64();
    assert!(bytes.unwrap() >= 262_144.0 * 4_104.0, "{bytes:?}");
    let live = section(&["plan", "migration", "--vm", &pid, "--hot", "1M", "--rate", "1M/s", "--bandwidth", "10Gbit"]);
    assert!((share(&live, "zero")[0] - zero).abs() < 0.2);
    drop(memory);
}

#[test]
fn who_is_not_there_and_what_was_not_measured_is_said() {
    for (arguments, says) in [
        (&["bench", "memory", "--vm", "4294967295"][..], "no process 4294967295"),
        (&["bench", "memory", "--vm", "no such vm"], "no VM is called no such vm"),
        (&["bench", "memory", "--vm", "1", "--windows", "0s"], "more than 0"),
        (
            &[
                "plan",
                "migration",
                "--ram",
                "1G",
                "--hot",
                "1M",
                "--rate",
                "1M/s",
                "--bandwidth",
                "1Gbit",
                "--compress",
                "2",
            ],
            "--vm NAME or --survey",
        ),
        (&["plan", "migration", "--bandwidth", "1Gbit"], "--ram"),
    ] {
        let (status, _, complaint) = kvmscope(arguments);
        assert!(status != Some(0) && complaint.contains(says), "{arguments:?}: {complaint}");
    }
}

#[test]
fn finding_zeros_stands_beside_reading() {
    let _machine = machine();
    let found = section(&["bench", "zeropages", "--launches", "1", "--seconds", "0.001"]);
    let rows = found["tables"]["scans"]["rows"].as_array().unwrap();
    let of = |memory: &str, content: &str| -> Vec<&str> {
        let rows = rows.iter().filter(|row| row[1] == memory && row[2] == content);
        rows.map(|row| row[0].as_str().unwrap()).collect()
    };
    assert_eq!(of("cache", "zeros"), ["words", "read"], "{rows:?}");
    assert_eq!(of("cache", "first word"), ["words"], "{rows:?}");
    let is_told =
        found["about"].as_array().unwrap().iter().any(|line| line.as_str().unwrap().contains("Memory was not scanned"));
    assert!(is_told != of("memory", "zeros").contains(&"read"), "memory is scanned, or it is said why not");
    assert!(rows.iter().all(|row| row[7].is_null() == (row[2] != "zeros")), "reading stands beside zeros alone");
}
