//! What is to be planned: what a host has, and what it is to carry.

use super::model::demands::Demands;
use super::model::design::{Datapath, Design};
use super::model::frames::Frames;
use super::model::nic::Nic;
use super::model::pcie::{Detours, Link};
use super::model::stages::Bed;
use super::model::switch::HopCost;
use base::datapath::Traffic;
use facts::ring::ChannelCost;

/// Everything a prediction rests on.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Cards, of which chains name one.
    pub cards: Vec<Card>,
    pub chains: Vec<Chain>,
    /// Whether the chains run at the same time and share what there is; else each is an answer of its own.
    pub together: bool,
    /// Sizes and mixes of frames.
    pub frames: Vec<Frames>,
    /// 2 if packets take a chain in both directions.
    pub directions: u32,
    /// Packets a second that each chain has to carry.
    pub target_pps: Option<f64>,
    /// CPUs that poll for the switch.
    pub pmd_cores: u32,
    /// The user named their number; where designs are compared, each has what it needs otherwise.
    pub(crate) pmd_cores_are_given: bool,
    /// Which ways packets go where all designs are compared.
    pub(crate) compared: Vec<Traffic>,
    /// Designs, and so many polling CPUs at most, are to be searched.
    pub(crate) search_up_to: Option<u32>,
    /// Cycles a second of each.
    pub core_hz: f64,
    /// Queues from which the switch takes what a port receives.
    pub port_queues: u32,
    /// CPUs that each VM has for itself.
    pub reserved_cores_per_vm: u32,
    /// What a hop of the switch takes, where that was measured.
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
    /// What makes hops of the switch dearer; of `hop` it is a part already.
    pub(crate) demands: Demands,
    /// Watts, and money, of a CPU that a design keeps busy.
    pub(crate) core_watts: Option<f64>,
    pub(crate) core_price: Option<f64>,
    pub assumptions: Vec<Assumption>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assumption {
    pub what: String,
    /// How much, with its unit.
    pub value: String,
    /// `given`, `assumed`, or a source.
    pub from: String,
}

#[derive(Debug, Clone)]
pub struct Card {
    /// As the user calls it.
    pub model: String,
    /// What is known of it beyond its link.
    pub nic: Option<Nic>,
    /// Bits a second of a port.
    pub line_bits_per_s: f64,
    pub ports: u32,
    pub count: u32,
    /// Its link, the worst on its way to the root.
    pub pcie: Option<Link>,
    /// What makes its accesses slower.
    pub detours: Detours,
}

/// VNFs, and the designs that may join them.
#[derive(Debug, Clone)]
pub struct Chain {
    /// How many: of a chain one behind the other, north-south side by side.
    pub vnfs: u32,
    pub pattern: Traffic,
    /// Which paths are weighed.
    pub designs: Vec<Design>,
    /// The user named none of them, so a search may take others.
    pub is_open: bool,
    /// Whether all its VMs have to be movable.
    pub must_migrate: bool,
    pub card: usize,
}

impl Plan {
    /// What carries the packets of a chain on this card.
    pub(super) fn bed(&self, card: &Card) -> Bed {
        Bed {
            line_bits_per_s: card.line_bits_per_s,
            ports: card.ports,
            cards: card.count,
            pcie: card.pcie,
            detours: card.detours,
            nic: card.nic,
            port_queues: self.port_queues,
            pmd_cores: self.pmd_cores,
            core_hz: self.core_hz,
            hop: self.hop.clone(),
            ingress_pps: self.ingress_pps,
            guest_pps: self.guest_pps,
            vnf: self.vnf.clone(),
            vnf_cores: self.vnf_cores,
            vhost_pps: self.vhost_pps,
            channel: self.channel.clone(),
            directions: self.directions,
            demands: self.demands.clone(),
        }
    }
}

impl Chain {
    /// All designs worth a look where the user names none: each path everywhere, and of a chain VFs at its ends with a switch between; where
    /// something is known of rings, also these between VNFs.
    pub(crate) fn usual_designs(pattern: Traffic, vnfs: u32, knows_rings: bool) -> Vec<Design> {
        let uniform = Datapath::ALL.into_iter().map(|path| Design::uniform(path, pattern, vnfs));
        let mut designs: Vec<Design> = uniform.collect();
        if pattern == Traffic::Chain && vnfs > 1 {
            designs.push(Design::ends(Datapath::Sriov, Datapath::OvsDpdk, vnfs));
            let ends = [Datapath::Sriov, Datapath::OvsDpdk].into_iter().filter(|_| knows_rings);
            designs.extend(ends.map(|ends| Design::ends(ends, Datapath::Channel, vnfs)));
        }
        designs
    }
}
