//! `kvmscope cut` from end to end: the new recording is whole, opens, and holds the window's events.

use crate::program::fixture;
use assert_cmd::Command;
use base::recording::Recording;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use trace::replay::Listener;
use trace::{Event, Reading, Request};

/// Runs `kvmscope cut`, expects success and one line on what was cut, and opens the result.
fn cut(arguments: &[&str], output: &Path) -> Recording {
    let mut command = Command::cargo_bin("kvmscope").unwrap();
    let said = command.arg("cut").args(arguments).arg("-o").arg(output).assert().success().stderr("");
    let said = String::from_utf8_lossy(&said.get_output().stdout).into_owned();
    assert!(said.lines().count() == 1 && said.contains(" events; "), "{said}");
    Recording::open(output).unwrap()
}

struct Ignore;

impl Listener for Ignore {
    fn event(&mut self, _: &Event<'_>) {}
}

/// Number of events of each trace of a recording.
fn events(recording: &Recording) -> Vec<u64> {
    let count = |part: &base::recording::Part| {
        let trace = trace::open(&recording.root.join(&part.path)).unwrap();
        let request = Request::default();
        trace::replay(trace.as_ref(), &Reading { request: &request, fitted: None }, &mut Ignore).events()
    };
    recording.parts.iter().filter(|part| part.kind.is_trace()).map(count).collect()
}

/// The manifest's word on what made the recording.
fn tool(recording: &Recording) -> &str {
    recording.tool.as_deref().unwrap_or_default()
}

#[test]
fn two_halves_of_a_recording_hold_all_of_it() {
    let directory = tempfile::tempdir().unwrap();
    let toy = fixture("nested-svm-toy");
    let toy = toy.to_str().unwrap();
    let early = cut(&[toy, "--to", "0.5"], &directory.path().join("early"));
    let late = cut(&[toy, "--from", "0.5", "--to", "10"], &directory.path().join("late"));
    let (early_events, late_events) = (events(&early)[0], events(&late)[0]);
    assert_eq!(early_events + late_events, 5_939);
    assert!(early_events > 0 && late_events > 0);
    assert_eq!(early.emulated, Recording::open(Path::new(toy)).unwrap().emulated);
    assert!(tool(&early).ends_with("0 ns to 500000000 ns"), "{}", tool(&early));
}

#[test]
fn machines_are_cut_at_the_same_moments_and_the_manifest_says_where_not() {
    let directory = tempfile::tempdir().unwrap();
    let whole = fixture("svm-linux");
    let recording = cut(&[whole.to_str().unwrap(), "--to", "100"], &directory.path().join("all"));
    assert_eq!(events(&recording), [62_839, 13_995]);
    let machines: Vec<_> = recording.machines.iter().map(|machine| (machine.id.as_str(), machine.level)).collect();
    assert_eq!(machines, [("L0", 0), ("L1", 1)]);
    assert!(tool(&recording).ends_with("0 ns to 100000000000 ns"), "{}", tool(&recording));
    // Two hosts, of whose clocks nothing is known.
    let (machine, part) = (&recording.machines[0], &recording.parts[0]);
    let apart = base::recording::Machine { id: "L0-b".into(), ..machine.clone() };
    let theirs = base::recording::Part { path: "L0-b/trace.dat".into(), machine: apart.id.clone(), ..part.clone() };
    let both = directory.path().join("both");
    for own in ["L0", "L0-b"] {
        std::fs::create_dir_all(both.join(own)).unwrap();
        std::fs::copy(recording.root.join(&part.path), both.join(own).join("trace.dat")).unwrap();
    }
    let (machines, parts) = (vec![machine.clone(), apart], vec![part.clone(), theirs]);
    Recording { root: both.clone(), machines, parts, ..recording.clone() }.write().unwrap();
    let cut = cut(&[both.to_str().unwrap(), "--to", "0.1"], &directory.path().join("each"));
    assert!(tool(&cut).ends_with("count from their own first event"), "{}", tool(&cut));
    assert_eq!(events(&cut)[0], events(&cut)[1]);
}

#[test]
fn a_bare_file_becomes_a_recording_and_two_parts_of_a_machine_share_an_axis() {
    let directory = tempfile::tempdir().unwrap();
    let toy = fixture("nested-vmx-shadow-off-hog/L0/trace.dat");
    let toy = toy.to_str().unwrap();
    let late = cut(&[toy, "--from", "0.3", "--to", "10"], &directory.path().join("late"));
    let late_file = late.root.join(&late.parts[0].path);
    // The first 0.4 s of the whole are the first 0.1 s of what began at 0.3 s.
    let both = directory.path().join("both");
    std::fs::create_dir_all(both.join("L0")).unwrap();
    std::fs::copy(toy, both.join("L0/whole.dat")).unwrap();
    std::fs::copy(&late_file, both.join("L0/late.dat")).unwrap();
    let part = |name: &str| base::recording::Part { path: Path::new("L0").join(name), ..late.parts[0].clone() };
    let parts = vec![part("whole.dat"), part("late.dat")];
    Recording { root: both.clone(), parts, ..late.clone() }.write().unwrap();
    let shared = cut(&[both.to_str().unwrap(), "--from", "0.3", "--to", "0.4"], &directory.path().join("shared"));
    let counts = events(&shared);
    assert!(counts[0] > 0 && counts[0] == counts[1], "{counts:?}");
    assert!(!tool(&shared).contains("own first event"), "{}", tool(&shared));
}

#[test]
fn a_ctf_trace_is_cut_too() {
    let directory = tempfile::tempdir().unwrap();
    let whole = fixture("lttng-svm-l0");
    let recording = cut(&[whole.to_str().unwrap(), "--from", "0.2", "--to", "0.4"], &directory.path().join("ctf"));
    let count = events(&recording)[0];
    assert!((1..19_209).contains(&count), "{count}");
    let trace = trace::open(&recording.root.join(&recording.parts[0].path)).unwrap();
    assert_eq!(trace.facts().losses, [], "a stream that begins with the window is whole");
}

/// Rows of a table of section `flow`, each by the names of its columns.
fn rows(report: &Value, table: &str) -> Vec<BTreeMap<String, Value>> {
    let table = &report["sections"][0]["tables"][table];
    let columns: Vec<&str> =
        table["columns"].as_array().into_iter().flatten().map(|it| it["name"].as_str().unwrap()).collect();
    let row =
        |row: &Value| columns.iter().map(|name| (*name).to_owned()).zip(row.as_array().unwrap().clone()).collect();
    table["rows"].as_array().into_iter().flatten().map(row).collect()
}

/// The vCPUs of a report (VM, number, thread), and exits by VM, vCPU and reason.
type Counts = (Vec<String>, BTreeMap<String, u64>);

/// What `kvmscope report` says of vCPUs and exits.
fn report(arguments: &[&str]) -> Counts {
    let output = Command::cargo_bin("kvmscope").unwrap().args(["report", "--json"]).args(arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let named = |row: &BTreeMap<String, Value>, more: &str| format!("{} {} {}", row["vm"], row["vcpu"], row[more]);
    let mut exits = BTreeMap::new();
    for row in &rows(&report, "exits") {
        *exits.entry(named(row, "reason")).or_default() += row["count"].as_u64().unwrap();
    }
    (rows(&report, "vcpus").iter().map(|row| named(row, "tid")).collect(), exits)
}

#[test]
fn a_cut_of_each_bundled_recording_has_the_vcpus_and_exits_of_the_narrowed_report() {
    let directory = tempfile::tempdir().unwrap();
    let recordings = [
        "nested-svm-toy",
        "nested-vmx-shadow-off-hog",
        "nested-vmx-shadow-on",
        "svm-linux",
        "vmx-linux-shadow-off",
        "vmx-linux-shadow-on",
        "lttng-svm-l0",
        "two-tracers",
        "text/ftrace-vmx-6.18.txt",
        "text/perf-script-svm-5.4.txt",
        "text/trace-cmd-raw-vmx-6.1.txt",
        "text/trace-cmd-svm-6.1.txt",
        "text/trace_pipe-vmx-3.10.txt",
    ];
    let mut exits = 0;
    for name in recordings {
        let whole = fixture(name);
        let whole = whole.to_str().unwrap();
        // Printed traces are a few lines long.
        let windows = if name.starts_with("text") { vec![(0, 50)] } else { vec![(25, 50), (50, 52)] };
        for (from, to) in windows {
            let at = |percent: u64| format!("{:.9}", (length_ns(whole) * percent / 100) as f64 / 1e9);
            let (from, to) = (at(from), at(to));
            let recording = cut(&[whole, "--from", &from, "--to", &to, "--force"], &directory.path().join("cut"));
            let narrowed = report(&[whole, "--from", &from, "--to", &to]);
            assert_eq!(report(&[recording.root.to_str().unwrap()]), narrowed, "{name} from {from} to {to}");
            exits += narrowed.1.values().sum::<u64>();
        }
    }
    assert!(exits > 10_000, "{exits}");
}

/// How long the first machine's recording is.
fn length_ns(whole: &str) -> u64 {
    let output = Command::cargo_bin("kvmscope").unwrap().args(["report", "--json", whole]).output().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let lengths = rows(&report, "vcpus").into_iter().map(|row| row["wall_ns"].as_u64().unwrap());
    lengths.max().unwrap()
}

/// A vCPU that is preempted all the window long, as nothing but its switches tells; a second one has no event there at all.
const WAITS: &str = "\
            qemu-98    [000] d..1.    9.100000: kvm_entry: vcpu 3
            qemu-98    [000] d..1.    9.110000: kvm_exit: reason HLT rip 0x10 info 0 0
            qemu-99    [001] d..1.    9.110500: kvm_entry: vcpu 1
            qemu-99    [001] d..1.    9.120000: kvm_exit: reason HLT rip 0x10 info 0 0
            qemu-98    [000] d..1.    9.200000: sched_switch: prev_comm=qemu prev_pid=98 prev_prio=120 prev_state=R ==> next_comm=hog next_pid=7 next_prio=120
             hog-7     [000] d..1.    9.300000: sched_switch: prev_comm=hog prev_pid=7 prev_prio=120 prev_state=R ==> next_comm=qemu next_pid=98 next_prio=120
            qemu-98    [000] d..1.    9.310000: sched_switch: prev_comm=qemu prev_pid=98 prev_prio=120 prev_state=R ==> next_comm=hog next_pid=7 next_prio=120
            qemu-98    [000] d..1.    9.500000: kvm_entry: vcpu 3
";

#[test]
fn a_vcpu_without_an_event_of_kvm_in_the_window_is_one_still() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("trace.txt");
    std::fs::write(&file, WAITS).unwrap();
    let file = file.to_str().unwrap();
    let recording = cut(&[file, "--from", "0.15", "--to", "0.35"], &directory.path().join("once"));
    let narrowed = report(&[file, "--from", "0.15", "--to", "0.35"]);
    assert_eq!((narrowed.0.len(), narrowed.1.len()), (2, 0));
    assert_eq!(report(&[recording.root.to_str().unwrap()]), narrowed);
    let text = Command::cargo_bin("kvmscope").unwrap().arg("report").arg(&recording.root).output().unwrap();
    let text = String::from_utf8(text.stdout).unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("2 vCPUs have neither exit nor entry in this recording"), "{text}");
    let again = cut(&[recording.root.to_str().unwrap(), "--to", "0.12"], &directory.path().join("again"));
    assert_eq!(report(&[again.root.to_str().unwrap()]).0, narrowed.0, "a cut of a cut knows it too");
}

#[test]
fn a_text_without_an_event_in_the_window_is_left_out() {
    let directory = tempfile::tempdir().unwrap();
    // 1.5 and 2.3 ms long.
    let (short, long) = (fixture("text/trace-cmd-svm-6.1.txt"), fixture("text/trace-cmd-raw-vmx-6.1.txt"));
    let parts = [format!("L0={}", short.display()), format!("L1={}", long.display())];
    let both = ["--part", &parts[0], "--part", &parts[1]];
    let kept = |recording: &Recording| -> Vec<String> {
        recording.parts.iter().map(|part| part.path.display().to_string()).collect()
    };
    let all = cut(&both, &directory.path().join("both"));
    assert_eq!(kept(&all), ["L0/trace.txt", "L1/trace.txt", "L0/cut-from.json", "L1/cut-from.json"]);
    let late = cut(&[&both[..], &["--from", "0.002"]].concat(), &directory.path().join("late"));
    assert_eq!(kept(&late), ["L1/trace.txt", "L1/cut-from.json"]);
}
