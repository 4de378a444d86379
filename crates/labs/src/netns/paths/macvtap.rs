//! VNFs on macvtaps: each reads frames from the file of one and writes them to that of the other, as a VMM does.
//!
//! ```text
//! port0 -- macvtap tap0 --file--> thread vnf-0 --file--> macvtap tap1 -- port1
//! ```
//! Sources: drivers/net/macvtap.c, drivers/net/tap.c (Linux 6.12): in mode `passthru` a macvtap takes all frames of the device below;
//! its file gives frames with a virtio-net header of 10 bytes in front, out of a ring of `TUN_READQ_SIZE` (500); frames that find
//! it full are counted as `rx dropped`.

use super::super::forward::{HEADER_BYTES, LONGEST_FRAME};
use super::super::inside::{Stop, WorkerThreads, enter};
use super::super::pin;
use super::bed::shell;
use lab::Error;
use lab::journal::network::ip;
use std::ffi::CStr;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// How long a thread waits for a frame before it looks whether it is to end.
const LOOK_EVERY: rustix::event::Timespec = rustix::event::Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
/// What a VMM tells a tap that its guest can do (include/uapi/linux/if_tun.h): checksums and TCP segments may be left undone,
/// else the kernel cuts what it has joined.
const OFFLOADS: libc::c_uint = libc::TUN_F_CSUM | libc::TUN_F_TSO4 | libc::TUN_F_TSO6;
/// Where the node of a file lies for the moment in which it is opened.
const NODE: &CStr = c"/dev/tap";

/// What a thread has counted.
#[derive(Debug, Default)]
pub(super) struct Carried {
    taken: AtomicU64,
    given: AtomicU64,
    refused: AtomicU64,
}

impl Carried {
    /// Frames that it read, that it wrote, and that were refused when it wrote them.
    pub(super) fn read(&self) -> [u64; 3] {
        [&self.taken, &self.given, &self.refused].map(|count| count.load(Ordering::Relaxed))
    }
}

/// The macvtap on a port of a chain.
pub(super) fn on(port: &str) -> String {
    port.replace("port", "tap")
}

/// Puts a macvtap on both ports of a VNF, with a thread for each direction; returns what the one towards the sink counts.
pub(super) fn join(
    namespace: &str,
    vnf: u32,
    [near, far]: [&str; 2],
    cpu: u32,
    workers: &mut WorkerThreads,
) -> Result<Arc<Carried>, Error> {
    let [near, far] = [open(namespace, near)?, open(namespace, far)?];
    let again = |file: &File| file.try_clone().map_err(|error| Error::refused("the file of a macvtap", error));
    let onward = Arc::new(Carried::default());
    let ways = [(again(&near)?, again(&far)?, Arc::clone(&onward)), (far, near, Arc::default())];
    for (from, to, carried) in ways {
        let work = move |(): (), stop: &_| carry(&from, &to, &carried, stop);
        pin(workers.start(&format!("vnf-{vnf}"), None, || Ok(()), work)?, cpu)?;
    }
    Ok(onward)
}

/// Makes the macvtap on a port and opens its file.
fn open(namespace: &str, port: &str) -> Result<File, Error> {
    let tap = on(port);
    let make = ["-n", namespace, "link", "add", "link", port, "name", &tap, "type", "macvtap", "mode", "passthru"];
    ip(&make).map_err(|error| Error::Absent(format!("{error}; macvtap needs a kernel with CONFIG_MACVTAP")))?;
    // The one queue that counts is that of the port below.
    ip(&["netns", "exec", namespace, "tc", "qdisc", "replace", "dev", &tap, "root", "noqueue"])?;
    ip(&["-n", namespace, "link", "set", &tap, "up"])?;
    let told = shell(namespace, &format!("cat /sys/class/net/{tap}/macvtap/tap*/dev"))?;
    let numbers =
        told.trim().split_once(':').and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)));
    let (major, minor) =
        numbers.ok_or_else(|| Error::Malformed(format!("the file of {tap} has no number: `{}`", told.trim())))?;
    // Names below /dev are those of all namespaces, and numbers of devices are not: the file is opened by its own.
    std::thread::scope(|scope| {
        let opened = scope.spawn(|| {
            enter(namespace)?;
            by_number(libc::makedev(major, minor))
                .map_err(|error| Error::refused(format_args!("the file of {tap}"), error))
        });
        opened.join().unwrap_or_else(|_| Err(Error::Died(format!("the thread that opens {tap} died"))))
    })
}

/// Opens a character device. Its node lies on a file system that only this thread sees, and that is gone when the thread ends.
fn by_number(device: libc::dev_t) -> io::Result<File> {
    let done = |result: libc::c_int| if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) };
    let private = libc::MS_REC | libc::MS_PRIVATE;
    let nothing = std::ptr::null();
    // SAFETY: the kernel reads strings that end in a zero and live until the calls return; what they change is this thread's own
    // (unshare(2), CLONE_NEWNS).
    unsafe {
        done(libc::unshare(libc::CLONE_NEWNS))?;
        done(libc::mount(c"none".as_ptr(), c"/".as_ptr(), nothing, private, nothing.cast()))?;
        done(libc::mount(c"none".as_ptr(), c"/dev".as_ptr(), c"tmpfs".as_ptr(), 0, nothing.cast()))?;
        done(libc::mknod(NODE.as_ptr(), libc::S_IFCHR | 0o600, device))?;
    }
    let path = NODE.to_str().map_err(io::Error::other)?;
    let file = File::options().read(true).write(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    // SAFETY: the request takes a number.
    done(unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETOFFLOAD, libc::c_ulong::from(OFFLOADS)) })?;
    Ok(file)
}

/// Carries frames one way until it is told to end.
fn carry(mut from: &File, mut to: &File, carried: &Carried, stop: &Stop) -> Result<(), Error> {
    use rustix::event::{PollFd, PollFlags, poll};
    let gone = |error| Error::refused("the macvtap of a VNF is gone", error);
    let mut frame = vec![0; LONGEST_FRAME];
    while !stop.asked() {
        match from.read(&mut frame) {
            Ok(length) if length > HEADER_BYTES => {
                carried.taken.fetch_add(1, Ordering::Relaxed);
                let written = to.write(&frame[..length]);
                let count = if written.is_ok() { &carried.given } else { &carried.refused };
                count.fetch_add(1, Ordering::Relaxed);
            }
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                // Interrupted or not: the file is looked at again.
                let _ = poll(&mut [PollFd::new(&from.as_fd(), PollFlags::IN)], Some(&LOOK_EVERY));
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(gone(error)),
        }
    }
    Ok(())
}
