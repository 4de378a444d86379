//! Two testpmd, connected: how they are started, and how long each part of that takes.
//!
//! ```text
//! processes   both are started, until both read commands       (memory, buffers)
//! attach      the server listens, then the client is made      (vhost-user: it connects, features are agreed upon)
//! link        the client is started, until both are up         (memory is shared, rings are agreed upon)
//! first frame both forward, until the receiver has counted one
//! ```
//! In: a setup. Out: both ends, forwarding, and the parts. Sources: "NIC drivers" (memif, vhost, virtio) and "Testpmd application user guide"
//! of DPDK 22.11.

use super::super::Plan;
use super::bed::{Bed, PROGRAM_MIB};
use super::telemetry::{SOCKET, Telemetry};
use super::threads::Poller;
use base::channel::{MEMIF, Setup, SetupPart, VHOST_USER};
use lab::Error;
use labs::testpmd::{Console, PROGRAM};
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How often it is looked whether a part is over: they take milliseconds.
const LOOK_EVERY: Duration = Duration::from_millis(1);
/// A link that is not up by then never will be.
const UP_WITHIN: Duration = Duration::from_secs(20);
/// Buffers of each testpmd.
const BUFFERS: u32 = 16_384;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Path {
    /// A shared memory interface.
    Memif,
    /// A virtio device, and a vhost port.
    VhostUser,
}

impl Path {
    pub(super) fn named(name: &str) -> Option<Self> {
        match name {
            MEMIF => Some(Self::Memif),
            VHOST_USER => Some(Self::VhostUser),
            _ => None,
        }
    }

    /// The end that listens at `socket`, and that which connects: devices, as DPDK's option `--vdev` has them.
    fn devices(self, socket: &str, slots: u32) -> [String; 2] {
        match self {
            Self::Memif => ["server", "client"].map(|role| {
                format!("net_memif0,role={role},id=0,rsize={},socket={socket},socket-abstract=no", slots.ilog2())
            }),
            Self::VhostUser => [
                format!("net_vhost0,iface={socket},queues=1"),
                format!("net_virtio_user0,path={socket},queues=1,queue_size={slots}"),
            ],
        }
    }
}

#[derive(Debug)]
pub(super) struct End {
    pub console: Console,
    pub telemetry: Telemetry,
    pub poller: Poller,
}

#[derive(Debug)]
pub(super) struct Ends {
    pub sender: End,
    pub receiver: End,
    pub parts: Vec<SetupPart>,
    /// From the first command that connects them until the first frame arrived.
    pub setup_ns: u64,
    /// Where their sockets are, removed when they have ended.
    _sockets: TempDir,
}

impl Ends {
    /// Starts both, and waits until a frame has arrived.
    ///
    /// # Errors
    /// If a program does not start, lacks a driver, or the link does not come up.
    pub(super) fn start(plan: &Plan, setup: &Setup, bed: &Bed, path: Path) -> Result<Self, Error> {
        let sockets = tempfile::tempdir_in(&bed.directory).map_err(|error| Error::io(&bed.directory, error))?;
        let socket = sockets.path().join("link").display().to_string();
        let begun = Instant::now();
        let program = |role: &str, cpu| {
            let command = testpmd(role, cpu, setup, bed, sockets.path());
            let console = Console::start(command, &bed.with_spare(&[cpu]))?;
            bed.note(console.pid())?;
            Ok::<Console, Error>(console)
        };
        let (mut receiver, mut sender) = (program("rxonly", plan.cpus.1)?, program("txonly", plan.cpus.0)?);
        for console in [&mut receiver, &mut sender] {
            until(console, "testpmd reads commands", |said| said.contains("testpmd> "))?;
        }
        let mut parts = Parts { parts: Vec::new(), last: begun };
        let connecting = parts.ends("processes");

        let [server, client] = path.devices(&socket, plan.slots);
        attach(&mut receiver, &server)?;
        // A vhost port listens once it is started, and a virtio device does not wait for that.
        receiver.command("port start 0")?;
        let has_started =
            |said: &str| said.split_once("Configuring Port 0").is_some_and(|(_, then)| then.contains("Done"));
        until(&mut receiver, "testpmd listens", has_started)?;
        attach(&mut sender, &client)?;
        parts.ends("attach");

        sender.command("port start 0")?;
        let connect = |role: &str| Telemetry::connect(&sockets.path().join("dpdk").join(role).join(SOCKET));
        let (heard, told) = (connect("rxonly")?, connect("txonly")?);
        while !(heard.is_up()? && told.is_up()?) {
            if parts.last.elapsed() > UP_WITHIN {
                return Err(Error::TimedOut(format!("the link was not up after {} s", UP_WITHIN.as_secs())));
            }
            std::thread::sleep(LOOK_EVERY);
        }
        parts.ends("link");

        receiver.command("start")?;
        until(&mut receiver, "testpmd receives", |said| said.contains(FORWARDS))?;
        sender.command("start")?;
        while heard.counts()?.received == 0 {
            if parts.last.elapsed() > UP_WITHIN {
                return Err(Error::TimedOut(format!("no frame had arrived after {} s", UP_WITHIN.as_secs())));
            }
            std::thread::sleep(LOOK_EVERY);
        }
        let arrived = parts.ends("first frame");
        let end = |console: Console, telemetry, cpu| {
            let poller = Poller::of(std::path::Path::new("/proc"), console.pid(), 1, cpu)?;
            Ok::<End, Error>(End { console, telemetry, poller })
        };
        Ok(Self {
            sender: end(sender, told, plan.cpus.0)?,
            receiver: end(receiver, heard, plan.cpus.1)?,
            parts: parts.parts,
            setup_ns: (arrived - connecting).as_nanos() as u64,
            _sockets: sockets,
        })
    }
}

/// What testpmd says once it forwards.
const FORWARDS: &str = "packets/burst=";

/// Parts that end one after the other.
struct Parts {
    parts: Vec<SetupPart>,
    last: Instant,
}

impl Parts {
    fn ends(&mut self, name: &str) -> Instant {
        let now = Instant::now();
        self.parts.push(SetupPart { name: name.to_owned(), ns: (now - self.last).as_nanos() as u64 });
        self.last = now;
        now
    }
}

/// A testpmd without ports that does `role`: its second logical core polls on `cpu`, and all else sleeps on a spare one, or there.
fn testpmd(role: &str, cpu: u32, setup: &Setup, bed: &Bed, sockets: &std::path::Path) -> Command {
    let other = bed.spare.first().copied().unwrap_or(cpu);
    let mut command = Command::new("stdbuf");
    command.args(["-oL", PROGRAM]).args(bed.options(PROGRAM_MIB)).arg("--no-pci");
    command.arg(format!("--file-prefix={role}")).args(["--lcores", &format!("0@{other},1@{cpu}")]);
    command.args(["--", "-i", "--no-mlockall", "--nb-cores=1", "--disable-link-check"]);
    command.arg(format!("--forward-mode={role}")).arg(format!("--burst={}", setup.batch));
    command.arg(format!("--total-num-mbufs={BUFFERS}")).arg(format!("--txpkts={}", setup.size_bytes));
    command.env("RUNTIME_DIRECTORY", sockets);
    command
}

/// Gives a testpmd its port.
fn attach(console: &mut Console, device: &str) -> Result<(), Error> {
    console.command(&format!("port attach {device}"))?;
    let driver = device.split(',').next().unwrap_or(device).trim_end_matches('0');
    let done = until(console, "testpmd has its port", |said| said.contains("Now total ports is 1"));
    // A failure is told at once, but to the other output.
    done.map_err(|error| match error {
        Error::Absent(said) => Error::Absent(format!(
            "testpmd cannot make a port of {driver} ({said}); on Debian its driver is in librte-{}23",
            driver.replace('_', "-").trim_end_matches("-user")
        )),
        other => other,
    })
}

/// Waits until it has said something; what it fails with ends that.
fn until(console: &mut Console, what: &str, is_so: impl Fn(&str) -> bool) -> Result<(), Error> {
    console.until_looking(LOOK_EVERY, what, &AtomicBool::new(false), |console| {
        if is_so(&console.said()) {
            return Ok(true);
        }
        match failure(&console.complaints()) {
            Some(line) => Err(Error::Absent(line)),
            None => Ok(false),
        }
    })
}

/// The first line that says why a port was not made.
fn failure(complaints: &str) -> Option<String> {
    let failed = complaints.contains("Failed to attach port") || complaints.contains("Fail: ");
    let says = |line: &&str| ["failed", "Failed", "Fail: "].iter().any(|word| line.contains(word));
    failed.then(|| complaints.lines().find(says).unwrap_or_default().trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_that_was_not_made_is_told_with_dpdks_own_reason() {
        let said = include_str!("../../../../fixtures/dpdk-channel/attach-failed.txt");
        assert_eq!(failure(said).unwrap(), "EAL: failed to parse device \"net_nosuch0\"");
        let before = said.split_once("EAL: failed").unwrap().0;
        assert_eq!(failure(before), None);
        assert_eq!(failure("TELEMETRY: Failed to do something that does not matter"), None);
    }

    #[test]
    fn both_ends_of_a_path_meet_at_one_socket_and_have_rings_of_one_size() {
        let [server, client] = Path::Memif.devices("/run/x/link", 1_024);
        assert_eq!(server, "net_memif0,role=server,id=0,rsize=10,socket=/run/x/link,socket-abstract=no");
        assert_eq!(client, server.replace("server", "client"));
        let [vhost, virtio] = Path::VhostUser.devices("/run/x/link", 256);
        assert!(vhost.contains("iface=/run/x/link") && virtio.contains("path=/run/x/link,queues=1,queue_size=256"));
        assert_eq!(["memif", "vhost-user", "ring"].map(Path::named), [Some(Path::Memif), Some(Path::VhostUser), None]);
    }
}
