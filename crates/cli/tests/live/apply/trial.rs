//! `kvmscope apply --trial` for the kinds of changes that are not a thread's CPUs: a control group's, a policy, an
//! interrupt's, a value below `/sys`. What else runs here decides how a trial ends; what is said must be what holds.

use super::said;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use testing::{Running, Workspace, wait_for};

fn busy() -> Running {
    Running(Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap())
}

/// The place of a report and a journal of the test's own.
struct Place(Workspace);

impl Place {
    fn new(changes: &[Value]) -> Self {
        let place = Self(Workspace::alone());
        std::fs::write(place.report(), super::report_of("PLC-TEST@x", changes).to_string()).unwrap();
        place
    }

    fn report(&self) -> PathBuf {
        self.0.path().join("report.json")
    }

    fn kvmscope(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kvmscope"));
        command.args(arguments).env("KVMSCOPE_JOURNAL", self.0.path().join("journal")).output().unwrap()
    }

    fn trial(&self) -> String {
        let report = self.report().display().to_string();
        let output = self.kvmscope(&["apply", "PLC-TEST@x", "--from", &report, "--yes", "--trial", "1"]);
        let told = said(&output);
        assert!(output.status.success() && told.contains("watched: ") && told.contains("measured: "), "{told}");
        assert_ne!(told.contains("kept; `kvmscope undo"), told.contains("undone: "), "{told}");
        told
    }

    /// Holds what a trial said against what `holds` now, and takes back what was kept.
    fn is_true(&self, told: &str, old: &str, new: &str, holds: impl Fn() -> String) {
        let kept = told.contains("kept; ");
        assert_eq!(holds(), if kept { new } else { old }, "{told}");
        if kept {
            assert!(self.kvmscope(&["undo"]).status.success());
            assert_eq!(holds(), old);
        }
        assert_eq!(std::fs::read_dir(self.0.path().join("journal")).unwrap().count(), 0, "{told}");
    }
}

fn root(what: &str) -> bool {
    let is = rustix::process::geteuid().is_root();
    if !is {
        println!("skipped: a trial of {what}: it needs root");
    }
    is
}

/// A control group that goes with the test, once the threads in it have.
struct Group(PathBuf);

impl Drop for Group {
    fn drop(&mut self) {
        for _ in 0..400 {
            match std::fs::remove_dir(&self.0) {
                Ok(()) => return,
                Err(_) => std::thread::sleep(Duration::from_millis(5)),
            }
        }
    }
}

#[test]
fn a_control_groups_cpus_are_tried() {
    if !root("a control group") {
        return;
    }
    // Version 1 alone here; in version 2 the same file is below a group that has the controller.
    let group = PathBuf::from(format!("/sys/fs/cgroup/cpuset/kvmscope-test-{}", std::process::id()));
    let above = std::fs::read_to_string("/sys/fs/cgroup/cpuset/cpuset.cpus").unwrap_or_default();
    if above.trim() != "0-1" || std::fs::create_dir(&group).is_err() {
        return println!("skipped: a trial of a control group: no cpuset controller of version 1 with CPUs 0-1");
    }
    let write = |name: &str, value: &str| std::fs::write(group.join(name), value).unwrap();
    let _removed = Group(group.clone());
    write("cpuset.mems", "0");
    write("cpuset.cpus", "0-1");
    let threads = [busy(), busy()];
    threads.iter().for_each(|busy| std::fs::write(group.join("tasks"), busy.0.id().to_string()).unwrap());
    let path = group.strip_prefix("/sys").unwrap().join("cpuset.cpus").display().to_string();
    let place = Place::new(&[json!({"type": "SysfsWrite", "path": path, "to": "1", "from": "0,1"})]);
    let told = place.trial();
    assert!(told.contains("modelled: thread") && told.contains("threads waited"), "{told}");
    assert!(told.contains("modelled: threads are"), "{told}");
    place.is_true(&told, "0-1", "1", || std::fs::read_to_string(group.join("cpuset.cpus")).unwrap().trim().to_owned());
}

#[test]
fn a_policy_is_tried() {
    if !root("a policy") {
        return;
    }
    let threads = [busy(), busy(), busy()];
    let pid = threads[0].0.id();
    let mut change = super::moved(pid, "", "");
    change.as_object_mut().unwrap().extend([
        ("type".to_owned(), json!("TaskPolicy")),
        ("to".to_owned(), json!("idle")),
        ("from".to_owned(), json!("other")),
    ]);
    let place = Place::new(&[change]);
    let told = place.trial();
    assert!(told.contains("modelled: no prediction: the model covers"), "{told}");
    let holds = || {
        let printed = Command::new("chrt").args(["-p", &pid.to_string()]).output().unwrap();
        let name =
            String::from_utf8_lossy(&printed.stdout).lines().next().unwrap().rsplit(' ').next().unwrap().to_owned();
        name.trim_start_matches("SCHED_").to_lowercase()
    };
    place.is_true(&told, "other", "idle", holds);
}

#[test]
fn what_somebody_else_sets_meanwhile_is_said_and_left() {
    let all = std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap().trim().to_owned();
    if !root("a change that somebody else takes back") || all == "0" {
        return println!("skipped: a change that somebody else takes back: it needs root and two CPUs");
    }
    let thread = busy();
    let pid = thread.0.id().to_string();
    let set = |cpus: &str| {
        let mut taskset = Command::new("taskset");
        assert!(taskset.args(["-cp", cpus, &pid]).stdout(Stdio::null()).status().unwrap().success());
    };
    set(&all);
    let place = Place::new(&[super::moved(thread.0.id(), &all, "0")]);
    let report = place.report().display().to_string();
    let arguments = ["apply", "PLC-TEST@x", "--from", &report, "--yes", "--trial", "1"];
    let holds = || {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap().trim().to_owned()
    };
    let output = std::thread::scope(|scope| {
        let applied = scope.spawn(|| place.kvmscope(&arguments));
        wait_for("the change", || holds() == "0" || applied.is_finished());
        // It is read back before the journal is given back to others; the measurement comes after that.
        let journal = lab::journal::Journal::new(place.0.path().join("journal"), "/proc");
        drop(journal.lock(&AtomicBool::new(false)).unwrap());
        set("1");
        applied.join().unwrap()
    });
    let told = said(&output);
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(
        told.contains("changed by another program during the measurement: thread") && told.contains("left alone"),
        "{told}"
    );
    assert_eq!(holds(), "1", "{told}");
}

/// An interrupt of this machine that says where it is handled, and two CPUs it may be moved between.
fn interrupt() -> Option<(u32, String, String)> {
    let numbers = std::fs::read_dir("/proc/irq").ok()?.flatten();
    let mut numbers: Vec<u32> = numbers.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    numbers.sort_unstable();
    numbers.into_iter().find_map(|irq| {
        let path = format!("/proc/irq/{irq}/smp_affinity_list");
        let now = std::fs::read_to_string(&path).ok()?.trim().to_owned();
        let other = if now == "0" { "1" } else { "0" };
        // Some refuse whatever is asked: whether this one does is seen by asking it for what it has.
        std::fs::write(&path, &now).ok()?;
        (Path::new("/sys/devices/system/cpu/cpu1").exists()).then_some((irq, now, other.to_owned()))
    })
}

#[test]
fn an_interrupts_cpus_are_tried() {
    if !root("an interrupt") {
        return;
    }
    let Some((irq, now, other)) = interrupt() else {
        return println!("skipped: a trial of an interrupt: none here can be moved between two CPUs");
    };
    let place = Place::new(&[json!({"type": "IrqAffinity", "irq": irq, "cpus": other, "from": now})]);
    let told = place.trial();
    assert!(told.contains("waiting threads, interrupts and softirqs"), "{told}");
    assert!(told.contains("waiting and interrupts took") || told.contains("no thread waited"), "{told}");
    let holds = || std::fs::read_to_string(format!("/proc/irq/{irq}/smp_affinity_list")).unwrap().trim().to_owned();
    place.is_true(&told, &now, &other, holds);
}

#[test]
fn a_value_below_sys_is_tried_on_the_whole_machine() {
    let knob = Path::new("/sys/kernel/mm/ksm/pages_to_scan");
    if !root("a value below /sys") {
        return;
    }
    let Ok(now) = std::fs::read_to_string(knob) else {
        return println!("skipped: a trial of a value below /sys: {} is not there", knob.display());
    };
    let (now, other) = (now.trim().to_owned(), (now.trim().parse::<u64>().unwrap() + 1).to_string());
    let place =
        Place::new(&[json!({"type": "SysfsWrite", "path": "kernel/mm/ksm/pages_to_scan", "to": other, "from": now})]);
    let told = place.trial();
    assert!(told.contains("watched: CPU waiting of all threads"), "{told}");
    place.is_true(&told, &now, &other, || std::fs::read_to_string(knob).unwrap().trim().to_owned());
}
