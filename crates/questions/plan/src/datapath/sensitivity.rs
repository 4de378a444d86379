//! What moves the bottleneck, and by how much.

use super::model::pcie::Link;
use super::model::stages::{Bed, Load, rate};
use super::model::switch::HopCost;
use super::plan::Plan;
use super::predict::Predicted;
use facts::ring::ChannelCost;

/// What a design would carry after one change.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Moved {
    pub change: &'static str,
    pub chain_pps: f64,
    /// Share of the rate now.
    pub gain: f64,
    pub bound_by: &'static str,
}

/// A change of what there is; `None` where it does not apply.
type Change = fn(Bed) -> Option<Bed>;

const CHANGES: &[(&str, Change)] = &[
    ("one more polling CPU", |bed| Some(Bed { pmd_cores: bed.pmd_cores + 1, ..bed })),
    ("twice the polling CPUs", |bed| Some(Bed { pmd_cores: bed.pmd_cores.saturating_mul(2), ..bed })),
    ("hops that cost a tenth less", |bed| {
        let hop = bed.hop.clone()?;
        let less = HopCost { cycles: hop.cycles * 0.9, cycles_per_byte: hop.cycles_per_byte * 0.9, ..hop };
        Some(Bed { hop: Some(less), ..bed })
    }),
    ("a PCIe payload of 256 bytes", |bed| {
        let link = bed.pcie.filter(|link| link.mps_bytes < 256)?;
        Some(Bed { pcie: Some(Link { mps_bytes: 256, ..link }), ..bed })
    }),
    ("twice the PCIe lanes", |bed| {
        let link = bed.pcie.filter(|link| link.lanes <= 8)?;
        Some(Bed { pcie: Some(Link { lanes: link.lanes * 2, ..link }), ..bed })
    }),
    ("the next generation of PCIe", |bed| {
        let link = bed.pcie.filter(|link| link.generation < 6)?;
        Some(Bed { pcie: Some(Link { generation: link.generation + 1, ..link }), ..bed })
    }),
    ("a card of twice the packets", |bed| {
        let nic = bed.nic?;
        let packets = nic.packets.map(|limit| super::model::nic::PacketLimit { per_s: limit.per_s * 2.0, ..limit })?;
        Some(Bed { nic: Some(super::Nic { packets: Some(packets), ..nic }), ..bed })
    }),
    ("one more port of the card", |bed| Some(Bed { ports: bed.ports + 1, ..bed })),
    ("copies over the channel that take a tenth less", |bed| {
        let cost = bed.channel.clone()?;
        let less = ChannelCost { ns: cost.ns * 0.9, ns_per_byte: cost.ns_per_byte * 0.9, ..cost };
        Some(Bed { channel: Some(less), ..bed })
    }),
    ("VNFs that forward a tenth more", |bed| {
        let guest_pps = bed.guest_pps.map(|pps| pps * 1.1);
        let tenth_less =
            |cost: HopCost| HopCost { cycles: cost.cycles / 1.1, cycles_per_byte: cost.cycles_per_byte / 1.1, ..cost };
        let vnf = bed.vnf.clone().map(tenth_less);
        (guest_pps.is_some() || vnf.is_some()).then_some(Bed { guest_pps, vnf, ..bed })
    }),
];

/// Gains below are the rounding of a rate.
const LEAST_GAIN: f64 = 1e-6;

/// The changes that a calibrated design gains from, largest first.
pub(super) fn of(plan: &Plan, one: &Predicted<'_>) -> Vec<Moved> {
    let card = plan.cards.get(one.chain.card);
    let (Some(card), Some(now), Some(_)) = (card, one.rate.chain_pps(), one.band) else { return Vec::new() };
    // Chains that share what there is are weighed together: there a gain of one is a loss of others.
    if plan.together && plan.chains.len() > 1 {
        return Vec::new();
    }
    let bed = Bed { pmd_cores: one.pmd_cores.unwrap_or(plan.pmd_cores), ..plan.bed(card) };
    let load = Load { design: &one.design, pattern: one.chain.pattern, vnfs: one.chain.vnfs };
    let moved = |(change, how): &(&'static str, Change)| {
        let after = rate(&how(bed.clone())?, load, &[], one.frames);
        let (chain_pps, bound) = after.chain_pps().zip(after.bound())?;
        let gain = chain_pps / now - 1.0;
        (gain > LEAST_GAIN).then_some(Moved { change, chain_pps, gain, bound_by: bound.resource.name() })
    };
    let mut all: Vec<Moved> = CHANGES.iter().filter_map(moved).collect();
    all.sort_by(|a, b| b.gain.total_cmp(&a.gain));
    all
}
