//! Any bytes as the files of a machine that another tool has gathered, all the way to the answer about placement.
//!
//! An input is texts parted by zero bytes, one for each of the files.

use crate::room::Room;
use analysis::placement::{Wishes, build, section::section};
use host::{Machine, Snapshot};

/// Files of a sosreport, a must-gather and a snapshot that have parsers of their own.
const FILES: [&str; 16] = [
    "sos_commands/processor/lscpu_-ae",
    "sos_commands/process/ps_-elfL",
    "sos_commands/networking/ethtool_-k_eth0",
    "sos_commands/openvswitch/ovs-vsctl_-t_5_show",
    "sos_commands/openvswitch/ovs-appctl_dpif-netdev.pmd-rxq-show",
    "sos_commands/kernel/sysctl_-a",
    "sos_commands/virsh/virsh_-r_dumpxml_web",
    "proc/interrupts",
    "proc/cmdline",
    "proc/10/status",
    "proc/10/cgroup",
    "cpu_affinities.json",
    "irq_affinities.json",
    "podresources.json",
    "links.json",
    "sys/devices/system/cpu/cpu0/topology/thread_siblings",
];

/// Panics where a promise is broken by these bytes.
pub fn sosreport(room: &Room, bytes: &[u8]) {
    let root = room.path();
    let mut texts = bytes.split(|byte| *byte == 0);
    for file in FILES {
        let above = root.join(file);
        std::fs::create_dir_all(above.parent().unwrap_or(root)).expect("memory for the input");
        room.write(file, texts.next().unwrap_or_default());
    }
    let Ok(snapshot) = Snapshot::open(root) else { return };
    let machine = Machine::of_snapshots(&[snapshot]);
    section(&[build::model(base::Level::L0, "L0", machine, false, &Wishes::default())]);
}
