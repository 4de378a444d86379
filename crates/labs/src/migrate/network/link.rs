//! How many bytes has the stream that carries the guest sent, by the kernel's own count, and when was its link down?
//!
//! Sources: proc_pid_net(5); include/uapi/linux/ethtool.h (Linux 6.12): ETHTOOL_GLINK is whether a device can send now; its flag
//! IFF_RUNNING says so up to a second later (net/core/link_watch.c); `tcp_established_options` of net/ipv4/tcp_output.c: each packet has 12
//! bytes of options, its times.
//! A veth counts what it was given, so that segments not yet cut are one packet with one header (drivers/net/veth.c).

use super::super::qemu::realtime_ns;
use super::super::worker::Worker;
use crate::netns::inside::enter;
use base::network::{Down, Link};
use lab::Error;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Builder;
use std::time::Duration;

/// A tenth of the time after which TCP sends again (200 ms, TCP_RTO_MIN) is enough to tell that from others.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Ethernet (14), IPv4 (20), TCP (20) and its times (12).
const HEADER_BYTES: u64 = 66;
/// Asks whether a device is on and has a carrier.
const ETHTOOL_GLINK: u32 = 0x0a;

#[repr(C)]
struct EthtoolValue {
    command: u32,
    value: u32,
}

/// Looks at a link until it is ended, or dropped.
pub(crate) struct Watched(Worker<Vec<Down>>);

impl Watched {
    pub(crate) fn start(namespace: &str, device: &'static str) -> Result<Self, Error> {
        // A socket lies in the namespace of the thread that made it.
        let socket = std::thread::scope(|scope| {
            let opened = scope.spawn(|| enter(namespace).and_then(|()| socket()));
            opened.join().unwrap_or_else(|_| Err(Error::Died("the thread that looks at a link died".to_owned())))
        })?;
        let watch = move |ends: &AtomicBool| {
            let (mut downs, mut was_up) = (Vec::new(), true);
            while !ends.load(Ordering::Relaxed) {
                let is_up = is_running(&socket, device);
                take(&mut downs, was_up, is_up, realtime_ns());
                was_up = is_up;
                std::thread::sleep(LOOK_EVERY);
            }
            downs
        };
        Worker::start(Builder::new().name("kvmscope-link".to_owned()), watch).map(Self)
    }

    pub(crate) fn end(self) -> Vec<Down> {
        self.0.end().unwrap_or_default()
    }
}

/// What one look adds to what those before showed.
fn take(downs: &mut Vec<Down>, was_up: bool, is_up: bool, at_ns: u64) {
    match downs.last_mut() {
        // A look that finds it up again ends it.
        Some(down) if !was_up => down.to_ns = at_ns,
        _ if !is_up => downs.push(Down { from_ns: at_ns, to_ns: at_ns }),
        _ => {}
    }
}

fn socket() -> Result<OwnedFd, Error> {
    // SAFETY: a call with three numbers.
    let raw = unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) };
    if raw < 0 {
        return Err(Error::refused("a socket", std::io::Error::last_os_error()));
    }
    // SAFETY: the descriptor was just made and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(raw) })
}

/// A device that is not there cannot send.
fn is_running(socket: &OwnedFd, device: &str) -> bool {
    let mut asked = EthtoolValue { command: ETHTOOL_GLINK, value: 0 };
    // SAFETY: an `ifreq` is made of numbers and a pointer, for all of which zero is a value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    // The last byte stays the zero that ends the name.
    for (to, from) in request.ifr_name.iter_mut().take(libc::IFNAMSIZ - 1).zip(device.bytes()) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_data = (&raw mut asked).cast();
    // SAFETY: the kernel reads one `ifreq` and writes into `asked`, both of which are ours and live until the call returns.
    let told = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL as libc::Ioctl, &raw mut request) };
    told == 0 && asked.value != 0
}

/// Of the namespace of a process, which has nothing but this connection.
pub(super) fn sent(pid: u32, device: &str) -> Option<Link> {
    let read = |name: &str| std::fs::read_to_string(format!("/proc/{pid}/net/{name}")).ok();
    Some(Link { bytes: bytes(&read("dev")?, device)?, retransmitted: retransmitted(&read("snmp")?)? })
}

/// `move0: 9 1 0 0 0 0 0 0 8 2 0 ..`: eight counts of what came, the first of what went are bytes and packets.
fn bytes(devices: &str, device: &str) -> Option<u64> {
    let counts = devices.lines().find_map(|line| line.trim().strip_prefix(device)?.strip_prefix(':'))?;
    let mut counts = counts.split_whitespace().skip(8).map_while(|count| count.parse::<u64>().ok());
    let (bytes, packets) = (counts.next()?, counts.next()?);
    Some(bytes.saturating_sub(packets * HEADER_BYTES))
}

/// A line `Tcp:` of names, and one of values.
fn retransmitted(counters: &str) -> Option<u64> {
    let mut lines = counters.lines().filter_map(|line| line.strip_prefix("Tcp:"));
    let (names, values) = (lines.next()?, lines.next()?);
    let mut counters = names.split_whitespace().zip(values.split_whitespace());
    counters.find(|(name, _)| *name == "RetransSegs")?.1.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_down_until_a_look_finds_it_up() {
        let mut downs = Vec::new();
        let looks = [true, false, false, true, true, false];
        let before = [true].into_iter().chain(looks);
        before.zip(looks).zip(1..).for_each(|((was_up, is_up), at_ns)| take(&mut downs, was_up, is_up, at_ns));
        assert_eq!(downs, [Down { from_ns: 2, to_ns: 4 }, Down { from_ns: 6, to_ns: 6 }]);
    }

    #[test]
    fn headers_are_no_bytes_of_the_stream() {
        let devices = "Inter-|   Receive |  Transmit\n face |bytes packets\n    lo:       0       0    0    0    0     0          0         0        0       0    0    0    0     0       0          0\n move0:     999       9    0    0    0     0          0         0  2066      1    0    0    0     0       0          0\n";
        assert_eq!(
            (bytes(devices, "move0"), bytes(devices, "lo"), bytes(devices, "move")),
            (Some(2_000), Some(0), None)
        );
        let counters = "Ip: Forwarding\nIp: 1\nTcp: RtoMin RetransSegs InErrs\nTcp: 200 3 0\n";
        assert_eq!((retransmitted(counters), retransmitted("Tcp: RtoMin\nTcp: 1\n")), (Some(3), None));
    }
}
