//! `kvmscope lab netns`, small: who starves whom is named, and nothing is left behind. No throughput is asserted.

use labs::machine::packages::{self, Flavour};
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use testing::{machine, send, wait_for};

fn kvmscope(journal: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kvmscope"));
    command.env("KVMSCOPE_JOURNAL", journal);
    command
}

fn namespaces() -> String {
    let output = Command::new("ip").args(["netns", "list"]).output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn complaints(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Why the bench cannot run here.
fn lacking() -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return Some("it needs root".to_owned());
    }
    static PROBES: AtomicU32 = AtomicU32::new(0);
    let probe = format!("kvmscope-probe-{}-{}", std::process::id(), PROBES.fetch_add(1, Ordering::Relaxed));
    let run = |words: &[&str]| Command::new("ip").args(words).output();
    let made = match run(&["netns", "add", &probe]) {
        Err(error) => return Some(format!("ip: {error}; the Debian package iproute2 brings it")),
        Ok(added) if !added.status.success() => return Some(complaints(&added)),
        Ok(_) => run(&["-n", &probe, "link", "add", "a0", "type", "veth", "peer", "name", "b0"]).unwrap(),
    };
    run(&["netns", "delete", &probe]).unwrap();
    (!made.status.success()).then(|| complaints(&made))
}

#[test]
fn the_starved_worker_and_its_culprit_are_named_and_all_is_removed() {
    let _machine = machine();
    if let Some(why) = lacking() {
        return println!("skipped: lab netns: {why}");
    }
    let directory = tempfile::tempdir().unwrap();
    let (journal, bench) = (directory.path().join("journal"), directory.path().join("bench"));
    let mut command = kvmscope(&journal);
    command.args(["lab", "netns", "--seconds", "1", "--repeats", "1", "--json", "-o"]).arg(&bench);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let pid = child.id();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", complaints(&output));
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    let finding = &answer["sections"][0]["findings"][0];
    assert_eq!(finding["id"], format!("PLC-STARVED@vhost-{pid}"), "{answer}");
    let evidence = finding["evidence"][0]["what"].as_str().unwrap();
    assert!(evidence.starts_with(&format!("vhost-{pid}")) && evidence.contains("/KVM (thread"), "{evidence}");
    let cpus = answer["sections"][0]["tables"]["threads"]["rows"].as_array().unwrap();
    assert!(cpus.iter().any(|row| row[0] == "CPU 0/KVM"), "{cpus:?}");
    // The other CPU may be busier than this one: then nothing is moved, and that is said.
    let moved = finding["changes"].as_array().unwrap().len();
    assert!((1..=2).contains(&moved) || output_says(&answer, "No CPU of this machine is better"), "{answer}");
    recorded(&journal, &bench.join("before"));
    if moved > 0 {
        recorded(&journal, &bench.join("after"));
        let change = &answer["sections"][0]["tables"]["change"]["rows"][0];
        assert!(change[0] == "throughput, Gbit/s" && change[3].as_f64().unwrap() > 0.0, "{change}");
        let mut compare = kvmscope(&journal);
        let compared = compare.arg("compare").args([bench.join("before"), bench.join("after")]).output().unwrap();
        assert!(String::from_utf8_lossy(&compared.stdout).contains("throughput, Gbit/s"), "{}", complaints(&compared));
    }
    assert!(!namespaces().contains(&format!("netns-{pid}-")), "{}", namespaces());
    assert_eq!(std::fs::read_dir(&journal).unwrap().count(), 0, "the journal is empty");
}

/// A recording of the bench is one that `report` reads and `compare` measures.
fn recorded(journal: &Path, recording: &Path) {
    let reported = kvmscope(journal).arg("report").arg(recording).output().unwrap();
    assert!(reported.status.success(), "{}", complaints(&reported));
    if !recording.join("L0/trace.dat").exists() {
        return println!("skipped: events of lab netns: no tracing file system here");
    }
    let told = String::from_utf8_lossy(&reported.stdout).into_owned();
    assert!(told.contains("sched_switch"), "{told}");
    let bench = std::fs::read_to_string(recording.join("L0/bench/netns.json")).unwrap();
    assert!(bench.contains("16 TCP streams through threads vhost-PID"), "{bench}");
    let compared = kvmscope(journal).args(["compare", "--json"]).args([recording, recording]).output().unwrap();
    let answer: Value = serde_json::from_slice(&compared.stdout).unwrap();
    let rows = answer["sections"][0]["tables"]["change"]["rows"].as_array().unwrap();
    let share = |metric: &str| {
        let row = rows.iter().find(|row| row[0] == metric).unwrap_or_else(|| panic!("no {metric}: {rows:?}"));
        assert_eq!(row[3], 1.0, "{row}");
        row[1].as_f64().unwrap()
    };
    // It never sleeps: what it does not run it waits.
    let all = share("CPU 0/KVM runs, share") + share("CPU 0/KVM waits, share");
    assert!((0.9..=1.001).contains(&all), "{all}: {rows:?}");
}

/// Processes whose command line holds these words.
fn running(words: &str) -> usize {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    processes
        .filter(|process| {
            let line = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line).contains(words)
        })
        .count()
}

/// Why no guest can forward here.
fn no_guest() -> Option<String> {
    for (program, package) in [("qemu-system-x86_64", "qemu-system-x86"), ("iperf3", "iperf3")] {
        if let Err(error) = Command::new(program).arg("--version").output() {
            return Some(format!("{program}: {error}; the Debian package {package} brings it"));
        }
    }
    let Some(cache) = labs::machine::default_cache(|name| std::env::var_os(name)) else {
        return Some("no place for a kernel".to_owned());
    };
    packages::kernel(&cache, Flavour::Stock, &mut |_| {}).err().map(|error| error.to_string()).or_else(lacking)
}

#[test]
fn a_starved_guest_is_named_and_ends_with_the_bench() {
    let _machine = machine();
    if let Some(why) = no_guest() {
        return println!("skipped: lab netns with a guest: {why}");
    }
    let directory = tempfile::tempdir().unwrap();
    let (journal, bench) = (directory.path().join("journal"), directory.path().join("bench"));
    let lab = || {
        let mut command = kvmscope(&journal);
        command.args(["lab", "netns", "--forwarder", "tap", "--load", "iperf3", "--streams", "4"]);
        command.args(["--seconds", "1", "--repeats", "1", "--json", "-o"]).arg(&bench);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    // Killed while its guest boots: the kernel ends QEMU, and undo the rest.
    let mut child = lab();
    let guest = format!("scratch-{}/initramfs", child.id());
    wait_for("the guest's QEMU", || {
        assert!(child.try_wait().unwrap().is_none(), "the bench ended early");
        running(&guest) > 0
    });
    child.kill().unwrap();
    child.wait().unwrap();
    wait_for("the end of QEMU", || running(&guest) == 0);
    assert!(kvmscope(&journal).arg("undo").output().unwrap().status.success());

    let child = lab();
    let (id, guest) = (format!("netns-{}-", child.id()), format!("scratch-{}/initramfs", child.id()));
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", complaints(&output));
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    let finding = &answer["sections"][0]["findings"][0];
    let subject = finding["id"].as_str().unwrap();
    assert!(["PLC-STARVED@CPU 0/TCG", "PLC-STARVED@qemu-system-x86"].contains(&subject), "{answer}");
    let evidence = finding["evidence"][0]["what"].as_str().unwrap();
    assert!(evidence.contains("/KVM (thread"), "{evidence}");
    assert_eq!((running(&guest), namespaces().contains(&id)), (0, false));
    assert_eq!(std::fs::read_dir(&journal).unwrap().count(), 0, "the journal is empty");
}

fn output_says(answer: &Value, words: &str) -> bool {
    answer["sections"][0]["summary"].as_str().is_some_and(|summary| summary.contains(words))
}

#[test]
fn ctrl_c_removes_everything_and_undo_does_so_after_a_kill() {
    let _machine = machine();
    if let Some(why) = lacking() {
        return println!("skipped: lab netns: {why}");
    }
    for signal in ["-INT", "-KILL"] {
        let directory = tempfile::tempdir().unwrap();
        let journal = directory.path().join("journal");
        let mut command = kvmscope(&journal);
        command.args(["lab", "netns", "--seconds", "30", "-o"]).arg(directory.path().join("bench"));
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let id = format!("netns-{}-", child.id());
        wait_for("three namespaces", || {
            assert!(child.try_wait().unwrap().is_none(), "the bench ended early");
            namespaces().matches(&id).count() >= 3
        });
        send(&child, signal);
        let status = child.wait().unwrap();
        if signal == "-INT" {
            assert_eq!(status.code(), Some(130));
            assert!(!directory.path().join("bench").exists(), "half a recording was left");
        } else {
            assert!(namespaces().contains(&id), "a killed bench leaves its namespaces");
            let undone = kvmscope(&journal).arg("undo").output().unwrap();
            assert!(undone.status.success(), "{}", complaints(&undone));
        }
        assert!(!namespaces().contains(&id), "{signal}: {}", namespaces());
        assert_eq!(std::fs::read_dir(&journal).unwrap().count(), 0);
    }
}
