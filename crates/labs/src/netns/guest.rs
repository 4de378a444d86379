//! A guest that routes, as the forwarder: QEMU with two virtio NICs on taps, this program its first process.
//!
//! ```text
//! namespace -client                    QEMU, emulated (TCG)                           namespace -server
//! client0, a tap --file-- main loop <-> virtio-net [ eth0  ip_forward  eth1 ] <-> main loop --file-- server0, a tap
//!                                                   thread CPU 0/TCG
//! ```
//! Without vhost-net QEMU's main loop copies every frame, and the vCPU's thread runs the guest's network stack: both are the
//! forwarder, and both can be starved. In: the kernel and initramfs as for all machines of the lab ([`crate::machine`]). Out: the threads' ids.

use super::{Addresses, pin, tap};
use crate::child::ChildProcess;
use crate::machine::KERNEL_ARGUMENTS;
use crate::machine::initramfs::{self, Contents};
use crate::machine::inside::{FAILED, Orders, SAYS};
use crate::machine::modules::Modules;
use crate::machine::packages::{self, Flavour};
use crate::machine::scratch::Scratch;
use crate::netns::router::{FORWARDS, Port, ROUTE, Router};
use base::CpuSet;
use lab::Error;
use rustix::io::{FdFlags, fcntl_setfd};
use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const QEMU: &str = "qemu-system-x86_64";
/// Modules that the guest needs for its NICs.
const MODULES: &[&str] = &["virtio_pci", "virtio_net"];
/// Memory for the kernel and for what runs.
const OWN_MIB: u64 = 256;
/// Addresses of the range that QEMU's are from, administered locally.
const MACS: [&str; 2] = ["52:54:00:6b:76:01", "52:54:00:6b:76:02"];
/// The mask of both networks, 24 bits.
const MASK: Ipv4Addr = Ipv4Addr::new(255, 255, 255, 0);
/// How long a boot may take: it took 8 to 14 s on two cores that compiled meanwhile.
const BOOTS: Duration = Duration::from_secs(180);
/// How often the console is read.
const LOOK_EVERY: Duration = Duration::from_millis(50);

#[derive(Debug, Clone)]
pub struct Places {
    /// This program's file, the guest's first process.
    pub program: PathBuf,
    /// Where the kernel is kept, if there is a place for it.
    pub cache: Option<PathBuf>,
}

/// The guest at work; dropping it ends it.
#[derive(Debug)]
pub(super) struct Guest {
    qemu: ChildProcess,
    proc: PathBuf,
}

impl Guest {
    /// Boots it between two taps that it brings: `client0` and `server0`, in these namespaces.
    pub(super) fn boot(
        places: &Places,
        namespaces: [&str; 2],
        addresses: &Addresses,
        cpus: &CpuSet,
        proc: &Path,
        stop: &AtomicBool,
    ) -> Result<Self, Error> {
        ChildProcess::is_installed(QEMU, "qemu-system-x86")?;
        let cache = places.cache.as_deref().ok_or_else(|| {
            Error::WrongUse("neither $XDG_CACHE_HOME nor $HOME names a directory; use --cache DIR".to_owned())
        })?;
        let cache = std::path::absolute(cache).map_err(|error| Error::io(cache, error))?;
        let kernel = packages::kernel(&cache, Flavour::Stock, &mut |_| {})?;
        let scratch = Scratch::new(&cache)?;
        let initramfs = scratch.join("initramfs");
        let (to_client, to_server) = addresses.gateways.unwrap_or_default();
        let port = |(mac, address): (&str, &str)| {
            let address = address.parse().map_err(|error| Error::Malformed(format!("{address}: {error}")))?;
            Ok(Port { mac: mac.to_owned(), address, mask: MASK })
        };
        let ports = MACS.into_iter().zip([to_client, to_server]).map(port).collect::<Result<Vec<_>, Error>>()?;
        let contents = Contents {
            program: &places.program,
            orders: Orders::new(ROUTE, &Router { ports })?,
            modules: MODULES,
            programs: Vec::new(),
            files: Vec::new(),
        };
        initramfs::write(&initramfs, contents, &Modules::of(&kernel)?)?;
        let taps = [tap::open(namespaces[0], "client0")?, tap::open(namespaces[1], "server0")?];
        let qemu = ChildProcess::of(command(&kernel.image, &initramfs, &taps)?, cpus)?;
        let mut guest = Self { qemu, proc: proc.to_owned() };
        guest.comes_up(stop)?;
        Ok(guest)
    }

    fn comes_up(&mut self, stop: &AtomicBool) -> Result<(), Error> {
        let since = Instant::now();
        loop {
            // Asked first: what it said before it ended is on the console then.
            let has_ended = self.qemu.has_ended();
            let console = self.qemu.said();
            let said = || console.lines().filter_map(|line| Some(line.split_once(SAYS)?.1.trim_end()));
            if said().any(|line| line == FORWARDS) {
                return Ok(());
            }
            // A kernel that stops says why first, and ends with addresses.
            let stopped = || console.lines().map(str::trim).find(|line| line.contains("Kernel panic"));
            let last = || console.lines().map(str::trim).rfind(|line| !line.is_empty());
            let end = || stopped().or_else(last).unwrap_or("nothing").to_owned();
            let why = match said().find_map(|line| line.strip_prefix(FAILED)) {
                Some(why) => why.to_owned(),
                None if has_ended => {
                    format!("QEMU ended {}; its console says: {}", self.qemu.complaint(), end())
                }
                None if since.elapsed() > BOOTS => {
                    format!("it does not forward after {} s; its console says: {}", BOOTS.as_secs(), end())
                }
                None if stop.load(Ordering::Relaxed) => "stopped".to_owned(),
                None => {
                    std::thread::sleep(LOOK_EVERY);
                    continue;
                }
            };
            return Err(Error::Died(format!("the forwarding guest: {why}")));
        }
    }

    /// Pins all its threads to `cpu`, and gives those that carry frames: QEMU's main loop first, then the vCPU.
    pub(super) fn threads(&self, cpu: u32) -> Result<Vec<u32>, Error> {
        let (main, tasks) = (self.qemu.pid(), self.proc.join(self.qemu.pid().to_string()).join("task"));
        let mut carry = vec![main];
        for task in std::fs::read_dir(&tasks).map_err(|error| Error::io(&tasks, error))?.flatten() {
            let Some(tid) = task.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
            pin(tid, cpu)?;
            let name = std::fs::read_to_string(task.path().join("comm")).unwrap_or_default();
            if name.starts_with("CPU ") && tid != main {
                carry.push(tid);
            }
        }
        Ok(carry)
    }
}

/// The command that boots the guest, which gets the taps' files.
///
/// # Errors
/// If the initramfs is not there.
fn command(kernel: &Path, initramfs: &Path, taps: &[OwnedFd; 2]) -> Result<Command, Error> {
    // This program is as large as its build makes it. It lies there packed and unpacked at once, and the latter may have half of the memory
    // (SHMEM_DEFAULT_MAX_BLOCKS in mm/shmem.c, Linux 6.12).
    let bytes = std::fs::metadata(initramfs).map_err(|error| Error::io(initramfs, error))?.len();
    let memory = format!("{}M", OWN_MIB + 3 * bytes.div_ceil(1 << 20));
    let mut command = Command::new(QEMU);
    command.args(["-name", "kvmscope-netns,debug-threads=on", "-accel", "tcg", "-smp", "1", "-m", &memory]);
    command.args(["-display", "none", "-no-reboot", "-nodefaults", "-serial", "stdio", "-kernel"]).arg(kernel);
    command.arg("-initrd").arg(initramfs).args(["-append", KERNEL_ARGUMENTS]);
    for (number, (tap, mac)) in taps.iter().zip(MACS).enumerate() {
        command.args(["-netdev", &format!("tap,id=port{number},fd={},vhost=off", tap.as_raw_fd())]);
        command.args(["-device", &format!("virtio-net-pci,netdev=port{number},mac={mac},romfile=")]);
    }
    let numbers = taps.each_ref().map(AsRawFd::as_raw_fd);
    // SAFETY: the descriptors are open in the parent until `spawn` returns; between fork and exec only their flags change.
    unsafe {
        command.pre_exec(move || {
            for number in numbers {
                fcntl_setfd(BorrowedFd::borrow_raw(number), FdFlags::empty())?;
            }
            Ok(())
        });
    }
    Ok(command)
}
