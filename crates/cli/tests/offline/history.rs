//! `kvmscope history` and what `compare` fails on, as their users meet them.

use crate::program::kvmscope;
use base::bench::{Bench, Measured, Params};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;

/// A recording of a bench of one test with these launches, made on that day, on a host with that parameter.
fn recording(place: &Path, day: u32, launches: &[u64], shadowing: &str) {
    let host = place.join("L0/host/0");
    let parameters = host.join("sys/module/kvm_intel/parameters");
    std::fs::create_dir_all(&parameters).unwrap();
    std::fs::create_dir_all(host.join("proc")).unwrap();
    std::fs::write(host.join("proc/stat"), "cpu 1\n").unwrap();
    std::fs::write(parameters.join("enable_shadow_vmcs"), shadowing).unwrap();
    let program = |(launch, ns): (usize, &u64)| Measured {
        name: "program".into(),
        params: Params { command: Some("make".into()), launch: launch as u32, ..Params::default() },
        unit: "ns".into(),
        samples: vec![*ns as f64],
        ..Measured::default()
    };
    let bench =
        Bench { results: launches.iter().enumerate().map(program).collect(), ..Bench::new("macro", BTreeMap::new()) };
    std::fs::create_dir_all(place.join("L0/bench")).unwrap();
    std::fs::write(place.join("L0/bench/0.json"), serde_json::to_string(&bench).unwrap()).unwrap();
    let part = |path: &str, kind: &str| json!({ "path": path, "machine": "L0", "kind": kind, "clock": null, "state": "complete" });
    let manifest = json!({
        "schema": "kvmscope-recording/2", "created": format!("2026-11-{day:02}T00:00:00Z"), "tool": "by hand", "emulated": null,
        "machines": [{ "id": "L0", "level": 0, "parent": null, "name": null }],
        "parts": [part("L0/host/0", "host"), part("L0/bench/0.json", "bench")],
    });
    std::fs::write(place.join("recording.json"), manifest.to_string()).unwrap();
}

/// Five launches around so many ns.
fn around(ns: u64) -> [u64; 5] {
    [ns, ns + 3, ns + 1, ns + 4, ns + 2]
}

#[test]
fn a_change_is_dated_and_what_was_set_up_differently_since_is_named() {
    let place = tempfile::tempdir().unwrap();
    for day in 1..=14 {
        let (ns, shadowing) = if day < 8 { (2_000, "N\n") } else { (1_000, "Y\n") };
        recording(&place.path().join(format!("day-{day}")), day, &around(ns + u64::from(day % 3) * 20), shadowing);
    }
    // One that broke does not cost the others.
    std::fs::create_dir(place.path().join("broken")).unwrap();
    std::fs::write(place.path().join("broken/recording.json"), "{").unwrap();
    let (code, out, complaints) = kvmscope(&["history", "--json", place.path().to_str().unwrap()]);
    assert!(code == 0 && complaints.contains("broken"), "{code}: {complaints}");
    let answer: Value = serde_json::from_str(&out).unwrap();
    let section = &answer["sections"][0];
    let changes = section["tables"]["changes"]["rows"].as_array().unwrap();
    assert_eq!(changes.len(), 1, "{changes:?}");
    let text = changes[0].to_string();
    assert!(
        text.contains("day-8") && text.contains("kvm_intel.enable_shadow_vmcs of L0 (N before, Y after)"),
        "{text}"
    );
    assert_eq!(section["tables"]["recordings"]["rows"].as_array().unwrap().len(), 14);
    assert!(section["summary"].as_str().unwrap().starts_with("1 change of level among "), "{section}");
}

#[test]
fn few_recordings_and_none_say_so() {
    let place = tempfile::tempdir().unwrap();
    let (code, _, why) = kvmscope(&["history", place.path().to_str().unwrap()]);
    assert!(code == 2 && why.contains("there is no recording"), "{code}: {why}");
    for day in 1..=3 {
        recording(&place.path().join(format!("day-{day}")), day, &around(2_000), "N\n");
    }
    let (code, out, _) = kvmscope(&["history", place.path().to_str().unwrap()]);
    assert!(code == 0 && out.contains("it takes 6 recordings or more"), "{code}: {out}");
    assert!(out.contains("cannot be told from 3 recordings") && !out.contains("None of"), "{out}");
    let (code, _, why) = kvmscope(&["history", place.path().to_str().unwrap(), "/nonexistent/day-4"]);
    assert!(code == 0 && why.contains("/nonexistent/day-4: No such file or directory"), "{code}: {why}");
}

#[test]
fn a_regression_is_exit_status_3_and_what_cannot_be_told_is_1() {
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name).to_str().unwrap().to_owned();
    recording(Path::new(&path("good")), 1, &around(1_000), "Y\n");
    recording(Path::new(&path("bad")), 2, &around(1_200), "Y\n");
    recording(Path::new(&path("once")), 3, &[1_200], "Y\n");
    let ends = |arguments: &[&str]| {
        let (code, out, _) = kvmscope(&[&["compare", "--fail-on-regression", "5%"], arguments].concat());
        (code, out)
    };
    let (code, out) = ends(&[&path("good"), &path("bad")]);
    assert!(code == 3 && out.contains("CMP-REGRESSION"), "{code}: {out}");
    assert_eq!(ends(&[&path("bad"), &path("good")]).0, 0, "it got better");
    assert_eq!(ends(&[&path("good"), "--", &path("bad")]).0, 3, "the same in other words");
    let (code, out) = ends(&[&path("good"), &path("once")]);
    assert!(code == 1 && out.contains("cannot be separated from noise"), "{code}: {out}");
    let (code, _, why) = kvmscope(&["compare", &path("good")]);
    assert!(code == 2 && why.contains("compare A1 A2 -- B1 B2"), "{code}: {why}");
}
