//! How far off a prediction may be: what the model was off by next to it, where others measured.

use super::model::design::{Datapath, Design};
use super::model::frames::Frames;
use super::model::stages::{Bed, Load, Rate, Resource};
use super::model::switch::HopCost;
use super::published;
use facts::published::Standing;
use facts::ring::ChannelCost;

/// Share by which a rate bound by PCIe or by a card may be off: devices lose 15 to 20 % against the formula while they read and
/// write at once (pcie-bench, SIGCOMM 2018).
pub(super) const OF_DEVICES: f64 = 0.2;
/// The least of a calibrated switch: runs of one bed on an undisturbed host spread as much.
pub(super) const OF_SWITCH: f64 = 0.1;
/// Share by which a rate bound by the wire may be less: in and out of a VM 3.1 % were missing of 512 to 1514 bytes of 10 flows (ovs_perf), and more of
/// other frames and flows.
pub(super) const OF_LINE: f64 = 0.05;
/// Sizes by whose ratio a published point may be away to be next to a prediction.
const NEAR: f64 = 2.0;

/// Between which rates the true one is expected, and why.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Band {
    pub low_pps: f64,
    pub high_pps: f64,
}

/// The share by which a rate may be off that a resource binds.
pub(super) fn share(resource: Resource) -> f64 {
    match resource {
        Resource::Line => OF_LINE,
        Resource::Pcie | Resource::Nic | Resource::Hairpin => OF_DEVICES,
        Resource::Pmd | Resource::Vhost | Resource::Guest | Resource::Channel | Resource::Ingress => OF_SWITCH,
    }
}

/// The band of what `load` carries.
pub(super) fn band(bed: &Bed, load: Load<'_>, rate: &Rate, frames: &Frames) -> Band {
    let pps = rate.chain_pps().unwrap_or_default();
    let off = rate.bound().map_or(OF_DEVICES, |stage| share(stage.resource));
    // Factors by which costs may be off, below and above; as a share they would put the least below nothing.
    let of_cost = |cost: &HopCost| (cost.spread.max(1.0), cost.spread.max(1.0));
    let spread = match rate.bound().map(|stage| stage.resource) {
        Some(Resource::Pmd) => bed.hop.as_ref().map(of_cost),
        Some(Resource::Guest) => bed.vnf.as_ref().map(of_cost),
        Some(Resource::Channel) => bed.channel.as_ref().map(|cost| of_rings(cost, load)),
        _ => None,
    };
    let (slower, faster) = spread.unwrap_or((1.0, 1.0));
    let off = near(load, frames).filter_map(published::Point::error).map(f64::abs).fold(off, f64::max);
    // Nothing is faster than the wire.
    let wire =
        rate.stages.iter().find(|stage| stage.resource == Resource::Line).map_or(f64::INFINITY, |s| s.capacity_pps);
    Band { low_pps: pps * (1.0 - off).max(0.0).min(1.0 / slower), high_pps: (pps * (1.0 + off).max(faster)).min(wire) }
}

/// A bench of a ring sees its slower end. Where a VNF has two, the other one takes something between nothing and as much.
fn of_rings(cost: &ChannelCost, load: Load<'_>) -> (f64, f64) {
    let ends = load.design.edges().windows(2).map(|edges| Design::of(edges.to_vec()).count(Datapath::Channel)).max();
    let spread = cost.spread.max(1.0);
    (spread, spread * ends.unwrap_or(1).max(1) as f64)
}

/// The published points next to a prediction that say something of the model.
pub(super) fn near<'a>(load: Load<'a>, frames: &'a Frames) -> impl Iterator<Item = &'static published::Point> + 'a {
    let size = frames.size_bytes().map(|bytes| bytes as f64);
    let path: Option<Datapath> = load.design.edges().first().copied();
    let is_uniform = load.design.edges().iter().all(|edge| Some(*edge) == path);
    published::points().filter(move |point| {
        let (Some(size), Some(bytes)) = (size, point.frame_bytes()) else { return false };
        let is_of_it = is_uniform && point.of == path.map(|path| (path, load.pattern));
        let is_evidence = matches!(point.standing, Some(Standing::Validated));
        is_of_it && is_evidence && (size / bytes).max(bytes / size) <= NEAR
    })
}
