//! Does the nested lab make recordings that are answered right, and does it leave nothing behind?
//!
//! The machines are emulated: each boot takes some ten seconds of a core. Without QEMU or without Debian's kernel there
//! is nothing to boot, and the tests say so.

mod score;

use lab::nested::{default_cache, packages};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard};

/// One emulator at a time: each takes a core or two.
static ONE: Mutex<()> = Mutex::new(());

/// A place to run labs in, with the kernels of the user's own cache.
struct Bench {
    directory: tempfile::TempDir,
    kernels: PathBuf,
    _alone: MutexGuard<'static, ()>,
}

impl Bench {
    /// Nothing, and a reason on stdout, where the lab cannot run.
    fn new() -> Option<Self> {
        let alone = ONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let directory = tempfile::tempdir().unwrap();
        let kernels = default_cache(|name| std::env::var_os(name)).unwrap_or_else(|| directory.path().join("kernels"));
        if let Err(error) = Command::new("qemu-system-x86_64").arg("--version").stdout(Stdio::null()).status() {
            println!("skipped: qemu-system-x86_64: {error}; the Debian package qemu-system-x86 brings it");
            return None;
        }
        if let Err(error) = packages::kernel(&kernels, &mut |_| {}) {
            println!("skipped: qemu-system-x86_64: there is no kernel to boot: {error}");
            return None;
        }
        Some(Self { directory, kernels, _alone: alone })
    }

    fn output(&self) -> PathBuf {
        self.directory.path().join("recording")
    }

    fn lab(&self, sets: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kvmscope"));
        command.args(["lab", "nested", "--arch", "svm", "--cache"]).arg(&self.kernels).arg("-o").arg(self.output());
        sets.iter().for_each(|set| {
            command.args(["--set", set]);
        });
        command
    }

    /// Panics if a lab of process `pid` left anything.
    fn assert_clean(&self, pid: u32) {
        let left: Vec<_> =
            std::fs::read_dir(self.directory.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert!(left.is_empty(), "{left:?}");
        assert!(!self.kernels.join(format!("scratch-{pid}")).exists());
    }
}

/// Runs a lab and scores its recording; gives what it printed.
fn recorded_and_scored(sets: &[&str]) -> Option<String> {
    let bench = Bench::new()?;
    let output = bench.lab(sets).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    assert!(errors.contains(&format!("the recording is {}", bench.output().display())), "{errors}");
    score::score(&bench.output());
    trace_cmd_reads(&bench.output().join("L0/trace.dat"));
    Some(String::from_utf8(output.stdout).unwrap())
}

fn trace_cmd_reads(trace: &Path) {
    let Ok(output) = Command::new("trace-cmd").args(["report", "-i"]).arg(trace).output() else {
        println!("skipped: trace-cmd does not start; the Debian package trace-cmd brings it");
        return;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.lines().filter(|line| line.contains("kvm_nested_vmenter")).count() >= 50);
}

#[test]
fn every_level_and_chain_of_the_svm_toy_is_told_right() {
    let Some(report) = recorded_and_scored(&["loops=100"]) else { return };
    assert!(report.contains("EMULATED by QEMU TCG"), "{report}");
    assert!(report.contains("costs 6 exits of L1 to L0"), "{report}");
}

#[test]
fn virtual_gif_takes_two_exits_out_of_each_chain() {
    let Some(report) = recorded_and_scored(&["loops=50", "vgif=on", "cpus=2", "workload=pio"]) else { return };
    assert!(report.contains("costs 4 exits of L1 to L0"), "{report}");
}

/// A lab whose machine is booting.
fn booting(bench: &Bench) -> Child {
    let mut child = bench.lab(&[]).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("booting L0")), "the machine starts");
    child
}

fn signal(child: &Child, name: &str) {
    assert!(Command::new("kill").args([name, &child.id().to_string()]).status().unwrap().success());
}

#[test]
fn a_lab_that_is_interrupted_leaves_nothing() {
    let Some(bench) = Bench::new() else { return };
    let mut child = booting(&bench);
    signal(&child, "-INT");
    assert_eq!(child.wait().unwrap().code(), Some(130));
    bench.assert_clean(child.id());
}
