//! Is the guest reached while it is moved? Two hosts in namespaces, a link between them that carries the guest, and a switch that both
//! plug it into.
//!
//! ```text
//! namespace -source          namespace -target
//! QEMU  move0 --- veth --- move0  QEMU          the migration, by TCP
//!   |                              |
//! source0 (tap)      (tap) target0              namespace -switch
//!      '---- bridge0 ----'
//!               '-- port0 --- veth --- probe0   the train: numbered packets to the guest, which sends them back
//! ```
//! The bridge learns where the guest is by what comes from it, as switches do: packets go to the old place until the guest is announced at
//! the new one, or answers there. The target is plugged in only once the guest has answered from the source, so that nothing of the train
//! was flooded to it before.
//! In: a rate. Out: [`Network`]. Namespaces stand in the journal, everything else lies inside them, and taps end with the QEMU that holds
//! them.

mod driver;
mod frame;
mod link;
mod pace;
mod socket;
mod train;

pub(super) use driver::{RINGS, code as driver};
pub use pace::Pace;
pub(super) use train::Train;

use super::qemu::Side;
use crate::netns::tap;
use base::network::Link;
use frame::{GUEST, PROBE};
use lab::Error;
use lab::journal::network::ip;
use lab::journal::{Entry, Journal, Step};
use lab::watch::Watch;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// The command, as the journal has it.
pub(super) const COMMAND: &str = "migrate";
/// Both ends of the link that carries the guest.
const LINK: &str = "move0";
/// 198.18.0.0/15 is set apart for benches of network devices (RFC 2544, C.2.2).
const LINK_ADDRESSES: [&str; 2] = ["198.18.1.1", "198.18.1.2"];
/// Nobody else is in that namespace.
const LINK_PORT: u16 = 4_444;
/// Until the guest answers for the first time.
const FIRST: Duration = Duration::from_millis(1);
/// A guest that beats has its card at work.
const ANSWERS: Duration = Duration::from_secs(10);

/// The card that a QEMU gives the guest.
pub(super) struct Plug {
    /// The namespace in which that QEMU runs.
    pub namespace: String,
    /// The other end of its cable.
    pub tap: OwnedFd,
}

pub(super) struct Bed {
    source: String,
    target: String,
    switch: String,
    pace: Pace,
}

/// Does `work` with a bed of which nothing is left afterwards.
///
/// # Errors
/// If it cannot be made, the work fails, or something cannot be taken away.
pub(crate) fn with_bed<T>(
    pace: Pace,
    journal: &Journal,
    work: impl FnOnce(&Bed) -> Result<T, Error>,
) -> Result<T, Error> {
    let mut entry = journal.begin(COMMAND)?;
    let done = Bed::build(pace, &mut entry).and_then(|bed| work(&bed));
    entry.put_back_after(done, journal.proc())
}

impl Bed {
    fn build(pace: Pace, entry: &mut Entry) -> Result<Self, Error> {
        let name = |role: &str| format!("{}-{role}", entry.id);
        let bed = Self { source: name("source"), target: name("target"), switch: name("switch"), pace };
        let Self { source, target, switch, .. } = &bed;
        for namespace in [source, target, switch] {
            entry.intend(Step::NetNamespace { name: namespace.clone() })?;
            ip(&["netns", "add", namespace])?;
        }
        ip(&["link", "add", LINK, "netns", source, "type", "veth", "peer", "name", LINK, "netns", target])?;
        for (namespace, address) in [source, target].into_iter().zip(LINK_ADDRESSES) {
            ip(&["-n", namespace, "addr", "add", &format!("{address}/24"), "dev", LINK])?;
            up(namespace, LINK)?;
        }
        ip(&["-n", switch, "link", "add", "bridge0", "type", "bridge", "mcast_snooping", "0"])?;
        up(switch, "bridge0")?;
        let probe = written(PROBE);
        ip(&["-n", switch, "link", "add", "probe0", "address", &probe, "type", "veth", "peer", "name", "port0"])?;
        up(switch, "probe0")?;
        bed.join("port0")?;
        Ok(bed)
    }

    /// What the QEMU of that side is started with.
    ///
    /// # Errors
    /// If the kernel refuses a tap.
    pub(crate) fn plug(&self, side: Side) -> Result<Plug, Error> {
        let namespace = match side {
            Side::Source => &self.source,
            Side::Target => &self.target,
        };
        Ok(Plug { namespace: namespace.clone(), tap: tap::open(&self.switch, tap_of(side))? })
    }

    /// Has the guest answer from the source, and then opens the way to the target; how often packets are to go from then on.
    ///
    /// # Errors
    /// If the guest does not answer.
    pub(super) fn warm_up(&self, watch: &mut Watch<'_>) -> Result<Duration, Error> {
        self.join(tap_of(Side::Source))?;
        let train = self.train(FIRST)?;
        let until = Instant::now() + ANSWERS;
        while !train.is_answered() {
            if Instant::now() > until {
                return Err(Error::TimedOut(format!("the guest had answered no packet after {} s", ANSWERS.as_secs())));
            }
            watch.rest(Duration::from_millis(10))?;
        }
        drop(train);
        let interval = match self.pace {
            Pace::Every(interval) => interval,
            Pace::Most => pace::most(|interval| self.train(interval), watch)?,
        };
        self.join(tap_of(Side::Target))?;
        Ok(interval)
    }

    /// Packets to the guest, from now on; and a look at the link meanwhile.
    ///
    /// # Errors
    /// If the kernel refuses a socket or a thread.
    pub(crate) fn train(&self, interval: Duration) -> Result<Train, Error> {
        let link = link::Watched::start(&self.source, LINK)?;
        Train::start(&self.switch, interval, link)
    }

    /// Takes the link down that carries the guest; what is returned brings it up again.
    ///
    /// # Errors
    /// If `ip` cannot.
    pub(super) fn cut(&self) -> Result<impl FnOnce() + Send + 'static, Error> {
        ip(&["-n", &self.source, "link", "set", LINK, "down"])?;
        let namespace = self.source.clone();
        Ok(move || {
            // Where the namespace is gone there is no link to bring up.
            let _ = ip(&["-n", &namespace, "link", "set", LINK, "up"]);
        })
    }

    /// Where the target waits for the guest.
    pub(super) fn uri(&self) -> String {
        format!("tcp:{}:{LINK_PORT}", LINK_ADDRESSES[1])
    }

    /// A port of the switch.
    fn join(&self, device: &str) -> Result<(), Error> {
        ip(&["-n", &self.switch, "link", "set", device, "master", "bridge0"])?;
        up(&self.switch, device)
    }
}

/// How QEMU is told of the guest's card.
pub(super) fn card() -> String {
    format!("e1000,netdev=net,mac={},romfile=", written(GUEST))
}

/// What the kernel has sent over the link so far from the namespace of that process.
pub(crate) fn sent_by(pid: u32) -> Option<Link> {
    link::sent(pid, LINK)
}

/// What was sent between two counts.
pub(super) fn since(after: Link, before: Link) -> Link {
    Link {
        bytes: after.bytes.saturating_sub(before.bytes),
        retransmitted: after.retransmitted.saturating_sub(before.retransmitted),
    }
}

fn tap_of(side: Side) -> &'static str {
    match side {
        Side::Source => "source0",
        Side::Target => "target0",
    }
}

/// Switches a device on that says nothing of its own: no addresses of IPv6 are announced.
fn up(namespace: &str, device: &str) -> Result<(), Error> {
    // A kernel without IPv6 refuses, and announces none.
    let _ = ip(&["-n", namespace, "link", "set", device, "addrgenmode", "none"]);
    ip(&["-n", namespace, "link", "set", device, "up"]).map(drop)
}

fn written(address: [u8; 6]) -> String {
    address.map(|byte| format!("{byte:02x}")).join(":")
}
