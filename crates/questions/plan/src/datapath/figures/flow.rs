//! The way of a packet through the designs of a plan, hop by hop: what it passes, where it crosses PCIe, and how full each hop is.
//!
//! Nothing is shared out: the load of a hop is the rate of the design, and a hop is as full as the fullest of the resources that a packet
//! uses on it.

use super::super::model::design::Datapath;
use super::super::model::stages::Resource;
use super::super::plan::Plan;
use super::super::predict::Predicted;
use super::super::rules;
use super::MOST_CURVES;
use base::Figure;
use base::datapath::Traffic;
use base::figure::{Drawing, Flow, Fullest, Hop, Side, Stop};
use base::number::{counted, many};

/// Chains with more hops are folded: of hops in a row that are alike, one stands for those between the first and the last.
const MOST_OPEN: usize = 9;

/// More hops than this, also when folded, are more than anybody reads.
const MOST_HOPS: usize = 40;

/// Designs of the only length and size that is asked for, or the best one of each.
pub(super) fn figure(plan: &Plan, rates: &[Predicted<'_>], directions: &str) -> Option<Figure> {
    let is_one = rules::asked(rates).count() == 1;
    let most = if is_one { MOST_CURVES } else { 1 };
    let of = |one| rules::allowed(rates, one).into_iter().take(most).filter_map(|design| way(plan, design));
    let flows: Vec<Flow> = rules::asked(rates).flat_map(of).collect();
    (!flows.is_empty()).then(|| Figure {
        id: "way_of_a_packet".to_owned(),
        title: "Which way does a packet take, what does each hop carry, and where does it cross PCIe?".to_owned(),
        caption: format!(
            "Modelled at the rate of each design; bits of frames with their check sequence, {directions}. Each hop has its load and the \
             fullest resource that its packets use; pictures draw it as thick as its part of what the port carries."
        ),
        // Those of a sweep would push the rates out of sight.
        in_terminals: is_one,
        drawing: Drawing::Flows(flows),
    })
}

fn way(plan: &Plan, design: &Predicted<'_>) -> Option<Flow> {
    let pps = design.rate.chain_pps()?;
    let bits = design.frames.bytes() * 8.0;
    let share = |is_used: &dyn Fn(Resource) -> bool| {
        let fullest = design.rate.stages.iter().find(|stage| is_used(stage.resource))?;
        Some(Fullest { resource: fullest.resource.name().to_owned(), share: pps / fullest.capacity_pps })
    };
    let line = design.rate.stages.iter().find(|stage| stage.resource == Resource::Line)?;
    let of_vnf = share(&|resource| resource == Resource::Guest).map(|guest| guest.share);
    // North-south each VM has its part of what the hop carries.
    let (carried, last) = match design.chain.pattern {
        Traffic::Chain => (1.0, design.design.edges().len()),
        Traffic::NorthSouth => (f64::from(design.rate.vnfs), 2),
    };
    let end = |at: usize| match design.chain.pattern {
        _ if at == 0 || at == last => Stop { label: "wire".to_owned(), side: Side::Below, share: None },
        Traffic::Chain => Stop { label: format!("VNF {at}"), side: Side::Above, share: of_vnf },
        Traffic::NorthSouth => {
            Stop { label: many(u64::from(design.rate.vnfs), "VM"), side: Side::Above, share: of_vnf }
        }
    };
    let cards = plan.cards.get(design.chain.card).map_or(1, |card| card.count);
    let hop = |(at, path): (usize, &Datapath)| {
        let place = Place { is_first: at == 0, is_last: at + 1 == last, cards };
        Hop {
            path: path.name().to_owned(),
            from: end(at),
            to: end(at + 1),
            above: on_host(*path).map(str::to_owned),
            below: place.beyond(*path).map(str::to_owned),
            pps: pps * carried,
            bits_per_s: pps * carried * bits,
            fullest: share(&|resource| place.uses(resource, *path)),
            count: 1,
        }
    };
    let hops = folded(design.design.edges().iter().enumerate().map(hop).collect());
    let polling =
        design.pmd_cores.map(|cores| format!(", {}", counted(u64::from(cores), "polling CPU", "polling CPUs")));
    (hops.len() <= MOST_HOPS).then(|| Flow {
        title: format!("{}{}: {}", design.design.shape(), polling.unwrap_or_default(), rules::subject(design)),
        boundary: "PCIe".to_owned(),
        above: "the host's memory and CPUs".to_owned(),
        below: "card and wire".to_owned(),
        most_bits_per_s: line.capacity_pps * carried * bits,
        hops,
    })
}

/// Hops of a long chain, the middle ones of a row of equal ones as one.
fn folded(hops: Vec<Hop>) -> Vec<Hop> {
    if hops.len() <= MOST_OPEN {
        return hops;
    }
    let fold = |row: &[Hop]| match row {
        [first, next, .., before, last] => {
            let (from, to) = (next.from.clone(), before.to.clone());
            vec![first.clone(), Hop { from, to, count: row.len() as u32 - 2, ..first.clone() }, last.clone()]
        }
        few => few.to_vec(),
    };
    hops.chunk_by(Hop::is_like).flat_map(fold).collect()
}

/// What forwards packets of a path on the host; VFs have nothing there.
fn on_host(path: Datapath) -> Option<&'static str> {
    match path {
        Datapath::Sriov => None,
        Datapath::OvsDpdk | Datapath::OvsKernel => Some("switch"),
        Datapath::Macvtap => Some("macvtap"),
        Datapath::Bridge => Some("bridge"),
        Datapath::Channel => Some("memory"),
        Datapath::VswitchVm => Some("VM"),
    }
}

#[derive(Clone, Copy)]
struct Place {
    is_first: bool,
    is_last: bool,
    cards: u32,
}

impl Place {
    /// One of its ends is a wire: that of the chain, or the one that joins neighbours of different cards.
    fn is_on_wire(self, path: Datapath) -> bool {
        self.is_first || self.is_last || (path == Datapath::Sriov && self.cards > 1)
    }

    /// What forwards packets beyond PCIe.
    fn beyond(self, path: Datapath) -> Option<&'static str> {
        match path {
            _ if self.is_first || self.is_last => Some("card"),
            Datapath::Sriov if self.cards > 1 => Some("cards, switch"),
            Datapath::Sriov => Some("card"),
            _ => None,
        }
    }

    /// Whether packets of the hop use a resource. What VNFs forward is theirs, and no hop's.
    fn uses(self, resource: Resource, path: Datapath) -> bool {
        match resource {
            Resource::Channel => path == Datapath::Channel,
            Resource::Line => self.is_on_wire(path),
            Resource::Pcie | Resource::Nic => self.is_on_wire(path) || path == Datapath::Sriov,
            Resource::Hairpin => !self.is_on_wire(path) && path == Datapath::Sriov,
            Resource::Pmd => path.is_polled(),
            Resource::Ingress => self.is_first && path.is_polled(),
            Resource::Vhost => path.is_of_vhost_net(),
            Resource::Guest => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chain(vnfs: usize) -> Vec<Hop> {
        let stop = |at: usize| Stop { label: format!("VNF {at}"), side: Side::Above, share: None };
        let hop = |at: usize| Hop {
            path: "ovs-dpdk".into(),
            from: stop(at),
            to: stop(at + 1),
            above: Some("switch".into()),
            below: (at == 0 || at == vnfs).then(|| "card".into()),
            pps: 1e6,
            bits_per_s: 1e9,
            fullest: None,
            count: 1,
        };
        (0..=vnfs).map(hop).collect()
    }

    #[test]
    fn long_chains_are_folded_and_lose_no_hop() {
        assert_eq!(folded(chain(8)).len(), 9, "all of eight");
        let long = folded(chain(64));
        let ends: Vec<_> = long.iter().map(|hop| (hop.from.label.as_str(), hop.to.label.as_str(), hop.count)).collect();
        assert_eq!(
            ends,
            [
                ("VNF 0", "VNF 1", 1),
                ("VNF 1", "VNF 2", 1),
                ("VNF 2", "VNF 63", 61),
                ("VNF 63", "VNF 64", 1),
                ("VNF 64", "VNF 65", 1)
            ]
        );
    }

    #[test]
    fn a_hop_uses_what_its_packets_pass() {
        let place = |is_first, is_last, cards| Place { is_first, is_last, cards };
        let inner = place(false, false, 1);
        assert!(inner.uses(Resource::Pcie, Datapath::Sriov) && !inner.uses(Resource::Pcie, Datapath::OvsDpdk));
        assert!(!inner.uses(Resource::Line, Datapath::Sriov), "VFs of one card stay inside it");
        assert!(place(false, false, 2).uses(Resource::Line, Datapath::Sriov));
        assert_eq!(inner.beyond(Datapath::OvsDpdk), None);
        assert!(place(true, false, 1).uses(Resource::Ingress, Datapath::OvsDpdk));
        assert!(!place(false, true, 1).uses(Resource::Ingress, Datapath::OvsDpdk));
    }
}
