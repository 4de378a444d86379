//! What the bench says of native operations, against a C program that measures them in its own way.

use super::{kvmscope, rows};
use std::path::Path;
use std::process::Command;

/// Noise of shared machines: launches of one program differ by so much from minute to minute.
const AMONG_NEIGHBOURS: f64 = 0.3;
/// A loop of the compiler's and one of ours differ by some cycles a turn.
const LOOP_CYCLES: f64 = 8.0;

/// Cycles of an operation, by the C program on CPU `cpu`.
fn witnessed(program: &Path, cpu: &str, operation: &str) -> f64 {
    let output = Command::new("taskset").args(["-c", cpu]).arg(program).arg(operation).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap().trim().parse().unwrap()
}

#[test]
fn a_c_program_measures_the_same() {
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("witness");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bench/witness.c");
    let compiled = Command::new("cc").args(["-O2", "-o"]).arg(&program).arg(&source).status();
    if !compiled.is_ok_and(|status| status.success()) || Command::new("taskset").arg("-V").output().is_err() {
        return println!("skipped: no C compiler (cc), or no taskset");
    }
    let operations = ["rdtsc", "cpuid", "syscall"];
    let before = operations.map(|operation| witnessed(&program, "0", operation));
    let wanted = ["bench", "exits", "--json", "--cpu", "0", "--launches", "5", "--seconds", "0.02"];
    let tests = ["--tests", "rdtsc,cpuid,syscall", "--device", "/nonexistent/kvm"];
    let (status, json, complaint) = kvmscope(&[&wanted[..], &tests].concat());
    assert_eq!(status, Some(0), "{complaint}");
    let after = operations.map(|operation| witnessed(&program, "0", operation));
    let rows = rows(&json, "exits");
    for ((operation, before), after) in operations.iter().zip(before).zip(after) {
        let row = rows.iter().find(|row| row["name"] == *operation && row["where"] == "here").unwrap();
        let [low, high] = ["p50_low_cycles", "p50_high_cycles"].map(|name| row[name].as_f64().unwrap());
        // The stated interval, widened by what the witness itself moved, by the neighbours and by the loop.
        let (least, most) = (before.min(after), before.max(after));
        let agree = low * (1.0 - AMONG_NEIGHBOURS) - LOOP_CYCLES <= most
            && least <= high * (1.0 + AMONG_NEIGHBOURS) + LOOP_CYCLES;
        assert!(agree, "{operation}: {low} to {high} cycles; the C program says {before}, then {after}");
    }
}
