//! What the model says of published points, each from the constants that their bed has.

use crate::datapath::model::design::{Datapath, Design, Pattern};
use crate::datapath::model::frames::Frames;
use crate::datapath::model::nic::named;
use crate::datapath::model::pcie::{Detours, Link};
use crate::datapath::model::stages::{Bed, Load, rate};
use crate::datapath::model::switch::heaviest;

/// Mpps of the talk's switch north to south at 64 bytes with 8 VMs: its own row.
pub(super) const SWITCH_NS_MPPS: f64 = 10.6;
/// Mpps of the talk's chain at 64 bytes: its own row.
pub(super) const SWITCH_CHAIN_MPPS: f64 = 5.25;
/// Mpps of the talk's chain of 8 at 64 bytes, as said and as 8 times the row before, and at 1518 bytes.
const CHAIN_64_SYSTEM_MPPS: (f64, f64) = (40.0, 42.0);
const CHAIN_1518_SYSTEM_MPPS: f64 = 18.1;

/// The link of the talk's cards; what it does not say is the largest payload.
pub(super) fn link(mps_bytes: u32) -> Link {
    Link { generation: 3, lanes: 8, mps_bytes, mrrs_bytes: 512 }
}

/// Mpps that all VMs of the talk's bed send together over VFs.
pub(super) fn vf(mps_bytes: u32, pattern: Pattern, vnfs: u32, bytes: u32) -> Option<f64> {
    let bed = Bed {
        line_bits_per_s: 40e9,
        ports: 1,
        cards: 1,
        pcie: Some(link(mps_bytes)),
        detours: Detours::default(),
        nic: named("XL710").copied(),
        port_queues: 1,
        pmd_cores: 0,
        core_hz: 1.0,
        hop: None,
        ingress_pps: None,
        guest_pps: None,
        vnf: None,
        vnf_cores: None,
        vhost_pps: None,
        channel: None,
        directions: 1,
    };
    let design = Design::uniform(Datapath::Sriov, pattern, vnfs);
    Some(rate(&bed, Load { design: &design, pattern, vnfs }, &[], &Frames::of(bytes)).system_pps()? / 1e6)
}

/// Gb/s of so many Mpps, of frames with so many bytes counted.
pub(super) fn gbps(mpps: Option<f64>, bytes: f64) -> Option<f64> {
    Some(mpps? * bytes * 8.0 / 1e3)
}

/// By how much a byte raises what a hop takes at 64 bytes, least and most, from the talk's chains of 64 and of 1518 bytes.
fn slope() -> (f64, f64) {
    let of = |system: f64| (system / CHAIN_1518_SYSTEM_MPPS - 1.0) / (1518.0 - 64.0);
    (of(CHAIN_64_SYSTEM_MPPS.0), of(CHAIN_64_SYSTEM_MPPS.1))
}

/// Mpps of the talk's switch north to south at 512 bytes: the level of 64 bytes, and the slope of chains, flat or steep.
pub(super) fn switch_ns_512(is_steep: bool) -> Option<f64> {
    let (flat, steep) = slope();
    let slope = if is_steep { steep } else { flat };
    Some(SWITCH_NS_MPPS / (1.0 + slope * (512.0 - 64.0)))
}

/// The rate of a chain of `vnfs` against that of 4, where a pool of one thread or of enough of them carries all hops.
pub(super) fn against_4(threads: u32, vnfs: u32) -> Option<f64> {
    let busy = |vnfs: u32| heaviest(vec![1.0; vnfs as usize + 1], threads);
    Some(busy(4) / busy(vnfs))
}

/// Mpps of a chain of `vnfs` whose hops share what carries `hops` of them.
pub(super) fn shared(hops: f64, vnfs: u32) -> Option<f64> {
    Some(hops / heaviest(vec![1.0; vnfs as usize + 1], 1))
}

/// Mpps that 8 VNFs of the talk's chain send over the switch, at 64 and at 1518 bytes: its own rows.
pub(super) fn chain_of_switch() -> (f64, f64) {
    (CHAIN_64_SYSTEM_MPPS.1, CHAIN_1518_SYSTEM_MPPS)
}

/// The first chain of VFs that does not carry 10 Gb/s of frames of 1518 bytes.
pub(super) fn first_below_10_gbps() -> Option<f64> {
    let carries = |vnfs: u32| {
        let system = gbps(vf(128, Pattern::Chain, vnfs, 1518), 1518.0);
        system.is_some_and(|gbps| gbps / f64::from(vnfs) >= 10.0)
    };
    (1..=64).find(|vnfs| !carries(*vnfs)).map(f64::from)
}
