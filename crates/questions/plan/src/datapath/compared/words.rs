//! Who wins where, by how much, and from how many polling CPUs on.

use super::table::{span, three};
use super::{Basis, Compared, Entry, Family};
use crate::datapath::model::frames::Frames;
use crate::datapath::model::hops::Range;
use crate::datapath::rules;
use base::datapath::Traffic;
use base::number::{bits_per_s, many, packets_per_s};

/// Rates that differ by less are one: they are printed with three digits.
const EQUAL: f64 = 0.005;

/// The paragraph that begins the answer: one sentence for each pattern and what they rest on.
pub(in crate::datapath) fn summary(compared: &Compared<'_>) -> String {
    let frames = compared.frames;
    let subject = rules::named(compared.chain.pattern, compared.vnfs, frames);
    let patterns = &compared.plan.compared;
    let mut sentences = vec![format!("{subject}:")];
    if patterns.contains(&Traffic::NorthSouth) {
        sentences.extend(in_and_out(compared));
    }
    if patterns.contains(&Traffic::Chain) {
        sentences.extend(through(compared));
        sentences.extend(hybrid(compared));
        sentences.extend(longest_frames(compared));
    }
    sentences.push("A VM with a VF is not moved as it is.".to_owned());
    if compared.plan.hop.is_none() {
        let Range { least, most, .. } = compared.hops();
        sentences.push(format!(
            "No hop of Open vSwitch was measured on this host, so its numbers reach over what was published, {} to {} cycles at 64 bytes{}.",
            least.of(64.0).round(),
            most.of(64.0).round(),
            if compared.plan.demands.are_none() { "" } else { " with what is asked of it" }
        ));
    }
    sentences.push("This is modelled, not measured.".to_owned());
    sentences.join(" ")
}

/// `18.5 Mpps (9.47 Gb/s)`.
fn both(pps: f64, frames: &Frames) -> String {
    format!("{} ({})", packets_per_s(pps), bits_per_s(pps * frames.bytes() * 8.0))
}

/// `19.7-69.0 Mpps (10.1-35.3 Gb/s)`, or one number where the host's own hop is known.
fn carried(entry: &Entry) -> Option<String> {
    let range = entry.system_pps.as_ref()?;
    if entry.basis == Basis::Modelled {
        return Some(both(range.middle, &entry.frames));
    }
    let bits = entry.frames.bytes() * 8.0 / 1e9;
    let [mpps, gbps] = [1e-6, bits].map(|per| span(range.least * per, range.most * per));
    Some(format!("{mpps} Mpps ({gbps} Gb/s)"))
}

/// Least and most that one carries, as multiples of the other.
fn ratio(one: &Entry, other: &Entry) -> Option<(f64, f64)> {
    let ends = |entry: &Entry| {
        let range = entry.system_pps.as_ref()?;
        Some(if entry.basis == Basis::Modelled { (range.middle, range.middle) } else { (range.least, range.most) })
    };
    let ((least, most), (low, high)) = (ends(one)?, ends(other)?);
    Some((least / high, most / low))
}

/// `4.2 to 14.7 times`.
fn times((least, most): (f64, f64)) -> String {
    let (least, most) = (three(least), three(most));
    if least == most { format!("{least} times") } else { format!("{least} to {most} times") }
}

fn polling(entry: &Entry) -> String {
    entry.pmd_cores.map_or(String::new(), |cores| format!(" with {}", many(u64::from(cores), "polling CPU")))
}

fn in_and_out(compared: &Compared<'_>) -> Option<String> {
    let vfs = compared.asked(Traffic::NorthSouth, Family::Sriov)?;
    let switch = compared.asked(Traffic::NorthSouth, Family::Switch)?;
    let place = "in and out of the VMs (north-south)";
    let (Some(by_vfs), Some(by_switch)) = (carried(&vfs), carried(&switch)) else {
        return Some(unknown(place, &[&vfs, &switch]));
    };
    let times_more = ratio(&vfs, &switch)?;
    let with = polling(&switch);
    Some(match times_more {
        (least, most) if (least - 1.0).abs() <= EQUAL && (most - 1.0).abs() <= EQUAL => {
            format!("{place} SR-IOV and OVS-DPDK{with} carry the same, {by_vfs}, and SR-IOV needs no polling CPU.")
        }
        (least, _) if least >= 1.0 - EQUAL => format!(
            "{place} SR-IOV wins: {by_vfs} without a polling CPU, {} the {by_switch} of OVS-DPDK{with}.",
            times(times_more)
        ),
        (_, most) if most <= 1.0 + EQUAL => {
            format!("{place} OVS-DPDK wins: {by_switch}{with}, and SR-IOV carries {by_vfs}.")
        }
        _ => format!(
            "{place} SR-IOV carries {by_vfs} and OVS-DPDK{with} {by_switch}: which is more depends on what a hop costs on this host."
        ),
    })
}

fn through(compared: &Compared<'_>) -> Option<String> {
    let vfs = compared.asked(Traffic::Chain, Family::Sriov)?;
    let switch = compared.asked(Traffic::Chain, Family::Switch)?;
    let place =
        format!("{} the chain (east-west)", if compared.plan.compared.len() > 1 { "Through" } else { "through" });
    let (Some(by_vfs), Some(by_switch)) = (carried(&vfs), carried(&switch)) else {
        return Some(unknown(&place, &[&vfs, &switch]));
    };
    let with = polling(&switch);
    let bound = vfs.bound_by.unwrap_or("the card");
    let number = if is_flat(compared, compared.frames) { " whatever their number" } else { "" };
    let sent = format!("{with} its VNFs send {by_switch}, those of SR-IOV {by_vfs}{number} ({bound})");
    let Range { least, middle, most } = compared.polling_cpus_that_beat_vfs(compared.vnfs, compared.frames)?;
    let cpus = |cpus: u32| many(u64::from(cpus), "polling CPU");
    Some(match (least, middle, most) {
        (Some(least), _, Some(most)) if least == most => {
            format!("{place} OVS-DPDK wins from {} on:{sent}.", cpus(most))
        }
        (Some(least), _, Some(most)) => {
            format!("{place} OVS-DPDK wins from {least} to {} on, by what a hop costs:{sent}.", cpus(most))
        }
        (Some(least), _, None) => {
            format!("{place} OVS-DPDK wins from {} on if a hop is cheap, and never if it is dear:{sent}.", cpus(least))
        }
        (None, ..) => format!(
            "{place} SR-IOV wins whatever the number of polling CPUs: {by_vfs} ({bound}), OVS-DPDK{with} {by_switch}."
        ),
    })
}

/// Whether VFs send the same in chains of all lengths that are compared.
fn is_flat(compared: &Compared<'_>, frames: &Frames) -> bool {
    let is_of = |entry: &&Entry| {
        entry.pattern == Traffic::Chain && entry.family == Family::Sriov && entry.vnfs > 1 && entry.frames == *frames
    };
    let all: Vec<f64> = compared.entries.iter().filter(is_of).map(likely).collect();
    all.windows(2).all(|pair| (pair[0] / pair[1] - 1.0).abs() <= EQUAL)
}

/// What VFs at the ends of a switched chain are good for.
fn hybrid(compared: &Compared<'_>) -> Option<String> {
    let switch = compared.asked(Traffic::Chain, Family::Switch)?;
    let best = [Family::Rings, Family::Hybrid]
        .into_iter()
        .filter_map(|family| compared.asked(Traffic::Chain, family))
        .max_by(|a, b| likely(a).total_cmp(&likely(b)))?;
    let carried = carried(&best)?;
    let what = if best.family == Family::Rings { "rings between VNFs" } else { "OVS-DPDK between VNFs" };
    let less = switch.pmd_cores.zip(best.pmd_cores).filter(|(all, some)| some < all);
    let spared = match (best.family, less) {
        (Family::Rings, _) => ", no polling CPU".to_owned(),
        (_, Some((all, some))) => format!(" with {} instead of {all}", many(u64::from(some), "polling CPU")),
        (_, None) => polling(&best),
    };
    Some(format!("The hybrid, VFs at the ends and {what}, sends {carried}{spared}."))
}

fn likely(entry: &Entry) -> f64 {
    entry.system_pps.as_ref().map_or(0.0, |range| range.middle)
}

/// Whether a longer chain carries more, at the longest frames that are compared.
fn longest_frames(compared: &Compared<'_>) -> Option<String> {
    let sizes = || compared.entries.iter().filter(|entry| entry.frames.size_bytes().is_some());
    let longest = &sizes().max_by(|a, b| a.frames.bytes().total_cmp(&b.frames.bytes()))?.frames;
    if longest == compared.frames {
        return None;
    }
    let of = |family| compared.entry(Traffic::Chain, compared.vnfs, longest, family);
    let gbps = |entry: &Entry| {
        let (range, bits) = (entry.system_pps.clone()?, longest.bytes() * 8.0 / 1e9);
        let is_modelled = entry.basis == Basis::Modelled;
        let ends = if is_modelled { [range.middle; 2] } else { [range.least, range.most] };
        Some(span(ends[0] * bits, ends[1] * bits))
    };
    let (vfs, switch) = (of(Family::Sriov)?, of(Family::Switch)?);
    Some(format!(
        "At {longest} bytes SR-IOV sends {} Gb/s{}, OVS-DPDK {} Gb/s{}.",
        gbps(&vfs)?,
        if is_flat(compared, longest) { " at any length" } else { "" },
        gbps(&switch)?,
        polling(&switch)
    ))
}

/// Something that binds is not known.
fn unknown(place: &str, entries: &[&Entry]) -> String {
    let said = entries.iter().map(|entry| match (carried(entry), entry.bound_pps) {
        (Some(carried), _) => format!("{} carries {carried}{}", entry.family.name(), polling(entry)),
        (None, Some(bound)) => {
            format!(
                "{} carries no more than {}, and nothing closer is known",
                entry.family.name(),
                both(bound, &entry.frames)
            )
        }
        (None, None) => format!("nothing is known of {}", entry.family.name()),
    });
    format!("{place} {}.", said.collect::<Vec<_>>().join("; "))
}
