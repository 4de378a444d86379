//! `kvmscope apply --trial` by a budget: a hog that shares the CPU of a vCPU is found as an effect when its change takes it away,
//! and a change that concerns nobody is not. A guest, a hog and recordings are real; no time is asserted.

use super::{cpus_of, kvmscope, moved, places, report_of, said};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;
use testing::{Running, Workspace, cannot_record, wait_for};

/// A goal that a hog of the same priority breaks all the time, and that a CPU of its own seldom breaks.
const BUDGET: &str = r#"
schema = "kvmscope.budget/1"
name = "tenth"
[[goal]]
id = "tenth"
metric = "preempt_window"
stat = "sup"
window = "50ms"
op = "<="
limit = "20ms"
"#;

/// A value of the kernel that concerns no thread of the test.
const IDLE_KNOB: &str = "/proc/sys/vm/stat_interval";

/// Set in a process of this test alone: then it is a guest.
const IS_GUEST: &str = "KVMSCOPE_TEST_IS_GUEST";

/// Counts down and writes a port, again and again: `mov cx, 200; loop $; out 0x80, al`.
#[cfg(target_arch = "x86_64")]
const WORKS: lab::guest::programs::Program = lab::guest::programs::Program {
    name: "works",
    does: "counts down and writes a port",
    body: &[0xb9, 200, 0, 0xe2, 0xfe, 0xe6, 0x80],
    exit: None,
};

/// The guest of the other tests, in a process of its own, which they end.
#[test]
fn guest_of_the_trials() {
    #[cfg(target_arch = "x86_64")]
    if std::env::var_os(IS_GUEST).is_some() {
        let kvm = lab::guest::open(Path::new("/dev/kvm")).unwrap();
        lab::guest::Guest::new(&kvm).unwrap().run(&WORKS, u32::MAX, Duration::from_secs(600)).unwrap();
    }
}

/// Starts that guest on a CPU with a real-time policy; `None`, and the reason printed, where none can run.
fn guest(test: &str, cpu: &str) -> Option<Running> {
    if cfg!(not(target_arch = "x86_64")) || std::fs::File::open("/dev/kvm").is_err() {
        println!("skipped: {test}: no test guest runs here");
        return None;
    }
    let mut guest = Command::new("chrt");
    guest.args(["-r", "1", "taskset", "-c", cpu]).arg(std::env::current_exe().unwrap());
    guest.args(["--exact", "apply::ablation::guest_of_the_trials"]).env(IS_GUEST, "1");
    let mut guest = Running(guest.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    let mut ended = false;
    wait_for("the guest's vCPU", || {
        ended = guest.0.try_wait().unwrap().is_some();
        ended || runs_a_vcpu(guest.0.id())
    });
    if ended {
        println!("skipped: {test}: no test guest runs here with a real-time policy");
        return None;
    }
    Some(guest)
}

/// Whether a process has a vCPU, which is a file.
fn runs_a_vcpu(pid: u32) -> bool {
    let files = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let mut targets = files.filter_map(|file| std::fs::read_link(file.path()).ok());
    targets.any(|target| target.to_string_lossy().contains("kvm-vcpu"))
}

/// The policy of a thread and its priority, as `chrt` prints them.
fn policy(tid: u32) -> String {
    let printed = Command::new("chrt").args(["-p", &tid.to_string()]).output().unwrap();
    String::from_utf8_lossy(&printed.stdout)
        .lines()
        .filter_map(|line| line.rsplit(' ').next())
        .collect::<Vec<_>>()
        .join(" ")
}

/// A program that never rests, with a real-time policy.
fn hog(cpu: &str) -> Running {
    let spin = ["-r", "1", "taskset", "-c", cpu, "sh", "-c", "while :; do :; done"];
    let hog = Running(Command::new("chrt").args(spin).spawn().unwrap());
    let comm = || std::fs::read_to_string(format!("/proc/{}/comm", hog.0.id())).unwrap();
    wait_for("a hog that is bound", || cpus_of(hog.0.id()) == cpu && comm() == "sh\n");
    hog
}

/// A guest on one CPU with a hog beside it, and a report of two findings: by one the hog yields, the other concerns nobody.
/// Both have one real-time policy, so that what else this machine does comes in between neither.
struct Bed {
    _guest: Running,
    hog: Running,
    interval: String,
    /// The last to go: by then hog and guest have ended.
    place: Workspace,
}

impl Bed {
    fn make(test: &str) -> Option<Self> {
        let (_, all) = places(test)?;
        if let Some(why) = cannot_record() {
            println!("skipped: {test}: {why}");
            return None;
        }
        let Ok(interval) = std::fs::read_to_string(IDLE_KNOB) else {
            println!("skipped: {test}: {IDLE_KNOB} is not there");
            return None;
        };
        let cpu = base::CpuSet::parse(&all)?.last()?.to_string();
        let place = Workspace::alone();
        let guest = guest(test, &cpu)?;
        std::fs::write(place.path().join("tenth.toml"), BUDGET).unwrap();
        let hog = hog(&cpu);
        let interval = interval.trim().to_owned();
        let other = (interval.parse::<u64>().unwrap() + 1).to_string();
        let idle = json!({"type": "Sysctl", "path": "vm/stat_interval", "to": other, "from": interval});
        let mut yields = moved(hog.0.id(), "", "");
        let change = [("type", "TaskPolicy"), ("to", "idle"), ("from", "rr:1")];
        yields.as_object_mut().unwrap().extend(change.map(|(key, value)| (key.to_owned(), json!(value))));
        let mut report = report_of("LAT-VMSTAT@L0", &[idle]);
        let more = [report_of("LAT-ISOLCPUS@L0", &[yields]), report_of("LAT-TSC@L0", &[])];
        let more = more.map(|report| report["sections"][0].clone());
        report["sections"].as_array_mut().unwrap().extend(more);
        std::fs::write(place.path().join("report.json"), report.to_string()).unwrap();
        Some(Self { _guest: guest, hog, interval, place })
    }

    fn file(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    fn apply(&self, ids: &[&str], more: &[&str]) -> Output {
        let (report, budget) = (self.file("report.json"), self.file("tenth.toml"));
        let from = ["--from", report.to_str().unwrap(), "--budget", budget.to_str().unwrap(), "--yes"];
        kvmscope(&self.file("journal"), &[&["apply"], ids, &from, more].concat())
    }

    /// Nothing is changed and nothing left to undo.
    fn is_as_it_was(&self) -> bool {
        let left = std::fs::read_dir(self.file("journal")).unwrap().count();
        let interval = std::fs::read_to_string(IDLE_KNOB).unwrap();
        left == 0 && interval.trim() == self.interval && policy(self.hog.0.id()) == "SCHED_RR 1"
    }
}

#[test]
#[ignore = "torture"]
fn the_knob_that_takes_a_hog_away_is_found_and_one_that_concerns_nobody_is_not() {
    let Some(bed) = Bed::make("an ablation") else { return };
    let tried = || {
        let output = bed.apply(&["LAT-*"], &["--trial", "4", "--runs", "6"]);
        let told = said(&output);
        assert!(output.status.success() && bed.is_as_it_was(), "{told}");
        told
    };
    let mut told = tried();
    if !told.contains("No effect was found for LAT-VMSTAT@L0: in 6 runs each way nothing differs") {
        // One trial of twenty may claim what is not there; two in a row would be one of four hundred.
        println!("once more, after:\n{told}");
        told = tried();
    }
    assert!(told.contains("watched: what vCPUs lose, by budget tenth: 6 runs of 0."), "{told}");
    let words = told.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("LAT-ISOLCPUS@L0 helped: breaches of "), "{told}");
    assert!(words.contains("No effect was found for LAT-VMSTAT@L0: in 6 runs each way nothing differs"), "{told}");
    assert!(words.contains("LAT-ISOLCPUS@L0 lost per second of a"), "{told}");
    assert!(!told.contains("LAT-TSC"), "what has no change is for a person: {told}");
    assert!(words.contains("Nothing stays changed."), "{told}");
}

#[test]
fn one_knob_stays_if_it_helped() {
    let Some(bed) = Bed::make("a trial by a budget") else { return };
    let output = bed.apply(&["LAT-ISOLCPUS@L0"], &["--trial", "1", "--runs", "5"]);
    let told = said(&output);
    assert!(output.status.success() && told.contains("LAT-ISOLCPUS@L0 helped: "), "{told}");
    assert!(told.contains("LAT-ISOLCPUS@L0 stays changed."), "{told}");
    assert!(told.contains("kept; `kvmscope undo ") && policy(bed.hog.0.id()) == "SCHED_IDLE 0", "{told}");
    let undone = kvmscope(&bed.file("journal"), &["undo"]);
    assert!(undone.status.success() && bed.is_as_it_was(), "{}", said(&undone));
    // What programs read is on stdout, what was done meanwhile on stderr.
    let few = bed.apply(&["LAT-ISOLCPUS@L0"], &["--trial", "1", "--runs", "2", "--json"]);
    let json: Value = serde_json::from_slice(&few.stdout).unwrap_or_else(|error| panic!("{error}: {}", said(&few)));
    let section = &json["sections"][0];
    assert_eq!((section["id"].as_str(), json["command"].as_str()), (Some("ablation"), Some("apply")), "{json}");
    let summary = section["summary"].as_str().unwrap();
    assert!(summary.starts_with("2 runs each way cannot show an effect of LAT-ISOLCPUS@L0 among"), "{summary}");
    let few = String::from_utf8_lossy(&few.stderr);
    assert!(few.contains("undone: policy of thread"), "{few}");
    assert!(bed.is_as_it_was());
}

#[test]
fn what_cannot_be_tried_is_said_before_anything_is_changed() {
    let Some((first, all)) = places("a trial that cannot be") else { return };
    let place = Workspace::alone();
    let journal = place.path().join("journal");
    let sleeper = Running(Command::new("sleep").arg("60").spawn().unwrap());
    let report = place.path().join("report.json");
    std::fs::write(&report, report_of("PLC-TEST@x", &[moved(sleeper.0.id(), &all, &first)]).to_string()).unwrap();
    let samples =
        BUDGET.replace("preempt_window", "timer_latency").replace("sup", "max").replace("window = \"50ms\"\n", "");
    std::fs::write(place.path().join("samples.toml"), samples).unwrap();
    let samples = place.path().join("samples.toml").display().to_string();
    let report = report.display().to_string();
    for (more, words) in [
        (vec!["--budget", "kvm4nfv-2015"], "a budget judges a trial"),
        (vec!["--trial", "1", "--runs", "8"], "--runs is of trials that a budget judges"),
        (vec!["PLC-TEST"], "several findings can only be tried"),
        (vec!["--trial", "1", "--budget", &samples], "has no goal on what vCPUs lose"),
    ] {
        let ids: &[&str] = if more[0] == "PLC-TEST" { &["PLC-*"] } else { &["PLC-TEST@x"] };
        let more: Vec<&str> = more.into_iter().filter(|word| *word != "PLC-TEST").collect();
        let output = kvmscope(&journal, &[&["apply"], ids, &["--from", &report, "--yes"], &more[..]].concat());
        assert_eq!(output.status.code(), Some(2), "{}", said(&output));
        assert!(said(&output).contains(words), "{words}: {}", said(&output));
        assert_eq!(cpus_of(sleeper.0.id()), all);
    }
}
