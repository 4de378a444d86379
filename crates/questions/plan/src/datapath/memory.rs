//! How much memory the packet buffers of Open vSwitch with DPDK take.

use super::model::design::Datapath;
use super::plan::Plan;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sized {
    pub way: &'static str,
    pub mtu: u64,
    pub bytes: u64,
    pub applies: &'static str,
}

/// Buffers of a pool that ports share (lib/netdev-dpdk.c, MAX_NB_MBUF, Open vSwitch 3.1).
const BUFFERS: u64 = 262_144;
/// Bytes of a buffer beside its data: 3,008 of 2,048 at MTU 1500, and 10,176 of 9,216 at 9000 (Open vSwitch, topics/dpdk/memory).
const AROUND_BUFFER: u64 = 960;
/// Bytes around the MTU in a buffer: Ethernet with two tags and its check sequence, and DPDK's headroom.
const AROUND_MTU: u64 = 26 + 128;
/// TripleO's own, beside the MTU and for the node (Red Hat OpenStack Platform, network functions virtualization planning guide).
const TRIPLEO_BUFFERS: u64 = 4096 * 64;
const TRIPLEO_AROUND_MTU: u64 = 800;
const TRIPLEO_RESERVE: u64 = 512 << 20;

/// The ordinary MTU of Ethernet, and what a frame has beside it.
const MTU: u64 = 1500;
const AROUND_PACKET: u64 = 18;

/// Both ways, where a design has the switch.
pub(super) fn sizes(plan: &Plan) -> Vec<Sized> {
    let mut designs = plan.chains.iter().flat_map(|chain| &chain.designs);
    if !designs.any(|design| design.count(Datapath::OvsDpdk) > 0) {
        return Vec::new();
    }
    let longest = plan.frames.iter().map(|frames| frames.longest_bytes() as u64).max().unwrap_or_default();
    let mtu = longest.saturating_sub(AROUND_PACKET).max(MTU);
    vec![
        Sized {
            way: "Open vSwitch, shared memory",
            mtu,
            bytes: shared(mtu),
            applies: "for each NUMA node with ports, unless per-port-memory is set",
        },
        Sized {
            way: "TripleO, dpdk-socket-mem",
            mtu,
            bytes: tripleo(mtu),
            applies: "for each NUMA node with ports, where per-port-memory is set or TripleO deploys it",
        },
    ]
}

fn shared(mtu: u64) -> u64 {
    BUFFERS * ((mtu + AROUND_MTU).next_multiple_of(1024) + AROUND_BUFFER)
}

fn tripleo(mtu: u64) -> u64 {
    let buffers = (mtu.next_multiple_of(1024) + TRIPLEO_AROUND_MTU) * TRIPLEO_BUFFERS;
    (buffers + TRIPLEO_RESERVE).next_multiple_of(1 << 30)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pools_have_the_published_sizes() {
        assert_eq!((shared(1500) >> 20, shared(9000) >> 20), (752, 2544));
        assert_eq!((shared(1500), shared(9000)), (262_144 * 3_008, 262_144 * 10_176));
        assert_eq!((tripleo(1500) >> 30, tripleo(9000) >> 30), (2, 3));
    }
}
