//! What commands printed, where a tree holds it: our snapshots (`commands/`), sosreports (`sos_commands/`), must-gathers.
//!
//! The texts are read as pasted ones are. Files have precedence: of a command counts what no file told.

use super::statuses;
use crate::machine::{Machine, Nic, Topology};
use crate::snapshot::OUTPUTS;
use crate::{Snapshot, paste};

/// Reads all of them; `machine` knows its domains already, of which those that run have threads.
pub(super) fn told(snapshot: &Snapshot, machine: &Machine) -> Machine {
    let paths = OUTPUTS.iter().flat_map(|pattern| snapshot.find(pattern));
    let texts: Vec<(String, String)> = paths.filter_map(|path| Some((path.clone(), snapshot.read(&path)?))).collect();
    let running = machine.domains.iter().filter(|domain| domain.id.is_some() || domain.pid.is_some());
    paste::read_of(running.cloned().collect(), &texts)
}

/// Adds what the commands told and no file did.
pub(super) fn add(snapshot: &Snapshot, machine: &mut Machine, told: Machine) {
    if machine.topology.cpus.is_empty() {
        let Topology { isolated, nohz_full, .. } = std::mem::take(&mut machine.topology);
        machine.topology = Topology { isolated, nohz_full, ..told.topology };
    }
    for (number, node) in told.nodes {
        machine.nodes.entry(number).or_insert(node);
    }
    for nic in told.nics {
        match machine.nics.iter_mut().find(|known| known.name == nic.name) {
            Some(known) => {
                let Nic { coalescing, offloads, channels, .. } = nic;
                (known.coalescing, known.offloads, known.channels) = (coalescing, offloads, channels);
            }
            None => machine.nics.push(nic),
        }
    }
    machine.switch.add(told.switch);
    machine.unread.extend(told.unread);
    if machine.threads.iter().all(|thread| thread.vm.is_none()) {
        machine.threads.retain(|thread| told.threads.iter().all(|other| other.tid != thread.tid));
        machine.threads.extend(told.threads);
        machine.domains = told.domains;
        statuses::masks(snapshot, machine);
    }
}
