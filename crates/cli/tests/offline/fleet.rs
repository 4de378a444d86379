//! `kvmscope export --dataset` and `kvmscope fleet report`, as their users meet them.

use crate::program::{fixture_named, kvmscope};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Every file below `place`, with its time.
fn files(place: &Path) -> Vec<(PathBuf, std::time::SystemTime)> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(place).unwrap().flatten() {
        if entry.path().is_dir() {
            all.extend(files(&entry.path()));
        } else {
            all.push((entry.path(), entry.metadata().unwrap().modified().unwrap()));
        }
    }
    all.sort();
    all
}

#[test]
fn recordings_are_added_once_and_one_that_is_broken_is_a_row() {
    let place = tempfile::tempdir().unwrap();
    let dataset = place.path().join("fleet");
    let dataset = dataset.to_str().unwrap();
    let broken = place.path().join("broken.dat");
    std::fs::write(&broken, "tracing").unwrap();
    let (hog, on) = (fixture_named("nested-vmx-shadow-off-hog"), fixture_named("nested-vmx-shadow-on"));
    let (code, out, why) = kvmscope(&["export", &hog, broken.to_str().unwrap(), &on, "--dataset", dataset]);
    assert!(code == 0 && why.contains("broken.dat"), "{code}: {why}");
    assert!(out.contains("2 recordings added, 0 already there, 1 not"), "{out}");
    let before = files(Path::new(dataset));
    assert!(before.iter().any(|(path, _)| path.to_string_lossy().contains("flow.exits/host=")));
    let (code, out, _) = kvmscope(&["export", &hog, &on, "--dataset", dataset]);
    assert!(code == 0 && out.contains("0 recordings added, 2 already there"), "{out}");
    assert_eq!(files(Path::new(dataset)), before, "nothing was written");
    let (code, out, _) = kvmscope(&["export", &hog, "--dataset", dataset, "--force"]);
    assert!(code == 0 && out.contains("replaced as recording"), "{out}");

    let (code, out, _) = kvmscope(&["fleet", "report", dataset, "--json"]);
    assert_eq!(code, 0);
    let answer: Value = serde_json::from_str(&out).unwrap();
    let section = &answer["sections"][0];
    let failures = &section["tables"]["failures"]["rows"];
    assert!(failures.to_string().contains("broken.dat"), "{failures}");
    let ranked = section["tables"]["ranked"]["rows"].to_string();
    assert!(ranked.contains("FLW-SHADOW") && ranked.contains("FLW-PREEMPT"), "{ranked}");
    let page = place.path().join("fleet.html");
    let (code, text, _) = kvmscope(&["fleet", "report", dataset, "--html", page.to_str().unwrap()]);
    assert!(code == 0 && text.contains("FINDINGS BY THE HOSTS THEY WOULD HELP"), "{text}");
    assert!(std::fs::read_to_string(page).unwrap().contains("FLW-SHADOW"));

    // A disk that lost what was in the files.
    let parts = files(Path::new(dataset)).into_iter().filter(|(path, _)| path.to_string_lossy().contains("findings/"));
    parts.for_each(|(path, _)| std::fs::write(path, "").unwrap());
    let (code, _, why) = kvmscope(&["fleet", "report", dataset]);
    assert!(code == 1 && why.contains("no recordings that can be read") && why.contains(".parquet"), "{code}: {why}");
}

#[test]
fn places_that_are_no_data_set_are_refused_with_what_to_do() {
    let place = tempfile::tempdir().unwrap();
    std::fs::write(place.path().join("thesis.txt"), "x").unwrap();
    let other = place.path().to_str().unwrap();
    let hog = fixture_named("nested-vmx-shadow-off-hog");
    let refused = |arguments: &[&str], status: i32, words: &str| {
        let (code, out, why) = kvmscope(arguments);
        assert!(code == status && out.is_empty() && why.contains(words), "{arguments:?}: {code} {out} {why}");
    };
    refused(&["export", &hog, "--dataset", other], 2, "is no data set");
    refused(&["fleet", "report", other], 2, "kvmscope export RECORDING.. --dataset DIR");
    refused(&["export", &hog, "--dataset", "s3://lab/fleet"], 2, "kvmscope.fleet.analyse");
    refused(&["fleet", "report", "s3://lab/fleet"], 2, "kvmscope.fleet.report");
    assert!(!Path::new("s3:").exists());
    let set = place.path().join("set");
    let set = set.to_str().unwrap();
    kvmscope(&["export", &hog, "--dataset", set]);
    refused(&["report", set], 1, &format!("{set} is a data set of recordings: kvmscope fleet report {set}"));
    let empty = place.path().join("empty");
    kvmscope(&["export", "/nonexistent", "--dataset", empty.to_str().unwrap()]);
    refused(&["fleet", "report", empty.to_str().unwrap()], 1, "has no recordings");
}
