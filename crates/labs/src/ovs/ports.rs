//! Which port is wired to which: the flows of a chain, and of VNFs side by side.
//!
//! ```text
//! VNF k (from 0)   in: port v(2k) of the switch = port 2k of testpmd      out: v(2k+1) = port 2k+1
//! generator k      gen(k): one for a chain, one for each VNF side by side
//! card k           nic(k): where the frames of a chain come from the wire, and go back to it
//! ```

use base::datapath::Traffic;

/// Open vSwitch numbers ports as it is asked to: those of VNFs from here on.
const FIRST_OF_VNFS: u32 = 1;
/// Generators from here on.
const FIRST_GENERATOR: u32 = 100;

/// Ports of cards from here on.
pub(super) const FIRST_CARD: u32 = 200;

/// Generators of a chain that hold a rate together.
const PACED: u32 = 2;

/// Where packets come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    /// Generators of the switch, as fast as it polls them.
    Generators,
    /// The same behind policers that hold their rate, two for a chain.
    Paced,
    /// The wire behind one port, out of which they go again, or behind the first of two.
    Cards(u32),
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

/// The port of card `index`.
pub(super) fn card(index: u32) -> String {
    format!("nic{index}")
}

impl Wiring {
    /// All ports of VNFs, with their numbers.
    pub(super) fn of_vnfs(self) -> impl Iterator<Item = (String, u32)> {
        (0..2 * self.vnfs).map(|port| (format!("v{port}"), FIRST_OF_VNFS + port))
    }

    /// All generators, with their numbers.
    pub(super) fn generators(self) -> impl Iterator<Item = (String, u32)> {
        let count = match (self.source, self.pattern) {
            (Source::Cards(_), _) => 0,
            (Source::Paced, Traffic::Chain) => PACED,
            (Source::Generators, Traffic::Chain) => 1,
            (_, Traffic::NorthSouth) => self.vnfs,
        };
        (0..count).map(|index| (generator(index), FIRST_GENERATOR + index))
    }

    /// All ports of cards, with their numbers: the first one receives, the last one sends.
    pub(super) fn cards(self) -> impl DoubleEndedIterator<Item = (String, u32)> {
        let count = if let Source::Cards(count) = self.source { count } else { 0 };
        (0..count).map(|index| (card(index), FIRST_CARD + index))
    }

    /// Ports that packets come from.
    pub(super) fn sources(self) -> impl Iterator<Item = (String, u32)> {
        self.generators().chain(self.cards().take(1))
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

    /// The flows, in the words of ovs-ofctl(8); also those of generators that come later. What a card receives is discarded until
    /// [`Wiring::wire_flow`].
    pub(super) fn flows(self) -> Vec<String> {
        let into = |vnf: u32| FIRST_OF_VNFS + 2 * vnf;
        let later = if self.source == Source::Generators { Source::Paced } else { self.source };
        let mut flows = Vec::new();
        for (index, (_, generator)) in (0..).zip(Self { source: later, ..self }.generators()) {
            flows.push(format!("in_port={generator},actions=output:{}", into(self.feeds(index))));
        }
        flows.extend(self.cards().map(|(_, card)| format!("in_port={card},actions=drop")));
        let out = self.cards().next_back().map_or_else(|| "drop".to_owned(), |(_, card)| format!("output:{card}"));
        for vnf in 0..self.vnfs {
            let action = if self.is_last(vnf) { out.clone() } else { format!("output:{}", into(vnf + 1)) };
            flows.push(format!("in_port={},actions={action}", into(vnf) + 1));
        }
        flows
    }

    /// The flow of what comes from the wire while packets are wanted, and while not.
    pub(super) fn wire_flow(self, wanted: bool) -> Option<String> {
        let action = if wanted { format!("output:{FIRST_OF_VNFS}") } else { "drop".to_owned() };
        self.cards().next().map(|(_, card)| format!("in_port={card},actions={action}"))
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
        let wired = Wiring { source: Source::Cards(2), ..chain };
        let expected = [
            "in_port=200,actions=drop",
            "in_port=201,actions=drop",
            "in_port=2,actions=output:3",
            "in_port=4,actions=output:201",
        ];
        assert_eq!((wired.flows(), wired.generators().count()), (expected.map(str::to_owned).to_vec(), 0));
        assert_eq!(wired.wire_flow(true).as_deref(), Some("in_port=200,actions=output:1"));
        let back = Wiring { source: Source::Cards(1), ..chain }.flows();
        assert_eq!(back.last().map(String::as_str), Some("in_port=4,actions=output:200"));
        assert_eq!((into(1), out_of(1)), ("v2".to_owned(), "v3".to_owned()));
    }
}
