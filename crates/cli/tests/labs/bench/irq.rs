//! Does `kvmscope bench irq` account for every interrupt, and name who was in its way? Live, in QEMU's TCG, with a hog on the
//! vCPU's CPU. No test asserts how long an interrupt took.

use base::interrupts::Interrupts;
use serde_json::Value;
use std::fs::File;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use testing::{Hogs, Workspace, cannot_record, wait_for};

fn kvmscope(place: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kvmscope"));
    command.current_dir(place).env("KVMSCOPE_JOURNAL", place.join("journal")).args(arguments);
    command
}

fn is_installed() -> bool {
    let there = Command::new("qemu-system-x86_64").arg("--version").stdout(Stdio::null()).status().is_ok();
    if !there {
        println!("skipped: interrupts of a guest: qemu-system-x86_64 is not installed");
    }
    there
}

/// The rows of a table of section `latency`, each by the names of its columns.
fn rows(output: &Output, table: &str) -> Vec<Value> {
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    let section = answer["sections"].as_array().unwrap().iter().find(|section| section["id"] == "latency").unwrap();
    let table = &section["tables"][table];
    let columns = table["columns"].as_array().unwrap();
    let row = |row: &Value| {
        let cells = columns.iter().zip(row.as_array().unwrap());
        Value::Object(cells.map(|(column, cell)| (column["name"].as_str().unwrap().to_owned(), cell.clone())).collect())
    };
    table["rows"].as_array().unwrap().iter().map(row).collect()
}

fn kept(place: &Path) -> Interrupts {
    let kept = Interrupts::read(File::open(place.join("new/L0/samples/irq.json")).unwrap()).unwrap();
    let told = kept.answered.len() as u64 + kept.merged + kept.unanswered + kept.lost;
    assert!(kept.edges > 0 && told == kept.edges, "each edge is in one amount: {told} of {}", kept.edges);
    assert!(kept.answered.is_sorted_by_key(|(began_ns, _)| *began_ns));
    // The thread that rings, QEMU's main one and the vCPU's: of these two none is left.
    assert_eq!(kept.tids.len(), 3);
    for tid in &kept.tids[1..] {
        assert!(!Path::new(&format!("/proc/{tid}")).exists(), "QEMU is still there");
    }
    kept
}

#[test]
fn every_interrupt_is_accounted_for_and_the_hog_is_named() {
    if !is_installed() {
        return;
    }
    let directory = Workspace::alone();
    let (place, lacks) = (directory.path(), cannot_record());
    let cpu = lab::setting::thread::affinity(lab::setting::thread::own()).unwrap().last().unwrap();
    let hog = Hogs::on(cpu, 1);
    let arguments = ["bench", "irq", "--emulate", "--seconds", "1", "--cpu", &cpu.to_string(), "--json", "-o", "new"];
    let output = kvmscope(place, &arguments).output().unwrap();
    drop(hog);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let journal = std::fs::read_dir(place.join("journal")).map_or(0, |entries| entries.count());
    assert_eq!(journal, 0, "nothing is left to undo");
    let kept = kept(place);
    assert!((kept.cpu, kept.period_ns, kept.halts) == (cpu, 1_000_000, false) && kept.edges <= 1_000, "{kept:?}");
    assert!(!kept.answered.is_empty());
    let manifest: Value = serde_json::from_slice(&std::fs::read(place.join("new/recording.json")).unwrap()).unwrap();
    assert_eq!(manifest["emulated"], "tcg");

    let told = rows(&output, "interrupts");
    let [own, published] = told.as_slice() else { panic!("{told:?}") };
    assert_eq!((&own["kind"], &own["count"]), (&"emulated".into(), &kept.answered.len().into()));
    assert_eq!((&own["edges"], &own["merged"]), (&kept.edges.into(), &kept.merged.into()));
    let numbers = ["min_ns", "mean_ns", "max_ns"].map(|name| published[name].as_f64().unwrap());
    assert_eq!((&published["kind"], numbers), (&"published".into(), [3_980.0, 4_420.0, 9_100.0]));

    let judged = kvmscope(place, &["report", "new", "--budget", "kvm4nfv-2015", "--json"]).output().unwrap();
    let goals = rows(&judged, "goals");
    let goal = goals.iter().find(|goal| goal["goal"] == "irq-max").unwrap();
    assert!(["FAIL", "INCONCLUSIVE"].contains(&goal["verdict"].as_str().unwrap()), "emulated, and too short: {goal}");
    assert_eq!(goal["samples"], kept.answered.len());

    if let Some(why) = lacks {
        return println!("skipped: who was in the way: {why}");
    }
    let taken = rows(&output, "attributed");
    let total_ns = |row: &Value| row["total_ns"].as_u64().unwrap();
    let lengths_ns: u64 = kept.answered.iter().map(|(_, length_ns)| length_ns).sum();
    assert_eq!(taken.iter().map(total_ns).sum::<u64>(), lengths_ns, "the rows are all of it: {taken:?}");
    let cause = |name: &str| taken.iter().find(|row| row["cause"].as_str().unwrap().contains(name));
    assert!(cause("hogger").is_some_and(|row| total_ns(row) > 0) && cause("unexplained").is_some(), "{taken:?}");
}

/// How often the thread that raises the interrupts has slept until the next one was due.
fn pauses_of_the_ringer(pid: u32) -> u64 {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let mut states = threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("status")).ok());
    let ringer = states.find(|status| status.starts_with("Name:\tringer\n")).unwrap_or_default();
    let pauses = ringer.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    pauses.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
}

#[test]
fn a_signal_ends_it_and_what_was_measured_stays() {
    if !is_installed() {
        return;
    }
    let directory = Workspace::alone();
    let place = directory.path();
    let arguments = ["bench", "irq", "--emulate", "--halt", "--seconds", "60", "--json", "-o", "new"];
    let child = kvmscope(place, &arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // It records, or says that it cannot, as soon as the guest is ready.
    wait_for("the recording's manifest", || place.join("new/recording.json").exists());
    wait_for("a hundred interrupts", || pauses_of_the_ringer(child.id()) > 100);
    rustix::process::kill_process(rustix::process::Pid::from_child(&child), rustix::process::Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let kept = kept(place);
    assert!(kept.halts && kept.edges < 30_000, "{} edges", kept.edges);
}

#[test]
fn where_kvm_cannot_qemu_emulates_and_without_either_both_reasons_are_said() {
    let directory = Workspace::alone();
    let arguments = ["bench", "irq", "--device", "/dev/null", "--seconds", "0.2", "--json", "-o", "new"];
    let output = kvmscope(directory.path(), &arguments).env("PATH", "/nonexistent").output().unwrap();
    let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{complaint}");
    assert!(complaint.contains("on KVM: /dev/null") && complaint.contains("package qemu-system-x86"), "{complaint}");
    assert!(!directory.path().join("new").exists(), "nothing was measured");
    if !is_installed() {
        return;
    }
    let output = kvmscope(directory.path(), &arguments).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(rows(&output, "interrupts")[0]["kind"], "emulated");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("so QEMU emulated one: /dev/null"), "the kernel's answer is told: {said}");
}

#[test]
fn a_run_of_no_or_too_many_interrupts_is_wrong_use() {
    let directory = Workspace::alone();
    for (seconds, period) in [("1", "2s"), ("100000", "1us")] {
        let arguments = ["bench", "irq", "--seconds", seconds, "--period", period];
        let output = kvmscope(directory.path(), &arguments).output().unwrap();
        let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!((output.status.code(), complaint.contains("interrupts")), (Some(2), true), "{complaint}");
    }
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}
