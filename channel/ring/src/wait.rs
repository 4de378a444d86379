//! How one end waits for the other: by polling, by sleeping until it is kicked, or by both in turn.
//!
//! ```text
//! consumer: spin .. | want_kick = 1, fence, look again | sleep at most NAP | want_kick = 0
//! producer:   publish, fence, want_kick? -> kick, at most once in KICK_EVERY
//! ```
//! Without the two fences the last frame of a burst could wait for ever: each side would have looked before it saw the other's word.
//! A kick is a hint. One too many costs a look; one that never comes costs a nap, after which everybody looks again. A peer that
//! wants to be kicked all the time gets no more than one kick in [`KICK_EVERY`], so that it cannot have our CPU for the asking.

use std::io::IoSliceMut;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::{ReadWriteFlags, preadv2, write};

use crate::consumer::Consumer;
use crate::doorbell::Doorbell;
use crate::fault::{PeerFault, Refused};
use crate::frames::FrameBuf;
use crate::memory::Ticks;
use crate::peer::Peer;
use crate::producer::{Producer, Pushed, Rest};
use crate::region::{Error, kernel};
use crate::stats::ChannelStats;
use crate::window::Window;

/// The longest sleep between two looks: what a lost kick costs.
pub const NAP: Duration = Duration::from_millis(1);
/// The least time between two kicks, unless somebody wants another one.
pub const KICK_EVERY: Duration = Duration::from_micros(5);
/// While somebody polls, the peer's life is looked at once in so many looks at the ring.
const LOOKS: u32 = 4096;

/// What a side does while there is nothing to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// Looks again, and keeps its CPU.
    Poll,
    /// Sleeps at once.
    Kick,
    /// Looks for so many nanoseconds, then sleeps.
    Adaptive {
        /// That long.
        spin_ns: u64,
    },
}

impl Policy {
    /// As tables name it.
    pub fn name(self) -> &'static str {
        match self {
            Policy::Poll => "poll",
            Policy::Kick => "kick",
            Policy::Adaptive { .. } => "adaptive",
        }
    }
}

/// What wakes a side that sleeps: an eventfd, which a VMM can connect to a guest's interrupt too.
#[derive(Debug)]
pub struct Bell(OwnedFd);

impl Bell {
    /// A new one.
    pub fn new() -> Result<Bell, Error> {
        let file = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC);
        Ok(Bell(file.map_err(|error| kernel("making an eventfd")(error.into()))?))
    }

    /// Of a peer: an eventfd and nothing else, for a poll of what another program serves waits as long as that likes.
    pub fn received(file: OwnedFd) -> Result<Bell, Error> {
        let link = format!("/proc/self/fd/{}", file.as_raw_fd());
        let is_one = std::fs::read_link(link).is_ok_and(|path| path.as_os_str() == "anon_inode:[eventfd]");
        if is_one { Ok(Bell(file)) } else { Err(Refused::Bell.into()) }
    }

    /// To hand to a peer.
    pub fn file(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// Wakes whoever sleeps. A count that is full wakes as well: it is not written to, since the peer has the same open file and may
    /// have made it one whose writes wait.
    pub fn ring(&self) {
        let mut files = [PollFd::new(&self.0, PollFlags::OUT)];
        if matches!(poll(&mut files, Some(&Timespec::default())), Ok(1)) {
            let _ = write(&self.0, &1u64.to_ne_bytes());
        }
    }

    /// Sleeps until it rings, at most so long, and until the peer is gone.
    pub fn sleep(&self, at_most: Duration, peer: Option<&Peer>) {
        let mut files = vec![PollFd::new(&self.0, PollFlags::IN)];
        files.extend(peer.map(|peer| PollFd::from_borrowed_fd(peer.file(), PollFlags::IN)));
        let at_most = Timespec::try_from(at_most).ok();
        // A signal ends the sleep early, which is as good as a spurious kick.
        let _ = poll(&mut files, at_most.as_ref());
        // Never waits, whatever flags the peer has set on the open file; 2^64 - 1 is no offset, as a pipe's or an eventfd's.
        let mut count = [0; 8];
        let _ = preadv2(&self.0, &mut [IoSliceMut::new(&mut count)], u64::MAX, ReadWriteFlags::NOWAIT);
    }
}

/// What wakes the peer.
#[derive(Debug)]
pub enum Kicks {
    /// The bell that it sleeps on.
    Bell(Bell),
    /// A register of a device, which interrupts the machine that it is in.
    Doorbell(Doorbell),
}

impl Kicks {
    fn ring(&self) {
        match self {
            Kicks::Bell(bell) => bell.ring(),
            Kicks::Doorbell(doorbell) => doorbell.ring(),
        }
    }
}

impl From<Bell> for Kicks {
    fn from(bell: Bell) -> Kicks {
        Kicks::Bell(bell)
    }
}

impl From<Doorbell> for Kicks {
    fn from(doorbell: Doorbell) -> Kicks {
        Kicks::Doorbell(doorbell)
    }
}

/// How one end waits: its policy, the bell that wakes it, the one that wakes its peer, and what tells that the peer lives.
#[derive(Debug)]
pub struct Waiting {
    policy: Policy,
    ticks: Ticks,
    ours: Bell,
    theirs: Kicks,
    peer: Option<Peer>,
    kick_every: Duration,
    kicked_at: Option<u64>,
    owed: bool,
}

impl Waiting {
    /// `ours` wakes this side, `theirs` the other.
    pub fn new(policy: Policy, ticks: Ticks, ours: Bell, theirs: impl Into<Kicks>, peer: Option<Peer>) -> Waiting {
        let theirs = theirs.into();
        Waiting { policy, ticks, ours, theirs, peer, kick_every: KICK_EVERY, kicked_at: None, owed: false }
    }

    /// Kicks no more often than this.
    pub fn kicking_every(self, least: Duration) -> Waiting {
        Waiting { kick_every: least, ..self }
    }

    /// Kicks the peer if that is wanted or owed, unless it was kicked just now: then it is owed, and paid at the next occasion.
    fn kick(&mut self, wanted: bool, stats: &mut ChannelStats) {
        if !wanted && !self.owed {
            return;
        }
        let now = Ticks::now();
        let least = self.kick_every.as_nanos() as u64;
        if self.kicked_at.is_some_and(|at| self.ticks.ns(now.wrapping_sub(at)) < least) {
            self.owed = true;
            stats.kicks_held += 1;
            return;
        }
        (self.kicked_at, self.owed) = (Some(now), false);
        self.theirs.ring();
        stats.kicks += 1;
    }

    /// One more look after this many and this long; sleeps where the policy says so and `arm` agrees.
    fn pause(
        &self,
        looks: u32,
        waited_ns: u64,
        left_ns: u64,
        arm: impl FnOnce() -> Result<bool, PeerFault>,
    ) -> Result<bool, PeerFault> {
        if looks % LOOKS == LOOKS - 1 && self.peer.as_ref().is_some_and(Peer::is_gone) {
            return Err(PeerFault::Gone);
        }
        let sleeps = match self.policy {
            Policy::Poll => false,
            Policy::Kick => true,
            Policy::Adaptive { spin_ns } => waited_ns >= spin_ns,
        };
        if !sleeps {
            std::hint::spin_loop();
            return Ok(false);
        }
        if arm()? {
            self.ours.sleep(NAP.min(Duration::from_nanos(left_ns)), self.peer.as_ref());
            if self.peer.as_ref().is_some_and(Peer::is_gone) {
                return Err(PeerFault::Gone);
            }
        }
        Ok(true)
    }
}

/// How long one end has looked for something to move, and for how long it may.
struct Patience {
    since: u64,
    looks: u32,
    limit_ns: u64,
}

impl Patience {
    fn new(limit: Duration) -> Patience {
        Patience { since: Ticks::now(), looks: 0, limit_ns: limit.as_nanos() as u64 }
    }

    /// Something has moved: it begins again.
    fn renew(&mut self) {
        (self.since, self.looks) = (Ticks::now(), 0);
    }

    /// After a look that found nothing: [`PeerFault::Stalled`] if that was the last one, else [`Waiting::pause`].
    fn pause(&mut self, waiting: &Waiting, arm: impl FnOnce() -> Result<bool, PeerFault>) -> Result<bool, PeerFault> {
        let ns = waiting.ticks.ns(Ticks::now().wrapping_sub(self.since));
        if ns > self.limit_ns {
            return Err(PeerFault::Stalled { ns });
        }
        let has_asked = waiting.pause(self.looks, ns, self.limit_ns - ns, arm)?;
        self.looks = self.looks.wrapping_add(1);
        Ok(has_asked)
    }
}

impl<W: Window> Producer<W> {
    /// As [`Producer::push_batch`], and kicks a consumer that sleeps.
    #[inline]
    pub fn push_kicking<F: AsRef<[u8]>>(&mut self, frames: &[F], waiting: &mut Waiting) -> Result<Pushed, PeerFault> {
        let pushed = self.push_batch(frames)?;
        waiting.kick(pushed.kick, self.count());
        Ok(pushed)
    }

    /// Sends all frames that fit into a slot, and waits for room up to `limit` without any: after that the peer has stalled, and the
    /// number of frames that were sent is in the statistics.
    pub fn push_all<F: AsRef<[u8]>>(
        &mut self,
        frames: &[F],
        waiting: &mut Waiting,
        limit: Duration,
    ) -> Result<Pushed, PeerFault> {
        let (mut sent, mut patience) = (0, Patience::new(limit));
        loop {
            let pushed = self.push_kicking(&frames[sent..], waiting)?;
            sent += pushed.frames;
            if pushed.rest != Rest::Full {
                return Ok(Pushed { frames: sent, ..pushed });
            }
            if pushed.frames > 0 {
                patience.renew();
            }
            if patience.pause(waiting, || self.arm()).map_err(|fault| self.fault(fault))? {
                self.disarm();
            }
        }
    }
}

impl<W: Window> Consumer<W> {
    /// As [`Consumer::pop_batch`], and kicks a producer that waits for room.
    #[inline]
    pub fn pop_kicking(&mut self, out: &mut FrameBuf, max: usize, waiting: &mut Waiting) -> Result<usize, PeerFault> {
        let popped = self.pop_batch(out, max)?;
        waiting.kick(self.producer_waits(), self.count());
        Ok(popped)
    }

    /// Waits up to `limit` for frames: after that the peer has stalled.
    pub fn pop_some(
        &mut self,
        out: &mut FrameBuf,
        max: usize,
        waiting: &mut Waiting,
        limit: Duration,
    ) -> Result<usize, PeerFault> {
        let mut patience = Patience::new(limit);
        loop {
            let popped = self.pop_kicking(out, max, waiting)?;
            if popped > 0 {
                return Ok(popped);
            }
            if patience.pause(waiting, || self.arm()).map_err(|fault| self.fault(fault))? {
                self.disarm();
            }
        }
    }
}
