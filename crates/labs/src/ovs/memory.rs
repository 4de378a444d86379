//! How much of [`Memory`] the switch and the VNFs take, and how the switch is told.

pub use crate::packet_memory::Memory;

/// What the switch takes: its pool of packets is halved until it fits (`dpdk_mp_create` of lib/netdev-dpdk.c).
const SWITCH_MIB: u64 = 512;
/// What testpmd takes: 40,960 buffers of 2,304 bytes for eight VNFs, and its rings.
const VNFS_MIB: u64 = 256;
/// The same in ordinary memory.
const ORDINARY_MIB: u64 = 1024;
/// The same for the switch: its pool of 262,144 packets does not fit into 1024 MiB, and in ordinary memory it is not halved, because DPDK says
/// ENOBUFS there and the switch tries again after ENOMEM alone (`dpdk_mp_create` of lib/netdev-dpdk.c, Open vSwitch 3.1).
const ORDINARY_OF_SWITCH_MIB: u64 = 2048;
pub(super) const BOTH_MIB: u64 = SWITCH_MIB + VNFS_MIB;

impl Memory {
    /// Options of DPDK's environment for the switch. Its version 3.1 adds `--in-memory` unless told otherwise, which does not
    /// go together with ordinary memory (`construct_dpdk_args` of lib/dpdk.c, `eal_check_common_options` of DPDK 22.11).
    pub(super) fn of_switch(self) -> String {
        match self {
            Memory::HugePages => "--single-file-segments".to_owned(),
            Memory::Ordinary => format!("--no-huge --legacy-mem -m {ORDINARY_OF_SWITCH_MIB}"),
        }
    }

    /// What the switch sets aside at once, in MiB, by node; `None` where its other options say it.
    pub(super) fn of_switch_at_once(self) -> Option<String> {
        (self == Memory::HugePages).then(|| SWITCH_MIB.to_string())
    }

    /// Options of DPDK's environment for testpmd.
    pub(super) fn of_vnfs(self) -> Vec<String> {
        self.options(VNFS_MIB, ORDINARY_MIB)
    }
}
