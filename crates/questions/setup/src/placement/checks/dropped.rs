//! Packets that cards of the machine dropped between two looks at their counters.

use super::kernel_work::DROPPED;
use crate::placement::model::Model;
use base::Severity;
use base::number::{percent, thousands};
use facts::rule::Hit;
use host::machine::Nic;

/// Counters of `ethtool -S` that stand for packets which arrived and were lost, and why they are. A card's own ports count under names with
/// their part before: `port.rx_dropped`.
const COUNTERS: &[(&str, &str)] = &[
    ("rx_out_of_buffer", FULL),
    ("rx_missed_errors", FULL),
    ("rx_fifo_errors", FULL),
    ("rx_no_buffer_count", FULL),
    ("rx_dropped", "the card or its driver had no room for them"),
    ("rx_discards_phy", "the card had no room for what the wire brought"),
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
    let title =
        format!("{} dropped {} of what arrived between two copies of its counters: {why}", nic.name, percent(share));
    let mut hit = Hit::new(format!("{} {name}", nic.name), Severity::Medium, title);
    let seen = format!("{name} grew by {}, rx_packets by {}", thousands(lost), thousands(arrived));
    hit = hit.seen(seen, &last.place);
    if let Some((ring, most)) = nic.rings.get("rx") {
        hit = hit.seen(format!("its receive ring holds {} of at most {most} packets", ring.value), &ring.place);
    }
    if let Some((queues, most)) = nic.channels.get("combined") {
        hit = hit.seen(format!("{} of at most {most} queues are switched on", queues.value), &queues.place);
    }
    let name = base::shell::quoted(&nic.name);
    hit.fix.push(format!(
        "ethtool -g {name}; ethtool -l {name}   # longer rings bridge bursts, more queues share the work"
    ));
    Some(hit)
}
