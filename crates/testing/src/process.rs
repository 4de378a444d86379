//! Processes: those that a test started, those that must be gone, and what this one may do.

use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A process that is killed when this is dropped.
pub struct Running(pub Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Sends a signal, named as `kill` names it: `-INT`.
///
/// # Panics
/// If it cannot be sent.
pub fn send(child: &Child, signal: &str) {
    assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success(), "{signal}");
}

/// How many processes have a working directory whose path contains that.
#[must_use]
pub fn processes_with(directory: &str) -> usize {
    let entries = std::fs::read_dir("/proc").into_iter().flatten();
    let directories = entries.filter_map(|entry| std::fs::read_link(entry.ok()?.path().join("cwd")).ok());
    directories.filter(|path| path.to_string_lossy().contains(directory)).count()
}

/// Which of these programs does not start, and the Debian package that brings it.
#[must_use]
pub fn missing(programs: &[(&str, &str)]) -> Option<String> {
    let is_missing = |program: &str| {
        Command::new(program).arg("--help").stdout(Stdio::null()).stderr(Stdio::null()).status().is_err()
    };
    let (program, package) = programs.iter().find(|(program, _)| is_missing(program))?;
    Some(format!("{program} does not start; the Debian package {package} brings it"))
}

/// Why this host cannot be recorded, if so. Mounts the tracing file system where the kernel has it and nobody has mounted it, as in a
/// container: tests look there for what a recorder made and left.
#[must_use]
pub fn cannot_record() -> Option<&'static str> {
    const TRACEFS: &str = "/sys/kernel/tracing";
    let is_mounted = || Path::new(TRACEFS).join("instances").is_dir();
    if !rustix::process::geteuid().is_root() {
        return Some("recording needs root");
    }
    if !is_mounted() && Path::new(TRACEFS).is_dir() {
        let _ = Command::new("mount").args(["-t", "tracefs", "nodev", TRACEFS]).status();
    }
    (!is_mounted()).then_some("recording needs a kernel with /sys/kernel/tracing/instances")
}

/// True if SIGHUP is ignored here, as below nohup: then it is in the programs that a test starts, which leave it so. Says what is
/// left out.
#[must_use]
pub fn was_hangup_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    // Signal 1 is the lowest bit.
    let ignored = ignored.is_some_and(|mask| u64::from_str_radix(mask.trim(), 16).is_ok_and(|mask| mask & 1 == 1));
    if ignored {
        println!("skipped: SIGHUP: it is ignored here");
    }
    ignored
}
