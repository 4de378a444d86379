//! The way of packets through stations on two sides of a boundary: which hops they take, what each carries, and how full it is.
//!
//! ```text
//! above              VNF 1 --> switch --> VNF 2        VNF 3 -+
//! - boundary - - - -^- - - - - - - - - - - - - v - - -^- - - -v- - -
//! below   wire --> card                        +-card-+       card --> wire
//! ```

use super::With;
use serde::{Serialize, Serializer};
use serde_json::json;

/// A way from its first station to its last one.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Flow {
    /// Whose way it is: `sriov, 4 VNFs at 64 bytes`.
    pub title: String,
    /// What separates both sides: `PCIe`.
    pub boundary: String,
    /// What is above it: `host`.
    pub above: String,
    /// What is below it: `card and wire`.
    pub below: String,
    /// Bits a second that the thickest line stands for; what is above looks the same.
    pub most_bits_per_s: f64,
    /// The hops in order; each begins where the one before it ends.
    #[serde(serialize_with = "with_fullness")]
    pub hops: Vec<Hop>,
}

/// From one station to the next.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Hop {
    /// What carries packets: `ovs-dpdk`.
    pub path: String,
    /// Where it begins.
    pub from: Stop,
    /// Where it ends.
    pub to: Stop,
    /// What forwards it above the boundary, if something does: `switch`.
    pub above: Option<String>,
    /// What forwards it below the boundary, if something does: `card`. From above to above, it crosses for that.
    pub below: Option<String>,
    /// Its load in packets a second.
    pub pps: f64,
    /// Its load in bits a second.
    pub bits_per_s: f64,
    /// The fullest of what it uses, where that is known.
    pub fullest: Option<Fullest>,
    /// So many hops in a row that are alike, of which it is drawn for all.
    #[serde(skip)]
    pub count: u32,
}

fn with_fullness<S: Serializer>(hops: &[Hop], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(hops.iter().map(|hop| With {
        of: hop,
        computed: json!({"fullness": hop.fullness(), "crossings": hop.crossings(), "count": hop.count}),
    }))
}

/// A station.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Stop {
    /// Its name: `VNF 3`, `wire`.
    pub label: String,
    /// Where it is.
    pub side: Side,
    /// How full the station itself is, where that is known.
    pub share: Option<f64>,
}

/// Where a station is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// Above the boundary.
    Above,
    /// Below it.
    Below,
}

/// The resource that a hop leaves least of.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Fullest {
    /// Its name: `pcie`.
    pub resource: String,
    /// How full it is, from 0 to 1.
    pub share: f64,
}

crate::named! {
    /// How full something is, in words.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Fullness {
        /// There is room, or nobody knows.
        Free = "free",
        /// It would be full if all loads grew by a quarter.
        Near = "near",
        /// It binds: what is modelled to bind is full but for rounding.
        Full = "full",
    }
}

/// A quarter more than this is full.
const NEAR: f64 = 0.8;

/// More digits than people read of a share.
const FULL: f64 = 0.999;

impl Fullness {
    /// Of a share.
    pub fn of(share: Option<f64>) -> Self {
        match share {
            Some(share) if share >= FULL => Fullness::Full,
            Some(share) if share >= NEAR => Fullness::Near,
            _ => Fullness::Free,
        }
    }
}

impl Hop {
    /// How often one of them crosses the boundary.
    pub fn crossings(&self) -> u32 {
        match (self.from.side, self.to.side) {
            (Side::Above, Side::Above) if self.below.is_some() => 2,
            (Side::Below, Side::Below) if self.above.is_some() => 2,
            (from, to) => u32::from(from != to),
        }
    }

    /// What it passes between its ends, in order, with the side of each.
    pub fn between(&self) -> Vec<(&str, Side)> {
        let above = self.above.as_deref().map(|label| (label, Side::Above));
        let below = self.below.as_deref().map(|label| (label, Side::Below));
        match self.from.side {
            Side::Above => above.into_iter().chain(below).collect(),
            Side::Below => below.into_iter().chain(above).collect(),
        }
    }

    /// How full the fullest of what it uses is.
    pub fn fullness(&self) -> Fullness {
        Fullness::of(self.fullest.as_ref().map(|fullest| fullest.share))
    }

    /// True of hops that differ in where they are and in nothing else.
    pub fn is_like(&self, other: &Self) -> bool {
        let of = |hop: &Self| Self {
            from: Stop { label: String::new(), ..hop.from.clone() },
            to: Stop { label: String::new(), ..hop.to.clone() },
            count: 1,
            ..hop.clone()
        };
        of(self) == of(other)
    }
}

impl Flow {
    /// How often a packet crosses the boundary from the first station to the last one.
    pub fn crossings(&self) -> u32 {
        self.hops.iter().fold(0, |sum, hop| sum.saturating_add(hop.crossings().saturating_mul(hop.count)))
    }

    /// The part of the thickest line that a hop's load is, from 0 to 1.
    pub fn part(&self, hop: &Hop) -> f64 {
        let part = hop.bits_per_s / self.most_bits_per_s;
        if part.is_finite() { part.clamp(0.0, 1.0) } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hop(from: Side, to: Side, above: bool, below: bool) -> Hop {
        let stop = |label: &str, side| Stop { label: label.into(), side, share: None };
        Hop {
            path: "sriov".into(),
            from: stop("from", from),
            to: stop("to", to),
            above: above.then(|| "switch".into()),
            below: below.then(|| "card".into()),
            pps: 1e6,
            bits_per_s: 5e9,
            fullest: None,
            count: 1,
        }
    }

    #[test]
    fn a_hop_crosses_where_its_stations_are_on_different_sides() {
        use Side::{Above, Below};
        let crossings = |from, to, above, below| hop(from, to, above, below).crossings();
        assert_eq!(crossings(Below, Above, true, true), 1, "wire, card, switch, VNF");
        assert_eq!(crossings(Above, Below, false, true), 1, "VNF, card, wire");
        assert_eq!([crossings(Above, Above, false, true), crossings(Above, Above, true, false)], [2, 0]);
        assert_eq!(hop(Below, Above, true, true).between(), [("card", Below), ("switch", Above)]);
        assert_eq!(hop(Above, Below, true, true).between(), [("switch", Above), ("card", Below)]);
        let folded = Hop { count: 7, ..hop(Above, Above, false, true) };
        let hops = vec![hop(Below, Above, true, true), folded, hop(Above, Below, false, true)];
        let flow = |most_bits_per_s| Flow {
            title: String::new(),
            boundary: "PCIe".into(),
            above: "host".into(),
            below: "card".into(),
            most_bits_per_s,
            hops: hops.clone(),
        };
        assert_eq!(flow(1e10).crossings(), 16);
        assert_eq!([1e10, 1e9, 0.0].map(|most| flow(most).part(&hops[0])), [0.5, 1.0, 0.0]);
    }

    #[test]
    fn what_binds_is_full_and_what_nobody_knows_is_not() {
        let of = |share| Fullness::of(share).name();
        assert_eq!(
            [1.0, 0.9999, 0.85, 0.8, 0.5].map(|share| of(Some(share))),
            ["full", "full", "near", "near", "free"]
        );
        assert_eq!(of(None), "free");
    }

    #[test]
    fn hops_are_alike_wherever_they_are() {
        let one = hop(Side::Above, Side::Above, false, true);
        let other = Hop { to: Stop { label: "VNF 9".into(), ..one.to.clone() }, count: 3, ..one.clone() };
        assert!(one.is_like(&other) && !one.is_like(&Hop { pps: 2e6, ..other.clone() }));
        assert!(!one.is_like(&hop(Side::Above, Side::Above, true, false)));
    }
}
