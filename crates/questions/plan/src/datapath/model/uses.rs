//! How often a packet of a chain uses each resource.

use super::demands::VXLAN_PASSES;
use super::design::Datapath;
use super::stages::{Bed, Load};
use base::datapath::Traffic;

/// How often a packet of the chain uses each resource; north-south what all VMs do while one of them has a packet.
pub(super) struct Uses {
    pub(super) line: f64,
    /// Times it crosses PCIe in the direction that it crosses more often.
    pub(super) crossings: f64,
    /// Times the card forwards it from VF to VF.
    pub(super) hairpins: f64,
    /// Some edge is between two VFs, of one card or of two.
    pub(super) between_vfs: bool,
    /// Load of each receive queue of the switch.
    pub(super) queues: Vec<f64>,
    /// Times the switch takes it from a port.
    pub(super) ingress: f64,
    /// Load of the busiest thread of vhost-net.
    pub(super) vhost: f64,
    /// Ends of rings of the VNF that has most of them.
    pub(super) ring_ends: f64,
    pub(super) vnfs: f64,
}

impl Uses {
    /// Of the packets of `load`.
    pub(super) fn of(bed: &Bed, load: Load<'_>) -> Self {
        let edges = load.design.edges();
        let enters_switch = edges.first().is_some_and(|path| path.is_polled());
        let (port_queues, vm_queues) = (bed.port_queues.max(1), bed.demands.vm_queues.max(1));
        // What comes in a tunnel is looked up once more.
        let passes = if bed.demands.vxlan { VXLAN_PASSES } else { 1.0 };
        let vnfs = f64::from(load.vnfs);
        match load.pattern {
            Traffic::NorthSouth => {
                // The VMs of the fullest card.
                let each = f64::from(load.vnfs.max(1).div_ceil(bed.cards.max(1)));
                let mut queues = Vec::new();
                if enters_switch {
                    // What the ports bring is all of it; each VM sends its part.
                    let of_ports = port_queues.saturating_mul(bed.cards.max(1));
                    queues.extend((0..of_ports).map(|_| passes * vnfs.max(1.0) / f64::from(of_ports)));
                    let of_vms = load.vnfs.saturating_mul(vm_queues);
                    queues.extend((0..of_vms).map(|_| 1.0 / f64::from(vm_queues)));
                }
                let ingress = if enters_switch { each } else { 0.0 };
                let vhost = edges.iter().take(2).filter(|edge| edge.is_of_vhost_net()).count() as f64;
                let ring_ends = 0.0;
                Self {
                    line: each,
                    crossings: each,
                    hairpins: 0.0,
                    between_vfs: false,
                    queues,
                    ingress,
                    vhost,
                    ring_ends,
                    vnfs,
                }
            }
            Traffic::Chain => {
                let hairpins = load.design.inner().iter().filter(|edge| **edge == Datapath::Sriov).count() as f64;
                // A queue on each side of an edge, of which one direction fills one; the port may have several.
                let directions = bed.directions.clamp(1, 2);
                let mut queues = Vec::new();
                for (at, _) in edges.iter().enumerate().filter(|(_, path)| path.is_polled()) {
                    let (queues_of_edge, passes) = if at == 0 { (port_queues, passes) } else { (vm_queues, 1.0) };
                    let of_edge = queues_of_edge * directions;
                    queues.extend((0..of_edge).map(|_| passes / f64::from(of_edge)));
                }
                let of_vnf = |edges: &[Datapath]| edges.iter().filter(|edge| edge.is_of_vhost_net()).count();
                let vhost = edges.windows(2).map(of_vnf).max().unwrap_or(0) as f64;
                // Edge k and edge k + 1 are those of one VNF.
                let of_ring = |edges: &[Datapath]| edges.iter().filter(|edge| **edge == Datapath::Channel).count();
                let ring_ends = edges.windows(2).map(of_ring).max().unwrap_or(0) as f64;
                let ingress = if enters_switch { 1.0 } else { 0.0 };
                let between_vfs = hairpins > 0.0;
                // Over several cards no edge stays inside one: what a VF sends goes over the wire to another card.
                let (line, crossings, hairpins) = match bed.cards {
                    // Once from the port, and once more for each edge between two VFs.
                    0 | 1 => (1.0, hairpins + 1.0, hairpins),
                    cards => {
                        let most = of_fullest(edges, cards);
                        (most, most, 0.0)
                    }
                };
                Self { line, crossings, hairpins, between_vfs, queues, ingress, vhost, ring_ends, vnfs }
            }
        }
    }

    /// What another load uses at the same rate; threads of vhost-net are each VM's own.
    pub(super) fn add(&mut self, other: Self, on_card: bool) {
        if on_card {
            self.line += other.line;
            self.crossings += other.crossings;
            self.hairpins += other.hairpins;
            self.between_vfs |= other.between_vfs;
            self.ingress += other.ingress;
        }
        self.queues.extend(other.queues);
        self.vnfs += other.vnfs;
    }
}

/// How often a packet enters or leaves the card that it uses most, where VNF k has VFs of card k modulo `cards` alone; a switch of the
/// host is attached to the first.
pub(super) fn of_fullest(edges: &[Datapath], cards: u32) -> f64 {
    let count = |ends: &mut dyn Iterator<Item = (usize, Datapath)>| {
        let mut of_card = vec![0_u32; cards as usize];
        for (vnf, path) in ends {
            let card = if path == Datapath::Sriov { vnf % cards as usize } else { 0 };
            of_card.iter_mut().skip(card).take(1).for_each(|count| *count += 1);
        }
        of_card.into_iter().max().unwrap_or_default()
    };
    let uses_card = |at: usize, path: Datapath, wire: usize| path == Datapath::Sriov || at == wire;
    let last = edges.len().saturating_sub(1);
    let all = || edges.iter().copied().enumerate();
    // Into VNF k over edge k, out of it over edge k + 1.
    let into = count(&mut all().filter(|(at, path)| *at < last && uses_card(*at, *path, 0)));
    let out_of = all().skip(1).filter(|(at, path)| uses_card(*at, *path, last)).map(|(at, path)| (at - 1, path));
    f64::from(into.max(count(&mut out_of.into_iter())))
}
