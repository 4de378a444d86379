//! What `record` records beside its own trace: the machine before and after, perf, LTTng. Live, on this machine.

use assert_cmd::cargo::cargo_bin;
use base::recording::{PartKind, PartState, Recording};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use testing::{Workspace, cannot_record, wait_for};

/// A directory for one test. `None`, and the reason printed, where nothing can be recorded.
fn place(test: &str) -> Option<Workspace> {
    if let Some(why) = cannot_record() {
        println!("skipped: {test}: {why}");
        return None;
    }
    Some(Workspace::alone())
}

fn record(place: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(cargo_bin("kvmscope"));
    command.current_dir(place).env("KVMSCOPE_JOURNAL", place.join("journal"));
    command.args(["record", "--no-self-check", "-o", "new"]).args(arguments).output().unwrap()
}

fn complaints(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn the_machine_is_sampled_before_and_after() {
    let Some(place) = place("snapshot") else { return };
    let output = record(place.path(), &["--seconds", "0.3"]);
    assert_eq!(output.status.code(), Some(0), "{}", complaints(&output));
    let recording = Recording::open(&place.path().join("new")).unwrap();
    let parts = recording.parts.iter().filter(|part| part.kind == PartKind::Host);
    let samples: Vec<_> = parts.map(|part| host::Snapshot::open(&recording.root.join(&part.path)).unwrap()).collect();
    let [before, after] = samples.as_slice() else { panic!("{} samples", samples.len()) };
    let read_ns = |sample: &host::Snapshot| sample.read_at_ns("proc/stat").unwrap();
    assert!(read_ns(after) - read_ns(before) >= 300_000_000, "the recording lies between them");
}

#[test]
fn perf_records_the_same_time_into_the_same_recording() {
    let Some(place) = place("perf") else { return };
    let output = record(place.path(), &["--no-snapshot", "--perf", "--sample", "99", "--seconds", "0.3"]);
    if complaints(&output).contains("perf") {
        return println!("skipped: perf: {}", complaints(&output));
    }
    assert_eq!(output.status.code(), Some(0), "{}", complaints(&output));
    let recording = Recording::open(&place.path().join("new")).unwrap();
    let data = recording.parts.iter().find(|part| part.kind == PartKind::PerfData).unwrap();
    assert_eq!((data.state, data.machine.as_str()), (PartState::Complete, "L0"));
    let opened = trace::open(&recording.root.join(&data.path)).unwrap();
    assert!(opened.facts().event_types.iter().any(|event| event.name == "sched_switch"));
}

#[test]
fn functions_that_perf_sampled_are_named_by_the_trace_beside() {
    let Some(place) = place("perf samples") else { return };
    // The self-check of an inner recorder is a guest whose threads are vCPUs.
    let guest =
        format!("for i in 1 2 3; do {} check --probe --span 0 >/dev/null; done", cargo_bin("kvmscope").display());
    let arguments = ["--no-snapshot", "--perf", "--sample", "4999", "--", "sh", "-c", &guest];
    let output = record(place.path(), &arguments);
    if complaints(&output).contains("perf is") || output.status.code() != Some(0) {
        return println!("skipped: perf samples: {}", complaints(&output));
    }
    let report =
        Command::new(cargo_bin("kvmscope")).current_dir(place.path()).args(["report", "--json", "new"]).output();
    let report: serde_json::Value = serde_json::from_slice(&report.unwrap().stdout).unwrap();
    let profile = &report["sections"][0]["tables"]["profile"];
    let columns = profile["columns"].as_array().unwrap();
    let at = columns.iter().position(|column| column["name"] == "symbol").unwrap();
    let symbols: Vec<&str> = profile["rows"].as_array().unwrap().iter().filter_map(|row| row[at].as_str()).collect();
    let kernels: Vec<&&str> = symbols.iter().filter(|symbol| **symbol != "user code").collect();
    if kernels.is_empty() {
        return println!("skipped: perf samples: no sample lies in a vCPU's kernel code: {symbols:?}");
    }
    let named = kernels.iter().filter(|symbol| !symbol.starts_with("0x")).count();
    assert!(named * 2 > kernels.len(), "{kernels:?}");
}

#[test]
fn what_cannot_be_driven_is_said_and_nothing_is_left_behind() {
    let Some(place) = place("lttng") else { return };
    if Command::new("lttng").arg("--version").output().is_ok() {
        return println!("skipped: lttng: it is installed here, and its absence is what this tests");
    }
    let output = record(place.path(), &["--no-snapshot", "--lttng", "--seconds", "0.1"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(complaints(&output).contains("it is in the Debian package lttng-tools"), "{}", complaints(&output));
    assert!(!place.path().join("new").exists());
    assert_eq!(std::fs::read_dir(place.path().join("journal")).map_or(0, |entries| entries.count()), 0);
    assert_eq!(record(place.path(), &["--sample", "99"]).status.code(), Some(2), "--sample goes with --perf");
}

#[test]
fn a_perf_whose_recorder_was_killed_ends_with_a_whole_file() {
    let Some(place) = place("perf after a kill") else { return };
    let mut command = Command::new(cargo_bin("kvmscope"));
    command.current_dir(place.path()).env("KVMSCOPE_JOURNAL", place.path().join("journal"));
    command.args(["record", "--no-self-check", "--no-snapshot", "--perf", "--seconds", "60", "-o", "new"]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let manifest = place.path().join("new/recording.json");
    let begun = || std::fs::read_to_string(&manifest).is_ok_and(|text| text.contains("perf.data"));
    let mut ended = false;
    wait_for("perf's part in the manifest", || {
        ended = child.try_wait().unwrap().is_some();
        ended || begun()
    });
    if ended {
        return println!("skipped: perf after a kill: nothing can be recorded here");
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let mut undo = Command::new(cargo_bin("kvmscope"));
    let undone = undo.env("KVMSCOPE_JOURNAL", place.path().join("journal")).arg("undo").output().unwrap();
    assert!(undone.status.success(), "{}", complaints(&undone));
    let data = place.path().join("new/L0/perf.data");
    let opened = trace::open(&data).unwrap();
    assert!(opened.facts().event_types.iter().any(|event| event.name == "sched_switch"), "the head was written");
}
