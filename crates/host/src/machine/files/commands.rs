//! What commands printed, where a tree holds it: our snapshots (`commands/`), sosreports (`sos_commands/`), must-gathers.
//!
//! The texts are read as pasted ones are. Files have precedence: of a command counts what no file told.

use super::statuses;
use crate::machine::{Machine, Nic, Topology};
use crate::snapshot::OUTPUTS;
use crate::{Snapshot, budget, paste};
use std::collections::{HashMap, HashSet};

/// Reads all of them; `machine` knows its domains already, of which those that run have threads.
pub(super) fn told(snapshot: &Snapshot, machine: &Machine) -> Machine {
    let paths = OUTPUTS.iter().flat_map(|pattern| snapshot.find(pattern));
    // One byte more than is read of all, so that what is left out is noted.
    let mut bytes_left = budget::TEXT_BYTES + 1;
    let mut texts: Vec<(String, String)> = Vec::new();
    for path in paths {
        let Some(text) = snapshot.read(&path) else { continue };
        bytes_left = bytes_left.saturating_sub(text.len());
        texts.push((path, text));
        if bytes_left == 0 {
            break;
        }
    }
    let running = machine.domains.iter().filter(|domain| domain.id.is_some() || domain.pid.is_some());
    paste::read_of(running.cloned().collect(), &texts)
}

/// Adds what the commands told and no file did.
pub(super) fn add(snapshot: &Snapshot, machine: &mut Machine, told: Machine) {
    let is_better = !told.topology.cpus.is_empty() && machine.topology.cores_unknown;
    if machine.topology.cpus.is_empty() || is_better {
        let Topology { isolated, nohz_full, .. } = std::mem::take(&mut machine.topology);
        machine.topology = Topology { isolated, nohz_full, ..told.topology };
    }
    for (number, node) in told.nodes {
        machine.nodes.entry(number).or_insert(node);
    }
    let known: HashMap<String, usize> =
        machine.nics.iter().enumerate().rev().map(|(index, nic)| (nic.name.clone(), index)).collect();
    for nic in told.nics {
        match known.get(&nic.name) {
            Some(index) => {
                let known = &mut machine.nics[*index];
                let Nic { coalescing, offloads, channels, .. } = nic;
                (known.coalescing, known.offloads, known.channels) = (coalescing, offloads, channels);
            }
            None => machine.nics.push(nic),
        }
    }
    machine.switch.add(told.switch);
    machine.unread.extend(told.unread);
    if machine.threads.iter().all(|thread| thread.vm.is_none()) {
        let named: HashSet<Option<i32>> = told.threads.iter().map(|thread| thread.tid).collect();
        machine.threads.retain(|thread| !named.contains(&thread.tid));
        machine.threads.extend(told.threads);
        machine.domains = told.domains;
        statuses::masks(snapshot, machine);
    }
}
