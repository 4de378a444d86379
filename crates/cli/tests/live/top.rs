//! `kvmscope top` on this machine: a guest is seen, a rival is named, and what is not known is missing.

use serde_json::Value;
use std::process::{Command, Stdio};
use testing::{Running, machine, wait_for, wait_for_output};

fn top(arguments: &[&str]) -> std::process::Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kvmscope"));
    command.arg("top").args(arguments).stdin(Stdio::null()).output().unwrap()
}

/// Why nothing can be folded here, said.
fn cannot() -> bool {
    let why = testing::cannot_record().map(str::to_owned);
    let why = why.or_else(|| {
        let said = String::from_utf8(top(&["--once", "-d", "0.1"]).stdout).unwrap();
        said.contains("/proc only").then_some(said)
    });
    why.iter().for_each(|why| println!("skipped: top: {why}"));
    why.is_some()
}

fn rows<'v>(answer: &'v Value, table: &str) -> (Vec<&'v str>, &'v Vec<Value>) {
    let sections = answer["sections"].as_array().unwrap();
    let found = sections.iter().map(|section| &section["tables"][table]).find(|table| !table.is_null()).unwrap();
    let columns = found["columns"].as_array().unwrap();
    let name = |column: &'v Value| column["name"].as_str().or_else(|| column.as_str()).unwrap();
    (columns.iter().map(name).collect(), found["rows"].as_array().unwrap())
}

#[test]
fn a_guest_is_seen_with_what_it_did_and_its_states_add_up() {
    if cannot() {
        return;
    }
    let _machine = machine();
    // Measures exits again and again: each program is a guest of its own.
    let place = tempfile::tempdir().unwrap();
    let mut bench = Command::new(env!("CARGO_BIN_EXE_kvmscope"));
    bench.args(["bench", "exits", "--no-progress", "--launches", "50", "-o"]).arg(place.path().join("bench"));
    let bench = Running(bench.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    wait_for("a guest that is seen", || {
        let output = top(&["--once", "-d", "0.5", "--json"]);
        assert!(output.status.success(), "{output:?}");
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
        let (columns, vcpus) = rows(&answer, "vcpus");
        let at = |name: &str| columns.iter().position(|column| *column == name).unwrap();
        let (wall, exits) = (at("wall_ns"), at("exits"));
        for row in vcpus {
            let states: u64 = (wall + 1..exits).filter_map(|column| row[column].as_u64()).sum();
            // What exits would tell is part of `unknown` where none fires.
            assert_eq!(row[wall].as_u64(), Some(states), "{row}");
        }
        let (columns, vms) = rows(&answer, "vms");
        let missed = columns.iter().position(|column| *column == "missed").unwrap();
        !vcpus.is_empty() && vms.iter().all(|vm| vm[missed].is_u64())
    });
    drop(bench);
}

#[test]
fn killed_it_leaves_nothing_in_the_kernel() {
    if cannot() {
        return;
    }
    let _machine = machine();
    let mut running = Command::new(env!("CARGO_BIN_EXE_kvmscope"));
    running.args(["top", "-d", "0.2"]).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut running = Running(running.spawn().unwrap());
    let (lines, _rest) = wait_for_output(running.0.stdout.take().unwrap(), "own cost");
    assert!(lines[0].contains("exact for"), "{lines:?}");
    assert!(fold::loaded_programs().unwrap() > 0);
    running.0.kill().unwrap();
    running.0.wait().unwrap();
    wait_for("the kernel to let go", || fold::loaded_programs().unwrap() == 0);
}

#[test]
fn proc_alone_tells_little_and_says_so() {
    let output = top(&["--once", "-d", "0.1", "--proc-only", "--width", "80"]);
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("missed -") && text.contains("/proc only") && text.contains("GUEST%"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert!(text.lines().last().unwrap().starts_with("own cost"), "{text}");
}

#[test]
fn what_makes_no_sense_is_refused() {
    for arguments in [&["--json"][..], &["-d", "0.01"], &["--once", "-n", "3"], &["-n", "0"]] {
        assert_eq!(top(arguments).status.code(), Some(2), "{arguments:?}");
    }
    assert_eq!(top(&["--once", "--vm", "no-such-vm"]).status.code(), Some(2));
}
