//! What all VMs of a design send and what each of them sends, below what line and card would let through, beside what others published.

use super::super::model::stages::{Resource, Stage};
use super::super::predict::Predicted;
use super::super::published;
use super::super::rules;
use super::MOST_CURVES;
use base::Figure;
use base::figure::{Ceiling, Drawing, Gauge, GaugeGroup, Reading};
use base::number::many;

/// A gauge for each calibrated design of each chain and size.
pub(super) fn figure(rates: &[Predicted<'_>], directions: &str) -> Option<Figure> {
    let group = |one: &Predicted<'_>| {
        let designs = rules::allowed(rates, one).into_iter().take(MOST_CURVES);
        let gauges: Vec<Gauge> = designs.filter_map(gauge).collect();
        (!gauges.is_empty()).then(|| GaugeGroup { title: rules::subject(one), gauges })
    };
    let groups: Vec<GaugeGroup> = rules::asked(rates).filter_map(group).collect();
    let has_diamonds = groups.iter().flat_map(|group| &group.gauges).any(|gauge| !gauge.published_pps.is_empty());
    let published = if has_diamonds { " Diamonds were published by others, of other hosts." } else { "" };
    (!groups.is_empty()).then(|| Figure {
        id: "gauges".to_owned(),
        title: format!(
            "What do all VMs send, and each of them? (frames with their check sequence, {directions}, counted where VMs send)"
        ),
        caption: format!(
            "Modelled. Each bar ends at its own ceiling: what line and card would let through if nothing else bound.{published}"
        ),
        in_terminals: false,
        drawing: Drawing::Gauges(groups),
    })
}

fn gauge(design: &Predicted<'_>) -> Option<Gauge> {
    let (system, each) = design.rate.system_pps().zip(design.rate.chain_pps())?;
    let vms = design.rate.vnfs;
    let bits = design.frames.bytes() * 8.0;
    let reading = |of: String, pps: f64| Reading { of, pps, bits_per_s: pps * bits };
    let is_of_card =
        |stage: &&Stage| matches!(stage.resource, Resource::Line | Resource::Pcie | Resource::Nic | Resource::Hairpin);
    let scarcest = design.rate.stages.iter().find(is_of_card)?;
    let ceiling =
        Ceiling { pps: scarcest.capacity_pps * f64::from(vms), resource: scarcest.resource.name().to_owned() };
    Some(Gauge {
        label: design.design.shape(),
        all: reading(
            if vms == 1 { "the VM".to_owned() } else { format!("all {}", many(u64::from(vms), "VM")) },
            system,
        ),
        each: (vms > 1).then(|| reading("each VM".to_owned(), each)),
        ceiling,
        published_pps: of_others(design),
    })
}

/// What others had of the same path everywhere, as many VNFs and the same size; mixes and mixed designs were not published.
fn of_others(design: &Predicted<'_>) -> Vec<f64> {
    let edges = design.design.edges();
    let Some(path) = edges.first().filter(|first| edges.iter().all(|path| path == *first)) else { return Vec::new() };
    let is_same = |point: &&published::Point| {
        point.of == Some((*path, design.chain.pattern))
            && point.vnfs == Some(design.rate.vnfs)
            && design.frames.size_bytes().is_some()
            && point.frame_bytes() == Some(design.frames.bytes())
    };
    let mut pps: Vec<f64> =
        published::points().filter(is_same).filter_map(|point| Some(point.system_mpps()? * 1e6)).collect();
    pps.sort_by(f64::total_cmp);
    pps.dedup();
    pps
}
