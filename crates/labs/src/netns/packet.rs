//! Whole frames in and out of a network device, as vhost-net takes them from a tap.
//!
//! Sources: packet(7) and include/uapi/linux/if_packet.h (Linux 6.12): PACKET_VNET_HDR puts a virtio-net header before each
//! frame, so that segments not yet cut and checksums not yet computed pass unchanged; PACKET_IGNORE_OUTGOING keeps a socket
//! from seeing what it sent.

use lab::Error;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

/// ETH_P_ALL in network byte order.
const ALL_PROTOCOLS: u16 = (libc::ETH_P_ALL as u16).to_be();
/// Frames that wait for a worker which does not run, before the kernel drops them; a NIC's ring holds about as much.
const WAITING_BYTES: libc::c_int = 4 << 20;
/// How long a socket waits for a frame before its thread looks whether it is to end.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// PACKET_IGNORE_OUTGOING, which the libc crate does not name.
const PACKET_IGNORE_OUTGOING: libc::c_int = 23;

/// One side of a forwarder.
#[derive(Debug)]
pub(super) struct Port {
    socket: OwnedFd,
}

impl Port {
    /// Opens `device` of this thread's namespace.
    pub(super) fn open(device: &str) -> Result<Self, Error> {
        let refused = |what: &str| {
            let error = io::Error::last_os_error();
            Error::Denied(format!("a packet socket on {device}: {what}: {error}; it needs root"))
        };
        // SAFETY: a call with three numbers.
        let raw = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, ALL_PROTOCOLS.into()) };
        if raw < 0 {
            return Err(refused("it cannot be created"));
        }
        // SAFETY: the descriptor was just made and nobody else has it.
        let port = Self { socket: unsafe { OwnedFd::from_raw_fd(raw) } };
        let wait = libc::timeval { tv_sec: 0, tv_usec: LOOK_EVERY.as_micros() as libc::suseconds_t };
        port.set(libc::SOL_PACKET, libc::PACKET_VNET_HDR, &1_i32).map_err(|_| refused("virtio-net headers"))?;
        port.set(libc::SOL_PACKET, PACKET_IGNORE_OUTGOING, &1_i32).map_err(|_| refused("ignoring its own frames"))?;
        port.set(libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, &WAITING_BYTES).map_err(|_| refused("its buffer"))?;
        port.set(libc::SOL_SOCKET, libc::SO_RCVTIMEO, &wait).map_err(|_| refused("its time limit"))?;
        let name = std::ffi::CString::new(device).map_err(|error| Error::Malformed(error.to_string()))?;
        // SAFETY: the kernel reads a string that ends in a zero and lives until the call returns.
        let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
        // SAFETY: a `sockaddr_ll` is made of numbers, for all of which zero is a value.
        let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = ALL_PROTOCOLS;
        address.sll_ifindex = i32::try_from(index).unwrap_or(0);
        let length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
        // SAFETY: the kernel reads `length` bytes of `address`, which lives until the call returns.
        let bound = unsafe { libc::bind(port.socket.as_raw_fd(), (&raw const address).cast(), length) };
        if index == 0 || bound < 0 { Err(refused("it cannot be bound")) } else { Ok(port) }
    }

    /// Takes a frame with its header; 0 bytes if none came for a while.
    pub(super) fn receive(&self, frame: &mut [u8]) -> io::Result<usize> {
        // SAFETY: the kernel writes at most `frame.len()` bytes into `frame`.
        let got = unsafe { libc::recv(self.socket.as_raw_fd(), frame.as_mut_ptr().cast(), frame.len(), 0) };
        match usize::try_from(got) {
            Ok(bytes) => Ok(bytes),
            Err(_) => match io::Error::last_os_error() {
                error if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Ok(0),
                error => Err(error),
            },
        }
    }

    /// Sends a frame with its header; one that does not fit now is dropped, as a full ring drops it.
    pub(super) fn send(&self, frame: &[u8]) -> io::Result<()> {
        // SAFETY: the kernel reads `frame.len()` bytes of `frame`.
        let sent = unsafe { libc::send(self.socket.as_raw_fd(), frame.as_ptr().cast(), frame.len(), 0) };
        let full = |error: &io::Error| {
            matches!(
                error.raw_os_error(),
                Some(libc::ENOBUFS | libc::EAGAIN | libc::EINTR | libc::EINVAL | libc::EMSGSIZE)
            )
        };
        match io::Error::last_os_error() {
            error if sent < 0 && !full(&error) => Err(error),
            _ => Ok(()),
        }
    }

    fn set<T>(&self, level: libc::c_int, name: libc::c_int, value: &T) -> io::Result<()> {
        let length = size_of::<T>() as libc::socklen_t;
        // SAFETY: the kernel reads `length` bytes of `value`, which lives until the call returns.
        let set = unsafe { libc::setsockopt(self.socket.as_raw_fd(), level, name, (&raw const *value).cast(), length) };
        if set < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }
}
