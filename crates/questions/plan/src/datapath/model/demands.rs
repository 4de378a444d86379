//! What makes a hop of the switch dearer than a hop of few flows: how many there are, connections that are tracked, VMs on another node.
//!
//! Rows of `flows.tsv` and `loss_free.tsv`, typed. Between two rows values are taken along logarithms.

use super::hops::{self, Range};
use super::switch::HopCost;
use std::sync::LazyLock;

/// What is asked of each hop beside passing a packet on.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Demands {
    /// Flows that come by at the same time.
    pub flows: Option<f64>,
    /// Entries of the classifier that they need; unknown, they are anything from a few to one for each flow.
    pub megaflows: Option<f64>,
    /// Each hop tracks connections.
    pub conntrack: bool,
    /// The VMs run on another NUMA node than the polling threads.
    pub remote_node: bool,
    /// The switch takes frames out of VXLAN as they come, and puts them in as they leave.
    pub vxlan: bool,
    /// No packet may be lost.
    pub loss_free: bool,
    /// Queues that each VM sends from; 0 is 1.
    pub vm_queues: u32,
}

/// Bytes that VXLAN puts around a frame: Ethernet 14, IPv4 20, UDP 8 and its own 8 (RFC 7348, 5).
pub(crate) const VXLAN_BYTES: f64 = 50.0;
/// How often a packet that comes in VXLAN is looked up: what `tnl_pop` takes out is looked up anew (lib/dpif-netdev.c, Open vSwitch 3.1).
pub(crate) const VXLAN_PASSES: f64 = 2.0;

/// By how much one bed differs from another with as many megaflows: ovs_perf's longer frames lie 12 % off what its 64 bytes say.
const MEGAFLOWS_SPREAD: f64 = 1.15;
/// Hops that tracking adds to each. The packet passes the datapath twice (`recirc` after `ct`, lib/dpif-netdev.c, Open vSwitch 3.1), which is the least;
/// 1.2 Mpps of one busy thread that tracks and translates one flow (connect-X5 vDPA) are 3 and more hops in all at 2 to 2.6 GHz, to which
/// the others are fitted.
const TRACKING: Range<f64> = Range { least: 1.0, middle: 2.0, most: 3.5 };
/// How many times what it costs on one node a hop costs from one to another: "up to a 50 % performance drop" (OpenStack Nova specification
/// numa-aware-vswitches, Rocky).
const OTHER_NODE: Range<f64> = Range { least: 1.0, middle: std::f64::consts::SQRT_2, most: 2.0 };

/// A column by another one.
type Curve = Vec<(f64, f64)>;

static EACH: LazyLock<Curve> = LazyLock::new(|| curve("each"));
static SHARED: LazyLock<Curve> = LazyLock::new(|| curve("shared"));
static LOSS_FREE: LazyLock<Curve> =
    LazyLock::new(|| rows(include_str!("loss_free.tsv")).filter_map(|row| pair(row[0], row[1])).collect());

fn rows(text: &'static str) -> impl Iterator<Item = Vec<&'static str>> {
    text.lines().filter(|line| !line.starts_with('#')).skip(1).map(|line| line.split('\t').collect())
}

fn pair(at: &str, value: &str) -> Option<(f64, f64)> {
    at.parse().ok().zip(value.parse().ok())
}

fn curve(name: &str) -> Curve {
    rows(include_str!("flows.tsv")).filter(|row| row[0] == name).filter_map(|row| pair(row[1], row[2])).collect()
}

/// The value at `x`; beyond the ends that of the end.
fn along(curve: &[(f64, f64)], x: f64) -> f64 {
    let between = |pair: &&[(f64, f64)]| x >= pair[0].0 && x <= pair[1].0;
    let first = curve.first().map_or(1.0, |first| first.1);
    match curve.windows(2).find(between) {
        Some(pair) => {
            let part = (x / pair[0].0).ln() / (pair[1].0 / pair[0].0).ln();
            pair[0].1 * (pair[1].1 / pair[0].1).powf(part)
        }
        None if curve.first().is_some_and(|first| x < first.0) => first,
        None => curve.last().map_or(first, |last| last.1),
    }
}

/// Share of a rate that is carried without loss, of frames of `bytes`.
pub(crate) fn loss_free(bytes: f64) -> f64 {
    along(&LOSS_FREE, bytes)
}

impl Demands {
    /// Times what a hop of few flows takes.
    pub(crate) fn times(&self) -> Range<f64> {
        let shared = self.flows.map_or(1.0, |flows| along(&SHARED, flows));
        let each = |flows: f64| along(&EACH, flows);
        let (least, most) = match (self.flows, self.megaflows) {
            (_, Some(megaflows)) if each(megaflows) <= 1.0 => (shared, shared),
            (_, Some(megaflows)) => {
                let times = each(megaflows).max(shared);
                ((times / MEGAFLOWS_SPREAD).max(1.0), times * MEGAFLOWS_SPREAD)
            }
            (Some(flows), None) => (shared.min(each(flows)), each(flows).max(shared)),
            (None, None) => (1.0, 1.0),
        };
        Range { least, middle: (least * most).sqrt(), most }
    }

    /// Nothing of it makes a hop dearer.
    pub(crate) fn are_none(&self) -> bool {
        self.flows.is_none() && self.megaflows.is_none() && !self.conntrack && !self.remote_node
    }

    /// What published hops take then: the cheapest, the median and the dearest.
    pub(crate) fn published(&self) -> Range<HopCost> {
        let Range { least, middle, most } = hops::published();
        Range { least: self.of(&least).least, middle: self.of(&middle).middle, most: self.of(&most).most }
    }

    /// Share of a rate that is left for frames of `bytes`, where none may be lost.
    pub(crate) fn left(&self, bytes: f64) -> f64 {
        if self.loss_free { loss_free(bytes) } else { 1.0 }
    }

    /// What a hop of such a cost takes then: at least, likely, at most. What flows and tracking add does not depend on the bytes of a frame.
    pub(crate) fn of(&self, hop: &HopCost) -> Range<HopCost> {
        let (flows, zero) = (self.times(), Range { least: 0.0, middle: 0.0, most: 0.0 });
        let tracking = if self.conntrack { TRACKING } else { zero };
        let one = Range { least: 1.0, middle: 1.0, most: 1.0 };
        let node = if self.remote_node { OTHER_NODE } else { one };
        let at_64 = hop.of(64.0);
        let of = |flows: f64, tracking: f64, node: f64| HopCost {
            cycles: (hop.cycles + at_64 * (flows - 1.0 + tracking)) * node,
            cycles_per_byte: hop.cycles_per_byte * node,
            ..hop.clone()
        };
        Range {
            least: of(flows.least, tracking.least, node.least),
            middle: of(flows.middle, tracking.middle, node.middle),
            most: of(flows.most, tracking.most, node.most),
        }
    }

    /// The same as one cost with its spread, for a hop that was measured without.
    pub(crate) fn spread_over(&self, hop: &HopCost) -> HopCost {
        if self.are_none() {
            return hop.clone();
        }
        let Range { least, middle, most } = self.of(hop);
        let of = |cost: &HopCost| cost.of(64.0) / middle.of(64.0);
        HopCost { spread: hop.spread.max(1.0) * of(&most).max(1.0 / of(&least)), ..middle }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_cost_what_the_published_rows_say_and_between_them_something_between() {
        let times = |flows, megaflows| Demands { flows, megaflows, ..Demands::default() }.times();
        let unknown = times(Some(1024.0), None);
        assert!((unknown.least - 1.2).abs() < 1e-9 && (2.1..2.12).contains(&unknown.most), "{unknown:?}");
        let each = times(Some(1e5), Some(1e5));
        assert!(each.least < 3.685 && each.most > 3.685 && each.most / each.least < 1.4);
        assert!((times(Some(1e5), Some(3.0)).most - 1.6).abs() < 0.2, "few megaflows for many flows");
        assert!((times(Some(1e9), None).most - 34.77).abs() < 1e-9, "no row is beyond a million");
        assert_eq!(times(None, None), Range { least: 1.0, middle: 1.0, most: 1.0 });
    }

    #[test]
    fn what_is_demanded_is_added_once_and_another_node_makes_all_of_it_dearer() {
        let hop = HopCost { cycles: 200.0, cycles_per_byte: 0.5, spread: 1.1, source: None };
        let demands = Demands { conntrack: true, remote_node: true, ..Demands::default() };
        let Range { least, most, .. } = demands.of(&hop);
        assert_eq!((least.of(64.0), most.of(64.0)), (464.0, 232.0 * 4.5 * 2.0));
        assert_eq!((least.cycles_per_byte, most.cycles_per_byte), (0.5, 1.0));
        let spread = demands.spread_over(&hop);
        assert!(spread.of(64.0) / spread.spread <= 464.0 && spread.of(64.0) * spread.spread >= 2088.0);
        assert_eq!(Demands::default().spread_over(&hop), hop);
    }

    #[test]
    fn without_loss_short_frames_lose_most() {
        assert_eq!([64.0, 512.0, 1514.0].map(loss_free), [0.796, 1.0, 1.0]);
        assert!((0.796..0.863).contains(&loss_free(100.0)) && loss_free(9000.0) == 1.0);
    }
}
