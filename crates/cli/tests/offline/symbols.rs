//! `kvmscope report --symbols`: functions of a guest whose trace carries no symbols, by its System.map.

use crate::program::fixture;
use assert_cmd::Command;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Where L1 of the fixture halts, as it ran; and the same place as an invented kernel was linked.
const HALT: u64 = 0xffff_ffff_b945_92ea;
const LINKED: u64 = 0xffff_ffff_81a5_92ea;

fn report(symbols: &str) -> Value {
    let fixture = fixture("svm-linux");
    let arguments = ["report", "--json", "--no-progress", "--symbols", symbols, fixture.to_str().unwrap()];
    let output = Command::cargo_bin("kvmscope").unwrap().args(arguments).assert().success().get_output().clone();
    serde_json::from_slice(&output.stdout).unwrap()
}

/// True if a problem has these words.
fn says(report: &Value, words: &str) -> bool {
    let mut texts = report["problems"].as_array().unwrap().iter().filter_map(|problem| problem["text"].as_str());
    texts.any(|text| text.contains(words))
}

/// Functions in which L1 was left by HLT.
fn halting(report: &Value) -> Vec<(String, u64)> {
    let rows = report["sections"][0]["tables"]["exit_sites"]["rows"].as_array().unwrap();
    let halts = rows.iter().filter(|row| row[3] == "HLT" && !row[4].is_null());
    halts.map(|row| (row[4].as_str().unwrap().to_owned(), row[5].as_u64().unwrap())).collect()
}

/// A map whose function `name` holds the instruction at which L1 halts, and no other of its kind.
fn map(directory: &Path, name: &str) -> PathBuf {
    let path = directory.join("System.map");
    let lines = [(0xffff_ffff_8100_0000, "_stext"), (LINKED - 4, name), (LINKED + 4, "behind")];
    let text: String = lines.iter().map(|(address, name)| format!("{address:x} T {name}\n")).collect();
    std::fs::write(&path, text).unwrap();
    path
}

#[test]
fn the_slide_of_a_kernel_is_told_by_where_it_halts_or_by_the_user() {
    let directory = tempfile::tempdir().unwrap();
    let path = map(directory.path(), "native_safe_halt");
    let found = halting(&report(&format!("L1={}", path.display())));
    assert_eq!(found, [("native_safe_halt".to_owned(), 627)]);
    let path = map(directory.path(), "my_own_halt");
    let told = report(&format!("L1={}", path.display()));
    assert!(halting(&told).is_empty());
    assert!(says(&told, "System.map,0x1c000000"));
    let found = halting(&report(&format!("L1={},{:#x}", path.display(), HALT - LINKED)));
    assert_eq!(found, [("my_own_halt".to_owned(), 627)]);
}

#[test]
fn a_file_that_names_nothing_is_said() {
    let directory = tempfile::tempdir().unwrap();
    let path = map(directory.path(), "native_safe_halt");
    assert!(says(&report(&format!("L2={}", path.display())), "no trace of L2"));
    std::fs::write(&path, "0000000000000000 T _stext\n").unwrap();
    assert!(says(&report(&format!("L1={}", path.display())), "has no kernel addresses"));
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let fixture = fixture("svm-linux");
    let arguments = ["report", "--symbols", "L1=/nowhere/System.map", fixture.to_str().unwrap()];
    let output = Command::cargo_bin("kvmscope").unwrap().args(arguments).assert().code(1);
    assert!(String::from_utf8_lossy(&output.get_output().stderr).contains("/nowhere/System.map"));
}
