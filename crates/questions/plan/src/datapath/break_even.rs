//! Break-even by name: cores that beat a card of VFs, the size at which two designs tie, the longest chain and the smallest batch of rings at
//! a target, and the rate
//! that is left while a VM is being moved.

use super::model::breakeven::{longest_chain, pmd_cores, tie_bytes};
use super::model::design::{Datapath, Design};
use super::model::frames::Frames;
use super::model::stages::{Bed, Load, rate, ring_end_ns};
use super::model::switch::HopCost;
use super::plan::{Chain, Plan};
use super::predict::{Predicted, is_calibrated};
use base::datapath::Traffic;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Answer {
    pub question: &'static str,
    pub size_bytes: Option<u64>,
    pub value: Option<f64>,
    pub unit: &'static str,
    pub by: String,
    pub vnfs: u32,
    /// Cycles of a hop of 64 bytes that it rests on.
    pub(crate) hop_cycles: Option<f64>,
}

/// All answers to a plan: chains in order.
pub(super) fn answers(plan: &Plan, rates: &[Predicted<'_>]) -> Vec<Answer> {
    let mut all = Vec::new();
    for chain in &plan.chains {
        let Some(card) = plan.cards.get(chain.card) else { continue };
        let bed = plan.bed(card);
        if chain.pattern == Traffic::Chain {
            all.extend(plan.frames.iter().flat_map(|frames| cores(&bed, chain, frames)));
        }
        all.extend(tie(&bed, chain));
        if let Some(target) = plan.target_pps.filter(|_| chain.pattern == Traffic::Chain) {
            all.extend(plan.frames.iter().flat_map(|frames| longest(&bed, chain, frames, target)));
            all.extend(plan.frames.iter().flat_map(|frames| batch(&bed, chain, frames, target)));
        }
        all.extend(rates.iter().filter(|rate| std::ptr::eq(rate.chain, chain)).filter_map(moving));
    }
    all
}

/// The host's own cost of a hop; or the cheapest, the median and the dearest of what others published.
fn hops(bed: &Bed) -> Vec<HopCost> {
    match &bed.hop {
        Some(hop) => vec![hop.clone()],
        None => bed.demands.published().each().map(HopCost::clone).to_vec(),
    }
}

/// Cores that poll for a switch which carries what VFs carry.
pub(super) fn cores(bed: &Bed, chain: &Chain, frames: &Frames) -> Vec<Answer> {
    let vfs = Design::uniform(Datapath::Sriov, Traffic::Chain, chain.vnfs);
    let load = Load { design: &vfs, pattern: Traffic::Chain, vnfs: chain.vnfs };
    let of_vfs = rate(bed, load, &[], frames);
    let Some((system, bound)) = of_vfs.system_pps().zip(of_vfs.bound()).filter(|_| is_calibrated(bed, &vfs)) else {
        return Vec::new();
    };
    let answer = |hop: HopCost| Answer {
        question: "pmd_cores",
        size_bytes: frames.size_bytes(),
        value: Some(pmd_cores(&hop, bed.core_hz, system, chain.vnfs, frames)),
        unit: "cores",
        by: format!("ovs-dpdk over sriov, {}", bound.resource.name()),
        vnfs: chain.vnfs,
        hop_cycles: Some(hop.of(64.0)),
    };
    hops(bed).into_iter().map(answer).collect()
}

/// The size from which the switch carries as much as VFs, of frames of one size.
fn tie(bed: &Bed, chain: &Chain) -> Option<Answer> {
    let carried = |path: Datapath| {
        let design = Design::uniform(path, chain.pattern, chain.vnfs);
        let is_known = is_calibrated(bed, &design);
        move |frames: &Frames| {
            let load = Load { design: &design, pattern: chain.pattern, vnfs: chain.vnfs };
            is_known.then(|| rate(bed, load, &[], frames).chain_pps()).flatten()
        }
    };
    let hop = bed.hop.as_ref()?;
    let value = tie_bytes(carried(Datapath::OvsDpdk), carried(Datapath::Sriov)).map(f64::from);
    Some(Answer {
        question: "tie_size",
        size_bytes: None,
        value,
        unit: "bytes",
        by: format!("ovs-dpdk over sriov, {}", chain.pattern.name()),
        vnfs: chain.vnfs,
        hop_cycles: Some(hop.of(64.0)),
    })
}

/// The longest chain of each path that carries the target.
fn longest<'a>(bed: &'a Bed, chain: &'a Chain, frames: &'a Frames, target: f64) -> impl Iterator<Item = Answer> + 'a {
    [Datapath::Sriov, Datapath::OvsDpdk, Datapath::OvsKernel].into_iter().filter_map(move |path| {
        let of = |vnfs| Design::uniform(path, Traffic::Chain, vnfs);
        let is_known = is_calibrated(bed, &of(1));
        is_known.then(|| Answer {
            question: "longest_chain",
            size_bytes: frames.size_bytes(),
            value: Some(longest_chain(bed, of, frames, target).map_or(0.0, f64::from)),
            unit: "VNFs",
            by: path.name().to_owned(),
            vnfs: chain.vnfs,
            hop_cycles: bed.hop.as_ref().filter(|_| path == Datapath::OvsDpdk).map(|hop| hop.of(64.0)),
        })
    })
}

/// The smallest batch in which rings between the VNFs carry the target, and what a frame waits until it is full.
fn batch(bed: &Bed, chain: &Chain, frames: &Frames, target: f64) -> Vec<Answer> {
    let known = bed.channel.as_ref().zip(frames.size_bytes()).filter(|(cost, _)| !cost.sweeps.is_empty());
    let Some((cost, bytes)) = known.filter(|_| chain.vnfs > 1) else { return Vec::new() };
    let rings = Design::ends(Datapath::Sriov, Datapath::Channel, chain.vnfs);
    let load = Load { design: &rings, pattern: Traffic::Chain, vnfs: chain.vnfs };
    let Some(side_ns) = ring_end_ns(bed, load, frames, target) else { return Vec::new() };
    let batch = cost.smallest_batch(bytes as u32, side_ns);
    let answer = |question, value: Option<f64>, unit| Answer {
        question,
        size_bytes: Some(bytes),
        value,
        unit,
        by: "channel, at the target".to_owned(),
        vnfs: chain.vnfs,
        hop_cycles: None,
    };
    let fills_ns = batch.map(|batch| f64::from(batch) * 1e9 / target);
    vec![answer("smallest_batch", batch.map(f64::from), "frames"), answer("batch_fills", fills_ns, "ns")]
}

/// What a design with VFs is left with while one of its VMs is being moved.
fn moving(rate: &Predicted<'_>) -> Option<Answer> {
    (!rate.design.is_migratable()).then(|| Answer {
        question: "migration_rate",
        size_bytes: rate.frames.size_bytes(),
        value: rate.window_pps,
        unit: "packets per second",
        by: rate.design.shape(),
        vnfs: rate.chain.vnfs,
        hop_cycles: None,
    })
}
