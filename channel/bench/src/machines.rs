//! Several machines: a process each, with rings to all others or to a switch.
//!
//! ```text
//! host (this process)   makes rings, hands their descriptors over by sockets (`grant`), and gives nobody more than its own
//! machine 0 .. N-1      forked before there is any ring; attaches to what it was granted
//! switch N              with 2N rings: one from and one to each machine
//! ```

use super::peer::{Link, Peer};
use super::rings::refused;
use channel::grant::{self, Grant};
use channel::{Access, Consumer, FlowView, Header, Open, Producer, Region, Ring, Shape};
use lab::Error;
use serde::Serialize;
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// A machine that is granted nothing for so long has no host any more.
const GRANTED_WITHIN: Duration = Duration::from_secs(30);

/// Which CPUs machines run on: number `i` on the one at `i`, and on the first ones again where there are too few.
pub(crate) fn cpu_of(cpus: &[u32], number: u32) -> u32 {
    cpus.get(number as usize % cpus.len().max(1)).copied().unwrap_or(0)
}

pub(crate) struct Machine {
    pub peer: Peer,
    socket: UnixStream,
}

impl Machine {
    /// Starts one.
    ///
    /// # Errors
    /// As [`Peer::start`].
    pub(crate) fn start<T: Serialize>(
        work: impl FnOnce(UnixStream, &mut Link) -> Result<T, String>,
    ) -> Result<Self, Error> {
        let (ours, theirs) = UnixStream::pair().map_err(|error| Error::refused("a pair of sockets", error))?;
        for socket in [&ours, &theirs] {
            let limited = socket.set_read_timeout(Some(GRANTED_WITHIN));
            limited.map_err(|error| Error::refused("a pair of sockets", error))?;
        }
        Ok(Machine { peer: Peer::start(|link| work(theirs, link))?, socket: ours })
    }

    /// Hands it a region; `with` is the machine at the other end.
    ///
    /// # Errors
    /// If it has ended.
    pub(crate) fn grant(&self, what: Grant, with: u16, region: &Region) -> Result<(), Error> {
        grant::send(&self.socket, what, with, region.file()).map_err(refused)
    }

    /// What it hands out.
    ///
    /// # Errors
    /// If that is something else than `wanted`, or nothing.
    pub(crate) fn granted(&self, wanted: Grant, access: Access) -> Result<Region, Error> {
        match grant::receive(&self.socket).map_err(refused)? {
            Some((what, _, file)) if what == wanted => Region::received(file, access).map_err(refused),
            _ => Err(Error::Died(format!("a machine did not hand out what was expected of it: {wanted:?}"))),
        }
    }
}

/// Gives each ordered pair of machines a ring.
///
/// # Errors
/// If one cannot be made or handed over.
pub(crate) fn by_pairs(machines: &[Machine], shape: Shape) -> Result<(), Error> {
    for (from, sender) in machines.iter().enumerate() {
        for (to, receiver) in machines.iter().enumerate().filter(|(to, _)| *to != from) {
            one_way((from, sender), (to, receiver), shape)?;
        }
    }
    Ok(())
}

/// Gives each machine a ring to and from a switch.
///
/// # Errors
/// As [`by_pairs`].
pub(crate) fn through(machines: &[Machine], switch: &Machine, shape: Shape) -> Result<(), Error> {
    let last = machines.len();
    for (number, machine) in machines.iter().enumerate() {
        one_way((number, machine), (last, switch), shape)?;
        one_way((last, switch), (number, machine), shape)?;
    }
    Ok(())
}

fn one_way(from: (usize, &Machine), to: (usize, &Machine), shape: Shape) -> Result<(), Error> {
    let header = Header { shape, generation: 1, producer: from.0 as u32, consumer: to.0 as u32 };
    let ring = Ring::shared(header).map_err(refused)?;
    from.1.grant(Grant::ToSend, to.0 as u16, ring.region())?;
    to.1.grant(Grant::ToReceive, from.0 as u16, ring.region())
}

#[derive(Default)]
pub(crate) struct Granted {
    /// To send by, with the number of who receives.
    pub to: Vec<(u16, Producer<Open>)>,
    /// To receive by, with the number of who sends.
    pub from: Vec<(u16, Consumer<Open>)>,
    /// The flow table, if there is one.
    pub flows: Option<FlowView>,
}

impl Granted {
    /// Takes so many grants.
    ///
    /// # Errors
    /// If they do not come, or are not what they should be.
    pub(crate) fn attach(socket: &UnixStream, grants: usize) -> Result<Granted, String> {
        let mut granted = Granted::default();
        let text = |error: channel::Error| error.to_string();
        for _ in 0..grants {
            let (what, with, file) = grant::receive(socket).map_err(text)?.ok_or("the host has ended")?;
            let ring = |file| {
                let ring = Ring::of(Region::received(file, Access::ReadWrite)?)?;
                let window = Open::over(ring.halves());
                Ok((ring, window))
            };
            match what {
                Grant::ToSend => {
                    let (ring, window) = ring(file).map_err(text)?;
                    granted.to.push((with, Producer::new(&ring, window).polled()));
                }
                Grant::ToReceive => {
                    let (ring, window) = ring(file).map_err(text)?;
                    granted.from.push((with, Consumer::new(&ring, window).polled()));
                }
                Grant::Flows => {
                    let region = Region::received(file, Access::Read).map_err(text)?;
                    granted.flows = Some(FlowView::of(region).map_err(text)?);
                }
                other => return Err(format!("the host granted something else than a ring: {other:?}")),
            }
        }
        granted.to.sort_by_key(|(with, _)| *with);
        granted.from.sort_by_key(|(with, _)| *with);
        Ok(granted)
    }
}

/// Looks that find nothing before a machine that shares its CPU gives it away: another one may have what it waits for.
const IDLE_LOOKS: u32 = 16;

/// Why machines that share a CPU are not measured by a real-time policy.
pub(crate) fn starves() -> Error {
    let why = "with --fifo machines that share a CPU would starve each other: name more CPUs, or leave --fifo out";
    Error::Absent(why.to_owned())
}

/// When a machine that polls lets others run.
pub(crate) struct Turns {
    shared: bool,
    idle: u32,
}

impl Turns {
    /// Of a machine that shares its CPU, or does not.
    pub(crate) fn new(shared: bool) -> Turns {
        Turns { shared, idle: 0 }
    }

    /// After each turn: whether something moved in it.
    #[inline]
    pub(crate) fn after(&mut self, moved: bool) {
        if moved {
            self.idle = 0;
            return;
        }
        self.idle += 1;
        if self.shared && self.idle >= IDLE_LOOKS {
            self.idle = 0;
            rustix::thread::sched_yield();
        } else {
            std::hint::spin_loop();
        }
    }
}
