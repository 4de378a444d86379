//! What a packet passes in a design, and how much of it each resource carries.
//!
//! ```text
//! wire --line--> NIC --PCIe--> VM 1 --PCIe, NIC (hairpin) or PMD--> VM 2 .. VM N --PCIe--> NIC --line--> wire
//! each resource: capacity of its own / how often a packet of the chain uses it = packets a second of the chain; the least binds
//! ```
//! A chain's rate is that of packets from end to end; the system's is that times the VNFs, counted where they send (the counting
//! of the talk of 2017, docs/read/plan.md). North-south it is the sum over all VMs.

use super::demands::{Demands, VXLAN_BYTES};
use super::design::Design;
use super::frames::Frames;
use super::nic::{Hairpin, Nic};
use super::pcie::{Detours, Link};
use super::switch::{HopCost, heaviest};
use super::uses::Uses;
use super::wire::frames_per_s;
use base::datapath::Traffic;
use facts::ring::ChannelCost;

base::named! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub(crate) enum Resource {
        /// The link on the wire.
        Line = "line",
        /// The link between card and memory.
        Pcie = "pcie",
        /// Packets a second of the card.
        Nic = "nic",
        /// What the card forwards from VF to VF.
        Hairpin = "hairpin",
        /// A VNF itself.
        Guest = "guest",
        /// A VNF that copies over rings it shares with its neighbours.
        Channel = "channel",
        /// Polling threads of the switch.
        Pmd = "pmd",
        /// What the switch takes in from one port.
        Ingress = "ingress",
        /// The kernel's threads for virtio.
        Vhost = "vhost",
    }
}

/// What there is to carry packets.
#[derive(Debug, Clone)]
pub(crate) struct Bed {
    /// Bits a second of a port.
    pub line_bits_per_s: f64,
    pub ports: u32,
    /// Cards like it, over which VNFs are spread so that neighbours have different ones, joined by a switch outside.
    pub cards: u32,
    /// Of the card, the worst on its way to the root.
    pub pcie: Option<Link>,
    /// What makes the card's accesses slower.
    pub detours: Detours,
    pub nic: Option<Nic>,
    /// Queues from which the switch takes what a port receives.
    pub port_queues: u32,
    /// CPUs that poll for the switch.
    pub pmd_cores: u32,
    /// Cycles a second of each.
    pub core_hz: f64,
    pub hop: Option<HopCost>,
    /// What the switch takes in from a port at most, where that was measured.
    pub ingress_pps: Option<f64>,
    /// What a VNF forwards at most.
    pub guest_pps: Option<f64>,
    /// Cycles that a VNF takes for a packet.
    pub vnf: Option<HopCost>,
    /// CPUs that all VNFs share; `None`: each has its own.
    pub vnf_cores: Option<u32>,
    /// What one thread of vhost-net carries, where that was measured.
    pub vhost_pps: Option<f64>,
    /// What either end of a ring takes for a frame, where that was measured.
    pub channel: Option<ChannelCost>,
    /// 2 if packets take a chain in both directions; rates count both together.
    pub directions: u32,
    /// What makes hops dearer.
    pub demands: Demands,
}

/// VNFs and what joins them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Load<'d> {
    pub design: &'d Design,
    pub pattern: Traffic,
    pub vnfs: u32,
}

/// A resource that packets of the chain use.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Stage {
    pub resource: Resource,
    /// Packets a second of the chain (north-south: of each VM) that it carries.
    pub capacity_pps: f64,
}

/// What a design carries, and what binds it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Rate {
    /// All resources, the scarcest first.
    pub stages: Vec<Stage>,
    pub vnfs: u32,
}

impl Rate {
    /// Packets a second from end to end (north-south: of each VM); `None` where nothing is known that binds.
    pub(crate) fn chain_pps(&self) -> Option<f64> {
        self.stages.first().map(|stage| stage.capacity_pps)
    }

    /// The same, counted where each VNF sends.
    pub(crate) fn system_pps(&self) -> Option<f64> {
        self.chain_pps().map(|pps| pps * f64::from(self.vnfs))
    }

    pub(crate) fn bound(&self) -> Option<&Stage> {
        self.stages.first()
    }

    /// What would bind next.
    pub(crate) fn runner_up(&self) -> Option<&Stage> {
        self.stages.get(1)
    }
}

/// What `load` carries of `frames`, while the loads `beside` it carry as many; those on the same card are marked true.
pub(crate) fn rate(bed: &Bed, load: Load<'_>, beside: &[(Load<'_>, bool)], frames: &Frames) -> Rate {
    let mut uses = Uses::of(bed, load);
    beside.iter().for_each(|(other, on_card)| uses.add(Uses::of(bed, *other), *on_card));
    let mut stages = Vec::new();
    let mut stage = |resource, capacity_pps: Option<f64>| {
        stages.extend(capacity_pps.map(|capacity_pps| Stage { resource, capacity_pps }));
    };
    let ports = f64::from(bed.ports.max(1));
    // What the switch puts frames in is on the wire, and crosses PCIe.
    let around = if bed.demands.vxlan && uses.ingress > 0.0 { VXLAN_BYTES } else { 0.0 };
    let line = frames.rate(|bytes| frames_per_s(bed.line_bits_per_s, bytes + around)) * ports;
    stage(Resource::Line, Some(line / uses.line));
    let of_link =
        |link: Link| frames.rate(|bytes| link.packets_per_s(bytes + around) * bed.detours.left(bytes + around));
    stage(Resource::Pcie, bed.pcie.map(|link| of_link(link) / uses.crossings));
    stage(Resource::Nic, bed.nic.and_then(|nic| of_card(&nic, bed.ports, &uses, frames)));
    let is_bound = bed.nic.is_some_and(|nic| nic.hairpin == Hairpin::PortSpeed);
    stage(Resource::Hairpin, (uses.hairpins > 0.0 && is_bound).then(|| line / uses.hairpins));
    stage(Resource::Guest, of_vnfs(bed, &uses, frames));
    stage(Resource::Channel, of_rings(bed, &uses, frames));
    if let Some(hop) = bed.hop.as_ref().filter(|_| !uses.queues.is_empty()) {
        let busy = heaviest(uses.queues.clone(), bed.pmd_cores);
        let cycles = frames.mean(|bytes| hop.of(bytes) / bed.demands.left(bytes));
        stage(Resource::Pmd, Some(bed.core_hz / (busy * cycles)));
    }
    let ingress = bed.ingress_pps.filter(|_| uses.ingress > 0.0);
    stage(Resource::Ingress, ingress.map(|pps| pps * ports / uses.ingress));
    stage(Resource::Vhost, bed.vhost_pps.filter(|_| uses.vhost > 0.0).map(|pps| pps / uses.vhost));
    stages.sort_by(|a, b| a.capacity_pps.total_cmp(&b.capacity_pps).then(a.resource.cmp(&b.resource)));
    Rate { stages, vnfs: load.vnfs }
}

/// What each VNF forwards while those that share its CPU forward as much.
fn of_vnfs(bed: &Bed, uses: &Uses, frames: &Frames) -> Option<f64> {
    let by_cycles = bed.vnf.as_ref().map(|cost| bed.core_hz / frames.mean(|bytes| cost.of(bytes)));
    let alone = bed.guest_pps.into_iter().chain(by_cycles).reduce(f64::min)?;
    Some(alone / vnfs_on_one(bed, uses))
}

/// What the VNF forwards that has most ends of rings: its CPU does its own work, and copies in and out.
fn of_rings(bed: &Bed, uses: &Uses, frames: &Frames) -> Option<f64> {
    let cost = bed.channel.as_ref().filter(|cost| uses.ring_ends > 0.0 && frames.all(|bytes| cost.covers(bytes)))?;
    let copies_s = uses.ring_ends * frames.mean(|bytes| cost.of(bytes)) * 1e-9 * vnfs_on_one(bed, uses);
    let own_s = of_vnfs(bed, uses, frames).map_or(0.0, |pps| 1.0 / pps);
    Some(1.0 / (copies_s + own_s))
}

/// What an end of a ring may take for a frame where the chain is to carry `pps`; `None` if nothing is left for it.
pub(crate) fn ring_end_ns(bed: &Bed, load: Load<'_>, frames: &Frames, pps: f64) -> Option<f64> {
    let uses = Uses::of(bed, load);
    let own_s = of_vnfs(bed, &uses, frames).map_or(0.0, |pps| 1.0 / pps);
    let left_ns = (1.0 / pps - own_s) * 1e9 / (uses.ring_ends * vnfs_on_one(bed, &uses));
    (left_ns > 0.0 && left_ns.is_finite()).then_some(left_ns)
}

/// VNFs that take turns on the CPU that has most of them.
fn vnfs_on_one(bed: &Bed, uses: &Uses) -> f64 {
    bed.vnf_cores.map_or(1.0, |cores| (uses.vnfs / f64::from(cores.max(1))).ceil())
}

/// What the card itself carries: packets a second, and bits a second of two ports together.
fn of_card(nic: &Nic, ports: u32, uses: &Uses, frames: &Frames) -> Option<f64> {
    let twice = uses.between_vfs && nic.hairpin == Hairpin::CountsTwice;
    let times = if twice { 2.0 } else { 1.0 };
    let packets = nic.packets.and_then(|limit| {
        let counted = limit.below_bytes.map_or(1.0, |bytes| frames.below(bytes));
        (counted > 0.0).then(|| limit.of_ports(ports) / (uses.crossings * times * counted))
    });
    let of_two = nic.port_of_two_bits_per_s.filter(|_| ports > 1);
    let bits = of_two.map(|bits| bits * f64::from(ports) / (8.0 * frames.bytes() * uses.line));
    packets.into_iter().chain(bits).reduce(f64::min)
}

/// CPUs that a design keeps busy beside its VNFs: polling threads of the switch, and threads of vhost-net.
pub(crate) fn helper_cores(bed: &Bed, load: Load<'_>) -> u32 {
    let uses = Uses::of(bed, load);
    let edges = load.design.edges();
    let vhost = match load.pattern {
        Traffic::NorthSouth if edges.iter().any(|edge| edge.is_of_vhost_net()) => load.vnfs,
        Traffic::NorthSouth => 0,
        Traffic::Chain => {
            edges.windows(2).filter(|edges| edges.iter().any(|edge| edge.is_of_vhost_net())).count() as u32
        }
    };
    bed.pmd_cores.min(uses.queues.len() as u32) + vhost
}

/// Receive queues that polling threads of the switch serve.
pub(crate) fn queues(bed: &Bed, load: Load<'_>) -> u32 {
    Uses::of(bed, load).queues.len() as u32
}

/// The fewest polling threads with which the busiest has no more to do than with any number of them.
pub(crate) fn enough_threads(bed: &Bed, load: Load<'_>) -> u32 {
    const ROUNDING: f64 = 1e-9;
    let queues = Uses::of(bed, load).queues;
    let most = queues.len() as u32;
    let least = heaviest(queues.clone(), most) * (1.0 + ROUNDING);
    (1..most).find(|threads| heaviest(queues.clone(), *threads) <= least).unwrap_or(most)
}

#[cfg(test)]
mod tests {
    use super::super::design::Datapath;
    use super::super::nic::named;
    use super::super::uses::of_fullest;
    use super::*;

    /// The bed of the talk of 2017: one XL710 on a third generation link of eight lanes.
    fn bed(mps_bytes: u32) -> Bed {
        Bed {
            line_bits_per_s: 40e9,
            ports: 1,
            cards: 1,
            pcie: Some(Link { generation: 3, lanes: 8, mps_bytes, mrrs_bytes: 512 }),
            detours: Detours::default(),
            port_queues: 1,
            directions: 1,
            nic: named("XL710").copied(),
            pmd_cores: 1,
            core_hz: 2.2e9,
            hop: None,
            ingress_pps: None,
            guest_pps: None,
            vnf: None,
            vnf_cores: None,
            vhost_pps: None,
            channel: None,
            demands: Demands::default(),
        }
    }

    #[test]
    fn a_chain_of_vfs_over_two_cards_carries_twice_until_the_wire_binds() {
        let system = |cards, vnfs, bytes| {
            let bed = Bed { cards, ..bed(128) };
            let rate = of(&bed, Datapath::Sriov, Traffic::Chain, vnfs, bytes);
            (rate.system_pps().unwrap() / 1e6, rate.bound().unwrap().resource)
        };
        assert_eq!([system(1, 8, 64), system(2, 8, 64)], [(18.5, Resource::Nic), (37.0, Resource::Nic)]);
        let (of_four, bound) = system(4, 8, 1518);
        // 3.25 Mpps of each port, where one card alone is bound by PCIe at 3.61.
        assert!((of_four - 4.0 * 3.251).abs() < 0.01 && bound == Resource::Line, "{of_four}");
        assert_eq!(system(2, 3, 64).0, 27.75, "two of three VNFs are on one card");
        let ends = Design::ends(Datapath::Sriov, Datapath::OvsDpdk, 8);
        assert_eq!([1, 2].map(|cards| of_fullest(ends.edges(), cards)), [1.0, 1.0]);
    }

    fn of(bed: &Bed, path: Datapath, pattern: Traffic, vnfs: u32, bytes: u32) -> Rate {
        let design = &Design::uniform(path, pattern, vnfs);
        rate(bed, Load { design, pattern, vnfs }, &[], &Frames::of(bytes))
    }

    #[test]
    fn chains_of_vfs_share_the_card_whatever_their_length() {
        for vnfs in [2, 4, 8] {
            let short = of(&bed(128), Datapath::Sriov, Traffic::Chain, vnfs, 64);
            assert!((short.system_pps().unwrap() - 18.5e6).abs() < 1e3, "{vnfs}");
            assert_eq!(short.bound().unwrap().resource, Resource::Nic);
            let long = of(&bed(128), Datapath::Sriov, Traffic::Chain, vnfs, 1518);
            assert!((long.system_pps().unwrap() * 1518.0 * 8.0 - 43.8e9).abs() < 0.05e9, "44 Gb/s at every length");
            assert_eq!(long.bound().unwrap().resource, Resource::Pcie);
        }
        let per_vm = |vnfs| of(&bed(128), Datapath::Sriov, Traffic::Chain, vnfs, 64).chain_pps().unwrap() / 1e6;
        assert!((per_vm(8) - 2.31).abs() < 0.005 && (per_vm(4) - 4.63).abs() < 0.006);
    }

    #[test]
    fn vfs_share_the_line_north_to_south_whatever_their_number() {
        for vms in 2..=8 {
            let long = of(&bed(256), Datapath::Sriov, Traffic::NorthSouth, vms, 512);
            assert_eq!(long.bound().unwrap().resource, Resource::Line);
            assert!((long.system_pps().unwrap() * 512.0 * 8.0 - 38.5e9).abs() < 0.05e9);
        }
        let short = of(&bed(256), Datapath::Sriov, Traffic::NorthSouth, 8, 64).system_pps().unwrap();
        assert!((36e6..=37e6).contains(&short), "a bound, of which 32 to 33 were reached");
    }

    #[test]
    fn five_hops_of_ten_gigabits_exhaust_a_third_generation_link() {
        let carried =
            |vnfs| of(&bed(128), Datapath::Sriov, Traffic::Chain, vnfs, 1518).chain_pps().unwrap() * 1518.0 * 8.0;
        assert!(carried(4) > 10e9 && carried(5) < 10e9);
    }

    #[test]
    fn a_switch_of_one_thread_divides_and_one_of_enough_threads_does_not() {
        let hop = HopCost::through_64_bytes(200.0, 0.0009, 1.1, None);
        let switch = |pmd_cores| Bed { pmd_cores, hop: Some(hop.clone()), ..bed(256) };
        let chain = |cores, vnfs| of(&switch(cores), Datapath::OvsDpdk, Traffic::Chain, vnfs, 64).chain_pps().unwrap();
        assert!((chain(1, 8) * 9.0 - 11e6).abs() < 1.0 && (chain(1, 4) * 5.0 - 11e6).abs() < 1.0);
        assert_eq!(chain(9, 4), chain(9, 8), "the talk's own rows");
        let both_ways =
            |cores| of(&switch(cores), Datapath::OvsDpdk, Traffic::NorthSouth, 8, 64).system_pps().unwrap() / 11e6;
        assert!((both_ways(1) - 0.5).abs() < 1e-9 && (both_ways(2) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn enough_threads_are_one_for_each_hop_and_two_in_and_out() {
        let bed = Bed { hop: Some(HopCost::through_64_bytes(200.0, 0.0009, 1.1, None)), ..bed(256) };
        let enough = |pattern, vnfs, path| {
            let design = Design::uniform(path, pattern, vnfs);
            enough_threads(&bed, Load { design: &design, pattern, vnfs })
        };
        assert_eq!([2, 8].map(|vnfs| enough(Traffic::Chain, vnfs, Datapath::OvsDpdk)), [3, 9]);
        assert_eq!([1, 8].map(|vnfs| enough(Traffic::NorthSouth, vnfs, Datapath::OvsDpdk)), [2, 2]);
        assert_eq!(enough(Traffic::Chain, 8, Datapath::Sriov), 0);
    }

    #[test]
    fn vfs_at_the_ends_of_a_switched_chain_spare_two_of_nine_hops() {
        let bed = Bed { hop: Some(HopCost::through_64_bytes(200.0, 0.0009, 1.1, None)), ..bed(256) };
        let of = |design: Design| {
            let load = Load { design: &design, pattern: Traffic::Chain, vnfs: 8 };
            rate(&bed, load, &[], &Frames::of(64)).chain_pps().unwrap()
        };
        let all = of(Design::uniform(Datapath::OvsDpdk, Traffic::Chain, 8));
        let hybrid = of(Design::ends(Datapath::Sriov, Datapath::OvsDpdk, 8));
        assert!((hybrid / all - 9.0 / 7.0).abs() < 1e-9, "29 % more");
    }

    #[test]
    fn vnfs_that_share_cpus_share_their_cycles() {
        let cost = HopCost { cycles: 180.0, cycles_per_byte: 0.625, spread: 1.0, source: None };
        let with = |vnf_cores| Bed { vnf: Some(cost.clone()), vnf_cores, ..bed(256) };
        let pps = |vnf_cores, pattern, vnfs| {
            let rate = of(&with(vnf_cores), Datapath::Sriov, pattern, vnfs, 64);
            rate.stages.iter().find(|stage| stage.resource == Resource::Guest).unwrap().capacity_pps
        };
        // 2.2e9 cycles a second, 220 for a packet of 64 bytes: 10 million of one VNF.
        for pattern in [Traffic::Chain, Traffic::NorthSouth] {
            assert_eq!([1, 2, 8].map(|vnfs| pps(None, pattern, vnfs)), [1e7; 3], "a CPU each");
            assert_eq!([1, 2, 8].map(|vnfs| pps(Some(1), pattern, vnfs)), [1e7, 5e6, 1.25e6]);
            assert_eq!([3, 4].map(|vnfs| pps(Some(2), pattern, vnfs)), [5e6; 2], "the fullest CPU binds");
        }
        let known = Bed { guest_pps: Some(8e6), ..with(Some(1)) };
        let rate = of(&known, Datapath::Sriov, Traffic::Chain, 2, 64);
        assert!(rate.stages.iter().any(|stage| stage.capacity_pps == 4e6), "the less of two limits: {rate:?}");
    }

    #[test]
    fn a_vnf_between_two_rings_copies_twice_and_does_its_own_work() {
        let rings = Bed { channel: ChannelCost::given(10.0, 0.0), ..bed(256) };
        let design = |vnfs| Design::ends(Datapath::Sriov, Datapath::Channel, vnfs);
        let mpps = |bed: &Bed, vnfs| {
            let load = Load { design: &design(vnfs), pattern: Traffic::Chain, vnfs };
            let rate = rate(bed, load, &[], &Frames::of(64));
            let stage = rate.stages.iter().find(|stage| stage.resource == Resource::Channel);
            stage.map(|stage| (stage.capacity_pps / 1e5).round() / 10.0)
        };
        assert_eq!([2, 3, 8].map(|vnfs| mpps(&rings, vnfs)), [Some(100.0), Some(50.0), Some(50.0)]);
        // 22 cycles at 2.2 GHz are 10 ns more, and two VNFs on a CPU take turns with all of it.
        let busy =
            Bed { vnf: Some(HopCost { cycles: 22.0, cycles_per_byte: 0.0, spread: 1.0, source: None }), ..rings };
        assert_eq!(mpps(&busy, 8), Some(33.3));
        assert_eq!(mpps(&Bed { vnf_cores: Some(4), ..busy.clone() }, 8), Some(16.7));
        let load = Load { design: &design(8), pattern: Traffic::Chain, vnfs: 8 };
        let left = ring_end_ns(&busy, load, &Frames::of(64), 20e6).unwrap();
        assert!((left - 20.0).abs() < 1e-9, "50 ns less its own 10, for two ends: {left}");
        assert_eq!(mpps(&bed(256), 8), None, "nothing is known of rings");
        let narrow = ChannelCost { sizes: 512..=1518, ..ChannelCost::given(10.0, 0.0).unwrap() };
        assert_eq!(
            mpps(&Bed { channel: Some(narrow), ..busy }, 8),
            None,
            "nor of those of frames that were not measured"
        );
    }

    #[test]
    fn what_is_not_known_of_a_card_binds_nothing() {
        let unknown = Bed { nic: None, pcie: None, ..bed(256) };
        let rate = of(&unknown, Datapath::Sriov, Traffic::Chain, 8, 64);
        assert_eq!(rate.stages.iter().map(|stage| stage.resource).collect::<Vec<_>>(), [Resource::Line]);
    }
}
