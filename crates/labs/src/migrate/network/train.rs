//! The train: numbered packets to the guest at a pace, and what came back.
//!
//! Who sends is on one CPU before ordinary threads, where the kernel allows it; when replies came the kernel says, so that who listens may
//! be late. Either ends when it is told to.

use super::super::observe::pin;
use super::super::qemu::realtime_ns;
use super::frame::{self, Frame};
use super::link;
use super::socket::{Listener, Sender, index};
use crate::bench::priority;
use crate::netns::inside::enter;
use base::network::{Link, MOST_PACKETS, Network, Place, Reply, SCHEMA};
use lab::Error;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// After the first reply from the target, packets go on for so long: what is late comes by then, and the pace that follows is seen.
const AFTER: Duration = Duration::from_millis(300);
/// A reply that has not come by then is lost.
const REPLIES: Duration = Duration::from_millis(300);

/// What who sends, who listens and who waits share.
#[derive(Default)]
struct Shared {
    stop_sending: AtomicBool,
    stop_listening: AtomicBool,
    is_answered: AtomicBool,
    is_answered_there: AtomicBool,
}

/// Under way; it ends when it is dropped.
pub(crate) struct Train {
    from_ns: u64,
    interval: Duration,
    shared: Arc<Shared>,
    link: Option<link::Watched>,
    sender: Option<JoinHandle<Vec<u64>>>,
    listener: Option<JoinHandle<Seen>>,
}

/// The devices whose frames matter.
#[derive(Clone, Copy)]
struct Devices {
    source: u32,
    target: u32,
    probe: u32,
}

#[derive(Default)]
struct Seen {
    /// The number of the first packet: what an earlier train was late with is none of this one's.
    first: u32,
    /// By which port the reply to a packet came to the switch last.
    ports: HashMap<u32, Place>,
    replies: Vec<Reply>,
    announced_ns: Option<u64>,
}

impl Train {
    /// From `probe0` of that namespace.
    pub(crate) fn start(namespace: &str, interval: Duration, link: link::Watched) -> Result<Self, Error> {
        // A namespace belongs to a thread, and a socket to the one it was made in.
        let (sender, listener, devices) = std::thread::scope(|scope| {
            let opened = scope.spawn(|| {
                enter(namespace)?;
                let devices = Devices { source: index("source0")?, target: index("target0")?, probe: index("probe0")? };
                Ok((Sender::open("probe0")?, Listener::open()?, devices))
            });
            opened.join().unwrap_or_else(|_| Err(Error::Died("the thread that opens sockets died".to_owned())))
        })?;
        let (shared, from_ns) = (Arc::<Shared>::default(), realtime_ns());
        let mut train = Self { from_ns, interval, shared, link: Some(link), sender: None, listener: None };
        let thread = |name: &str| std::thread::Builder::new().name(name.to_owned());
        let died = |error| Error::Died(format!("no thread could be started: {error}"));
        let shared = Arc::clone(&train.shared);
        let listens = move || hear(&listener, devices, from_ns, &shared);
        train.listener = Some(thread("kvmscope-hear").spawn(listens).map_err(died)?);
        let shared = Arc::clone(&train.shared);
        let sends = move || send(&sender, interval, from_ns, &shared.stop_sending);
        train.sender = Some(thread("kvmscope-send").spawn(sends).map_err(died)?);
        Ok(train)
    }

    /// True once a reply came.
    pub(crate) fn is_answered(&self) -> bool {
        self.shared.is_answered.load(Ordering::Relaxed)
    }

    /// What it saw. Of a guest that has moved the first reply from there is waited for, no longer than `patience`.
    pub(crate) fn end(mut self, patience: Option<Duration>, sent: Option<Link>) -> Option<Network> {
        let until = patience.map(|patience| Instant::now() + patience);
        while until.is_some_and(|until| Instant::now() < until)
            && !self.shared.is_answered_there.load(Ordering::Relaxed)
        {
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(AFTER);
        self.shared.stop_sending.store(true, Ordering::Relaxed);
        let sent_ns = self.sender.take()?.join().ok()?;
        std::thread::sleep(REPLIES);
        self.shared.stop_listening.store(true, Ordering::Relaxed);
        let Seen { replies, announced_ns, .. } = self.listener.take()?.join().ok()?;
        Some(Network {
            schema: SCHEMA.to_owned(),
            from_ns: self.from_ns,
            to_ns: realtime_ns(),
            interval_ns: u64::try_from(self.interval.as_nanos()).unwrap_or(u64::MAX),
            sent_ns,
            replies,
            announced_ns,
            link: sent,
            downs: self.link.take()?.end(),
        })
    }
}

impl Drop for Train {
    fn drop(&mut self) {
        self.shared.stop_sending.store(true, Ordering::Relaxed);
        self.shared.stop_listening.store(true, Ordering::Relaxed);
        // One that panicked has said so on stderr.
        let _ = self.sender.take().map(JoinHandle::join);
        let _ = self.listener.take().map(JoinHandle::join);
    }
}

/// Sends at the pace until it is told to end; when each was sent. Who was late does not hurry afterwards.
fn send(sender: &Sender, interval: Duration, from_ns: u64, stop: &AtomicBool) -> Vec<u64> {
    pin(priority::GUEST);
    let (mut sent_ns, mut due) = (Vec::new(), Instant::now());
    while !stop.load(Ordering::Relaxed) && sent_ns.len() < MOST_PACKETS {
        let at_ns = realtime_ns().saturating_sub(from_ns);
        // One that has no room is none that was sent.
        if sender.send(&frame::to_guest(first(from_ns).wrapping_add(sent_ns.len() as u32))) {
            sent_ns.push(at_ns);
        }
        due = (due + interval).max(Instant::now());
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
    }
    sent_ns
}

/// The number of the first packet of a train that begins then: its time in us. Packets of one train are more than 1 us apart, so that no
/// number comes twice within the 71 minutes that 32 bits hold.
fn first(from_ns: u64) -> u32 {
    (from_ns / 1_000) as u32
}

fn hear(listener: &Listener, devices: Devices, from_ns: u64, shared: &Shared) -> Seen {
    let (mut seen, mut frame) = (Seen { first: first(from_ns), ..Seen::default() }, [0; 128]);
    while !shared.stop_listening.load(Ordering::Relaxed) {
        let Some(heard) = listener.hear(&mut frame) else { continue };
        let Some(what) = frame::read(heard.frame) else { continue };
        if let Some(reply) = seen.take(devices, heard.device, heard.at_ns, from_ns, what) {
            shared.is_answered.store(true, Ordering::Relaxed);
            if reply.from == Place::Target {
                shared.is_answered_there.store(true, Ordering::Relaxed);
            }
        }
    }
    seen
}

impl Seen {
    /// Takes a frame that came to a device; the reply, if it is one that reached our end.
    fn take(&mut self, devices: Devices, device: u32, at_ns: u64, from_ns: u64, what: Frame) -> Option<Reply> {
        match what {
            Frame::Announcement if device == devices.target => {
                self.announced_ns.get_or_insert(at_ns);
            }
            Frame::Reply { number, .. } if device == devices.source => {
                self.ports.insert(number, Place::Source);
            }
            Frame::Reply { number, .. } if device == devices.target => {
                self.ports.insert(number, Place::Target);
            }
            Frame::Reply { number, count } if device == devices.probe => {
                // A socket sees it at the switch's port first.
                let from = self.ports.remove(&number)?;
                let number = number.wrapping_sub(self.first);
                if number as usize >= MOST_PACKETS {
                    return None;
                }
                let reply = Reply { at_ns: at_ns.saturating_sub(from_ns), number, count, from };
                self.replies.push(reply);
                return Some(reply);
            }
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_counts_where_it_ends_and_is_from_where_it_began() {
        let devices = Devices { source: 4, target: 5, probe: 2 };
        let mut seen = Seen { first: 100, ..Seen::default() };
        let reply = |number: u32| Frame::Reply { number: number.wrapping_add(100), count: number.wrapping_add(10) };
        let mut take = |device, at_ns, what| seen.take(devices, device, at_ns, 1_000, what).map(|reply| reply.from);
        assert_eq!(take(4, 1_010, reply(0)), None, "it has reached the switch");
        assert_eq!(take(2, 1_011, reply(0)), Some(Place::Source));
        assert_eq!(take(4, 1_012, reply(u32::MAX)), None);
        assert_eq!(take(2, 1_013, reply(u32::MAX)), None, "one of the train before");
        assert_eq!(take(4, 1_015, reply(1)), None);
        assert_eq!(take(2, 1_016, Frame::Announcement), None);
        assert_eq!(take(5, 1_020, Frame::Announcement), None);
        assert_eq!(take(5, 1_021, Frame::Announcement), None);
        assert_eq!(take(5, 1_030, reply(1)), None);
        assert_eq!(take(2, 1_031, reply(1)), Some(Place::Target));
        assert_eq!(seen.announced_ns, Some(1_020), "that of the target");
        let last = Reply { at_ns: 31, number: 1, count: 11, from: Place::Target };
        assert_eq!((seen.replies.len(), seen.replies[1]), (2, last));
    }
}
