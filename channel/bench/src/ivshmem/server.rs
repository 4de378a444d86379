//! The host's side of doorbells: who connects gets the memory, a number, and an eventfd for each other guest to be woken by.
//!
//! Debian's QEMU brings no `ivshmem-server`. The protocol is one-way: messages of 8 bytes, a little-endian signed number, some of them
//! with a descriptor.
//!
//! ```text
//! to who connects   0 (version) | its number | -1 with the memory | for each other one: number with its eventfd | its number with its own
//! to all others     the new one's number with its eventfd
//! later             a number without a descriptor: that one has left
//! ```
//! Each has one vector. Source: docs/specs/ivshmem-spec.txt, QEMU 7.2, "The ivshmem Client-Server Protocol".

use lab::Error;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const VERSION: i64 = 0;
/// Before the memory's descriptor.
const MEMORY: i64 = -1;
/// How often it looks whether it is to end.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Connects peers with each other.
pub(super) struct Server {
    listener: Option<UnixListener>,
    memory: OwnedFd,
    peers: Vec<Connected>,
    next: u16,
}

struct Connected {
    number: u16,
    socket: UnixStream,
    vector: OwnedFd,
}

impl Server {
    /// Hands out `memory`, and listens to nobody.
    pub(super) fn new(memory: OwnedFd) -> Server {
        Server { listener: None, memory, peers: Vec::new(), next: 0 }
    }

    /// Listens on the socket `name` in a directory, whose path may be longer than an address of a socket.
    pub(super) fn listen(self, directory: &Path, name: &str) -> Result<Server, Error> {
        let io = |error| Error::io(directory.join(name), error);
        let handle = std::fs::File::open(directory).map_err(io)?;
        let short = format!("/proc/self/fd/{}/{name}", handle.as_raw_fd());
        let listener = UnixListener::bind(short).map_err(io)?;
        Ok(Server { listener: Some(listener), ..self })
    }

    /// Connects whoever comes, until told to end.
    pub(super) fn serve(&mut self, end: &AtomicBool) -> Result<(), Error> {
        let refused = |error: std::io::Error| Error::refused("the server of doorbells", error);
        let pause = Timespec::try_from(LOOK_EVERY).ok();
        while !end.load(Ordering::Relaxed) {
            let sockets = self.peers.iter().map(|peer| peer.socket.as_fd());
            let watched = self.listener.iter().map(AsFd::as_fd).chain(sockets);
            let mut files: Vec<PollFd<'_>> =
                watched.map(|file| PollFd::from_borrowed_fd(file, PollFlags::IN)).collect();
            if !matches!(poll(&mut files, pause.as_ref()), Ok(1..)) {
                continue;
            }
            let ready: Vec<bool> = files.iter().map(|file| !file.revents().is_empty()).collect();
            let (comes, gone) = ready.split_at(usize::from(self.listener.is_some()));
            // Nobody says anything to a server: a socket with something to read has hung up.
            let gone: Vec<u16> =
                self.peers.iter().zip(gone).filter(|(_, gone)| **gone).map(|(peer, _)| peer.number).collect();
            let comes = comes.contains(&true);
            gone.into_iter().for_each(|number| self.leave(number));
            if let Some(listener) = self.listener.as_ref().filter(|_| comes) {
                let (socket, _) = listener.accept().map_err(refused)?;
                self.join(socket).map_err(refused)?;
            }
        }
        Ok(())
    }

    /// Connects one more with all that are there.
    pub(super) fn join(&mut self, socket: UnixStream) -> std::io::Result<()> {
        let vector = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        let number = self.next;
        self.next += 1;
        send(&socket, VERSION, None)?;
        send(&socket, number.into(), None)?;
        send(&socket, MEMORY, Some(self.memory.as_fd()))?;
        for other in &self.peers {
            send(&socket, other.number.into(), Some(other.vector.as_fd()))?;
            // One that has ended meanwhile is seen by its socket.
            let _ = send(&other.socket, number.into(), Some(vector.as_fd()));
        }
        send(&socket, number.into(), Some(vector.as_fd()))?;
        self.peers.push(Connected { number, socket, vector });
        Ok(())
    }

    /// Tells the others that one has left.
    pub(super) fn leave(&mut self, number: u16) {
        self.peers.retain(|peer| peer.number != number);
        for other in &self.peers {
            let _ = send(&other.socket, number.into(), None);
        }
    }
}

fn send(socket: &UnixStream, number: i64, file: Option<BorrowedFd<'_>>) -> std::io::Result<()> {
    let files: Vec<BorrowedFd<'_>> = file.into_iter().collect();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !files.is_empty() {
        control.push(SendAncillaryMessage::ScmRights(&files));
    }
    sendmsg(socket, &[IoSlice::new(&number.to_le_bytes())], &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{MemfdFlags, memfd_create};
    use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
    use std::io::IoSliceMut;

    fn next(socket: &UnixStream) -> (i64, Option<OwnedFd>) {
        let mut message = [0; 8];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let got = recvmsg(socket, &mut [IoSliceMut::new(&mut message)], &mut control, RecvFlags::CMSG_CLOEXEC).unwrap();
        assert_eq!(got.bytes, 8);
        let files = control.drain().flat_map(|said| match said {
            RecvAncillaryMessage::ScmRights(files) => files.collect::<Vec<_>>(),
            _ => Vec::new(),
        });
        let mut files: Vec<OwnedFd> = files.collect();
        assert!(files.len() <= 1);
        (i64::from_le_bytes(message), files.pop())
    }

    /// Whether ringing one wakes the other.
    fn wakes(one: &OwnedFd, other: &OwnedFd) -> bool {
        rustix::io::write(one, &1_u64.to_ne_bytes()).unwrap();
        let mut count = [0; 8];
        rustix::io::read(other, &mut count).is_ok()
    }

    #[test]
    fn each_gets_the_memory_its_number_and_what_wakes_the_other() {
        let memory = memfd_create("kvmscope-test", MemfdFlags::CLOEXEC).unwrap();
        rustix::io::write(&memory, b"shared").unwrap();
        let mut server = Server::new(memory);
        let pairs = [(); 2].map(|()| UnixStream::pair().unwrap());
        let [(first, of_first), (second, of_second)] = pairs;
        server.join(of_first).unwrap();
        assert!(matches!(next(&first), (VERSION, None)));
        assert!(matches!(next(&first), (0, None)));
        let (MEMORY, Some(file)) = next(&first) else { panic!("no memory") };
        let mut read = [0; 6];
        rustix::io::pread(&file, &mut read, 0).unwrap();
        assert_eq!(&read, b"shared");
        let (0, Some(wakes_first)) = next(&first) else { panic!("no eventfd of its own") };

        server.join(of_second).unwrap();
        assert!(matches!(next(&second), (VERSION, None)));
        assert!(matches!(next(&second), (1, None)));
        assert!(matches!(next(&second), (MEMORY, Some(_))));
        let (0, Some(second_rings)) = next(&second) else { panic!("nothing wakes the first") };
        let (1, Some(wakes_second)) = next(&second) else { panic!("no eventfd of its own") };
        let (1, Some(first_rings)) = next(&first) else { panic!("nothing wakes the second") };
        assert!(wakes(&second_rings, &wakes_first) && wakes(&first_rings, &wakes_second));
        assert!(rustix::io::read(&wakes_first, &mut [0; 8]).is_err(), "one ring wakes once, and nobody else");

        server.leave(1);
        assert!(matches!(next(&first), (1, None)));
        drop(server);
        assert_eq!(std::io::Read::read(&mut &first, &mut [0; 8]).unwrap(), 0, "nothing more is said");
    }

    #[test]
    fn who_connects_by_the_socket_is_served_and_who_hangs_up_has_left() {
        let directory = tempfile::tempdir().unwrap();
        let deep = directory.path().join("d".repeat(120));
        std::fs::create_dir(&deep).unwrap();
        let memory = memfd_create("kvmscope-test", MemfdFlags::CLOEXEC).unwrap();
        let mut server = Server::new(memory).listen(&deep, "doorbell").unwrap();
        let end = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let serving = scope.spawn(|| server.serve(&end));
            let handle = std::fs::File::open(&deep).unwrap();
            let connect = || UnixStream::connect(format!("/proc/self/fd/{}/doorbell", handle.as_raw_fd())).unwrap();
            let first = connect();
            (0..4).for_each(|_| drop(next(&first)));
            let second = connect();
            assert_eq!(next(&first).0, 1);
            (0..5).for_each(|_| drop(next(&second)));
            drop(second);
            assert!(matches!(next(&first), (1, None)));
            end.store(true, Ordering::Relaxed);
            serving.join().unwrap().unwrap();
        });
    }
}
