//! What the model says of a chain on a bed of `lab ovs`, out of other trials of it.

use crate::datapath::band::band;
use crate::datapath::calibrate::costs;
use crate::datapath::model::demands::Demands;
use crate::datapath::model::design::{Datapath, Design};
use crate::datapath::model::frames::Frames;
use crate::datapath::model::pcie::Detours;
use crate::datapath::model::stages::{Bed, Load, rate};
use base::datapath::{DatapathRun, Traffic};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) pattern: Traffic,
    pub(super) vnfs: u32,
    pub(super) size_bytes: u32,
}

/// A prediction: packets a second from end to end, north-south of each VNF.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Foretold {
    pub(super) low_pps: f64,
    pub(super) chain_pps: f64,
    pub(super) high_pps: f64,
    pub(super) bound_by: &'static str,
}

impl Asked {
    /// By these trials, on a clock of `hz`; `None` where they have one size only. Generator, switch and VNFs of a trial have one CPU
    /// for each program, and there is no card.
    pub(super) fn foretold(self, trials: &[&DatapathRun], hz: f64) -> Option<Foretold> {
        let costs = costs(trials, hz)?;
        let bed = Bed {
            line_bits_per_s: f64::INFINITY,
            ports: 1,
            cards: 1,
            pcie: None,
            detours: Detours::default(),
            nic: None,
            port_queues: 1,
            pmd_cores: 1,
            core_hz: hz,
            hop: Some(costs.hop),
            ingress_pps: None,
            guest_pps: None,
            vnf: costs.vnf,
            vnf_cores: Some(1),
            vhost_pps: None,
            channel: None,
            demands: Demands::default(),
            directions: 1,
        };
        let design = Design::uniform(Datapath::OvsDpdk, self.pattern, self.vnfs);
        let load = Load { design: &design, pattern: self.pattern, vnfs: self.vnfs };
        let frames = Frames::of(self.size_bytes);
        let rate = rate(&bed, load, &[], &frames);
        let band = band(&bed, load, &rate, &frames);
        Some(Foretold {
            low_pps: band.low_pps,
            chain_pps: rate.chain_pps()?,
            high_pps: band.high_pps,
            bound_by: rate.bound()?.resource.name(),
        })
    }
}
