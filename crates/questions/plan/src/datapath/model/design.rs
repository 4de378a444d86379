//! What joins the wire and the VNFs: one path for each edge of a chain.

use base::datapath::Traffic;
use std::fmt;

base::named! {
    /// How packets get from one end of an edge to the other.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum Datapath {
        /// A virtual function of the card.
        Sriov = "sriov",
        /// Open vSwitch with DPDK and vhost-user.
        OvsDpdk = "ovs-dpdk",
        /// Open vSwitch in the kernel, with vhost-net.
        OvsKernel = "ovs-kernel",
        Macvtap = "macvtap",
        Bridge = "bridge",
        /// Memory that two VMs share.
        Channel = "channel",
        /// A switch in a VM of its own.
        VswitchVm = "vswitch-vm",
    }
}

impl Datapath {
    /// The one with this name, which may be a shorter one in files.
    pub fn called(name: &str) -> Option<Self> {
        match name {
            "vf" => Some(Datapath::Sriov),
            "ovs" => Some(Datapath::OvsDpdk),
            "kernel" => Some(Datapath::OvsKernel),
            name => Self::named(name),
        }
    }

    /// Packets go through a thread of vhost-net.
    pub(crate) fn is_of_vhost_net(self) -> bool {
        matches!(self, Datapath::OvsKernel | Datapath::Macvtap | Datapath::Bridge)
    }

    /// Threads that poll serve its queues; a switch in a VM has them at best as one on the host.
    pub(crate) fn is_polled(self) -> bool {
        matches!(self, Datapath::OvsDpdk | Datapath::VswitchVm)
    }

    /// A VM that has it cannot be moved as it is: a VF is a device of its host, and memory that is shared with a neighbour stays with that
    /// one (QEMU blocks the migration of a peer of ivshmem, docs/system/devices/ivshmem.rst, 7.2).
    pub(crate) fn forbids_migration(self) -> bool {
        matches!(self, Datapath::Sriov | Datapath::Channel)
    }
}

/// A path for each edge: of a chain from the wire to the first VNF, between neighbours, and from the last one to the wire.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Design {
    edges: Vec<Datapath>,
}

impl Design {
    /// The same path everywhere.
    pub fn uniform(path: Datapath, pattern: Traffic, vnfs: u32) -> Self {
        let edges = match pattern {
            Traffic::Chain => vnfs as usize + 1,
            Traffic::NorthSouth => 2,
        };
        Self { edges: vec![path; edges] }
    }

    /// One path at both ends, another one between VNFs.
    pub fn ends(ends: Datapath, between: Datapath, vnfs: u32) -> Self {
        let mut edges = vec![between; vnfs as usize + 1];
        if let [first, .., last] = &mut edges[..] {
            (*first, *last) = (ends, ends);
        }
        Self { edges }
    }

    /// These edges, in order.
    pub fn of(edges: Vec<Datapath>) -> Self {
        Self { edges }
    }

    /// The same of a chain of another length; `None` if nothing says what the edges are that come or go.
    pub fn stretched(&self, pattern: Traffic, vnfs: u32) -> Option<Self> {
        match &self.edges[..] {
            [first, others @ ..] if others.iter().all(|path| path == first) => {
                Some(Self::uniform(*first, pattern, vnfs))
            }
            [first, between, inner @ .., last] if first == last && inner.iter().all(|path| path == between) => {
                Some(Self::ends(*first, *between, vnfs))
            }
            _ => None,
        }
    }

    /// Its edges for people: `sriov + 7 x ovs-dpdk + sriov`.
    pub fn shape(&self) -> String {
        let of = |same: &[Datapath]| {
            let name = same.first().map_or("", |path| path.name());
            if same.len() == 1 { name.to_owned() } else { format!("{} x {name}", same.len()) }
        };
        let runs: Vec<String> = self.edges.chunk_by(|a, b| a == b).map(of).collect();
        if runs.len() == 1 { self.to_string() } else { runs.join(" + ") }
    }

    pub fn edges(&self) -> &[Datapath] {
        &self.edges
    }

    /// How many edges take `path`.
    pub fn count(&self, path: Datapath) -> usize {
        self.edges.iter().filter(|edge| **edge == path).count()
    }

    /// The same while the VM behind edge `vnf` is being moved: its VFs are unplugged, and `standby` stands in for them.
    pub(crate) fn while_moving(&self, vnf: usize, standby: Datapath) -> Self {
        let mut edges = self.edges.clone();
        let of_vm = edges.iter_mut().skip(vnf).take(2);
        of_vm.filter(|path| path.forbids_migration()).for_each(|path| *path = standby);
        Self { edges }
    }

    /// Edges between two VNFs.
    pub fn inner(&self) -> &[Datapath] {
        match &self.edges[..] {
            [_, inner @ .., _] => inner,
            _ => &[],
        }
    }

    /// Whether all its VMs can be moved.
    pub(crate) fn is_migratable(&self) -> bool {
        !self.edges.iter().any(|path| path.forbids_migration())
    }
}

impl fmt::Display for Design {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(first) = self.edges.first() else { return Ok(()) };
        f.write_str(first.name())?;
        if self.edges.iter().any(|path| path != first) {
            self.edges[1..].iter().try_for_each(|path| write!(f, "+{}", path.name()))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_design_is_called_by_its_path_or_by_its_edges() {
        assert_eq!(Design::uniform(Datapath::OvsDpdk, Traffic::Chain, 8).to_string(), "ovs-dpdk");
        let hybrid = Design::ends(Datapath::Sriov, Datapath::OvsDpdk, 3);
        assert_eq!(hybrid.to_string(), "sriov+ovs-dpdk+ovs-dpdk+sriov");
        assert_eq!(hybrid.shape(), "sriov + 2 x ovs-dpdk + sriov");
        assert_eq!((hybrid.inner().len(), hybrid.is_migratable()), (2, false));
        let rings = Design::ends(Datapath::OvsDpdk, Datapath::Channel, 3);
        assert!(!rings.is_migratable(), "a neighbour keeps the memory that it shares");
        assert!(Datapath::ALL.iter().all(|path| Datapath::called(path.name()) == Some(*path)));
    }
}
