//! What the model says of published results, each from the constants that their bed has.

use crate::datapath::band::{OF_DEVICES, OF_SWITCH, share};
use crate::datapath::model::demands::{Demands, loss_free};
use crate::datapath::model::design::{Datapath, Design};
use crate::datapath::model::frames::Frames;
use crate::datapath::model::nic::named;
use crate::datapath::model::pcie::{Detours, Link};
use crate::datapath::model::stages::{Bed, Load, Rate, Resource, rate};
use crate::datapath::model::switch::{HopCost, heaviest};
use base::datapath::Traffic;
use base::number::many;
use facts::published::{Arithmetic, DatapathResult, RateUnit, datapaths};
use facts::validation::Band;

/// The level of the talk's switch north to south at 64 bytes, that of its chain, and what that carries at 1518 bytes.
const SWITCH_NORTH_SOUTH: &str = "ovs-ns-64-8";
const SWITCH_CHAIN_64: &str = "ovs-chain-64-8";
const SWITCH_CHAIN_64_EACH: &str = "ovs-chain-64-each-4";
const SWITCH_CHAIN_1518: &str = "ovs-chain-1518-8";

/// What the model computes of a result, in the unit in which they are compared, and its band.
pub(super) fn predicted(record: &DatapathResult, unit: RateUnit) -> Option<Band> {
    let bytes = f64::from(record.frame_bytes.unwrap_or_default());
    let vnfs = record.vnfs.unwrap_or(1);
    let in_unit = |mpps: f64| match unit {
        RateUnit::MppsOfEachVm => mpps / f64::from(vnfs),
        RateUnit::Gbps => gbps(mpps, bytes),
        RateUnit::GbpsWithoutFcs => gbps(mpps, bytes - 4.0),
        _ => mpps,
    };
    let of_link =
        |mps_bytes: &u32, of: &dyn Fn(Link) -> f64| Some(Band::around(of(link(*mps_bytes)) / 1e9, OF_DEVICES));
    match record.model.as_ref()? {
        Arithmetic::LevelOf { id } => {
            let (level, of) = level(id)?;
            let each = if (of, unit) == (RateUnit::MppsOfEachVm, RateUnit::Mpps) { f64::from(vnfs) } else { 1.0 };
            Some(Band::around(level * each, OF_SWITCH))
        }
        Arithmetic::Vfs { mps_bytes } => {
            let pattern = record.pattern.as_deref().and_then(Traffic::named)?;
            let rate = vfs(*mps_bytes, pattern, vnfs, record.frame_bytes?);
            let bound = rate.bound().map(|stage| stage.resource);
            let around = Band::around(in_unit(rate.system_pps()? / 1e6), bound.map_or(OF_DEVICES, share));
            // Nothing is faster than the wire.
            let high = if bound == Some(Resource::Line) { around.likely } else { around.high };
            Some(Band { high, ..around })
        }
        Arithmetic::ChainOfVfs { vnfs, frame_bytes, mps_bytes } => {
            let mpps = chain_of_vfs(*mps_bytes, *vnfs, *frame_bytes)?;
            Some(Band::around(gbps(mpps, f64::from(*frame_bytes)), OF_DEVICES))
        }
        Arithmetic::FirstBelow { gbps, frame_bytes, mps_bytes } => {
            let first = |gbps: f64| first_below(gbps, *frame_bytes, *mps_bytes);
            let (low, high) = (first(gbps / (1.0 - OF_DEVICES))?, first(gbps / (1.0 + OF_DEVICES))?);
            Some(Band { low, likely: first(*gbps)?, high })
        }
        Arithmetic::SwitchSlope { is_steep } => {
            Some(Band::around(in_unit(switch_north_south(*is_steep, bytes)?), OF_SWITCH))
        }
        Arithmetic::AgainstFourVnfs { threads } => Some(Band::around(against_4(*threads, vnfs), OF_SWITCH)),
        Arithmetic::SharedHops { mpps, vnfs } => Some(Band::around(mpps / hops(*vnfs, 1), OF_SWITCH)),
        Arithmetic::InAndOut { cycles, cycles_per_byte, hz, flows } => {
            let hop = HopCost { cycles: *cycles, cycles_per_byte: *cycles_per_byte, spread: 1.0, source: None };
            let demands = Demands { flows: Some(*flows), megaflows: Some(*flows), ..Demands::default() };
            in_and_out(&demands.spread_over(&hop), *hz, record.frame_bytes?)
        }
        Arithmetic::ManyFlows { flows } => Some(left(&Demands { flows: Some(*flows), ..Demands::default() })),
        Arithmetic::OtherNode => Some(left(&Demands { remote_node: true, ..Demands::default() })),
        Arithmetic::Tracked { hz } => {
            let hops = Demands { conntrack: true, ..Demands::default() }.published();
            let [high, likely, low] = hops.each().map(|hop| hz / hop.of(bytes) / 1e6);
            Some(Band { low, likely, high })
        }
        Arithmetic::Passes { passes } => {
            let hops = Demands::default().published();
            let [low, likely, high] = hops.each().map(|hop| passes * hop.of(64.0));
            Some(Band { low, likely, high })
        }
        Arithmetic::LossFree => Some(Band::around(loss_free(bytes), OF_SWITCH)),
        Arithmetic::Link { mps_bytes } => of_link(mps_bytes, &|link| link.bits_per_s()),
        Arithmetic::LinkPackets { mps_bytes } => of_link(mps_bytes, &|link| link.packets_per_s(bytes) * bytes * 8.0),
        Arithmetic::Writes { mps_bytes } => of_link(mps_bytes, &|link| link.written_bits_per_s(bytes)),
        Arithmetic::ReadsAndWrites { mps_bytes } => of_link(mps_bytes, &|link| link.both_bits_per_s(bytes)),
    }
}

/// What was given besides what the record is of.
pub(super) fn assumed(model: &Arithmetic) -> String {
    match model {
        Arithmetic::LevelOf { id } => format!("the level of `{id}`"),
        Arithmetic::Vfs { mps_bytes } => format!("XL710, payload of {mps_bytes} B"),
        Arithmetic::ChainOfVfs { vnfs, frame_bytes, mps_bytes } => {
            format!("XL710, chain of {vnfs} VNFs, {frame_bytes} B, payload of {mps_bytes} B")
        }
        Arithmetic::FirstBelow { gbps, frame_bytes, mps_bytes } => {
            format!("XL710, chain, {gbps} Gb/s, {frame_bytes} B, payload of {mps_bytes} B")
        }
        Arithmetic::SwitchSlope { is_steep } => {
            let slope = if *is_steep { "steep" } else { "flat" };
            format!("the level of `{SWITCH_NORTH_SOUTH}`, the {slope} slope of chains")
        }
        Arithmetic::AgainstFourVnfs { threads: 1 } => "one polling thread".to_owned(),
        Arithmetic::AgainstFourVnfs { threads } => format!("{threads} polling threads"),
        Arithmetic::SharedHops { mpps, vnfs } => format!("hops of {} share {mpps} Mpps", many(u64::from(*vnfs), "VNF")),
        Arithmetic::InAndOut { cycles, cycles_per_byte, flows, .. } => {
            format!("hop {cycles}+{cycles_per_byte}, 2 threads, 10 Gb/s, {flows} flows and megaflows")
        }
        Arithmetic::ManyFlows { flows } => format!("{flows} flows, megaflows unknown"),
        Arithmetic::OtherNode => "VMs on another node".to_owned(),
        Arithmetic::Tracked { hz } => format!("a thread at {} GHz, published hops, connections tracked", hz / 1e9),
        Arithmetic::Passes { passes } => format!("{passes} passes of published hops"),
        Arithmetic::LossFree => "without loss".to_owned(),
        Arithmetic::Link { mps_bytes } => format!("gen3 x8, payload of {mps_bytes} B"),
        Arithmetic::LinkPackets { mps_bytes } => format!("gen3 x8, payload of {mps_bytes} B, packets in and out"),
        Arithmetic::Writes { mps_bytes } => format!("gen3 x8, payload of {mps_bytes} B, writes"),
        Arithmetic::ReadsAndWrites { mps_bytes } => format!("gen3 x8, payload of {mps_bytes} B, reads and writes"),
    }
}

/// The number of another record, and its unit.
fn level(id: &str) -> Option<(f64, RateUnit)> {
    let (unit, value) = datapaths().iter().find(|record| record.id == id)?.amount();
    Some((value, unit))
}

/// The link of the talk's cards; what it does not say is the largest payload.
fn link(mps_bytes: u32) -> Link {
    Link { generation: 3, lanes: 8, mps_bytes, mrrs_bytes: 512 }
}

/// Mpps through a VM and back, over two threads behind a port of 10 Gb/s, with the band that a plan gives it.
fn in_and_out(hop: &HopCost, hz: f64, bytes: u32) -> Option<Band> {
    let bed = Bed {
        line_bits_per_s: 10e9,
        pcie: None,
        nic: None,
        pmd_cores: 2,
        core_hz: hz,
        hop: Some(hop.clone()),
        ..talk(128)
    };
    let design = Design::uniform(Datapath::OvsDpdk, Traffic::NorthSouth, 1);
    let (load, frames) = (Load { design: &design, pattern: Traffic::NorthSouth, vnfs: 1 }, Frames::of(bytes));
    let rate = rate(&bed, load, &[], &frames);
    let likely = rate.chain_pps()?;
    let line = rate.stages.iter().find(|stage| stage.resource == Resource::Line)?.capacity_pps;
    let off = share(rate.bound()?.resource);
    // As `band` has it, without the points next to it: these are among them.
    let spread = if rate.bound()?.resource == Resource::Pmd { hop.spread } else { 1.0 };
    let (low, high) = (likely * (1.0 - off).min(1.0 / spread), (likely * (1.0 + off).max(spread)).min(line));
    Some(Band { low: low / 1e6, likely: likely / 1e6, high: high / 1e6 })
}

/// What is left of a rate, of a hop of 64 bytes.
fn left(demands: &Demands) -> Band {
    let hop = HopCost { cycles: 1.0, cycles_per_byte: 0.0, spread: 1.0, source: None };
    let [high, likely, low] = demands.of(&hop).each().map(|hop| 1.0 / hop.of(64.0));
    Band { low, likely, high }
}

/// What the VMs of the talk's bed send over VFs.
fn vfs(mps_bytes: u32, pattern: Traffic, vnfs: u32, bytes: u32) -> Rate {
    let design = Design::uniform(Datapath::Sriov, pattern, vnfs);
    rate(&talk(mps_bytes), Load { design: &design, pattern, vnfs }, &[], &Frames::of(bytes))
}

/// The talk's host, without a switch.
fn talk(mps_bytes: u32) -> Bed {
    Bed {
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
        demands: Demands::default(),
        directions: 1,
    }
}

/// Mpps that all VMs of the talk's bed send together in a chain of VFs.
fn chain_of_vfs(mps_bytes: u32, vnfs: u32, bytes: u32) -> Option<f64> {
    Some(vfs(mps_bytes, Traffic::Chain, vnfs, bytes).system_pps()? / 1e6)
}

/// Gb/s of so many Mpps, of frames with so many bytes counted.
fn gbps(mpps: f64, bytes: f64) -> f64 {
    mpps * bytes * 8.0 / 1e3
}

/// Mpps of the talk's switch north to south: the level of 64 bytes, and by how much a byte raises what a hop takes in its chains of 64 and of 1518
/// bytes. At 64 bytes all of a chain together was said outright, and is 8 times what one of 4 has: hence two slopes.
fn switch_north_south(is_steep: bool, bytes: f64) -> Option<f64> {
    let (at_64, at_1518) = (level(SWITCH_CHAIN_64)?.0, level(SWITCH_CHAIN_1518)?.0);
    let system = if is_steep { level(SWITCH_CHAIN_64_EACH)?.0 * 8.0 } else { at_64 };
    let slope = (system / at_1518 - 1.0) / (1518.0 - 64.0);
    Some(level(SWITCH_NORTH_SOUTH)?.0 / (1.0 + slope * (bytes - 64.0)))
}

/// Hops of the busiest of so many threads.
fn hops(vnfs: u32, threads: u32) -> f64 {
    heaviest(vec![1.0; vnfs as usize + 1], threads)
}

/// The rate of a chain of `vnfs` against that of 4, where a pool of one thread or of enough of them carries all hops.
fn against_4(threads: u32, vnfs: u32) -> f64 {
    hops(4, threads) / hops(vnfs, threads)
}

/// The first chain of VFs that does not carry so much.
fn first_below(least_gbps: f64, bytes: u32, mps_bytes: u32) -> Option<f64> {
    let carries = |vnfs: u32| {
        let system = chain_of_vfs(mps_bytes, vnfs, bytes).map(|mpps| gbps(mpps, f64::from(bytes)));
        system.is_some_and(|gbps| gbps / f64::from(vnfs) >= least_gbps)
    };
    (1..=64).find(|vnfs| !carries(*vnfs)).map(f64::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the talk concluded. All but the last rest on numbers that constants were fitted to, so they are reproduced and no evidence.
    #[test]
    fn the_model_comes_to_what_the_talk_concluded() {
        let vf = |pattern, bytes| vfs(128, pattern, 8, bytes).system_pps().unwrap() / 1e6;
        assert!(vf(Traffic::NorthSouth, 64) > level(SWITCH_NORTH_SOUTH).unwrap().0, "north-south SR-IOV carries most");
        assert!(vf(Traffic::NorthSouth, 512) > switch_north_south(false, 512.0).unwrap());
        assert!(vf(Traffic::Chain, 64) < level(SWITCH_CHAIN_64).unwrap().0, "east-west OVS-DPDK carries most");
        assert!(vf(Traffic::Chain, 1518) < level(SWITCH_CHAIN_1518).unwrap().0);
        let all: Vec<f64> = (2..=8).map(|vnfs| gbps(chain_of_vfs(128, vnfs, 1518).unwrap(), 1518.0)).collect();
        assert!(all.iter().all(|gbps| (gbps - all[0]).abs() < 1e-6), "a chain carries the same however long: {all:?}");
        assert!((all[0] - 44.0).abs() < 0.5);
        assert_eq!(first_below(10.0, 1518, 128), Some(5.0), "10 Gb/s through 5 VNFs exhausts gen3 x8");
    }
}
