//! `kvmscope record --migration` beside a migration that this test makes through monitors of its own, between two real QEMUs: what is
//! watched is what was done, and a watcher that is killed changes nothing. No time is asserted.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use testing::{Workspace, missing, wait_for, wait_for_output, wait_for_value};

/// For one answer of QEMU.
const PATIENCE: Duration = Duration::from_secs(60);

/// A QEMU with a monitor for this test and one for the watcher; it ends with this.
struct Qemu {
    child: Child,
    own: BufReader<UnixStream>,
}

fn socket(place: &Path, side: &str, whose: &str) -> PathBuf {
    place.join(format!("{side}.{whose}"))
}

/// No other test's.
fn name(place: &Path, side: &str) -> String {
    format!("{side}-{}", place.file_name().unwrap().display())
}

impl Qemu {
    fn start(place: &Path, side: &str, name: &str) -> Self {
        let mut command = Command::new("qemu-system-x86_64");
        command.args(["-accel", "tcg", "-M", "q35", "-m", "64M", "-nodefaults", "-no-user-config", "-display", "none"]);
        command.args(["-name", name]);
        for whose in ["test", "watcher"] {
            command.args(["-qmp", &format!("unix:{},server=on,wait=off", socket(place, side, whose).display())]);
        }
        if side == "target" {
            command.args(["-incoming", "defer"]);
        }
        let child = command.stdin(Stdio::null()).spawn().unwrap();
        let stream = wait_for_value("QEMU's monitor", || UnixStream::connect(socket(place, side, "test")).ok());
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut qemu = Self { child, own: BufReader::new(stream) };
        qemu.ask("qmp_capabilities", json!({}));
        qemu
    }

    fn ask(&mut self, command: &str, arguments: Value) -> Value {
        writeln!(self.own.get_mut(), "{}", json!({ "execute": command, "arguments": arguments, "id": 1 })).unwrap();
        loop {
            let mut line = String::new();
            self.own.read_line(&mut line).unwrap();
            let answer: Value = serde_json::from_str(&line).unwrap();
            assert!(answer.get("error").is_none(), "{answer}");
            if answer["id"] == 1 {
                return answer["return"].clone();
            }
        }
    }

    /// Waits until its migration is over.
    fn over(&mut self) -> String {
        wait_for_value("the end of the migration", || {
            let status = self.ask("query-migrate", json!({}))["status"].as_str().unwrap().to_owned();
            ["completed", "failed", "cancelled"].contains(&status.as_str()).then_some(status)
        })
    }
}

impl Drop for Qemu {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Two of them, ready; `None`, and a reason on stdout, without QEMU.
fn pair(place: &Path, has_events: bool) -> Option<[Qemu; 2]> {
    if let Some(why) = missing(&[("qemu-system-x86_64", "qemu-system-x86")]) {
        println!("skipped: record --migration: {why}");
        return None;
    }
    let mut pair = ["source", "target"].map(|side| Qemu::start(place, side, &name(place, side)));
    for qemu in &mut pair {
        let events = json!({ "capabilities": [{ "capability": "events", "state": has_events }] });
        qemu.ask("migrate-set-capabilities", events);
        // Zeros cost little, and the firmware's memory takes a second or two.
        qemu.ask("migrate-set-parameters", json!({ "max-bandwidth": 1 << 20 }));
    }
    Some(pair)
}

fn begin([source, target]: &mut [Qemu; 2], place: &Path) {
    let address = json!({ "uri": format!("unix:{}", place.join("moving").display()) });
    target.ask("migrate-incoming", address.clone());
    source.ask("migrate", address);
}

fn watcher(place: &Path, watched: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kvmscope"));
    command.args(["record", "--no-trace", "--no-snapshot", "-o"]).arg(place.join("watched"));
    for watched in watched {
        if !watched.starts_with("--") && !watched.ends_with(".json") {
            command.arg("--migration");
        }
        command.arg(watched);
    }
    let mut watcher = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    wait_for_output(watcher.stderr.take().unwrap(), "watching from now on");
    watcher
}

/// The answer about what was watched.
fn section(place: &Path) -> Value {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kvmscope"));
    let output = command.args(["report", "--json"]).arg(place.join("watched")).output().unwrap();
    let told: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
        panic!("{error}: {} {}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
    });
    told["sections"].as_array().unwrap().iter().find(|one| one["id"] == "migration").cloned().unwrap_or_default()
}

fn column(section: &Value, table: &str, name: &str) -> Vec<Value> {
    let table = &section["tables"][table];
    let place = table["columns"].as_array().unwrap().iter().position(|column| column["name"] == name).unwrap();
    table["rows"].as_array().unwrap().iter().map(|row| row[place].clone()).collect()
}

fn unknown(section: &Value) -> Vec<&str> {
    section["unknown"].as_array().unwrap().iter().map(|one| one["what"].as_str().unwrap()).collect()
}

#[test]
fn a_migration_that_somebody_else_makes_is_watched_on_both_sides_without_a_command() {
    let place = Workspace::alone();
    let place = place.path();
    let Some(mut qemus) = pair(place, false) else { return };
    let sockets = ["source", "target"].map(|side| socket(place, side, "watcher").display().to_string());
    let said = place.join("said.json").display().to_string();
    let plan = ["plan", "migration", "--ram", "64M", "--hot", "1M", "--rate", "10pages/s", "--bandwidth", "1MB/s"];
    let planned = Command::new(env!("CARGO_BIN_EXE_kvmscope")).args(plan).args(["--keep", &said]).output().unwrap();
    assert!(planned.status.success(), "{planned:?}");
    let mut watcher = watcher(place, &[&sockets[0], &sockets[1], "--prediction", &said]);
    begin(&mut qemus, place);
    // It ends by itself, with the migration.
    assert!(watcher.wait().unwrap().success());
    assert_eq!(qemus[0].over(), "completed");
    let section = section(place);
    assert!(section["summary"].as_str().unwrap().starts_with("The migration took "), "{}", section["summary"]);
    assert!(section["about"][0].as_str().unwrap().starts_with("EMULATED"), "{}", section["about"]);
    assert_eq!(column(&section, "downtimes", "definition"), ["vmm_reported", "vmm_events"]);
    assert_eq!(column(&section, "passes", "pass")[0], 0);
    assert_eq!(column(&section, "residuals", "what"), ["total", "downtime", "passes", "bytes"]);
    // The next plan knows of it.
    let history = ["--json", "--history"];
    let planned = Command::new(env!("CARGO_BIN_EXE_kvmscope"))
        .args(plan)
        .args(history)
        .arg(place.join("watched"))
        .output()
        .unwrap();
    let planned: Value = serde_json::from_slice(&planned.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&planned.stderr)));
    assert_eq!(column(&planned["sections"][0], "corrected", "runs")[0], 1);
    let unknown = unknown(&section);
    assert!(unknown.contains(&"began") && unknown.contains(&"polled_passes"), "no event told of either: {unknown:?}");
    for file in ["watched-0.jsonl", "watched-1.jsonl"] {
        let (messages, damaged) = base::qmp::read(&place.join("watched/L0/qmp").join(file)).unwrap();
        let sent = messages.iter().filter_map(|one| one.message["execute"].as_str());
        let other: Vec<&str> = sent.filter(|command| !command.starts_with("query-")).collect();
        assert_eq!((other, damaged), (vec!["qmp_capabilities"], 0), "a meter reads");
    }
}

#[test]
fn a_watcher_that_is_killed_changes_nothing_and_leaves_what_it_saw() {
    let place = Workspace::alone();
    let place = place.path();
    let Some(mut qemus) = pair(place, true) else { return };
    // The first monitor of that name is taken by this test: the next one is.
    let mut watcher = watcher(place, &[&name(place, "source")]);
    begin(&mut qemus, place);
    let seen = || std::fs::read_to_string(place.join("watched/L0/qmp/watched-0.jsonl")).unwrap_or_default();
    wait_for("the first pass of the migration", || seen().contains("MIGRATION_PASS"));
    watcher.kill().unwrap();
    watcher.wait().unwrap();
    assert!(!seen().contains("completed"), "it was killed while the guest moved");
    // The target runs the guest a little after the source has sent it.
    assert_eq!(qemus.each_mut().map(Qemu::over), ["completed", "completed"]);
    assert_eq!(qemus[1].ask("query-status", json!({}))["status"], "running");
    let section = section(place);
    assert!(section["summary"].as_str().unwrap().contains("had not ended"), "{}", section["summary"]);
    assert!(!unknown(&section).contains(&"began"), "an event told when: {section}");
}
