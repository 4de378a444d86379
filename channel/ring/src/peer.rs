//! Whether the peer lives: asked of the kernel, never guessed from the ring.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::region::{Error, kernel};

/// A descriptor that becomes readable, or hangs up, when the peer ends: its pidfd, or the socket that it came by.
#[derive(Debug)]
pub struct Peer(OwnedFd);

impl Peer {
    /// A process of this host.
    pub fn process(pid: u32) -> Result<Peer, Error> {
        let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or_else(|| {
            kernel("opening the peer's process")(std::io::Error::from(std::io::ErrorKind::InvalidInput))
        })?;
        let file = pidfd_open(pid, PidfdFlags::empty());
        Ok(Peer(file.map_err(|error| kernel("opening the peer's process")(error.into()))?))
    }

    /// A socket over which nothing more is sent: it is read when it hangs up. A socket and nothing else, and never one that came as a
    /// descriptor from the peer: a poll of what another program serves waits as long as that likes.
    pub fn socket(socket: UnixStream) -> Peer {
        Peer(socket.into())
    }

    /// Whether it has ended.
    pub fn is_gone(&self) -> bool {
        let mut files = [PollFd::new(&self.0, PollFlags::IN)];
        matches!(poll(&mut files, Some(&Timespec::default())), Ok(ready) if ready > 0)
    }

    pub(crate) fn file(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
