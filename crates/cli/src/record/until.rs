//! When does a recording end? After a time, with a command, or on Ctrl-C.

use super::not_run;
use base::recording::EndedBy;
use process::interrupt::LOOK_EVERY;
use rustix::process::{Pid, Signal, kill_process};
use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How long a command may take to end once it was asked to, before it is killed: QEMU closes its disks meanwhile.
const GRACE: Duration = Duration::from_secs(10);

pub(super) struct Until {
    since: Instant,
    wanted: Option<Duration>,
    asked: Arc<AtomicBool>,
    grace: Duration,
    /// When the command was asked to end.
    told: Option<Instant>,
    child: Option<Child>,
    status: Option<ExitStatus>,
}

impl Until {
    /// Until that time has passed, counted from [`Until::run`], or until a signal has raised `asked`.
    pub(super) fn new(wanted: Option<Duration>, asked: Arc<AtomicBool>) -> Self {
        Self { since: Instant::now(), wanted, asked, grace: GRACE, told: None, child: None, status: None }
    }

    /// Starts the clock, and the command if there is one.
    pub(super) fn run(&mut self, command: &[OsString]) -> anyhow::Result<()> {
        self.since = Instant::now();
        if let Some((program, arguments)) = command.split_first() {
            self.child = Some(Command::new(program).args(arguments).spawn().map_err(|error| not_run(program, &error))?);
        }
        Ok(())
    }

    /// Time since [`Until::run`].
    pub(super) fn elapsed(&self) -> Duration {
        self.since.elapsed()
    }

    /// True if recording is to end now. On a signal a command that runs is asked to end and waited for; on a second signal,
    /// or when it takes too long, it is killed.
    pub(super) fn is_over(&mut self) -> anyhow::Result<bool> {
        let Some(child) = &mut self.child else {
            let asked = self.asked.load(Ordering::Relaxed);
            return Ok(asked || self.wanted.is_some_and(|wanted| self.since.elapsed() >= wanted));
        };
        if let Some(status) = child.try_wait()? {
            self.status = Some(status);
            return Ok(true);
        }
        let asked = self.asked.swap(false, Ordering::Relaxed);
        match self.told {
            None if asked => {
                self.told = Some(Instant::now());
                let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
                pid.map(|pid| kill_process(pid, Signal::TERM)).transpose()?;
            }
            Some(told) if asked || told.elapsed() >= self.grace => child.kill()?,
            _ => {}
        }
        Ok(false)
    }

    pub(super) fn by(&self) -> EndedBy {
        match self.status {
            Some(_) => EndedBy::Command,
            None if self.asked.load(Ordering::Relaxed) => EndedBy::Signal,
            None => EndedBy::Time,
        }
    }

    /// What the command ended with, as a shell counts it: 128 and the signal if one killed it.
    pub(super) fn status(&self) -> Option<u8> {
        let status = self.status?;
        let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1);
        Some(u8::try_from(code).unwrap_or(u8::MAX))
    }
}

impl Drop for Until {
    /// Where recording ended first, because the disk is full, the command does not outlive it.
    fn drop(&mut self) {
        if self.told.is_none() {
            self.asked.store(true, Ordering::Relaxed);
        }
        while self.child.is_some() && matches!(self.is_over(), Ok(false)) {
            std::thread::sleep(LOOK_EVERY);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A command that does not obey SIGTERM, and has said that it does not.
    fn stubborn(grace: Duration) -> (Until, tempfile::TempDir) {
        let place = tempfile::tempdir().unwrap();
        let ready = place.path().join("ready");
        let mut until = Until::new(None, Arc::default());
        until.grace = grace;
        let script = format!("trap '' TERM; : > '{}'; while :; do sleep 0.05; done", ready.display());
        until.run(&["sh", "-c", &script].map(OsString::from)).unwrap();
        while !ready.exists() {
            std::thread::sleep(LOOK_EVERY);
        }
        (until, place)
    }

    fn ended(until: &mut Until) -> Option<u8> {
        while !until.is_over().unwrap() {
            std::thread::sleep(LOOK_EVERY);
        }
        until.status()
    }

    #[test]
    fn a_command_that_does_not_end_when_asked_is_killed_after_the_grace() {
        let (mut until, _place) = stubborn(Duration::from_millis(100));
        until.asked.store(true, Ordering::Relaxed);
        assert_eq!(ended(&mut until), Some(128 + 9));
    }

    #[test]
    fn a_second_signal_kills_at_once() {
        let (mut until, _place) = stubborn(Duration::MAX);
        until.asked.store(true, Ordering::Relaxed);
        assert!(!until.is_over().unwrap());
        until.asked.store(true, Ordering::Relaxed);
        assert_eq!(ended(&mut until), Some(128 + 9));
    }

    #[test]
    fn a_command_does_not_outlive_a_recording_that_ended_first() {
        let (until, _place) = stubborn(Duration::from_millis(100));
        let pid = until.child.as_ref().unwrap().id();
        drop(until);
        assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists());
    }
}
