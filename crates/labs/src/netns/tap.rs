//! A tap: a NIC of a namespace whose cable ends in a file that a VMM holds.
//!
//! Source: Documentation/networking/tuntap.rst. It is gone when the last holder of the file closes it. With virtio-net
//! headers (IFF_VNET_HDR) frames pass uncut, as QEMU and vhost take them.

use super::inside::enter;
use lab::Error;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

const CLONE_DEVICE: &str = "/dev/net/tun";

/// Makes a tap of that name in the namespace.
pub(crate) fn open(namespace: &str, name: &str) -> Result<OwnedFd, Error> {
    // A namespace belongs to a thread, and a tap lies in the namespace of the one that asks for it.
    std::thread::scope(|scope| {
        let made = scope.spawn(|| {
            enter(namespace)?;
            make(name)
        });
        made.join().unwrap_or_else(|_| Err(Error::Died(format!("the thread that makes {name} died"))))
    })
}

fn make(name: &str) -> Result<OwnedFd, Error> {
    let file = File::options().read(true).write(true).open(CLONE_DEVICE).map_err(|error| {
        Error::Denied(format!("{CLONE_DEVICE}: {error}; a tap needs root and the kernel's module tun"))
    })?;
    // SAFETY: an `ifreq` is made of numbers, for all of which zero is a value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    // The last byte stays the zero that ends the name.
    for (to, from) in request.ifr_name.iter_mut().take(libc::IFNAMSIZ - 1).zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_TAP | libc::IFF_NO_PI | libc::IFF_VNET_HDR) as libc::c_short;
    // SAFETY: the kernel reads and writes one `ifreq`, which is ours and lives until the call returns.
    let made = unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF, &raw mut request) };
    if made < 0 {
        return Err(Error::io(CLONE_DEVICE, io::Error::last_os_error()));
    }
    Ok(file.into())
}
