//! What the bench says of native operations, against a C program that measures them in its own way.
//!
//! ```text
//! bench  C  bench  C  bench  C ...     in turns, so that both meet the same neighbours
//! [--bench--]                          the intervals that `report` states, each out of its own launches
//!       [--C--]                        must overlap, but for what the two loops differ in by themselves
//! ```

use super::{kvmscope, rows};
use base::Bench;
use base::bench::{Measured, Params};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use testing::Workspace;

/// Turns: with nine launches the interval leaves the outermost ones out.
const TURNS: u32 = 9;
/// Two loops around one instruction differ by some instructions of their own, which overlap it more or less: on a quiet
/// machine, where the intervals are narrower than that, by so many cycles and such a share.
const LOOPS_DIFFER_CYCLES: f64 = 2.0;
const LOOPS_DIFFER_SHARE: f64 = 0.03;
const OPERATIONS: [&str; 3] = ["rdtsc", "cpuid", "syscall"];

/// One launch of the C program on CPU 0, as if the bench had measured it.
fn witnessed(program: &Path, operation: &str, launch: u32) -> Measured {
    let output = Command::new("taskset").args(["-c", "0"]).arg(program).arg(operation).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let cycles: f64 = String::from_utf8(output.stdout).unwrap().trim().parse().unwrap();
    // Hundredths of a cycle as a hundred operations.
    let params = Params { place: "here".into(), ring: Some(3), launch, operations: Some(100), ..Params::default() };
    let hdr = vec![((cycles * 100.0).round() as u64, 1)];
    Measured { name: operation.into(), params, unit: "cycles".into(), hdr, ..Measured::default() }
}

/// The interval that `report` states for each operation, out of these launches.
fn intervals(root: &Path, results: Vec<Measured>) -> BTreeMap<String, (f64, f64)> {
    let bench = Bench { results, ..Bench::new("exits", BTreeMap::new()) };
    bench.write(&root.join("L0/bench/exits.json")).unwrap();
    let manifest = r#"{"schema": "kvmscope-recording/1", "created": null, "tool": null, "emulated": null,
        "machines": [{"id": "L0", "level": 0, "parent": null, "name": null}],
        "parts": [{"path": "L0/bench/exits.json", "machine": "L0", "kind": "bench", "clock": null, "state": "complete"}]}"#;
    std::fs::write(root.join("recording.json"), manifest).unwrap();
    let (status, json, complaint) = kvmscope(&["report", "--json", root.to_str().unwrap()]);
    assert_eq!(status, Some(0), "{complaint}");
    let rows = rows(&json, "exits");
    let ends = |row: &serde_json::Value| {
        let [low, high] = ["p50_low_cycles", "p50_high_cycles"].map(|name| row[name].as_f64().unwrap());
        (row["name"].as_str().unwrap().to_owned(), (low, high))
    };
    rows.iter().map(ends).collect()
}

#[test]
#[ignore = "torture"]
fn a_c_program_measures_the_same() {
    let directory = Workspace::alone();
    let program = directory.path().join("witness");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/labs/bench/witness.c");
    let compiled = Command::new("cc").args(["-O2", "-o"]).arg(&program).arg(&source).status();
    if !compiled.is_ok_and(|status| status.success()) || Command::new("taskset").arg("-V").output().is_err() {
        return println!("skipped: no C compiler (cc), or no taskset");
    }
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for turn in 0..TURNS {
        let place = directory.path().join(format!("turn-{turn}"));
        let place = place.to_str().unwrap();
        let wanted = ["bench", "exits", "-o", place, "--cpu", "0", "--launches", "1", "--seconds", "0.02"];
        let tests = ["--tests", "rdtsc,cpuid,syscall", "--device", "/nonexistent/kvm"];
        let (status, _, complaint) = kvmscope(&[&wanted[..], &tests].concat());
        assert_eq!(status, Some(0), "{complaint}");
        let bench = Bench::read(&Path::new(place).join("L0/bench/exits.json")).unwrap();
        let here = bench.results.into_iter().filter(|result| result.params.place == "here");
        ours.extend(here.map(|result| Measured { params: Params { launch: turn, ..result.params }, ..result }));
        theirs.extend(OPERATIONS.map(|operation| witnessed(&program, operation, turn)));
    }
    let ours = intervals(&directory.path().join("ours"), ours);
    let theirs = intervals(&directory.path().join("theirs"), theirs);
    for operation in OPERATIONS {
        let ((low, high), (least, most)) = (ours[operation], theirs[operation]);
        println!("{operation}: {low} to {high} cycles; the C program says {least} to {most}");
        let loops = LOOPS_DIFFER_CYCLES + LOOPS_DIFFER_SHARE * least;
        assert!(low <= most + loops && least <= high + loops, "{operation}: {low} to {high}; C: {least} to {most}");
    }
}
