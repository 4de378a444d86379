//! Does `record` write one file where that is asked for?

use super::{kvmscope, place, record, text};

#[test]
fn a_recording_becomes_one_file_once_it_is_whole() {
    let Some(place) = place("a packed recording") else { return };
    let words = ["--seconds", "0.2", "--no-snapshot", "--no-self-check", "-o", "now.kvmscope"];
    let output = record(place.path(), &words);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("kvmscope report now.kvmscope"), "{}", text(&output.stdout));
    assert!(place.path().join("now.kvmscope").is_file() && !place.path().join("now").exists());
    let output = kvmscope(place.path()).args(["report", "now.kvmscope", "--json"]).output().unwrap();
    assert!(text(&output.stdout).contains("now.kvmscope/L0/trace.dat"), "{}", text(&output.stderr));
    let output = record(place.path(), &words);
    assert!(output.status.code() == Some(2) && text(&output.stderr).contains("--force"), "{}", text(&output.stderr));
}
