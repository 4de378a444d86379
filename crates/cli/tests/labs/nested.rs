//! Does the nested lab make recordings that are answered right, and does it leave nothing behind?
//!
//! The machines are emulated: each boot takes some ten seconds of a core. Without QEMU or without Debian's kernel there
//! is nothing to boot, and the tests say so.

mod score;

use super::guests::Place;
use ::labs::machine::packages::Flavour;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use testing::{missing, processes_with, send, wait_for, wait_for_output};

const SVM: [&str; 2] = ["--arch", "svm"];

/// Nothing, and a reason on stdout, where the lab cannot run.
fn place(emulator: &str, package: &str) -> Option<Place> {
    Place::new(emulator, missing(&[(emulator, package)]), Flavour::Stock)
}

fn lab(place: &Place, arguments: &[&str], sets: &[&str]) -> Command {
    let mut command = place.lab("nested");
    command.args(arguments);
    sets.iter().for_each(|set| {
        command.args(["--set", set]);
    });
    command
}

fn with_qemu() -> Option<Place> {
    place("qemu-system-x86_64", "qemu-system-x86")
}

/// Runs a lab in which `score` finds its recording right; gives what it printed.
fn scored(arguments: &[&str], sets: &[&str], score: impl Fn(&Path)) -> Option<String> {
    let place = if arguments.contains(&"vmx") { place("bochs", "bochs") } else { with_qemu() }?;
    let output = lab(&place, arguments, sets).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    assert!(errors.contains(&format!("the recording is {}", place.output().display())), "{errors}");
    score(&place.output());
    trace_cmd_reads(&place.output().join("L0/trace.dat"));
    Some(String::from_utf8(output.stdout).unwrap())
}

fn trace_cmd_reads(trace: &Path) {
    let Ok(output) = Command::new("trace-cmd").args(["report", "-i"]).arg(trace).output() else {
        println!("skipped: trace-cmd does not start; the Debian package trace-cmd brings it");
        return;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.lines().filter(|line| line.contains("kvm_nested_vmenter")).count() >= 50);
}

#[test]
fn every_level_and_chain_of_the_svm_toy_is_told_right() {
    let Some(report) = scored(&SVM, &["loops=100", "cpus=2"], score::score) else { return };
    assert!(report.contains("EMULATED by QEMU TCG"), "{report}");
    assert!(report.contains("costs 6 exits of L1 to L0"), "{report}");
}

/// With one CPU: QEMU 7.2 with two emulated ones stands still now and then, as a guest begins that has virtual GIF; why is not known.
#[test]
#[ignore = "torture"]
fn virtual_gif_takes_two_exits_out_of_each_chain() {
    let Some(report) = scored(&SVM, &["loops=50", "vgif=on", "workload=pio"], score::score) else { return };
    assert!(report.contains("costs 4 exits of L1 to L0"), "{report}");
}

#[test]
#[ignore = "torture"]
fn shadowing_takes_twelve_of_fifteen_exits_out_of_each_chain() {
    for (shadow, exits) in [("on", "costs 3 exits"), ("off", "costs 15 exits")] {
        let set = format!("shadow_vmcs={shadow}");
        let Some(report) = scored(&["--arch", "vmx"], &["loops=50", &set], score::score) else { return };
        assert!(report.contains("EMULATED by Bochs") && report.contains(exits), "{report}");
    }
}

#[test]
#[ignore = "torture"]
fn linux_at_every_level_records_what_the_level_below_saw() {
    let arguments = ["--arch", "svm", "--guest", "linux"];
    let score = |recording: &Path| {
        score::score_linux(recording, 3, 10_000);
        aligned(recording);
    };
    let Some(report) = scored(&arguments, &["loops=5"], score) else { return };
    for words in ["L1/trace.dat: recorded at L1", "L2/trace.dat: recorded at L2", "On the timeline of L0 its events"] {
        assert!(report.contains(words), "{words}: {report}");
    }
}

/// Panics unless both guests' events lie on the timeline of L0, in their windows, and L2's workload has its exits.
fn aligned(recording: &Path) {
    let output = Command::new(env!("CARGO_BIN_EXE_kvmscope")).args(["report", "--json"]).arg(recording).output();
    let answer: serde_json::Value = serde_json::from_slice(&output.unwrap().stdout).unwrap();
    let rows = |table: &str, columns: &[&str]| -> Vec<Vec<serde_json::Value>> {
        let table = &answer["sections"][0]["tables"][table];
        let places = columns.iter().map(|name| {
            let mut all = table["columns"].as_array().unwrap().iter();
            all.position(|column| column["name"] == *name).unwrap()
        });
        let places: Vec<usize> = places.collect();
        let rows = table["rows"].as_array().unwrap().iter();
        rows.map(|row| places.iter().map(|place| row[place].clone()).collect()).collect()
    };
    let lines = rows("alignment", &["machine", "method", "events", "violations", "joined_with", "joined_error_ns"]);
    let machines: Vec<_> = lines.iter().filter_map(|row| row[0].as_str()).collect();
    assert_eq!(machines, ["L1", "L2"], "{lines:?}");
    for row in &lines {
        let count = |place: usize| row[place].as_u64().unwrap();
        assert!(row[1] == "tsc_offset" && count(2) > 0 && count(3) * 1000 <= count(2), "{row:?}");
    }
    assert!(lines[1][4] == "L0" && lines[1][5].as_f64().unwrap() < 1000.0, "{lines:?}");
    let tasks = rows("guest_tasks", &["level", "task", "exits"]);
    let has_exits = |level: &str, task: &str| {
        tasks.iter().any(|row| row[0] == level && row[1] == task && row[2].as_u64().unwrap() > 0)
    };
    assert!(has_exits("L1", "CPU 0/KVM") && has_exits("L2", "workload"), "{tasks:?}");
    assert_eq!(tasks[0][0], "L2", "the innermost guest's tasks come first");
}

#[test]
#[ignore = "torture"]
fn a_linux_l1_on_vmx_has_the_exits_that_l0_gave_it() {
    for shadow in ["shadow_vmcs=on", "shadow_vmcs=off"] {
        let right = |recording: &Path| score::score_linux(recording, 2, 1_000);
        let Some(report) = scored(&["--arch", "vmx", "--guest", "linux"], &[shadow], right) else { return };
        assert!(report.contains("EMULATED by Bochs"), "{report}");
    }
}

/// A lab whose machine is booting.
fn booting(place: &Place) -> Child {
    let mut child = lab(place, &SVM, &[]).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    wait_for_output(child.stderr.take().unwrap(), "booting L0");
    child
}

#[test]
fn a_lab_that_is_interrupted_leaves_nothing() {
    let Some(place) = with_qemu() else { return };
    let mut child = booting(&place);
    send(&child, "-INT");
    assert_eq!(child.wait().unwrap().code(), Some(130));
    place.assert_clean(child.id(), None);
}

#[test]
fn a_lab_that_is_killed_takes_its_emulator_with_it_and_the_next_one_clears_up() {
    let Some(place) = with_qemu() else { return };
    let mut child = booting(&place);
    let scratch = format!("scratch-{}", child.id());
    wait_for("the emulator runs", || processes_with(&scratch) == 1);
    send(&child, "-KILL");
    child.wait().unwrap();
    wait_for("the emulator is gone", || processes_with(&scratch) == 0);
    let mut next = booting(&place);
    send(&next, "-TERM");
    next.wait().unwrap();
    place.assert_clean(child.id(), None);
}
