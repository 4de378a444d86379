//! `kvmscope lab ovs --path`, small: the books close, bounds or the reason why there are none are said, and nothing is left
//! behind, however the lab ends. No rate is asserted.

use base::datapath::DatapathRuns;
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The machine for one lab alone; nothing, and a reason on stdout, where it cannot run.
fn alone() -> Option<MutexGuard<'static, ()>> {
    static ONE: Mutex<()> = Mutex::new(());
    let alone = ONE.lock().unwrap_or_else(PoisonError::into_inner);
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
    Some(alone)
}

fn kvmscope(directory: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kvmscope"));
    command.env("KVMSCOPE_JOURNAL", directory.join("journal")).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Namespaces of a lab of that process.
fn left(lab: u32) -> Vec<String> {
    let told = Command::new("ip").args(["netns", "list"]).output().unwrap();
    let told = String::from_utf8(told.stdout).unwrap();
    told.lines().filter(|line| line.starts_with(&format!("paths-{lab}-"))).map(str::to_owned).collect()
}

#[test]
fn a_chain_of_two_has_books_bounds_and_streams() {
    let Some(_alone) = alone() else { return };
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
fn no_namespace_is_left_however_the_lab_is_ended() {
    let Some(_alone) = alone() else { return };
    for signal in [rustix::process::Signal::INT, rustix::process::Signal::KILL] {
        let directory = tempfile::tempdir().unwrap();
        let mut lab = kvmscope(directory.path());
        lab.args(["lab", "ovs", "--path", "veth,af-packet", "--vnfs", "1", "--size", "64", "--repeats", "1000", "-o"]);
        let mut lab = lab.arg(directory.path().join("chain")).spawn().unwrap();
        let pid = lab.id();
        let said = BufReader::new(lab.stderr.take().unwrap()).lines().map_while(Result::ok);
        // It is at work, and builds the next bed.
        assert!(said.into_iter().any(|line| line.contains("packets per second arrived")), "the lab ended early");
        let process = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
        rustix::process::kill_process(process, signal).unwrap();
        let status = lab.wait().unwrap();
        if signal == rustix::process::Signal::INT {
            assert_eq!(status.code(), Some(130));
        } else {
            let undone = kvmscope(directory.path()).args(["undo"]).output().unwrap();
            assert!(undone.status.success(), "{}", String::from_utf8_lossy(&undone.stderr));
        }
        assert_eq!(left(pid), Vec::<String>::new(), "{signal:?}");
        assert!(!directory.path().join("chain").exists(), "{signal:?}");
    }
}

#[test]
fn options_of_the_switch_and_of_kernel_paths_do_not_mix() {
    let directory = tempfile::tempdir().unwrap();
    for words in
        [&["--path", "veth", "--no-huge"][..], &["--search", "ndr"], &["--messages", "64"], &["--path", "token-ring"]]
    {
        let ran = kvmscope(directory.path()).args(["lab", "ovs"]).args(words).output().unwrap();
        assert_eq!(ran.status.code(), Some(2), "{words:?}");
    }
}
