//! What does a whole program take, and how many exits were there meanwhile?
//!
//! ```text
//! KVM's counters -> start -> wait4: real, user, system, memory, switches -> KVM's counters
//! ```
//! What /usr/bin/time tells, again and again, with the counters of all VMs of this host around each run. A micro-benchmark
//! and the program that it should explain can point in opposite directions, which only both together show.
//!
//! Source: getrusage(2), wait4(2); Documentation/virt/kvm/ (debugfs: `/sys/kernel/debug/kvm`, Linux 6.12).

use lab::Error;
use lab::program::tie;
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Where KVM counts for all of its VMs together.
const COUNTERS: &str = "sys/kernel/debug/kvm";

/// One run of a program.
#[derive(Debug, Clone, PartialEq)]
pub struct Took {
    /// From its start to its end.
    pub real: Duration,
    /// What it and those that it waited for did in user mode.
    pub user: Duration,
    pub system: Duration,
    /// The most memory that one of them had at once.
    pub max_rss_bytes: u64,
    /// How often they slept.
    pub voluntary_switches: u64,
    /// How often they were made to wait.
    pub involuntary_switches: u64,
    /// What it ended with, as a shell counts it: 128 and the signal if one killed it.
    pub status: i32,
    /// By how much KVM's counters grew; `None` where they cannot be read.
    pub counters: Option<BTreeMap<String, u64>>,
}

/// Runs `command` once. What it prints goes to standard error: standard output is the answer's.
///
/// # Errors
/// If it cannot be started or waited for.
pub fn run(command: &[OsString], root: &Path) -> Result<Took, Error> {
    let (program, arguments) =
        command.split_first().ok_or_else(|| Error::WrongUse("name the command to time, behind `--`".to_owned()))?;
    let no = |error: std::io::Error| Error::WrongUse(format!("{}: {error}", program.display()));
    let errors = std::io::stderr();
    let out = Stdio::from(std::os::fd::AsFd::as_fd(&errors).try_clone_to_owned().map_err(no)?);
    let before = counters(root);
    let began = Instant::now();
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(out);
    tie(&mut command, Signal::TERM);
    let child = command.spawn().map_err(no)?;
    let (status, usage) = wait(child.id())?;
    let real = began.elapsed();
    let after = counters(root);
    let time = |value: libc::timeval| {
        Duration::from_secs(value.tv_sec.unsigned_abs()) + Duration::from_micros(value.tv_usec.unsigned_abs())
    };
    let grown = before.zip(after).map(|(before, after)| super::stats::growth(&before, &after));
    Ok(Took {
        real,
        user: time(usage.ru_utime),
        system: time(usage.ru_stime),
        max_rss_bytes: usage.ru_maxrss.unsigned_abs() * 1024,
        voluntary_switches: usage.ru_nvcsw.unsigned_abs(),
        involuntary_switches: usage.ru_nivcsw.unsigned_abs(),
        status,
        counters: grown,
    })
}

/// Below this [`Took::max_rss_bytes`] says nothing: a program begins as a copy of this process, and the kernel counts the
/// memory of that (`setmax_mm_hiwater_rss` in `exec_mmap`, fs/exec.c, Linux 6.12). It is what `true` takes, which itself
/// needs less than any other, and a quarter for what differs from run to run; `None` without `true`.
pub fn least_max_rss_bytes() -> Option<u64> {
    let nothing = run(&["true".into()], Path::new("/nonexistent")).ok()?;
    Some(nothing.max_rss_bytes + nothing.max_rss_bytes / 4)
}

/// Waits for a child, and tells what it and its own children used.
fn wait(pid: u32) -> Result<(i32, libc::rusage), Error> {
    // SAFETY: all of the structure is numbers, for which zeros are values.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    let mut status = 0;
    loop {
        // SAFETY: both are ours, and as large as the call expects; the child has not been waited for yet.
        let waited = unsafe { libc::wait4(pid as libc::pid_t, &mut status, 0, &mut usage) };
        if waited > 0 {
            let killed = libc::WIFSIGNALED(status);
            let status = if killed { 128 + libc::WTERMSIG(status) } else { libc::WEXITSTATUS(status) };
            return Ok((status, usage));
        }
        let error = std::io::Error::last_os_error();
        if error.kind() != std::io::ErrorKind::Interrupted {
            return Err(Error::refused("the command cannot be waited for", error));
        }
    }
}

/// KVM's counters now; `None` where they are not there or not for us.
fn counters(root: &Path) -> Option<BTreeMap<String, u64>> {
    let entries = std::fs::read_dir(root.join(COUNTERS)).ok()?;
    let counter = |entry: std::fs::DirEntry| {
        let value = std::fs::read_to_string(entry.path()).ok()?.trim().parse().ok()?;
        Some((entry.file_name().into_string().ok()?, value))
    };
    // Directories of single VMs lie there too: they are no numbers.
    Some(entries.flatten().filter_map(counter).collect()).filter(|all: &BTreeMap<_, _>| !all.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(words: &[&str]) -> Vec<OsString> {
        words.iter().map(OsString::from).collect()
    }

    #[test]
    fn a_program_is_told_with_what_it_used_and_what_kvm_counted() {
        let root = tempfile::tempdir().unwrap();
        let directory = root.path().join(COUNTERS);
        std::fs::create_dir_all(directory.join("42-11")).unwrap();
        let exits = directory.join("exits");
        std::fs::write(&exits, "100\n").unwrap();
        std::fs::write(directory.join("hypercalls"), "5\n").unwrap();
        let script =
            format!("i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; echo 130 > {}; exit 3", exits.display());
        let took = run(&command(&["sh", "-c", &script]), root.path()).unwrap();
        assert_eq!((took.status, took.counters), (3, Some(BTreeMap::from([("exits".to_owned(), 30)]))));
        assert!(took.real > Duration::ZERO && took.user + took.system > Duration::ZERO && took.max_rss_bytes > 100_000);
    }

    #[test]
    fn a_killed_program_ends_as_in_a_shell_and_a_missing_one_is_named() {
        let root = tempfile::tempdir().unwrap();
        let took = run(&command(&["sh", "-c", "kill -9 $$"]), root.path()).unwrap();
        assert_eq!((took.status, took.counters), (137, None));
        let error = run(&command(&["/nonexistent/program"]), root.path()).unwrap_err().to_string();
        assert!(error.contains("/nonexistent/program"), "{error}");
    }
}
