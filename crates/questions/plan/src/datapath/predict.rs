//! What each design of a plan carries.

use super::band::{Band, band, near};
use super::model::design::{Datapath, Design};
use super::model::frames::Frames;
use super::model::hops::Range;
use super::model::stages::{Bed, Load, Rate, Resource, helper_cores, rate};
use super::plan::{Chain, Plan};
use super::search;
use base::datapath::Traffic;

/// A design at one size.
#[derive(Debug, Clone)]
pub(super) struct Predicted<'p> {
    pub design: Design,
    /// CPUs that poll for the switch, where it takes part.
    pub pmd_cores: Option<u32>,
    pub chain: &'p Chain,
    pub frames: &'p Frames,
    pub rate: Rate,
    /// CPUs beside those of the VMs, and those that are reserved for them.
    pub cores: u32,
    /// The same while one of the VMs is being moved, which one costs most; `None` where nobody knows.
    pub(crate) window_pps: Option<f64>,
    /// `None`: something that binds has not been measured, so the rate is no more than a bound.
    pub band: Option<Band>,
    /// Between which rates what others published of a hop puts it, where nobody measured the host's own.
    pub published: Option<Ranged>,
    /// Published points next to it.
    pub nearest: Vec<&'static str>,
}

/// What a design carries by the cheapest, the median and the dearest hop that was published.
#[derive(Debug, Clone)]
pub(super) struct Ranged {
    /// Packets a second from end to end (north-south: of each VM).
    pub chain_pps: Range<f64>,
    /// What binds at the median.
    pub bound_by: Option<Resource>,
}

/// All of them: sizes in order, within a size chains, within a chain designs. A search keeps those that no other one beats.
pub(super) fn predict(plan: &Plan) -> Vec<Predicted<'_>> {
    let mut all = Vec::new();
    for frames in &plan.frames {
        for (at, chain) in plan.chains.iter().enumerate() {
            let Some(card) = plan.cards.get(chain.card) else { continue };
            let bed = plan.bed(card);
            match plan.search_up_to {
                None => all.extend(
                    chain
                        .designs
                        .iter()
                        .enumerate()
                        .map(|(nth, design)| one(plan, &bed, (chain, frames), design, &beside(plan, at, nth))),
                ),
                Some(most) => {
                    let found = search::candidates(&bed, chain, most).into_iter().map(|(design, pmd_cores)| {
                        let bed = Bed { pmd_cores, ..bed.clone() };
                        one(plan, &bed, (chain, frames), &design, &beside(plan, at, 0))
                    });
                    all.extend(search::front(found.collect()));
                }
            }
        }
    }
    all
}

fn one<'p>(
    plan: &Plan,
    bed: &Bed,
    (chain, frames): (&'p Chain, &'p Frames),
    design: &Design,
    beside: &[(Load<'_>, bool)],
) -> Predicted<'p> {
    let load = Load { design, pattern: chain.pattern, vnfs: chain.vnfs };
    let rate = rate(bed, load, beside, frames);
    let is_known = is_calibrated(bed, design) && knows_sizes(bed, design, frames);
    let band = is_known.then(|| band(bed, load, &rate, frames));
    Predicted {
        design: design.clone(),
        pmd_cores: design.edges().iter().any(|path| path.is_polled()).then_some(bed.pmd_cores),
        chain,
        frames,
        rate,
        cores: helper_cores(bed, load) + plan.reserved_cores_per_vm.saturating_mul(chain.vnfs),
        window_pps: band.and_then(|_| window(bed, load, beside, frames)),
        band,
        published: if is_known { None } else { ranged(bed, load, beside, frames) },
        nearest: near(load, frames).map(|point| point.id).collect(),
    }
}

/// What published costs of a hop say of a design of which nothing else is unknown.
pub(super) fn ranged(bed: &Bed, load: Load<'_>, beside: &[(Load<'_>, bool)], frames: &Frames) -> Option<Ranged> {
    if bed.hop.is_some() || load.design.count(Datapath::OvsDpdk) == 0 {
        return None;
    }
    let hops = bed.demands.published();
    let beds = hops.each().map(|hop| Bed { hop: Some(hop.clone()), ..bed.clone() });
    if !beds.iter().all(|bed| is_calibrated(bed, load.design) && knows_sizes(bed, load.design, frames)) {
        return None;
    }
    let rates = beds.each_ref().map(|bed| rate(bed, load, beside, frames));
    // Costs are a range of their own; whatever else binds has its band.
    let end = |at: usize, of: fn(Band) -> f64| match rates[at].bound()?.resource {
        Resource::Pmd => rates[at].chain_pps(),
        _ => Some(of(band(&beds[at], load, &rates[at], frames))),
    };
    let chain_pps = Range {
        least: end(2, |band| band.low_pps)?,
        middle: rates[1].chain_pps()?,
        most: end(0, |band| band.high_pps)?,
    };
    Some(Ranged { chain_pps, bound_by: rates[1].bound().map(|stage| stage.resource) })
}

/// What runs beside the chain `at` while it has its `nth` design: the others with theirs.
fn beside(plan: &Plan, at: usize, nth: usize) -> Vec<(Load<'_>, bool)> {
    let others = plan.chains.iter().enumerate().filter(|(other, _)| plan.together && *other != at);
    let loads = others.filter_map(|(_, chain)| {
        let design = chain.designs.get(nth).or(chain.designs.last())?;
        Some((Load { design, pattern: chain.pattern, vnfs: chain.vnfs }, chain.card == plan.chains[at].card))
    });
    loads.collect()
}

/// Whether all that may bind the design is known.
pub(super) fn is_calibrated(bed: &Bed, design: &Design) -> bool {
    let last = design.edges().len().saturating_sub(1);
    let knows = |(at, path): (usize, &Datapath)| match path {
        Datapath::Sriov => bed.nic.is_some_and(|nic| nic.packets.is_some()) && bed.pcie.is_some(),
        Datapath::OvsDpdk => bed.hop.is_some(),
        Datapath::OvsKernel => bed.vhost_pps.is_some(),
        // Between two VNFs, which copy themselves, what they forward says it all; no wire ends in memory.
        Datapath::Channel => {
            at > 0 && at < last && (bed.channel.is_some() || bed.guest_pps.is_some() || bed.vnf.is_some())
        }
        Datapath::Macvtap | Datapath::Bridge | Datapath::VswitchVm => false,
    };
    design.edges().iter().enumerate().all(knows)
}

/// Whether what is known of its rings is known of frames like these.
pub(super) fn knows_sizes(bed: &Bed, design: &Design, frames: &Frames) -> bool {
    design.count(Datapath::Channel) == 0
        || bed.channel.as_ref().is_none_or(|cost| frames.all(|bytes| cost.covers(bytes)))
}

/// The rate while that VM is being moved whose move costs most. Its VFs are unplugged, and packets take the standby of net_failover:
/// a port of the switch, or of the kernel where that alone is known.
fn window(bed: &Bed, load: Load<'_>, beside: &[(Load<'_>, bool)], frames: &Frames) -> Option<f64> {
    if load.design.is_migratable() {
        return rate(bed, load, beside, frames).chain_pps();
    }
    let standby =
        [(Datapath::OvsDpdk, bed.hop.is_some() && bed.pmd_cores > 0), (Datapath::OvsKernel, bed.vhost_pps.is_some())];
    let (standby, _) = standby.into_iter().find(|(_, is_known)| *is_known)?;
    let vms = match load.pattern {
        Traffic::Chain => load.vnfs,
        Traffic::NorthSouth => 1,
    };
    let moved = (0..vms as usize).map(|vnf| load.design.while_moving(vnf, standby));
    let rates = moved.filter_map(|design| rate(bed, Load { design: &design, ..load }, beside, frames).chain_pps());
    rates.reduce(f64::min)
}
