//! Does `kvmscope bench timer` see each time its loop loses the CPU? Live, with a hog on the loop's CPU.
//!
//! Truth comes from the kernel's scheduler: the trace beside the gaps has a switch for each time the thread left its CPU.

use base::gaps::Gaps;
use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};
use testing::{Hogs, Workspace, cannot_record};
use trace::Reading;
use trace::replay::{Event, Listener, replay};
use trace::request::{Request, Wanted};

/// When a thread was off its CPU.
struct Off {
    tid: u64,
    left_ns: Option<u64>,
    all: Vec<(u64, u64)>,
}

impl Listener for Off {
    fn event(&mut self, event: &Event<'_>) {
        if event.is_loss() {
            return;
        }
        if event.get(0) == Some(self.tid) {
            self.left_ns = Some(event.time_ns);
        } else if event.get(1) == Some(self.tid)
            && let Some(left_ns) = self.left_ns.take()
        {
            self.all.push((left_ns, event.time_ns));
        }
    }
}

/// What the scheduler says, by CLOCK_MONOTONIC.
fn off(place: &Path, tid: i32) -> Vec<(u64, u64)> {
    let pairs = std::fs::read(place.join("new/L0/clock.json")).unwrap();
    let pairs: serde_json::Value = serde_json::from_slice(&pairs).unwrap();
    let offset_ns = pairs["scale"]["offset_ns"].as_i64().unwrap();
    let trace = trace::open(&place.join("new/L0/trace.dat")).unwrap();
    let fields = ["prev_pid", "next_pid"].map(|name| vec![name.to_owned()]).to_vec();
    let request = Request { events: vec![Wanted { names: vec!["sched_switch".to_owned()], fields }] };
    let mut off = Off { tid: tid as u64, left_ns: None, all: Vec::new() };
    replay(trace.as_ref(), &Reading { request: &request, fitted: None }, &mut off);
    let monotonic = |ns: u64| ns.saturating_add_signed(offset_ns);
    off.all.into_iter().map(|(from_ns, to_ns)| (monotonic(from_ns), monotonic(to_ns))).collect()
}

#[test]
fn each_time_that_the_loop_is_off_its_cpu_is_a_gap() {
    every_switch_is_a_gap(&[]);
}

#[test]
fn each_time_that_an_emulated_guest_is_off_its_cpu_is_a_gap_too() {
    let there = Command::new("qemu-system-x86_64").arg("--version").stdout(Stdio::null()).status().is_ok();
    if !there {
        return println!("skipped: gaps of an emulated guest: qemu-system-x86_64 is not installed");
    }
    every_switch_is_a_gap(&["--emulate"]);
}

fn every_switch_is_a_gap(options: &[&str]) {
    if let Some(why) = cannot_record() {
        return println!("skipped: gaps: {why}");
    }
    if !std::fs::read_to_string("/sys/kernel/tracing/trace_clock").is_ok_and(|clocks| clocks.contains("x86-tsc")) {
        return println!("skipped: gaps: this kernel has no trace clock x86-tsc");
    }
    let directory = Workspace::alone();
    let place = directory.path();
    let cpu = lab::setting::thread::affinity(lab::setting::thread::own()).unwrap().last().unwrap();
    let hog = Hogs::on(cpu, 1);
    let mut command = Command::new(env!("CARGO_BIN_EXE_kvmscope"));
    command.current_dir(place).env("KVMSCOPE_JOURNAL", place.join("journal"));
    command.args(["bench", "timer", "--seconds", "1", "--cpu", &cpu.to_string(), "--json", "-o", "new"]);
    command.args(options);
    let output = command.output().unwrap();
    drop(hog);
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{complaint}");
    assert_eq!(std::fs::read_dir(place.join("journal")).unwrap().count(), 0, "nothing is left to undo");
    let gaps = Gaps::read(File::open(place.join("new/L0/samples/gaps.json")).unwrap()).unwrap();
    assert!(gaps.gaps.iter().all(|(_, length_ns)| *length_ns >= gaps.threshold_ns - 1));
    let lost_ns: u64 = gaps.gaps.iter().map(|(_, length_ns)| length_ns).sum();
    let looked_ns: u64 = gaps.looked.iter().map(|(from_ns, to_ns)| to_ns - from_ns).sum();
    assert!(lost_ns > looked_ns / 5, "the hog takes half of the CPU: {lost_ns} of {looked_ns} ns");
    // What lies between the gap's readings and the switch: the way out of the loop and back, and the clocks' error.
    let near_ns = 100_000;
    let inside = |(from_ns, to_ns): &(u64, u64)| {
        gaps.looked.iter().any(|(begin_ns, end_ns)| begin_ns + near_ns < *from_ns && to_ns + near_ns < *end_ns)
    };
    let off: Vec<_> = off(place, gaps.tid).into_iter().filter(inside).collect();
    let long = off.iter().filter(|(from_ns, to_ns)| to_ns - from_ns > 2 * gaps.threshold_ns);
    let missed: Vec<_> = long
        .filter(|(from_ns, to_ns)| {
            let covers = |(end_ns, length_ns): &(u64, u64)| {
                end_ns - length_ns <= from_ns + near_ns && to_ns - near_ns.min(*to_ns) <= *end_ns
            };
            !gaps.gaps.iter().any(covers)
        })
        .collect();
    assert!(off.len() > 20 && missed.is_empty(), "{missed:?} of {}", off.len());
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let section = answer["sections"].as_array().unwrap().iter().find(|section| section["id"] == "latency").unwrap();
    let table = &section["tables"]["attributed"];
    let names: Vec<&str> =
        table["columns"].as_array().unwrap().iter().map(|column| column["name"].as_str().unwrap()).collect();
    let at = |name: &str| names.iter().position(|column| *column == name).unwrap();
    let rows: Vec<&serde_json::Value> =
        table["rows"].as_array().unwrap().iter().filter(|row| row[at("source")] == "gaps").collect();
    let total_ns = |row: &serde_json::Value| row[at("total_ns")].as_u64().unwrap();
    let worst = rows.iter().max_by_key(|row| total_ns(row)).expect("causes of gaps");
    assert!(worst[at("cause")].to_string().contains("hogger"), "{rows:?}");
    assert!(rows.iter().any(|row| row[at("cause")] == "unexplained"), "what nothing explains is a row: {rows:?}");
    assert_eq!(rows.iter().map(|row| total_ns(row)).sum::<u64>(), lost_ns, "the rows are all of it: {rows:?}");
}
