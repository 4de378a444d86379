//! `kvmscope lab ovs --path`, small: the books close, bounds or the reason why there are none are said, and nothing is left
//! behind, however the lab ends. No rate is asserted.

use base::datapath::DatapathRuns;
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use testing::{Machine, machine};

/// The machine for one lab alone; nothing, and a reason on stdout, where it cannot run.
fn alone() -> Option<Machine> {
    let runs =
        |program: &str, word: &str| Command::new(program).arg(word).output().is_ok_and(|ran| ran.status.success());
    let lacking = [("ip", "-V"), ("tc", "-V"), ("ethtool", "--version"), ("iperf3", "--version")];
    let lacking = lacking.into_iter().find(|(program, word)| !runs(program, word)).map(|(program, _)| program);
    let lacking = lacking.or((!rustix::process::geteuid().is_root()).then_some("root"));
    let lacking = lacking.or((std::thread::available_parallelism().unwrap().get() < 2).then_some("a second CPU"));
    if let Some(lacking) = lacking {
        println!("skipped: lab ovs --path: needs {lacking}");
        return None;
    }
    Some(machine())
}

fn kvmscope(directory: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kvmscope"));
    command.env("KVMSCOPE_JOURNAL", directory.join("journal")).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Namespaces, directories and processes of a lab of that process.
fn left(lab: u32) -> Vec<String> {
    let told = Command::new("ip").args(["netns", "list"]).output().unwrap();
    let told = String::from_utf8(told.stdout).unwrap();
    let id = format!("paths-{lab}-");
    let mut left: Vec<String> = told.lines().filter(|line| line.starts_with(&id)).map(str::to_owned).collect();
    let entries = |directory: &str| std::fs::read_dir(directory).unwrap().flatten().map(|entry| entry.path());
    let is_ours = |path: &Path| path.to_string_lossy().contains(&id);
    left.extend(entries("/run").filter(|path| is_ours(path)).map(|path| path.display().to_string()));
    // Programs are told their directory by their environment; what has ended has none.
    let environment = |process: &Path| std::fs::read(process.join("environ")).unwrap_or_default();
    let is_told = |process: &Path| String::from_utf8_lossy(&environment(process)).contains(&id);
    left.extend(entries("/proc").filter(|path| is_told(path)).map(|path| path.display().to_string()));
    left
}

/// Those of the paths for which this machine has all programs; a reason on stdout for each of the others.
fn able<'p>(paths: &[&'p str]) -> Vec<&'p str> {
    let there = |path: &&&str| {
        let (directory, words) = (tempfile::tempdir().unwrap(), ["--vnfs", "1", "--size", "64", "--repeats", "1"]);
        let mut lab = kvmscope(directory.path());
        lab.args(["lab", "ovs", "--path", path, "--trial-ms", "10", "-o"]).arg(directory.path().join("chain"));
        let ran = lab.args(words).output().unwrap();
        let why = String::from_utf8_lossy(&ran.stderr);
        let lacks = why.contains("Debian package") || why.contains("this kernel has no");
        assert!(ran.status.success() || lacks, "{path}: {why}");
        if lacks {
            println!("skipped: lab ovs --path {path}: {}", why.trim());
        }
        !lacks
    };
    paths.iter().filter(there).copied().collect()
}

#[test]
fn a_chain_of_two_has_books_bounds_and_streams() {
    let Some(_machine) = alone() else { return };
    let directory = tempfile::tempdir().unwrap();
    let output = directory.path().join("chain");
    let words = ["--path", "bridge", "--vnfs", "2", "--size", "64", "--repeats", "1", "--trial-ms", "20"];
    let more = ["--search", "ndr,pdr", "--messages", "512", "--json", "-o"];
    let lab = kvmscope(directory.path()).args(["lab", "ovs"]).args(words).args(more).arg(&output).spawn().unwrap();
    let pid = lab.id();
    let ran = lab.wait_with_output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let runs = DatapathRuns::read(&output.join("L0/datapath/paths.json")).unwrap();
    assert_eq!((runs.runs.len(), runs.bounds.len(), runs.streams.len()), (1, 2, 1));
    assert_eq!(runs.runs[0].books.faults(), Vec::<String>::new());
    let told: Value = serde_json::from_slice(&ran.stdout).unwrap();
    let section = told["sections"].as_array().unwrap().iter().find(|section| section["id"] == "datapath").unwrap();
    for name in ["rates", "trials", "books", "bounds", "streams"] {
        assert!(!section["tables"][name]["rows"].as_array().unwrap().is_empty(), "{name}");
    }
    assert_eq!(left(pid), Vec::<String>::new());
}

#[test]
fn nothing_is_left_however_the_lab_is_ended() {
    use rustix::process::Signal;
    let Some(_machine) = alone() else { return };
    for (path, signal) in [("macvtap", Signal::INT), ("veth", Signal::TERM), ("bridge", Signal::KILL)] {
        let [path] = able(&[path])[..] else { continue };
        let directory = tempfile::tempdir().unwrap();
        let mut lab = kvmscope(directory.path());
        lab.args(["lab", "ovs", "--path", path, "--vnfs", "1", "--size", "64,1518", "--repeats", "1000", "-o"]);
        let mut lab = lab.arg(directory.path().join("chain")).spawn().unwrap();
        let pid = lab.id();
        let said = BufReader::new(lab.stderr.take().unwrap()).lines().map_while(Result::ok);
        // It is at work: the second size is measured in the same bed.
        assert!(said.into_iter().any(|line| line.contains("packets per second arrived")), "{path} ended early");
        assert_ne!(left(pid), Vec::<String>::new(), "{path}");
        let process = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
        rustix::process::kill_process(process, signal).unwrap();
        let status = lab.wait().unwrap();
        if signal == Signal::KILL {
            let undone = kvmscope(directory.path()).args(["undo"]).output().unwrap();
            assert!(undone.status.success(), "{}", String::from_utf8_lossy(&undone.stderr));
        } else {
            assert_eq!(status.code(), Some(130), "{path}");
        }
        assert_eq!(left(pid), Vec::<String>::new(), "{path} {signal:?}");
        assert!(!directory.path().join("chain").exists(), "{path} {signal:?}");
    }
}

#[test]
fn a_path_that_the_kernel_lacks_is_refused_before_anything_is_started() {
    let Some(_machine) = alone() else { return };
    if Path::new("/dev/vhost-net").exists() {
        println!("skipped: lab ovs --path vhost-net is not refused: /dev/vhost-net is there");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let ran = kvmscope(directory.path()).args(["lab", "ovs", "--path", "veth,vhost-net", "--repeats", "1"]).output();
    let ran = ran.unwrap();
    let why = String::from_utf8_lossy(&ran.stderr);
    assert!(why.contains("CONFIG_VHOST_NET") || why.contains("modprobe"), "{why}");
    assert_eq!((ran.status.code(), directory.path().join("journal").exists()), (Some(1), false), "{why}");
    assert!(!why.contains("arrived"), "{why}");
}

#[test]
fn options_of_the_switch_and_of_kernel_paths_do_not_mix() {
    let directory = tempfile::tempdir().unwrap();
    for words in [&["--path", "veth", "--no-huge"][..], &["--messages", "64"], &["--path", "token-ring"]] {
        let ran = kvmscope(directory.path()).args(["lab", "ovs"]).args(words).output().unwrap();
        assert_eq!(ran.status.code(), Some(2), "{words:?}");
    }
}
