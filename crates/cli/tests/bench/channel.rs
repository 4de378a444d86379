//! `bench channel` from end to end: that every frame arrives as it was sent, whatever the path, the window and the policy; never a rate.

use super::{kvmscope, rows_of};
use serde_json::Value;

fn measured(json: &str) -> Vec<Value> {
    rows_of(json, "channel", "rates").into_iter().filter(|row| row["window_kind"] == "measured").collect()
}

#[test]
fn every_frame_arrives_once_in_order_and_whole_over_each_path() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().join("channel");
    let place = place.to_str().unwrap();
    // Wherever this runs: on one CPU the two take turns.
    let wanted = "--same-core --path ring,ring-ro --window none,pkey,mprotect --policy poll,kick,adaptive --batch 1,32 --size 64,1518 \
                  --seconds 0.02 --launches 2 --no-progress";
    let arguments: Vec<&str> = ["bench", "channel", "-o", place].into_iter().chain(wanted.split_whitespace()).collect();
    let (status, text, complaint) = kvmscope(&arguments);
    assert_eq!((status, complaint.as_str()), (Some(0), ""), "{text}");
    let (_, json, _) = kvmscope(&["report", "--json", place]);
    let rows = measured(&json);
    let keys: std::collections::BTreeSet<&str> = rows.iter().map(|row| row["window"].as_str().unwrap()).collect();
    if !keys.contains("pkey") {
        println!("skipped: no memory protection keys here");
        assert!(json.contains("protection key"), "the row is left out with its reason");
    }
    assert_eq!(rows.len(), 2 * keys.len() * 3 * 2 * 2, "every setup has a row");
    for row in &rows {
        for wrong in ["lost", "duplicated", "reordered", "torn"] {
            assert_eq!(row[wrong], Value::from(0), "{row}");
        }
        assert!(row["raw_mpps"].as_f64().unwrap() > 0.0, "{row}");
        assert_eq!(row["open_share"].is_null(), row["window"] == "none", "{row}");
        if let Some(share) = row["open_share"].as_f64() {
            assert!((0.0..=1.02).contains(&share), "{row}");
        }
    }
}

#[test]
fn frames_that_nobody_looked_at_are_not_said_to_be_whole() {
    let (status, json, complaint) = kvmscope(&[
        "bench",
        "channel",
        "--same-core",
        "--no-verify",
        "--window",
        "none",
        "--seconds",
        "0.02",
        "--json",
    ]);
    assert_eq!((status, complaint.as_str()), (Some(0), ""));
    assert!(measured(&json).iter().all(|row| row["lost"].is_null() && row["torn"].is_null()));
    assert!(json.contains("CHN-UNVERIFIED"));
}

#[test]
fn one_cpu_and_what_cannot_be_are_refused() {
    let (status, _, complaint) = kvmscope(&["bench", "channel", "--cpus", "0,0"]);
    assert_eq!(status, Some(2), "{complaint}");
    assert!(complaint.contains("--same-core"), "{complaint}");
    for arguments in
        [["--cpus", "0,100000"], ["--cpus", "1"], ["--slots", "100"], ["--size", "8"], ["--window", "vmfunc"]]
    {
        let (status, _, complaint) = kvmscope(&[&["bench", "channel"], &arguments[..]].concat());
        assert_eq!(status, Some(2), "{arguments:?}: {complaint}");
    }
}
