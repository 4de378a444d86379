//! Real runs of latency tests on this host, beside a task that is put in their way on purpose: is it named, and do the sums close?
//!
//! No time is asserted. The share that nothing explains is printed: an attribution without it is no answer.

use assert_cmd::cargo::cargo_bin;
use serde_json::Value;
use std::path::Path;
use std::process::Command;
use testing::{Workspace, cannot_record};

/// Takes CPU 1, or the only one, for 12 ms of every 32 with a real-time priority.
/// Timers of 1 ms that fall due meanwhile are some 80 ms late in all, so that what else a busy host does comes nowhere near.
const HOG: &str = r#"$0 = "hog"; while (1) { my $end = Time::HiRes::time() + 0.012;
    while (Time::HiRes::time() < $end) {} select(undef, undef, undef, 0.02); }"#;

fn has(programs: &[&str]) -> bool {
    let test = "a hog that is put in the way is named";
    if let Some(why) = cannot_record() {
        println!("skipped: {test}: {why}");
        return false;
    }
    let missing = |program: &&&str| {
        let found = Command::new("sh").args(["-c", &format!("command -v {program}")]).output();
        !found.is_ok_and(|output| output.status.success())
    };
    match programs.iter().chain(&["chrt", "taskset", "perl"]).find(missing) {
        Some(program) => {
            println!("skipped: {test}: {program} is not installed");
            false
        }
        None => true,
    }
}

fn last_cpu() -> usize {
    usize::from(std::thread::available_parallelism().is_ok_and(|cpus| cpus.get() > 1))
}

/// Records while `measure` runs in `place` beside the hog, and reports on that with the result in `file`.
fn reported(place: &Path, measure: &str, file: &str) -> Value {
    let cpu = last_cpu();
    let script = format!(
        "chrt -f 50 taskset -c {cpu} perl -MTime::HiRes -e '{HOG}' & hog=$!\n{measure}\nstatus=$?\nkill $hog\nexit $status"
    );
    let recorded = Command::new(cargo_bin("kvmscope"))
        .current_dir(place)
        .env("KVMSCOPE_JOURNAL", place.join("journal"))
        .args(["record", "--quiet", "-o", "host", "--", "sh", "-c", &script])
        .output()
        .unwrap();
    assert!(recorded.status.success(), "{}", String::from_utf8_lossy(&recorded.stderr));
    let report = Command::new(cargo_bin("kvmscope"))
        .current_dir(place)
        .args(["report", "--json", "--no-progress", "host", "--part", &format!("L0={file}")])
        .output()
        .unwrap();
    assert!(report.status.success(), "{}", String::from_utf8_lossy(&report.stderr));
    serde_json::from_slice(&report.stdout).unwrap()
}

/// The rows of a table, each by the names of its columns.
fn rows(report: &Value, table: &str) -> Vec<serde_json::Map<String, Value>> {
    let sections = report["sections"].as_array().unwrap();
    let latency = sections.iter().find(|section| section["id"] == "latency").expect("a section latency");
    let table = &latency["tables"][table];
    let names: Vec<String> =
        table["columns"].as_array().unwrap().iter().map(|column| column["name"].as_str().unwrap().to_owned()).collect();
    let named = |row: &Value| names.iter().cloned().zip(row.as_array().unwrap().iter().cloned()).collect();
    table["rows"].as_array().unwrap().iter().map(named).collect()
}

/// The hog is the first cause, and the causes with the unexplained rest are there; prints how much that is.
fn check_named(report: &Value, program: &str) -> u64 {
    let attributed = rows(report, "attributed");
    let total = |row: &serde_json::Map<String, Value>| row["total_ns"].as_u64().unwrap();
    let all: u64 = attributed.iter().map(total).sum();
    let of = |cause: &str| attributed.iter().find(|row| row["cause"] == cause).map(total);
    let unexplained = of("unexplained").expect("a row for what nothing explains");
    let hog = of("hog").unwrap_or_else(|| panic!("the hog is not named: {attributed:?}"));
    let others = attributed.iter().filter(|row| !["hog", "unexplained"].contains(&row["cause"].as_str().unwrap()));
    assert!(others.map(total).all(|other| other <= hog), "{attributed:?}");
    println!("{program}: {all} ns in all, {hog} ns by the hog, {unexplained} ns unexplained");
    all
}

#[test]
fn samples_of_jitterdebugger_name_the_hog_and_every_sample_is_in_the_sums() {
    if !has(&["jitterdebugger", "jittersamples"]) {
        return;
    }
    let place = Workspace::alone();
    let measure =
        "jitterdebugger -o run -s -D 1s -i 1000 -p 10 >/dev/null 2>&1; jittersamples run && cp run/samples.csv .";
    let report = reported(place.path(), measure, "samples.csv");
    let all = check_named(&report, "jitterdebugger");
    let samples = std::fs::read_to_string(place.path().join("samples.csv")).unwrap();
    let us = samples.lines().filter_map(|line| line.rsplit(';').next()?.trim().parse::<u64>().ok());
    assert_eq!(all, us.sum::<u64>() * 1_000, "causes and the unexplained rest are the lengths of all samples");
}

#[test]
fn what_cyclictest_measured_names_the_hog_by_rank() {
    if !has(&["cyclictest"]) {
        return;
    }
    let place = Workspace::alone();
    let measure = "cyclictest -q -D 1 -t -a -i 1000 -h 20000 -p 10 -m --json=run.json >/dev/null";
    check_named(&reported(place.path(), measure, "run.json"), "cyclictest");
}

#[test]
fn what_oslat_measured_names_the_hog_by_rank() {
    if !has(&["oslat"]) {
        return;
    }
    let place = Workspace::alone();
    let measure = format!("oslat -D 1 -c {} -f 10 -b 1000 --json=run.json >/dev/null", last_cpu());
    check_named(&reported(place.path(), &measure, "run.json"), "oslat");
}
