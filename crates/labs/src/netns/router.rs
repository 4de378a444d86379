//! How does a bare machine become a router? Two NICs get an address each, and the kernel is told to forward.
//!
//! In: [`Router`], in the orders of the initramfs. Out: the line [`FORWARDS`] on the console; then the machine sleeps, and
//! forwards until it is ended from outside.
//! Sources: netdevice(7) for the requests; Documentation/networking/ip-sysctl.rst for `ip_forward`.

use crate::machine::inside::{Work, details, say};
use lab::Error;
use serde::{Deserialize, Serialize};
use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::AsRawFd;
use std::path::Path;

/// What it says once it forwards.
pub(crate) const FORWARDS: &str = "forwards";

/// Where the kernel lists its NICs.
const NICS: &str = "/sys/class/net";
const FORWARD: &str = "/proc/sys/net/ipv4/ip_forward";

pub(crate) const ROUTE: Work = Work { name: "route", run: |orders| details::<Router>(orders)?.run() };

/// A machine that forwards packets between its NICs.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Router {
    pub ports: Vec<Port>,
}

/// A NIC, and what it is to have.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Port {
    /// Which NIC, by its hardware address as the kernel prints it: `52:54:00:00:00:01`.
    pub mac: String,
    pub address: Ipv4Addr,
    pub mask: Ipv4Addr,
}

impl Router {
    /// Makes this machine the router and says so; returns only if it cannot.
    fn run(&self) -> Result<(), Error> {
        let socket = UdpSocket::bind("0.0.0.0:0").map_err(|error| Error::io(NICS, error))?;
        for port in &self.ports {
            let name = named(Path::new(NICS), &port.mac)?;
            port.configure(&socket, &name).map_err(|error| Error::io(Path::new(NICS).join(&name), error))?;
        }
        std::fs::write(FORWARD, "1").map_err(|error| Error::io(FORWARD, error))?;
        say(FORWARDS);
        loop {
            std::thread::park();
        }
    }
}

impl Port {
    fn configure(&self, socket: &UdpSocket, name: &str) -> io::Result<()> {
        let mut request = Request::of(name)?;
        request.set_address(self.address);
        request.send(socket, libc::SIOCSIFADDR)?;
        request.set_address(self.mask);
        request.send(socket, libc::SIOCSIFNETMASK)?;
        request.0.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
        request.send(socket, libc::SIOCSIFFLAGS)
    }
}

/// A request about a NIC.
struct Request(libc::ifreq);

impl Request {
    fn of(name: &str) -> io::Result<Self> {
        // SAFETY: an `ifreq` is made of numbers, for all of which zero is a value.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        if name.len() >= request.ifr_name.len() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
            *to = from as libc::c_char;
        }
        Ok(Self(request))
    }

    fn set_address(&mut self, address: Ipv4Addr) {
        let address = libc::sockaddr_in {
            sin_family: libc::AF_INET as libc::sa_family_t,
            sin_port: 0,
            sin_addr: libc::in_addr { s_addr: u32::from(address).to_be() },
            sin_zero: [0; 8],
        };
        // SAFETY: both are plain numbers of 16 bytes; netdevice(7) has an address of that family stand there.
        self.0.ifr_ifru.ifru_addr = unsafe { std::mem::transmute::<libc::sockaddr_in, libc::sockaddr>(address) };
    }

    fn send(&self, socket: &UdpSocket, request: libc::c_ulong) -> io::Result<()> {
        // SAFETY: the kernel reads one `ifreq`, which lives until the call returns.
        let sent = unsafe { libc::ioctl(socket.as_raw_fd(), request as libc::Ioctl, &raw const self.0) };
        if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }
}

/// The name of the NIC with that hardware address.
fn named(nics: &Path, mac: &str) -> Result<String, Error> {
    let entries = std::fs::read_dir(nics).map_err(|error| Error::io(nics, error))?.flatten();
    let mut found = entries.filter(|entry| {
        std::fs::read_to_string(entry.path().join("address")).is_ok_and(|address| address.trim() == mac)
    });
    let found = found.next().map(|entry| entry.file_name().to_string_lossy().into_owned());
    found.ok_or_else(|| Error::Absent(format!("the machine has no NIC {mac}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nic_is_known_by_its_hardware_address() {
        let nics = tempfile::tempdir().unwrap();
        for (name, mac) in [("lo", "00:00:00:00:00:00"), ("eth0", "52:54:00:00:00:01")] {
            std::fs::create_dir(nics.path().join(name)).unwrap();
            std::fs::write(nics.path().join(name).join("address"), format!("{mac}\n")).unwrap();
        }
        assert_eq!(named(nics.path(), "52:54:00:00:00:01").unwrap(), "eth0");
        assert!(named(nics.path(), "52:54:00:00:00:02").unwrap_err().to_string().contains("no NIC 52:54"));
        assert!(Request::of("a-name-that-is-too-long").is_err());
    }
}
