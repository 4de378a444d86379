//! testpmd at work. It is spoken to as by a person: commands go to its standard input, and what it prints is read.
//!
//! In: a command whose program is `stdbuf -oL dpdk-testpmd ..`: testpmd prints line by line on a terminal only. Out: what it has
//! forwarded. Dropping it ends it.

use crate::child::ChildProcess;
use base::CpuSet;
use host::polled::testpmd::{self, Testpmd};
use lab::Error;
use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The program, of the Debian package dpdk-dev.
pub const PROGRAM: &str = "dpdk-testpmd";
/// How long it may take to be ready, and to answer.
const LIMIT: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// `rte_bus_probe` of lib/eal/common/eal_common_bus.c, DPDK 22.11.
const PROBE_FAILED: &str = "Bus (vdev) probe failed";

#[derive(Debug)]
pub struct Console(ChildProcess);

impl Console {
    pub fn start(mut command: Command, cpus: &CpuSet) -> Result<Self, Error> {
        command.stdin(Stdio::piped());
        ChildProcess::of_reader(command, cpus).map(Self)
    }

    pub fn pid(&self) -> u32 {
        self.0.pid()
    }

    /// True once it forwards.
    pub fn forwards(&self) -> bool {
        self.0.said().contains("packets/burst=")
    }

    /// What it has forwarded so far, and the text that says so.
    pub fn statistics(&mut self, stop: &AtomicBool) -> Result<(Testpmd, String), Error> {
        let before = self.0.said().len();
        self.command("show fwd stats all")?;
        let after = |console: &Self| console.0.said().get(before..).unwrap_or_default().to_owned();
        self.until("testpmd answers", stop, |console| Ok(testpmd::read(&after(console)).accounts > 0))?;
        let text = after(self);
        Ok((testpmd::read(&text), text))
    }

    /// What it has printed so far.
    pub fn said(&self) -> String {
        self.0.said()
    }

    pub fn complaints(&self) -> String {
        self.0.complaints()
    }

    pub fn command(&mut self, line: &str) -> Result<(), Error> {
        let input = self.0.input().ok_or_else(|| Error::Died("testpmd reads no commands".to_owned()))?;
        writeln!(input, "{line}").map_err(|error| Error::refused(format_args!("testpmd, {line}"), error))
    }

    /// Fails once one of its ports could not be set up: it goes on without, and waits for nothing.
    pub fn check_ports(&self) -> Result<(), Error> {
        if self.complaints().contains(PROBE_FAILED) {
            return Err(Error::Died(format!("a port of testpmd was not set up {}", self.complaint())));
        }
        Ok(())
    }

    /// What it complained about that tells most: what DPDK says last, while it ends, tells nothing.
    fn complaint(&self) -> String {
        let all = self.0.complaints();
        let why = all.lines().find(|line| line.contains("failed"));
        why.map_or_else(|| self.0.complaint(), |why| format!("({})", why.trim()))
    }

    /// Waits until something is so.
    pub fn until(
        &mut self,
        what: &str,
        stop: &AtomicBool,
        is_so: impl FnMut(&Self) -> Result<bool, Error>,
    ) -> Result<(), Error> {
        self.until_looking(LOOK_EVERY, what, stop, is_so)
    }

    /// The same, looking every so often: who times what happens looks often.
    pub fn until_looking(
        &mut self,
        every: Duration,
        what: &str,
        stop: &AtomicBool,
        mut is_so: impl FnMut(&Self) -> Result<bool, Error>,
    ) -> Result<(), Error> {
        let begin = Instant::now();
        while !is_so(self)? {
            if self.0.has_ended() {
                return Err(Error::Died(format!("testpmd has ended {}", self.complaint())));
            }
            if begin.elapsed() > LIMIT {
                let said = self.complaint();
                return Err(Error::TimedOut(format!("waited {} s until {what} {said}", LIMIT.as_secs())));
            }
            if stop.load(Ordering::Relaxed) {
                return Err(Error::Stopped);
            }
            std::thread::sleep(every);
        }
        Ok(())
    }
}
