//! Sockets of whole frames: one that sends from a device, one that hears what comes to any device of a namespace.
//!
//! Sources: packet(7); socket(7), SO_TIMESTAMPNS: when the kernel took the frame from its device, CLOCK_REALTIME, however late somebody
//! reads it; `__netif_receive_skb_core` of net/core/dev.c (Linux 6.12): sockets see a frame before the bridge has it.

use lab::Error;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

/// Frames that wait for a reader that does not run, before the kernel drops them: some ten thousand of the train.
const WAITING_BYTES: libc::c_int = 16 << 20;
/// How long a reader waits for a frame before it looks whether it is to end.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// PACKET_IGNORE_OUTGOING (include/uapi/linux/if_packet.h), which the libc crate does not name.
const PACKET_IGNORE_OUTGOING: libc::c_int = 23;
/// Room for the time, and some more.
const CONTROL_BYTES: usize = 128;

pub(super) struct Heard<'a> {
    /// When, CLOCK_REALTIME.
    pub at_ns: u64,
    pub device: u32,
    pub frame: &'a [u8],
}

pub(super) struct Sender {
    socket: OwnedFd,
    address: libc::sockaddr_ll,
}

/// Hears all devices of the namespace that it was opened in.
pub(super) struct Listener {
    socket: OwnedFd,
}

/// The number of a device of this thread's namespace.
pub(super) fn index(device: &str) -> Result<u32, Error> {
    let name = std::ffi::CString::new(device).map_err(|error| Error::Malformed(error.to_string()))?;
    // SAFETY: the kernel reads a string that ends in a zero and lives until the call returns.
    let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
    if index == 0 { Err(Error::Absent(format!("{device} is not in its namespace"))) } else { Ok(index) }
}

fn open(protocol: libc::c_int) -> Result<OwnedFd, Error> {
    // SAFETY: a call with three numbers.
    let raw = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, protocol) };
    if raw < 0 {
        let error = io::Error::last_os_error();
        return Err(Error::Denied(format!("a packet socket: {error}; it needs root")));
    }
    // SAFETY: the descriptor was just made and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(raw) })
}

impl Sender {
    /// From `device` of this thread's namespace. Protocol 0 receives nothing.
    pub(super) fn open(device: &str) -> Result<Self, Error> {
        // SAFETY: a `sockaddr_ll` is made of numbers, for all of which zero is a value.
        let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_ifindex = i32::try_from(index(device)?).unwrap_or(0);
        Ok(Self { socket: open(0)?, address })
    }

    /// True if the kernel took it.
    pub(super) fn send(&self, frame: &[u8]) -> bool {
        let (length, to) = (size_of::<libc::sockaddr_ll>() as libc::socklen_t, (&raw const self.address).cast());
        // SAFETY: the kernel reads `frame.len()` bytes of `frame` and `length` of the address, both of which live until the call returns.
        let sent = unsafe {
            libc::sendto(self.socket.as_raw_fd(), frame.as_ptr().cast(), frame.len(), libc::MSG_DONTWAIT, to, length)
        };
        usize::try_from(sent).is_ok_and(|sent| sent == frame.len())
    }
}

impl Listener {
    /// In this thread's namespace.
    pub(super) fn open() -> Result<Self, Error> {
        let listener = Self { socket: open((libc::ETH_P_ALL as u16).to_be().into())? };
        let wait = libc::timeval { tv_sec: 0, tv_usec: LOOK_EVERY.as_micros() as libc::suseconds_t };
        listener.set(libc::SOL_PACKET, PACKET_IGNORE_OUTGOING, &1_i32)?;
        listener.set(libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, &1_i32)?;
        listener.set(libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, &WAITING_BYTES)?;
        listener.set(libc::SOL_SOCKET, libc::SO_RCVTIMEO, &wait)?;
        Ok(listener)
    }

    fn set<T>(&self, level: libc::c_int, name: libc::c_int, value: &T) -> Result<(), Error> {
        let length = size_of::<T>() as libc::socklen_t;
        // SAFETY: the kernel reads `length` bytes of `value`, which lives until the call returns.
        let set = unsafe { libc::setsockopt(self.socket.as_raw_fd(), level, name, (&raw const *value).cast(), length) };
        if set < 0 { Err(Error::refused("a packet socket", io::Error::last_os_error())) } else { Ok(()) }
    }

    /// The next frame; `None` if none came for a while.
    pub(super) fn hear<'a>(&self, frame: &'a mut [u8]) -> Option<Heard<'a>> {
        let mut part = libc::iovec { iov_base: frame.as_mut_ptr().cast(), iov_len: frame.len() };
        // SAFETY: both are made of numbers and pointers, for all of which zero is a value.
        let (mut from, mut header): (libc::sockaddr_ll, libc::msghdr) = unsafe { std::mem::zeroed() };
        let mut control = [0_u64; CONTROL_BYTES / 8];
        header.msg_name = (&raw mut from).cast();
        header.msg_namelen = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
        (header.msg_iov, header.msg_iovlen) = (&raw mut part, 1);
        (header.msg_control, header.msg_controllen) = (control.as_mut_ptr().cast(), CONTROL_BYTES);
        // SAFETY: the kernel writes into what `header` points to, no more than the lengths beside; all of it lives until the call returns.
        let got = unsafe { libc::recvmsg(self.socket.as_raw_fd(), &raw mut header, 0) };
        let length = usize::try_from(got).ok()?;
        // SAFETY: the kernel has filled the control part as `header` says, and it is aligned as its first field asks for.
        let at_ns = unsafe { time_in(&header) }?;
        Some(Heard { at_ns, device: u32::try_from(from.sll_ifindex).ok()?, frame: frame.get(..length)? })
    }
}

/// # Safety
/// `header` must be one that recvmsg has filled, and its control part alive.
unsafe fn time_in(header: &libc::msghdr) -> Option<u64> {
    // SAFETY: by contract; what each message holds is read by its own length and kind.
    unsafe {
        let mut message = libc::CMSG_FIRSTHDR(header);
        while let Some(one) = message.as_ref() {
            if one.cmsg_level == libc::SOL_SOCKET && one.cmsg_type == libc::SCM_TIMESTAMPNS {
                let time: libc::timespec = libc::CMSG_DATA(message).cast::<libc::timespec>().read_unaligned();
                return Some(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64);
            }
            message = libc::CMSG_NXTHDR(header, message);
        }
    }
    None
}
