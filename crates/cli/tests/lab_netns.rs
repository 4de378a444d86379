//! `kvmscope lab netns`, small: who starves whom is named, and nothing is left behind. No throughput is asserted.

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

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
    if let Some(why) = lacking() {
        return println!("skipped: lab netns: {why}");
    }
    let directory = tempfile::tempdir().unwrap();
    let (journal, bench) = (directory.path().join("journal"), directory.path().join("bench"));
    let mut command = kvmscope(&journal);
    command.args(["lab", "netns", "--seconds", "1", "--repeats", "2", "--json", "-o"]).arg(&bench);
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
    if moved > 0 {
        let change = &answer["sections"][0]["tables"]["change"]["rows"][0];
        assert!(change[0] == "throughput, Gbit/s" && change[3].as_f64().unwrap() > 0.0, "{change}");
        let mut compare = kvmscope(&journal);
        let compared = compare.arg("compare").args([bench.join("before"), bench.join("after")]).output().unwrap();
        assert!(String::from_utf8_lossy(&compared.stdout).contains("throughput, Gbit/s"), "{}", complaints(&compared));
    }
    assert!(!namespaces().contains(&format!("netns-{pid}-")), "{}", namespaces());
    assert_eq!(std::fs::read_dir(&journal).unwrap().count(), 0, "the journal is empty");
}

fn output_says(answer: &Value, words: &str) -> bool {
    answer["sections"][0]["summary"].as_str().is_some_and(|summary| summary.contains(words))
}

#[test]
fn ctrl_c_removes_everything_and_undo_does_so_after_a_kill() {
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
        let since = Instant::now();
        while namespaces().matches(&id).count() < 3 {
            assert!(child.try_wait().unwrap().is_none() && since.elapsed() < Duration::from_secs(30), "it began");
            std::thread::sleep(Duration::from_millis(20));
        }
        assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success());
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
