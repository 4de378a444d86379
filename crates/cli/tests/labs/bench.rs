//! `kvmscope bench` from end to end: names, counts and order, never a time.

#[cfg(feature = "channel")]
mod channel;
#[cfg(feature = "channel")]
mod channel_dpdk;
#[cfg(feature = "channel")]
mod channel_ivshmem;
mod cpuid;
mod irq;
mod memory;
mod timer;
mod witness;

use assert_cmd::Command;
use serde_json::Value;
use std::path::Path;
use testing::{Workspace, machine, wait_for};

fn kvmscope(arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::cargo_bin("kvmscope").unwrap().args(arguments).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// The rows of a table of section `nesting`, as objects.
fn rows(json: &str, table: &str) -> Vec<Value> {
    rows_of(json, "nesting", table)
}

fn rows_of(json: &str, section: &str, table: &str) -> Vec<Value> {
    let document: Value = serde_json::from_str(json).unwrap();
    assert_eq!(document["schema"], "kvmscope/1");
    let section = document["sections"].as_array().unwrap().iter().find(|one| one["id"] == section).unwrap();
    let table = &section["tables"][table];
    let names: Vec<&str> =
        table["columns"].as_array().unwrap().iter().map(|column| column["name"].as_str().unwrap()).collect();
    let row = |cells: &Value| {
        names.iter().zip(cells.as_array().unwrap()).map(|(name, cell)| ((*name).to_owned(), cell.clone())).collect()
    };
    table["rows"].as_array().unwrap().iter().map(|cells| Value::Object(row(cells))).collect()
}

#[test]
fn exits_are_measured_in_launches_and_the_recording_says_the_same() {
    let directory = Workspace::alone();
    let place = directory.path().join("bench");
    let place = place.to_str().unwrap();
    let wanted = ["--tests", "rdtsc,cpuid,inl_from_kernel", "--launches", "3", "--seconds", "0.01"];
    let (status, text, complaint) = kvmscope(&[&["bench", "exits", "-o", place][..], &wanted].concat());
    assert_eq!((status, complaint.as_str()), (Some(0), ""), "{text}");
    assert!(text.contains("A CPUID takes") && text.contains("report"), "{text}");
    let (_, json, _) = kvmscope(&["report", "--json", place]);
    let rows = rows(&json, "exits");
    let here: Vec<_> = rows.iter().filter(|row| row["where"] == "here").collect();
    assert_eq!(here.len(), 2, "{rows:?}");
    for row in here {
        assert_eq!((&row["launches"], &row["ring"]), (&Value::from(3), &Value::from(3)));
        let [low, middle, high] =
            ["p50_low_cycles", "p50_cycles", "p50_high_cycles"].map(|name| row[name].as_f64().unwrap());
        assert!(low <= middle * 1.01 && middle <= high * 1.01, "{row}");
    }
    let kernel = rows.iter().find(|row| row["name"] == "inl_from_kernel").unwrap();
    match kernel["exits_per_op"].as_f64() {
        Some(exits) => assert!((1.0..=1.05).contains(&exits) && kernel["handled_by"] == "kernel", "{kernel}"),
        None => println!("skipped: {}", kernel["note"]),
    }
}

#[test]
fn json_alone_keeps_nothing_and_without_kvm_the_rows_here_remain() {
    let directory = Workspace::alone();
    let arguments =
        ["bench", "exits", "--json", "--device", "/nonexistent/kvm", "--launches", "1", "--seconds", "0.01"];
    let output = Command::cargo_bin("kvmscope")
        .unwrap()
        .current_dir(directory.path())
        .env("TMPDIR", directory.path())
        .args(arguments)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(std::fs::read_dir(Path::new(directory.path())).unwrap().count(), 0);
    let rows = rows(&String::from_utf8(output.stdout).unwrap(), "exits");
    let (here, guest): (Vec<_>, Vec<_>) = rows.iter().partition(|row| row["where"] == "here");
    assert!(here.len() >= 3 && here.iter().all(|row| row["p50_cycles"].is_number()));
    let missing = |row: &Value| row["p50_cycles"].is_null() && row["note"].is_string();
    let no_kvm = guest.iter().filter(|row| row["note"].as_str().unwrap().contains("does not exist")).count();
    let others: Vec<_> = guest.iter().filter(|row| !row["note"].as_str().unwrap().contains("does not exist")).collect();
    assert!(no_kvm > 50 && guest.iter().all(|row| missing(row)), "{guest:?}");
    let names: Vec<_> = others.iter().map(|row| row["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["inl_from_pmtimer", "wbinvd", "invd"], "these have reasons of their own");
}

#[test]
fn an_unknown_test_is_wrong_use() {
    let (status, _, complaint) = kvmscope(&["bench", "exits", "--tests", "nonsense"]);
    assert_eq!(status, Some(2));
    assert!(complaint.contains("nonsense") && complaint.contains("inl_from_kernel"), "{complaint}");
}

#[test]
fn every_clock_is_told_with_its_clocksource() {
    let _machine = machine();
    let (status, json, _) = kvmscope(&["bench", "clock", "--json", "--launches", "1", "--seconds", "0.005"]);
    assert_eq!(status, Some(0));
    let rows = rows(&json, "clocks");
    let find = |clock: &str| rows.iter().find(|row| row["clock"] == clock).unwrap();
    let source = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    if let Ok(current) = std::fs::read_to_string(source) {
        assert_eq!(find("REALTIME")["source"], current.trim());
    }
    // Every kernel keeps this one ready in the vDSO, and never that one: vdso(7).
    assert_eq!((&find("REALTIME_COARSE")["vdso"], &find("THREAD_CPUTIME_ID")["vdso"]), (&true.into(), &false.into()));
    assert!(find("rdtsc")["p50_cycles"].as_f64().unwrap() < find("THREAD_CPUTIME_ID")["p50_cycles"].as_f64().unwrap());
}

#[test]
fn a_program_is_timed_and_its_failure_is_ours() {
    let _machine = machine();
    let (status, json, _) =
        kvmscope(&["bench", "macro", "--json", "--runs", "3", "--", "sh", "-c", "echo said; exit 0"]);
    assert_eq!(status, Some(0));
    let rows = rows(&json, "programs");
    assert_eq!((&rows[0]["command"], &rows[0]["runs"]), (&"sh -c echo said; exit 0".into(), &3.into()));
    assert!(rows[0]["real_ns"].as_f64().unwrap() > 0.0);
    let (status, out, complaint) = kvmscope(&["bench", "macro", "--json", "--", "sh", "-c", "exit 7"]);
    assert_eq!((status, out.as_str()), (Some(7), ""));
    assert!(complaint.contains("run 1") && complaint.contains('7'), "{complaint}");
}

#[test]
fn memory_is_that_of_the_command_or_unknown() {
    let _machine = machine();
    let memory = |script: &str| {
        let (status, json, _) = kvmscope(&["bench", "macro", "--json", "--runs", "2", "--", "sh", "-c", script]);
        assert_eq!(status, Some(0));
        (rows(&json, "programs")[0]["max_rss_bytes"].as_f64(), json)
    };
    let (little, json) = memory(":");
    assert!(little.is_none() && json.contains("least that can be measured"), "{little:?}");
    let (much, _) = memory("x=$(head -c 60000000 /dev/zero | tr '\\0' a); : ${#x}");
    assert!((60e6..400e6).contains(&much.unwrap()), "{much:?}");
}

#[test]
fn an_interrupted_bench_leaves_nothing_behind() {
    let directory = Workspace::alone();
    let mut bench = std::process::Command::new(assert_cmd::cargo::cargo_bin("kvmscope"))
        .current_dir(directory.path())
        .env("TMPDIR", directory.path())
        .args(["bench", "exits", "--json", "--launches", "1000", "--device", "/nonexistent/kvm"])
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let there = || std::fs::read_dir(directory.path()).unwrap().count() > 0;
    wait_for("the bench's directory", || {
        assert!(bench.try_wait().unwrap().is_none(), "it ended before it made its directory");
        there()
    });
    let told = Command::new("kill").args(["-INT", &bench.id().to_string()]).output().unwrap();
    assert!(told.status.success(), "{told:?}");
    assert_eq!(bench.wait().unwrap().code(), Some(130));
    assert!(!there());
}
