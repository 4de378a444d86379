//! All designs side by side: in and out of VMs and through a chain of them, over lengths and sizes. Which one carries most, and from how many
//! polling CPUs on?
//!
//! In: a plan whose first chain names no design. Out: an [`Entry`] for each pattern, size, length and design, the [`table`] and the
//! [`words`] that begin the answer. A switch has as many polling CPUs as help, if the user names no number.

mod table;
mod words;

pub(super) use table::{DESIGNS, table};
pub(super) use words::summary;

use super::band::band;
use super::model::design::{Datapath, Design};
use super::model::frames::Frames;
use super::model::hops::Range;
use super::model::stages::{Bed, Load, enough_threads, helper_cores, queues, rate};
use super::model::switch::HopCost;
use super::plan::{Chain, Plan};
use super::predict::{is_calibrated, knows_sizes, ranged};
use super::published;
use base::datapath::Traffic;

/// Sizes of frames that are compared where one alone is asked for (RFC 2544, 9.1, and the longest untagged frame).
const SIZES: [u32; 6] = [64, 128, 256, 512, 1024, 1518];
/// Lengths, likewise: those of the talk of 2017.
const VNFS: [u32; 3] = [2, 4, 8];

base::named! {
    /// A design whatever its length.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(super) enum Family {
        Sriov = "sriov",
        Switch = "ovs-dpdk",
        /// VFs at the ends, the switch between VNFs.
        Hybrid = "vf ends, ovs-dpdk",
        /// VFs at the ends, rings between VNFs.
        Rings = "vf ends, channel",
        Kernel = "ovs-kernel",
    }
}

base::named! {
    /// What a number stands on.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(super) enum Basis {
        Modelled = "modelled",
        /// The range of what others published of a hop.
        PublishedCosts = "published costs, not calibrated",
        /// Rates of the same that others published.
        Published = "published rates",
        /// Only what line, PCIe and card let through.
        Bound = "bound, not calibrated",
        Unknown = "not known",
    }
}

/// A design of one length and size.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub pattern: Traffic,
    pub vnfs: u32,
    pub frames: Frames,
    pub family: Family,
    pub design: Design,
    /// Polling CPUs of its switch.
    pub pmd_cores: Option<u32>,
    /// All CPUs beside those of VNFs, and those that are reserved for them.
    pub cores: u32,
    /// Packets a second that all VNFs send.
    pub system_pps: Option<Range<f64>>,
    /// No more than that, where no rate is known.
    pub bound_pps: Option<f64>,
    pub basis: Basis,
    pub bound_by: Option<&'static str>,
}

pub(super) struct Compared<'p> {
    pub entries: Vec<Entry>,
    pub plan: &'p Plan,
    pub chain: &'p Chain,
    bed: Bed,
    /// What was asked for: the longest chain, and the first size.
    pub vnfs: u32,
    pub frames: &'p Frames,
}

impl Family {
    fn design(self, bed: &Bed, pattern: Traffic, vnfs: u32) -> Option<Design> {
        let is_chain = pattern == Traffic::Chain && vnfs > 1;
        match self {
            Family::Sriov => Some(Design::uniform(Datapath::Sriov, pattern, vnfs)),
            Family::Switch => Some(Design::uniform(Datapath::OvsDpdk, pattern, vnfs)),
            Family::Hybrid => is_chain.then(|| Design::ends(Datapath::Sriov, Datapath::OvsDpdk, vnfs)),
            Family::Rings if bed.channel.is_some() => {
                is_chain.then(|| Design::ends(Datapath::Sriov, Datapath::Channel, vnfs))
            }
            Family::Rings => None,
            Family::Kernel => Some(Design::uniform(Datapath::OvsKernel, pattern, vnfs)),
        }
    }
}

/// The comparison; `None` where the user names designs, has them searched, or has chains share what there is.
pub(super) fn of(plan: &Plan) -> Option<Compared<'_>> {
    let is_alone = !plan.together || plan.chains.len() == 1;
    let chain = plan.chains.iter().max_by_key(|chain| chain.vnfs).filter(|chain| chain.is_open && is_alone)?;
    let card = plan.cards.get(chain.card).filter(|_| plan.search_up_to.is_none())?;
    let (bed, frames) = (plan.bed(card), plan.frames.first()?);
    let mut vnfs: Vec<u32> = plan.chains.iter().map(|chain| chain.vnfs).collect();
    if let [_] = vnfs[..] {
        vnfs.extend(VNFS);
    }
    vnfs.sort_unstable();
    vnfs.dedup();
    let mut sizes = plan.frames.clone();
    if sizes.len() == 1 {
        sizes.extend(SIZES.map(Frames::of).into_iter().filter(|size| size != frames));
    }
    sizes.sort_by(|a, b| a.mix_name().is_some().cmp(&b.mix_name().is_some()).then(a.bytes().total_cmp(&b.bytes())));
    let mut compared = Compared { entries: Vec::new(), plan, chain, bed, vnfs: chain.vnfs, frames };
    for pattern in &plan.compared {
        for (nth, frames) in sizes.iter().enumerate() {
            for family in Family::ALL {
                let of = |vnfs: &u32| compared.entry(*pattern, *vnfs, frames, family);
                let all: Vec<Entry> = vnfs.iter().filter_map(of).collect();
                // What nobody knows at any size stands once.
                if nth == 0 || all.iter().any(|entry| entry.basis != Basis::Unknown) {
                    compared.entries.extend(all);
                }
            }
        }
    }
    Some(compared)
}

impl Compared<'_> {
    pub(super) fn entry(&self, pattern: Traffic, vnfs: u32, frames: &Frames, family: Family) -> Option<Entry> {
        let design = family.design(&self.bed, pattern, vnfs)?;
        let load = Load { design: &design, pattern, vnfs };
        let polls = design.edges().iter().any(|path| path.is_polled());
        let given = self.plan.pmd_cores_are_given.then_some(self.plan.pmd_cores);
        let pmd_cores = polls.then(|| given.unwrap_or_else(|| enough_threads(&self.bed, load)));
        let bed = Bed { pmd_cores: pmd_cores.unwrap_or(self.bed.pmd_cores), ..self.bed.clone() };
        let rate = rate(&bed, load, &[], frames);
        let chain_pps = rate.chain_pps()?;
        let of_all = |range: Range<f64>| {
            let all = f64::from(vnfs);
            Range { least: range.least * all, middle: range.middle * all, most: range.most * all }
        };
        let mut entry = Entry {
            pattern,
            vnfs,
            frames: frames.clone(),
            family,
            pmd_cores,
            cores: helper_cores(&bed, load) + self.plan.reserved_cores_per_vm.saturating_mul(vnfs),
            system_pps: None,
            bound_pps: None,
            basis: Basis::Unknown,
            bound_by: None,
            design: design.clone(),
        };
        if is_calibrated(&bed, &design) && knows_sizes(&bed, &design, frames) {
            let band = band(&bed, load, &rate, frames);
            let range = Range { least: band.low_pps, middle: chain_pps, most: band.high_pps };
            (entry.system_pps, entry.basis) = (Some(of_all(range)), Basis::Modelled);
            entry.bound_by = rate.bound().map(|stage| stage.resource.name());
        } else if let Some(ranged) = ranged(&bed, load, &[], frames) {
            (entry.system_pps, entry.basis) = (Some(of_all(ranged.chain_pps)), Basis::PublishedCosts);
            entry.bound_by = ranged.bound_by.map(|resource| resource.name());
        } else if let Some(rates) = of_others(Datapath::OvsKernel, pattern, frames).filter(|_| family == Family::Kernel)
        {
            (entry.system_pps, entry.basis) = (Some(rates), Basis::Published);
        } else if family != Family::Kernel {
            (entry.bound_pps, entry.basis) = (Some(chain_pps * f64::from(vnfs)), Basis::Bound);
            entry.bound_by = rate.bound().map(|stage| stage.resource.name());
        }
        Some(entry)
    }

    /// Hops of the cheapest, the likely and the dearest kind: the host's own, or what others published.
    fn hops(&self) -> Range<HopCost> {
        let Some(hop) = &self.bed.hop else { return self.bed.demands.published() };
        let times = |factor: f64| HopCost {
            cycles: hop.cycles * factor,
            cycles_per_byte: hop.cycles_per_byte * factor,
            ..hop.clone()
        };
        let spread = hop.spread.max(1.0);
        Range { least: times(1.0 / spread), middle: hop.clone(), most: times(spread) }
    }

    /// The fewest polling CPUs with which a switched chain carries at least what VFs do, by the cost of a hop; `None` if no number of them is
    /// enough, and of all if nothing is known of the VFs.
    pub(super) fn polling_cpus_that_beat_vfs(&self, vnfs: u32, frames: &Frames) -> Option<Range<Option<u32>>> {
        let vfs = Design::uniform(Datapath::Sriov, Traffic::Chain, vnfs);
        let switch = Design::uniform(Datapath::OvsDpdk, Traffic::Chain, vnfs);
        let load = |design| Load { design, pattern: Traffic::Chain, vnfs };
        let goal = rate(&self.bed, load(&vfs), &[], frames).chain_pps().filter(|_| is_calibrated(&self.bed, &vfs))?;
        let fewest = |hop: &HopCost| {
            let bed = |pmd_cores| Bed { pmd_cores, hop: Some(hop.clone()), ..self.bed.clone() };
            let carries = |threads: &u32| rate(&bed(*threads), load(&switch), &[], frames).chain_pps() >= Some(goal);
            (1..=queues(&self.bed, load(&switch))).find(carries)
        };
        let Range { least, middle, most } = self.hops();
        Some(Range { least: fewest(&least), middle: fewest(&middle), most: fewest(&most) })
    }

    pub(super) fn asked(&self, pattern: Traffic, family: Family) -> Option<Entry> {
        self.entry(pattern, self.vnfs, self.frames, family)
    }
}

/// What others had of a path and pattern at one size, whatever the number of VMs.
fn of_others(path: Datapath, pattern: Traffic, frames: &Frames) -> Option<Range<f64>> {
    let bytes = frames.size_bytes()? as f64;
    let is_same = |point: &&published::Point| point.of == Some((path, pattern)) && point.frame_bytes() == Some(bytes);
    let mut pps: Vec<f64> =
        published::points().filter(is_same).filter_map(|point| Some(point.system_mpps()? * 1e6)).collect();
    pps.sort_by(f64::total_cmp);
    Some(Range { least: *pps.first()?, middle: pps[pps.len() / 2], most: *pps.last()? })
}
