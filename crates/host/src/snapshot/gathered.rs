//! Files that only trees of other tools have, and outputs of commands: where they lie and what they may hold.
//!
//! A live machine has none of them: our snapshots ask the same commands and keep what they print in `commands/`, under the
//! names that sos gives such files (sos 4, `Plugin._mangle_command`: `_` for blanks, `.` for slashes).

/// Directory of outputs in our snapshots.
pub const COMMANDS: &str = "commands";

/// Outputs that are read as if they were pasted: of our snapshots, of sosreports, of must-gathers (`gather_ppc_single_node`).
pub const OUTPUTS: &[&str] = &[
    "commands/*",
    "sos_commands/networking/ethtool_-{c,k,l}_*",
    "sos_commands/openvswitch/ovs-vsctl_-t_5_{show,get_Open_vSwitch_._other_config,list_bridge,list_port,list_interface}",
    "sos_commands/openvswitch/ovs-appctl_dpif-netdev.pmd-rxq-show",
    "sos_commands/processor/{lscpu,lscpu_-ae}",
    "sos_commands/numa/numactl_--hardware",
    "sos_commands/process/{pidstat_-tl,ps_-elfL}",
    "{lscpu,ethtool_features,ethtool_channels}",
];

/// Domain XML, the surest first: of our snapshots, libvirt's own state of running domains, as printed, as defined.
pub const DOMAINS: &[&str] = &[
    "libvirt/*.xml",
    "{run,var/run}/libvirt/qemu/*.xml",
    "sos_commands/virsh/virsh_-r_dumpxml_*",
    "etc/libvirt/qemu/*.xml",
];

/// Other files of sosreports and must-gathers.
pub const OTHERS: &[&str] =
    &["proc/<pid>/status", "{cpu_affinities.json,irq_affinities.json,podresources.json}", "proc_cmdline"];

pub fn output_name(command: &[&str]) -> String {
    command.join("_").replace('/', ".")
}
