//! Sends frames at a rate, or as fast as it can.
//!
//! Sources: packet(7): PACKET_QDISC_BYPASS hands frames to the driver without a queue between; sendmmsg(2). A frame for which the
//! device has no room is refused with ENOBUFS and counted by the device as dropped; it was sent.

use super::super::inside::enter;
use super::super::pin;
use super::trial::Offer;
use lab::Error;
use lab::setting::thread;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// Frames of one call; one more per call costs the sender less, and the rings of veths hold 256.
const MOST_AT_ONCE: usize = 32;
/// PACKET_QDISC_BYPASS, which the libc crate does not name.
const PACKET_QDISC_BYPASS: libc::c_int = 20;
/// A type of frame that nobody answers (IEEE 802, 9.2.4: local experimental).
const ETHERTYPE: u16 = 0x88B5;
/// Locally administered addresses of nobody.
const TO_AND_FROM: [u8; 12] = [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];
/// A sender that needs this much longer than its trial has missed its rate, and ends.
const LATEST: f64 = 1.1;

#[derive(Debug, Clone, Copy)]
pub(super) struct Sent {
    pub(super) frames: u64,
    pub(super) took_ns: u64,
}

/// Sends from `source0` of the namespace, on that CPU; ends early when asked to.
pub(super) fn send(namespace: &str, cpu: u32, offer: &Offer, stop: &AtomicBool) -> Result<Sent, Error> {
    // A namespace belongs to a thread.
    std::thread::scope(|scope| {
        let sending = scope.spawn(|| {
            enter(namespace)?;
            pin(thread::own(), cpu)?;
            Socket::open("source0", offer.size_bytes)?.send(offer, stop)
        });
        sending.join().unwrap_or_else(|_| Err(Error::Died("the sender died".to_owned())))
    })
}

struct Socket {
    socket: OwnedFd,
    address: libc::sockaddr_ll,
    frame: Vec<u8>,
}

impl Socket {
    fn open(device: &str, size_bytes: u32) -> Result<Self, Error> {
        let refused = |what: &str| {
            Error::refused(format_args!("a packet socket on {device}: {what}"), io::Error::last_os_error())
        };
        // SAFETY: a call with three numbers. Protocol 0 receives nothing.
        let raw = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
        if raw < 0 {
            return Err(refused("it cannot be created"));
        }
        // SAFETY: the descriptor was just made and nobody else has it.
        let socket = unsafe { OwnedFd::from_raw_fd(raw) };
        let (yes, length) = (1_i32, size_of::<i32>() as libc::socklen_t);
        // SAFETY: the kernel reads `length` bytes of `yes`, which lives until the call returns.
        let set =
            unsafe { libc::setsockopt(raw, libc::SOL_PACKET, PACKET_QDISC_BYPASS, (&raw const yes).cast(), length) };
        if set < 0 {
            return Err(refused("leaving out the queue"));
        }
        let name = std::ffi::CString::new(device).map_err(|error| Error::Malformed(error.to_string()))?;
        // SAFETY: the kernel reads a string that ends in a zero and lives until the call returns.
        let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
        if index == 0 {
            return Err(refused("it is not there"));
        }
        // SAFETY: a `sockaddr_ll` is made of numbers, for all of which zero is a value.
        let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = ETHERTYPE.to_be();
        address.sll_ifindex = i32::try_from(index).unwrap_or(0);
        let mut frame = vec![0; (size_bytes - base::datapath::FCS_BYTES) as usize];
        frame[..12].copy_from_slice(&TO_AND_FROM);
        frame[12..14].copy_from_slice(&ETHERTYPE.to_be_bytes());
        Ok(Self { socket, address, frame })
    }

    fn send(&mut self, offer: &Offer, stop: &AtomicBool) -> Result<Sent, Error> {
        let mut part = libc::iovec { iov_base: self.frame.as_mut_ptr().cast(), iov_len: self.frame.len() };
        // SAFETY: a `msghdr` is made of numbers and pointers, for all of which zero is a value.
        let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
        header.msg_name = (&raw mut self.address).cast();
        header.msg_namelen = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
        header.msg_iov = &raw mut part;
        header.msg_iovlen = 1;
        let mut all = [libc::mmsghdr { msg_hdr: header, msg_len: 0 }; MOST_AT_ONCE];
        let length_ns = u64::try_from(offer.length.as_nanos()).unwrap_or(u64::MAX);
        let most = offer.pps.map(|pps| frames_by(length_ns, pps));
        let latest_ns = (length_ns as f64 * LATEST) as u64;
        let (since, mut frames) = (Instant::now(), 0_u64);
        loop {
            let elapsed_ns = u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX);
            let is_over = match most {
                Some(most) => frames >= most && elapsed_ns >= length_ns || elapsed_ns > latest_ns,
                None => elapsed_ns >= length_ns,
            };
            if is_over || stop.load(Ordering::Relaxed) {
                return Ok(Sent { frames, took_ns: elapsed_ns });
            }
            let due = match offer.pps.zip(most) {
                Some((pps, most)) => frames_by(elapsed_ns, pps).min(most).saturating_sub(frames),
                None => MOST_AT_ONCE as u64,
            };
            if due == 0 {
                std::hint::spin_loop();
                continue;
            }
            let count = due.min(MOST_AT_ONCE as u64) as libc::c_uint;
            // SAFETY: the kernel reads `count` headers of `all`, what they point to lives in `self` and `part`, and writes their
            // lengths.
            let sent = unsafe { libc::sendmmsg(self.socket.as_raw_fd(), all.as_mut_ptr(), count, 0) };
            frames += match u64::try_from(sent) {
                // The next one was refused and counted as dropped, and why is lost (sendmmsg(2), Bugs).
                Ok(sent) if sent < u64::from(count) => sent + 1,
                Ok(sent) => sent,
                Err(_) => match io::Error::last_os_error() {
                    // The first of them was dropped for want of room.
                    error if error.raw_os_error() == Some(libc::ENOBUFS) => 1,
                    error if error.kind() == io::ErrorKind::Interrupted => 0,
                    error => return Err(Error::refused("the sender's socket", error)),
                },
            };
        }
    }
}

/// Frames that are due after that time.
fn frames_by(elapsed_ns: u64, pps: u64) -> u64 {
    u64::try_from(u128::from(elapsed_ns) * u128::from(pps) / 1_000_000_000).unwrap_or(u64::MAX)
}
