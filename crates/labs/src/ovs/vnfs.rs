//! The VNFs: one testpmd, which forwards from one virtio-user port of each to the other.

use super::ports::Wiring;
use super::seats::Seats;
use super::switch::Switch;
use super::{Memory, Watch};
use crate::testpmd::Console;
pub(super) use crate::testpmd::PROGRAM;
use base::CpuSet;
use host::polled::testpmd::Testpmd;
use lab::Error;
use lab::journal::{Entry, Owner, Step};
use rustix::process::{Pid, Signal, kill_process};
use std::path::Path;
use std::process::Command;

/// Entries of each ring: a ring of 256 collapsed under load in the CNCF's beds.
pub(super) const RING: u32 = 1024;
/// Buffers: for the program itself, and for the rings of each VNF.
const BUFFERS: u32 = 8192;
const BUFFERS_OF_VNF: u32 = 4096;
/// How often it is started until its ports are connected.
const STARTS: u32 = 3;

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
    console: Console,
    wiring: Wiring,
}

/// What testpmd runs on, whichever ports it has.
#[derive(Clone, Copy)]
pub(super) struct Ground<'a> {
    pub memory: Memory,
    pub seats: &'a Seats,
    /// Where processes are told.
    pub proc: &'a Path,
}

impl Vnfs {
    /// Adds its ports to the switch, starts it, and waits until all of them are connected: what happens before measures
    /// how ports are set up. Started again where it ends on the way: a connection that the switch closes while a port is
    /// being set up ends testpmd by SIGPIPE (`vhost_user_write` of drivers/net/virtio/virtio_user/vhost_user.c, DPDK 22.11),
    /// or leaves it without that port.
    pub(super) fn start(
        switch: &mut Switch,
        wiring: Wiring,
        ground: Ground<'_>,
        entry: &mut Entry,
        watch: &mut Watch<'_>,
    ) -> Result<Self, Error> {
        switch.wire(wiring)?;
        let mut left = STARTS;
        loop {
            left -= 1;
            match Self::connect(switch, wiring, ground, entry, watch) {
                Err(Error::Died(why)) if left > 0 => {
                    switch.check()?;
                    (watch.say)(&format!("{why}; starting it again"));
                    // The switch connects anew to each port: to one whose handshake failed it may never do so again.
                    switch.unwire(wiring)?;
                    switch.forget_sockets(wiring)?;
                    switch.wire(wiring)?;
                }
                other => return other.map_err(|error| switch.with_its_warning(error)),
            }
        }
    }

    fn connect(
        switch: &mut Switch,
        wiring: Wiring,
        Ground { memory, seats, proc }: Ground<'_>,
        entry: &mut Entry,
        watch: &Watch<'_>,
    ) -> Result<Self, Error> {
        let connected = switch.connections();
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
        command.env("RUNTIME_DIRECTORY", switch.directory());
        let mut console = Console::start(command, &CpuSet::from_iter([seats.others, seats.vnfs]))?;
        entry.intend(Step::Process(Owner::of(proc, console.pid())?))?;
        console.command("start")?;
        let ports = 2 * wiring.vnfs as usize;
        console.until("the ports of testpmd are connected", watch.stop, |console| {
            switch.check()?;
            console.check_ports()?;
            Ok(switch.connections() >= connected + ports && console.forwards())
        })?;
        Ok(Self { console, wiring })
    }

    pub(super) fn pid(&self) -> u32 {
        self.console.pid()
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
        self.console.statistics(watch.stop)
    }

    /// Ends it, and takes its ports away.
    pub(super) fn end(self, switch: &Switch) -> Result<(), Error> {
        drop(self.console);
        switch.unwire(self.wiring)?;
        switch.forget_sockets(self.wiring)
    }
}
