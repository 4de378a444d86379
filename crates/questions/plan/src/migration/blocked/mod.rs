//! Can this guest be migrated at all, and what must its target have? Before anyone tries.
//!
//! ```text
//! snapshot: proc/PID/cmdline, driver of each device --\
//! plan --vm: the same, live, and QEMU's own reasons ----> Guest --rules--> findings
//! recorded session: blocked-reasons of query-migrate --/
//! ```

mod rules;

pub(super) use rules::findings;
pub use rules::words;

use base::number::many;
use base::{Level, Section, in_order};
use facts::{Answer, Case, Error};
use host::Snapshot;
use host::machine::vm_named_in;
use host::migrated::obstacles::{self, Obstacle, Started};
use std::collections::BTreeMap;

pub const QUESTION: &str = "Can these guests be migrated, and what must the other host have?";

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Guest {
    /// The VM's name.
    pub name: String,
    /// Where its command line was read.
    pub place: String,
    pub started: Started,
    /// libvirt started it: its command line names the guest as libvirt does, and virsh is there.
    pub is_libvirts: bool,
    /// Its number, where Proxmox started it.
    pub proxmox: Option<u32>,
    /// Drivers of this host's devices that were given to it, by their places on the PCI bus.
    pub drivers: BTreeMap<String, String>,
    /// Why QEMU itself says that it cannot be migrated.
    pub reasons: Vec<String>,
    /// QEMU itself was not asked: its monitor is taken.
    pub is_unasked: bool,
    /// It is to be migrated: then what keeps it here is no side remark.
    pub is_asked: bool,
}

impl Guest {
    /// One of that command line, arguments ended by zero bytes; `driver` says what serves a device of the PCI bus.
    pub fn of(command: &str, place: &str, driver: impl Fn(&str) -> Option<String>) -> Self {
        let started = obstacles::of(command);
        let addresses = started.obstacles.iter().filter_map(|obstacle| match obstacle {
            Obstacle::Vfio { address, .. } => Some(address.clone()),
            _ => None,
        });
        let drivers = addresses.filter_map(|address| Some((address.clone(), driver(&address)?))).collect();
        let name = vm_named_in(&command.replace('\0', " ")).unwrap_or_else(|| "guest".to_owned());
        let is_libvirts = command.contains("guest=");
        let words: Vec<&str> = command.split('\0').collect();
        let behind = |option: &str| words.iter().position(|word| *word == option).and_then(|at| words.get(at + 1));
        // `qm start` has the sockets of all VMs in one folder (qemu-server, Proxmox VE 8.2).
        let proxmox = behind("-id").filter(|_| command.contains("/qemu-server/")).and_then(|id| id.parse().ok());
        Self { name, place: place.to_owned(), started, is_libvirts, proxmox, drivers, ..Self::default() }
    }

    /// Those that ran when a snapshot was taken.
    fn of_snapshot(snapshot: &Snapshot) -> Vec<Self> {
        let driver = |address: &str| {
            let link = snapshot.link(&format!("sys/bus/pci/devices/{address}/driver"))?;
            Some(link.rsplit('/').next()?.to_owned())
        };
        let guest = |pid: &String| {
            let place = format!("proc/{pid}/cmdline");
            let guest = Self::of(&snapshot.read(&place)?, &place, driver);
            // libvirt of a pod is within it: the host has no virsh for its VM.
            let group = snapshot.read(&format!("proc/{pid}/cgroup")).unwrap_or_default();
            let is_here = !group.contains("kubepods");
            let started = Started { is_libvirts: guest.started.is_libvirts && is_here, ..guest.started };
            Some(Self { is_libvirts: guest.is_libvirts && is_here, started, ..guest })
        };
        snapshot.vms().iter().filter_map(guest).collect()
    }
}

/// Answers it; `None` where no command line of a VM has anything to say.
///
/// # Errors
/// None: what was not read is not known.
pub fn answer(case: &Case) -> Result<Option<Answer>, Error> {
    let machines = case.machines().list.iter();
    let guests: Vec<(Level, Guest)> = machines
        .filter_map(|machine| Some((machine.level, machine.last()?)))
        .flat_map(|(level, snapshot)| Guest::of_snapshot(snapshot).into_iter().map(move |guest| (level, guest)))
        .collect();
    let found = in_order(guests.iter().flat_map(|(level, guest)| findings(guest, *level)).collect());
    if found.is_empty() {
        return Ok(None);
    }
    let mut section = Section::new("migration", QUESTION);
    let blocked = found.iter().filter(|finding| finding.rule == rules::BLOCKED).count() as u64;
    let all = many(guests.len() as u64, "VM");
    section.summary = match blocked {
        0 => format!("Of {all}, no QEMU command line has what keeps a VM from being migrated."),
        _ => format!("By QEMU's command lines, {blocked} of {all} cannot be migrated as started."),
    };
    section.findings = found;
    Ok(Some(Answer { section, problems: Vec::new() }))
}

#[cfg(test)]
mod tests;
