//! Which port is wired to which: the flows of a chain, and of VNFs side by side.
//!
//! ```text
//! VNF k (from 0)   in: port v(2k) of the switch = port 2k of testpmd      out: v(2k+1) = port 2k+1
//! generator k      gen(k): one for a chain, one for each VNF side by side
//! ```

use base::datapath::Traffic;

/// Open vSwitch numbers ports as it is asked to: those of VNFs from here on.
const FIRST_OF_VNFS: u32 = 1;
const FIRST_GENERATOR: u32 = 100;

/// Generators of a chain that hold a rate together.
const PACED: u32 = 2;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    /// Generators of the switch, as fast as it polls them.
    Generators,
    /// The same behind policers that hold their rate, two for a chain.
    Paced,
}

/// How VNFs are wired.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Wiring {
    pub(super) pattern: Traffic,
    pub(super) vnfs: u32,
    pub(super) source: Source,
}

/// The switch's port that leads into VNF `vnf`.
pub(super) fn into(vnf: u32) -> String {
    format!("v{}", 2 * vnf)
}

/// The one that VNF `vnf` sends to.
pub(super) fn out_of(vnf: u32) -> String {
    format!("v{}", 2 * vnf + 1)
}

/// The port of generator `index`.
pub(super) fn generator(index: u32) -> String {
    format!("gen{index}")
}

impl Wiring {
    /// All ports of VNFs, with their numbers.
    pub(super) fn of_vnfs(self) -> impl Iterator<Item = (String, u32)> {
        (0..2 * self.vnfs).map(|port| (format!("v{port}"), FIRST_OF_VNFS + port))
    }

    pub(super) fn generators(self) -> impl Iterator<Item = (String, u32)> {
        let count = match (self.source, self.pattern) {
            (Source::Paced, Traffic::Chain) => PACED,
            (Source::Generators, Traffic::Chain) => 1,
            (_, Traffic::NorthSouth) => self.vnfs,
        };
        (0..count).map(|index| (generator(index), FIRST_GENERATOR + index))
    }

    /// The VNF that generator `index` sends to.
    pub(super) fn feeds(self, index: u32) -> u32 {
        match self.pattern {
            Traffic::Chain => 0,
            Traffic::NorthSouth => index,
        }
    }

    /// What comes before VNF `vnf`: the VNF before it, or a generator.
    pub(super) fn before(self, vnf: u32) -> Option<u32> {
        match self.pattern {
            Traffic::Chain => vnf.checked_sub(1),
            Traffic::NorthSouth => None,
        }
    }

    /// True if nothing comes behind VNF `vnf`: what it sends has arrived.
    pub(super) fn is_last(self, vnf: u32) -> bool {
        match self.pattern {
            Traffic::Chain => vnf + 1 == self.vnfs,
            Traffic::NorthSouth => true,
        }
    }

    /// The flows, in the words of ovs-ofctl(8); also those of generators that come later.
    pub(super) fn flows(self) -> Vec<String> {
        let into = |vnf: u32| FIRST_OF_VNFS + 2 * vnf;
        let mut flows = Vec::new();
        for (index, (_, generator)) in (0..).zip(Self { source: Source::Paced, ..self }.generators()) {
            flows.push(format!("in_port={generator},actions=output:{}", into(self.feeds(index))));
        }
        for vnf in 0..self.vnfs {
            let action = if self.is_last(vnf) { "drop".to_owned() } else { format!("output:{}", into(vnf + 1)) };
            flows.push(format!("in_port={},actions={action}", into(vnf) + 1));
        }
        flows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_leads_through_all_and_vnfs_side_by_side_have_a_generator_each() {
        let chain = Wiring { pattern: Traffic::Chain, vnfs: 2, source: Source::Generators };
        let expected = [
            "in_port=100,actions=output:1",
            "in_port=101,actions=output:1",
            "in_port=2,actions=output:3",
            "in_port=4,actions=drop",
        ];
        assert_eq!(
            (chain.flows(), chain.generators().count(), chain.of_vnfs().count()),
            (expected.map(str::to_owned).to_vec(), 1, 4)
        );
        let beside = Wiring { pattern: Traffic::NorthSouth, vnfs: 2, source: Source::Generators };
        let expected = [
            "in_port=100,actions=output:1",
            "in_port=101,actions=output:3",
            "in_port=2,actions=drop",
            "in_port=4,actions=drop",
        ];
        assert_eq!((beside.flows(), beside.generators().count()), (expected.map(str::to_owned).to_vec(), 2));
        assert_eq!(
            Wiring { source: Source::Paced, ..chain }.generators().count(),
            2,
            "two policers hold a rate that one does not"
        );
        assert_eq!((into(1), out_of(1)), ("v2".to_owned(), "v3".to_owned()));
    }
}
