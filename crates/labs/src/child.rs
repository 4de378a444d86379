//! Programs of others that belong to a bench: they end with it, also after kill -9 of ours.
//!
//! In: a program's words, the namespace and the CPUs it is to have. Out: what it printed, kept in a file without a name, so
//! that it never waits for us.

use base::CpuSet;
use lab::Error;
use lab::program::{Program, tie, untranslated};
use lab::setting::thread;
use rustix::process::Signal;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::time::Duration;

/// Most of what it printed that is read: an answer of iperf3 with 128 streams over an hour is some ten megabytes.
const MOST_BYTES: u64 = 64 << 20;
/// How long a program may take to name its version.
const LIMIT: Duration = Duration::from_secs(10);

/// A program at work; dropping it ends it.
#[derive(Debug)]
pub struct ChildProcess {
    child: Child,
    out: File,
    complaints: File,
    /// How it ended, if it was seen to.
    ended: Option<ExitStatus>,
}

impl ChildProcess {
    /// Fails with the package that brings it where a program is missing.
    pub fn is_installed(name: &str, package: &'static str) -> Result<(), Error> {
        Program::new(name, package).run(&["--version"], LIMIT).map(|_| ())
    }

    /// Starts `words`, in a namespace if it has one, on `cpus`.
    pub fn start(namespace: Option<&str>, words: &[&str], cpus: &CpuSet) -> Result<Self, Error> {
        let within = namespace.map_or_else(Vec::new, |namespace| vec!["ip", "netns", "exec", namespace]);
        let words = [within.as_slice(), words].concat();
        let (program, arguments) = words.split_first().ok_or_else(|| Error::Malformed("no program".to_owned()))?;
        let mut command = Command::new(program);
        command.args(arguments);
        Self::of(command, cpus)
    }

    /// Starts a command that reads nothing, on `cpus`. Call it from a thread that lives as long as the program shall.
    pub fn of(mut command: Command, cpus: &CpuSet) -> Result<Self, Error> {
        command.stdin(Stdio::null());
        Self::of_reader(command, cpus)
    }

    /// The same for a command whose standard input is set.
    pub(crate) fn of_reader(mut command: Command, cpus: &CpuSet) -> Result<Self, Error> {
        let name = command.get_program().to_string_lossy().into_owned();
        let file = || tempfile::tempfile().map_err(|error| Error::io(std::env::temp_dir(), error));
        let again = |file: &File| file.try_clone().map_err(|error| Error::io(std::env::temp_dir(), error));
        let (out, complaints) = (file()?, file()?);
        untranslated(&mut command).process_group(0);
        command.stdout(again(&out)?).stderr(again(&complaints)?);
        tie(&mut command, Signal::KILL);
        let child = command.spawn().map_err(|error| Error::refused(format_args!("{name} does not start"), error))?;
        let started = Self { child, out, complaints, ended: None };
        // It has one thread so early, and those that it starts inherit the mask.
        thread::set_affinity(started.pid(), cpus)?;
        Ok(started)
    }

    /// Where it reads, if its standard input is a pipe of ours.
    pub fn input(&mut self) -> Option<&mut ChildStdin> {
        self.child.stdin.as_mut()
    }

    pub fn complaints(&self) -> String {
        text(&self.complaints)
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// True once it has ended.
    pub fn has_ended(&mut self) -> bool {
        match self.child.try_wait() {
            Ok(None) => false,
            Ok(status) => {
                self.ended = status;
                true
            }
            Err(_) => true,
        }
    }

    pub fn wait(&mut self) {
        // Somebody who waited before us has seen its end.
        self.ended = self.child.wait().ok();
    }

    /// What it has printed so far.
    pub fn said(&self) -> String {
        text(&self.out)
    }

    /// The last line of what it complained about and how it ended, in parentheses; nothing if nothing is known.
    pub fn complaint(&self) -> String {
        let all = text(&self.complaints);
        let last = all.lines().rev().map(str::trim).find(|line| !line.is_empty()).map(str::to_owned);
        let ended = self.ended.filter(|status| !status.success()).map(|status| status.to_string());
        let known: Vec<String> = last.into_iter().chain(ended).collect();
        if known.is_empty() { String::new() } else { format!("({})", known.join("; ")) }
    }
}

impl Drop for ChildProcess {
    fn drop(&mut self) {
        // Gone already is what we want.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What stands in a file, from its beginning; the program goes on writing at its end.
fn text(file: &File) -> String {
    let length = file.metadata().map_or(0, |about| about.len()).min(MOST_BYTES);
    let mut bytes = vec![0; length as usize];
    let mut at = 0;
    while let Ok(got @ 1..) = file.read_at(&mut bytes[at..], at as u64) {
        at += got;
    }
    String::from_utf8_lossy(&bytes[..at]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use lab::journal::Owner;
    use std::path::Path;

    #[test]
    fn a_companion_has_its_cpus_and_ends_when_it_is_let_go() {
        let all = thread::affinity(thread::own()).unwrap();
        let first = CpuSet::one(all.first().unwrap());
        let mut quick = ChildProcess::start(None, &["sh", "-c", "echo yes; echo why >&2"], &all).unwrap();
        quick.wait();
        assert_eq!((quick.said(), quick.complaint()), ("yes\n".to_owned(), "(why)".to_owned()));
        let slow = ChildProcess::start(None, &["sleep", "60"], &first).unwrap();
        assert_eq!(thread::affinity(slow.pid()).unwrap(), first);
        let owner = Owner::of(Path::new("/proc"), slow.pid()).unwrap();
        let mut killed = ChildProcess::start(None, &["sh", "-c", "echo why >&2; kill -9 $$"], &all).unwrap();
        killed.wait();
        assert_eq!(killed.complaint(), "(why; signal: 9 (SIGKILL))");
        drop(slow);
        assert!(!owner.is_alive(Path::new("/proc")));
        assert!(ChildProcess::start(None, &["/nonexistent/program"], &all).is_err());
        let missing = ChildProcess::is_installed("/nonexistent/iperf3", "iperf3").unwrap_err().to_string();
        assert!(missing.contains("Debian package iperf3"), "{missing}");
    }
}
