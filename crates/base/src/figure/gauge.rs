//! Rates of packets: how much there is, how much it could be, and what others published of the same.

use super::With;
use serde::{Serialize, Serializer};
use serde_json::json;

/// Gauges of one subject.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GaugeGroup {
    /// The subject: `4 VNFs at 64 bytes`.
    pub title: String,
    /// The gauges, each from 0 to an end of its own: a small rate beside a large one would not be seen.
    #[serde(serialize_with = "with_ends")]
    pub gauges: Vec<Gauge>,
}

fn with_ends<S: Serializer>(gauges: &[Gauge], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(gauges.iter().map(|gauge| With { of: gauge, computed: json!({"end_pps": gauge.end_pps()}) }))
}

/// One gauge: a number and a bar.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Gauge {
    /// What has the rate: `ovs-dpdk`.
    pub label: String,
    /// The rate.
    pub all: Reading,
    /// The part of it that each of several has.
    pub each: Option<Reading>,
    /// Up to which rate it could go, and what ends it there.
    pub ceiling: Ceiling,
    /// Packets a second that others published of the same.
    pub published_pps: Vec<f64>,
}

/// A rate in both units that people read it in.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Reading {
    /// Whose it is: `all 4 VMs`.
    pub of: String,
    /// Packets a second.
    pub pps: f64,
    /// Bits a second.
    pub bits_per_s: f64,
}

/// The most that a rate could be.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Ceiling {
    /// Packets a second.
    pub pps: f64,
    /// What binds there: `pcie`.
    pub resource: String,
}

impl Gauge {
    /// The end of the bar: the ceiling, or what lies above it.
    pub fn end_pps(&self) -> f64 {
        let all = [self.ceiling.pps, self.all.pps].into_iter().chain(self.published_pps.iter().copied());
        all.filter(|pps| pps.is_finite()).fold(0.0, f64::max)
    }

    /// Where a rate is on the bar, from 0 to 1.
    pub fn place(&self, pps: f64) -> f64 {
        let place = pps / self.end_pps();
        if place.is_finite() { place.clamp(0.0, 1.0) } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_holds_its_rate_its_ceiling_and_what_others_published() {
        let gauge = |pps: f64, ceiling: f64, published: &[f64]| Gauge {
            label: "sriov".into(),
            all: Reading { of: "all 4 VMs".into(), pps, bits_per_s: pps * 512.0 },
            each: None,
            ceiling: Ceiling { pps: ceiling, resource: "nic".into() },
            published_pps: published.to_vec(),
        };
        let below = gauge(5e6, 2e7, &[4e6]);
        assert_eq!((below.end_pps(), [below.all.pps, 4e6, 2e7].map(|pps| below.place(pps))), (2e7, [0.25, 0.2, 1.0]));
        assert_eq!(gauge(5e6, 2e7, &[4e7]).end_pps(), 4e7, "others had more than the model thinks possible");
        let nothing = gauge(0.0, f64::NAN, &[]);
        assert_eq!((nothing.end_pps(), nothing.place(0.0)), (0.0, 0.0));
    }
}
