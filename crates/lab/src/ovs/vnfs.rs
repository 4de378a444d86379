//! The VNFs: one testpmd, which forwards from one virtio-user port of each to the other.
//!
//! It is spoken to as by a person: commands go to its standard input, and what it prints is read. `stdbuf` has it print line
//! by line, which it does on a terminal only.

use super::ports::Wiring;
use super::seats::Seats;
use super::switch::Switch;
use super::{Memory, Watch};
use crate::Error;
use crate::child::ChildProcess;
use crate::journal::{Entry, Owner, Step};
use base::CpuSet;
use host::polled::testpmd::{self, Testpmd};
use rustix::process::{Pid, Signal, kill_process};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Forwards packets as fast as they come.
pub(super) const PROGRAM: &str = "dpdk-testpmd";

/// Entries of each ring: a ring of 256 collapsed under load in the CNCF's beds.
pub(super) const RING: u32 = 1024;
/// Buffers: for the program itself, and for the rings of each VNF.
const BUFFERS: u32 = 8192;
const BUFFERS_OF_VNF: u32 = 4096;
/// How long it may take to be ready, and to answer.
const LIMIT: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// testpmd, stopped; dropping this has it go on.
#[derive(Debug)]
pub(super) struct Stopped(Pid);

impl Drop for Stopped {
    fn drop(&mut self) {
        let _ = kill_process(self.0, Signal::CONT); // it may have ended: the next command tells
    }
}

/// testpmd at work; dropping it ends it.
#[derive(Debug)]
pub(super) struct Vnfs {
    program: ChildProcess,
    wiring: Wiring,
}

impl Vnfs {
    /// Starts it, adds its ports to the switch, and waits until all of them are connected: what happens before measures
    /// how ports are set up.
    pub(super) fn start(
        switch: &mut Switch,
        wiring: Wiring,
        memory: Memory,
        seats: &Seats,
        entry: &mut Entry,
        proc: &Path,
        watch: &Watch<'_>,
    ) -> Result<Self, Error> {
        let connected = switch.connections();
        switch.wire(wiring)?;
        let mut command = Command::new("stdbuf");
        command.args(["-oL", PROGRAM]).args(memory.of_vnfs()).args(["--no-pci", "--file-prefix=vnfs", "--lcores"]);
        command.arg(format!("0@{},1@{}", seats.others, seats.vnfs));
        for (index, (port, _)) in wiring.of_vnfs().enumerate() {
            let socket = switch.socket(&port);
            command.arg(format!(
                "--vdev=net_virtio_user{index},path={},queues=1,queue_size={RING},server=1",
                socket.display()
            ));
        }
        command.args(["--", "-i", "--no-mlockall", "--forward-mode=io", "--nb-cores=1"]);
        command.args(["--no-lsc-interrupt", "--disable-link-check"]);
        command.arg(format!("--total-num-mbufs={}", BUFFERS + BUFFERS_OF_VNF * wiring.vnfs));
        command.env("RUNTIME_DIRECTORY", switch.directory()).stdin(Stdio::piped());
        let program = ChildProcess::of_reader(command, &CpuSet::from_iter([seats.others, seats.vnfs]))?;
        entry.intend(Step::Process(Owner::of(proc, program.pid())?))?;
        let mut vnfs = Self { program, wiring };
        vnfs.command("start")?;
        let ports = 2 * wiring.vnfs as usize;
        vnfs.until("the ports of testpmd are connected", watch, |vnfs| {
            switch.check()?;
            Ok(switch.connections() >= connected + ports && vnfs.program.said().contains("packets/burst="))
        })?;
        Ok(vnfs)
    }

    /// The process.
    pub(super) fn pid(&self) -> u32 {
        self.program.pid()
    }

    /// Stops it where it is, until what is returned is dropped.
    pub(super) fn stop(&self) -> Result<Stopped, Error> {
        let refused = || Error::Died("testpmd has no process that could be stopped".to_owned());
        let pid = i32::try_from(self.pid()).ok().and_then(Pid::from_raw).ok_or_else(refused)?;
        kill_process(pid, Signal::STOP).map_err(|error| Error::refused("testpmd takes no signal", error))?;
        Ok(Stopped(pid))
    }

    /// What it has forwarded so far, and the text that says so.
    pub(super) fn statistics(&mut self, watch: &Watch<'_>) -> Result<(Testpmd, String), Error> {
        let before = self.program.said().len();
        self.command("show fwd stats all")?;
        let after = |vnfs: &Self| vnfs.program.said().get(before..).unwrap_or_default().to_owned();
        self.until("testpmd answers", watch, |vnfs| Ok(testpmd::read(&after(vnfs)).accounts > 0))?;
        let text = after(self);
        Ok((testpmd::read(&text), text))
    }

    /// Ends it, and takes its ports away.
    pub(super) fn end(self, switch: &Switch) -> Result<(), Error> {
        drop(self.program);
        switch.unwire(self.wiring)?;
        // testpmd does not listen at a socket that is there already.
        for (port, _) in self.wiring.of_vnfs() {
            let socket = switch.socket(&port);
            std::fs::remove_file(&socket).map_err(|error| Error::io(socket, error))?;
        }
        Ok(())
    }

    fn command(&mut self, line: &str) -> Result<(), Error> {
        let input = self.program.input().ok_or_else(|| Error::Died("testpmd reads no commands".to_owned()))?;
        writeln!(input, "{line}").map_err(|error| Error::refused(format_args!("testpmd, {line}"), error))
    }

    fn until(
        &mut self,
        what: &str,
        watch: &Watch<'_>,
        mut is_so: impl FnMut(&Self) -> Result<bool, Error>,
    ) -> Result<(), Error> {
        let begin = Instant::now();
        while !is_so(self)? {
            if self.program.has_ended() {
                return Err(Error::Died(format!("testpmd has ended {}", self.program.complaint())));
            }
            if begin.elapsed() > LIMIT {
                let said = self.program.complaint();
                return Err(Error::TimedOut(format!("waited {} s until {what} {said}", LIMIT.as_secs())));
            }
            watch.rest(LOOK_EVERY)?;
        }
        Ok(())
    }
}
