//! What commands printed, where a tree holds it: our snapshots (`commands/`), sosreports (`sos_commands/`), must-gathers.
//!
//! The texts are read as pasted ones are. Files have precedence: of a command counts what no file told. Names of the outputs
//! are those of sos 4 (a command with `_` for blanks and `.` for `/`), of which snapshots take theirs too; those of
//! must-gathers stand in openshift/must-gather, collection-scripts/gather_ppc_single_node.

use super::statuses;
use crate::machine::{Machine, Nic, Topology};
use crate::{Snapshot, paste};

/// Outputs that are read.
const OUTPUTS: &[&str] = &[
    "commands/*",
    "sos_commands/networking/ethtool_-{c,k,l}_*",
    "sos_commands/openvswitch/ovs-vsctl_-t_5_{show,get_Open_vSwitch_._other_config,list_bridge,list_port,list_interface}",
    "sos_commands/openvswitch/ovs-appctl_dpif-netdev.pmd-rxq-show",
    "sos_commands/processor/lscpu_-ae",
    "sos_commands/numa/numactl_--hardware",
    "sos_commands/process/{pidstat_-tl,ps_-elfL}",
    "{lscpu,ethtool_features,ethtool_channels}",
];

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
