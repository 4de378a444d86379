//! When does a recording end? After a time, with a command, or on Ctrl-C.

use super::not_run;
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGINT, SIGTERM};
use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// What is waited for.
pub struct Until {
    since: Instant,
    wanted: Option<Duration>,
    asked: Arc<AtomicBool>,
    /// The command was told to end, once.
    told: bool,
    child: Option<Child>,
    status: Option<ExitStatus>,
}

impl Until {
    /// Until that time has passed, counted from [`Until::run`], or a signal came.
    pub fn new(wanted: Option<Duration>) -> anyhow::Result<Self> {
        let asked = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            signal_hook::flag::register(signal, Arc::clone(&asked))?;
        }
        Ok(Self { since: Instant::now(), wanted, asked, told: false, child: None, status: None })
    }

    /// Starts the clock, and the command if there is one.
    pub fn run(&mut self, command: &[OsString]) -> anyhow::Result<()> {
        self.since = Instant::now();
        if let Some((program, arguments)) = command.split_first() {
            self.child = Some(Command::new(program).args(arguments).spawn().map_err(|error| not_run(program, &error))?);
        }
        Ok(())
    }

    /// Time since [`Until::run`].
    pub fn elapsed(&self) -> Duration {
        self.since.elapsed()
    }

    /// True if recording is to end now. A command that runs is told of the signal and waited for.
    pub fn is_over(&mut self) -> anyhow::Result<bool> {
        let asked = self.asked.load(Ordering::Relaxed);
        let Some(child) = &mut self.child else {
            return Ok(asked || self.wanted.is_some_and(|wanted| self.since.elapsed() >= wanted));
        };
        if let Some(status) = child.try_wait()? {
            self.status = Some(status);
            return Ok(true);
        }
        if asked && !std::mem::replace(&mut self.told, true) {
            let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
            pid.map(|pid| kill_process(pid, Signal::TERM)).transpose()?;
        }
        Ok(false)
    }

    /// What the command ended with, as a shell counts it: 128 and the signal if one killed it.
    pub fn status(&self) -> Option<u8> {
        let status = self.status?;
        let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1);
        Some(u8::try_from(code).unwrap_or(u8::MAX))
    }
}
