//! Packets that cards of the machine dropped between two looks at their counters, and what they have room for.

use super::kernel_work::DROPPED;
use crate::placement::model::Model;
use base::Severity;
use base::number::{list, many, percent, rate, thousands};
use base::shell::quoted;
use facts::rule::Hit;
use host::machine::{Fact, Nic};

/// Counters of `ethtool -S` that stand for packets which arrived and were lost, and why they are. A card's own ports count under names with
/// their part before: `port.rx_dropped`.
const COUNTERS: &[(&str, &str)] = &[
    ("rx_out_of_buffer", FULL),
    ("rx_missed_errors", FULL),
    ("rx_fifo_errors", FULL),
    ("rx_no_buffer_count", FULL),
    ("rx_dropped", "the card or its driver had no room for them"),
    ("rx_discards_phy", "the card had no room for packets from the wire"),
];

const FULL: &str = "its ring was full: the CPU that takes packets out of it does not keep up";

/// Cards that dropped packets between the first look and the last.
pub(super) fn by_cards(model: &Model) -> Vec<Hit> {
    model.machine.nics.iter().flat_map(|nic| COUNTERS.iter().filter_map(|counter| dropped(nic, *counter))).collect()
}

fn dropped(nic: &Nic, (counter, why): (&str, &str)) -> Option<Hit> {
    let [first, .., last] = nic.counters.as_slice() else { return None };
    let is_it = |name: &str| name == counter || name.strip_suffix(counter).is_some_and(|part| part.ends_with('.'));
    let name = last.value.keys().find(|name| is_it(name))?;
    // Nothing is known of a counter that one of them lacks, or that was made anew.
    let grown = |name: &str| last.value.get(name)?.checked_sub(*first.value.get(name)?);
    let (lost, arrived) = (grown(name)?, grown("rx_packets")?);
    let share = lost as f64 / lost.saturating_add(arrived).max(1) as f64;
    if lost == 0 || share < DROPPED {
        return None;
    }
    let per_second = nic.counters_apart_s.map(|seconds| lost as f64 / seconds);
    let often = per_second.map_or(String::new(), |often| format!(", {} a second", rate(often)));
    let title = format!(
        "{} dropped {} of what arrived between two copies of its counters{often}: {why}",
        nic.name,
        percent(share)
    );
    let mut hit = Hit::new(format!("{} {name}", nic.name), Severity::Medium, title);
    let seen = format!("{name} grew by {}, rx_packets by {}", thousands(lost), thousands(arrived));
    hit = hit.seen(seen, &last.place);
    if let Some((ring, most)) = nic.rings.get("rx") {
        hit = hit.seen(format!("its receive ring holds {} of at most {most} packets", ring.value), &ring.place);
    }
    if let Some((queues, most)) = nic.channels.get("combined") {
        hit = hit.seen(format!("{} of at most {most} queues are switched on", queues.value), &queues.place);
    }
    let name = quoted(&nic.name);
    lengthen(nic, &mut hit);
    hit.fix.push(format!(
        "ethtool -g {name}; ethtool -l {name}   # longer rings bridge bursts, more queues share the work"
    ));
    Some(hit)
}

/// Types the ring as long as it may be, where that was told.
fn lengthen(nic: &Nic, hit: &mut Hit) {
    if let Some((ring, most)) = nic.rings.get("rx").filter(|(ring, most)| ring.value < *most) {
        let name = quoted(&nic.name);
        hit.fix.push(format!("ethtool -G {name} rx {most}   # the link is down for a moment"));
        hit.undo.push(format!("ethtool -G {name} rx {}", ring.value));
    }
}

/// A ring or a number of queues below this part of what there could be is told: our own threshold.
pub(in crate::placement) const FEW: f64 = 0.25;

/// Counters of packets that a ring had no room for, as a card has them that was looked at once.
const WITHOUT_ROOM: &[&str] =
    &["rx_out_of_buffer", "rx_missed_errors", "rx_fifo_errors", "rx_no_buffer_count", "rx_no_dma_resources"];

/// Rings and queues that could be many more: those of a card that lost packets weigh more, and of one that lost none nothing is said.
pub(crate) fn small(model: &Model) -> Vec<Hit> {
    let mut hits = Vec::new();
    for nic in &model.machine.nics {
        let lost: Vec<(&str, u64)> = nic.counters.last().map_or_else(Vec::new, |look| {
            let counts = WITHOUT_ROOM.iter().filter_map(|name| Some((*name, *look.value.get(*name)?)));
            counts.filter(|(_, count)| *count > 0).collect()
        });
        // Of two looks the counters themselves say whether it loses.
        if nic.counters.len() > 1 || !nic.counters.is_empty() && lost.is_empty() {
            continue;
        }
        let told: Vec<String> = lost.iter().map(|(name, count)| format!("{name} {}", thousands(*count))).collect();
        let severity = if lost.is_empty() { Severity::Info } else { Severity::Low };
        let seen = |mut hit: Hit| {
            if let (Some(look), false) = (nic.counters.last(), told.is_empty()) {
                hit = hit.seen(format!("since its driver was loaded: {}", list(&told)), &look.place);
            }
            let name = quoted(&nic.name);
            hit.first.push(format!(
                "ethtool -S {name} | grep -E 'miss|buf|drop|fifo'; sleep 10; ethtool -S {name} | grep -E 'miss|buf|drop|fifo'   # does it lose packets now?"
            ));
            hit
        };
        let is_small = |now: u32, most: u32| f64::from(now) < FEW * f64::from(most);
        if let Some((ring, most)) = nic.rings.get("rx").filter(|(ring, most)| is_small(ring.value, *most)) {
            let loses = if lost.is_empty() { "" } else { ", and it lost packets that found no room" };
            let title = format!(
                "the receive ring of {} holds {} packets of at most {}{loses}",
                nic.name,
                ring.value,
                thousands((*most).into())
            );
            let what = format!("ring rx {} of at most {most}", ring.value);
            let mut hit = seen(Hit::new(format!("{} ring", nic.name), severity, title).seen(what, &ring.place));
            lengthen(nic, &mut hit);
            hits.push(hit);
        }
        let cpus = model.machine.topology.cpus.len() as u32;
        let few = |(queues, most): &&(Fact<u32>, u32)| {
            is_small(queues.value, *most) && (cpus == 0 || is_small(queues.value, cpus))
        };
        if let Some((queues, most)) = nic.channels.get("combined").filter(few) {
            let title = format!(
                "{} uses {} of at most {most}: as many CPUs take all of its packets",
                nic.name,
                many(queues.value.into(), "queue")
            );
            let what = format!("combined {} of at most {most}", queues.value);
            let mut hit = seen(Hit::new(format!("{} queues", nic.name), severity, title).seen(what, &queues.place));
            let name = quoted(&nic.name);
            hit.fix.push(format!("ethtool -L {name} combined N   # N: the CPUs that may take its interrupts"));
            hit.undo.push(format!("ethtool -L {name} combined {}", queues.value));
            hits.push(hit);
        }
    }
    hits
}
