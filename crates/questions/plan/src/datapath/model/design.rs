//! What joins the wire and the VNFs: one path for each edge of a chain.

use std::fmt;

/// How packets get from one end of an edge to the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Datapath {
    /// A virtual function of the card.
    Sriov,
    /// Open vSwitch with DPDK and vhost-user.
    OvsDpdk,
    /// Open vSwitch in the kernel, with vhost-net.
    OvsKernel,
    Macvtap,
    Bridge,
    /// Memory that two VMs share.
    Channel,
    /// A switch in a VM of its own.
    VswitchVm,
}

/// All of them, with the names that tables and files have.
pub const DATAPATHS: [(Datapath, &str); 7] = [
    (Datapath::Sriov, "sriov"),
    (Datapath::OvsDpdk, "ovs-dpdk"),
    (Datapath::OvsKernel, "ovs-kernel"),
    (Datapath::Macvtap, "macvtap"),
    (Datapath::Bridge, "bridge"),
    (Datapath::Channel, "channel"),
    (Datapath::VswitchVm, "vswitch-vm"),
];

impl Datapath {
    pub fn named(name: &str) -> Option<Self> {
        DATAPATHS.iter().find(|(_, known)| *known == name).map(|(path, _)| *path)
    }

    /// The same, and shorter names that files may have.
    pub fn called(name: &str) -> Option<Self> {
        match name {
            "vf" => Some(Datapath::Sriov),
            "ovs" => Some(Datapath::OvsDpdk),
            "kernel" => Some(Datapath::OvsKernel),
            name => Self::named(name),
        }
    }

    pub fn name(self) -> &'static str {
        DATAPATHS.iter().find(|(path, _)| *path == self).map_or("", |(_, name)| name)
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

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Pattern {
    /// From the wire through all VNFs, one behind the other, to the wire.
    #[default]
    Chain,
    /// From the wire into one of the VNFs and back.
    NorthSouth,
}

impl Pattern {
    pub fn named(name: &str) -> Option<Self> {
        [Pattern::Chain, Pattern::NorthSouth].into_iter().find(|pattern| pattern.name() == name)
    }

    /// Its name in tables and files.
    pub fn name(self) -> &'static str {
        match self {
            Pattern::Chain => "chain",
            Pattern::NorthSouth => "north-south",
        }
    }
}

/// A path for each edge: of a chain from the wire to the first VNF, between neighbours, and from the last one to the wire.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Design {
    edges: Vec<Datapath>,
}

impl Design {
    /// The same path everywhere.
    pub fn uniform(path: Datapath, pattern: Pattern, vnfs: u32) -> Self {
        let edges = match pattern {
            Pattern::Chain => vnfs as usize + 1,
            Pattern::NorthSouth => 2,
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
    pub fn stretched(&self, pattern: Pattern, vnfs: u32) -> Option<Self> {
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
        assert_eq!(Design::uniform(Datapath::OvsDpdk, Pattern::Chain, 8).to_string(), "ovs-dpdk");
        let hybrid = Design::ends(Datapath::Sriov, Datapath::OvsDpdk, 3);
        assert_eq!(hybrid.to_string(), "sriov+ovs-dpdk+ovs-dpdk+sriov");
        assert_eq!(hybrid.shape(), "sriov + 2 x ovs-dpdk + sriov");
        assert_eq!((hybrid.inner().len(), hybrid.is_migratable()), (2, false));
        let rings = Design::ends(Datapath::OvsDpdk, Datapath::Channel, 3);
        assert!(!rings.is_migratable(), "a neighbour keeps the memory that it shares");
        assert!(DATAPATHS.iter().all(|(path, name)| Datapath::named(name) == Some(*path) && path.name() == *name));
    }
}
