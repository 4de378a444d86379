//! Counters of events that switches keep beside their ports: `ovs-appctl coverage/show`, and vRouter's `dropstats`.
//!
//! ```text
//! vhost_tx_contention   20112.6/sec 18002.517/sec 17001.1203/sec   total: 811204113
//! Flow Queue Limit Exceeded     8812044
//! ```
//! Sources: lib/coverage.c, lib/dpif-netdev.c and lib/netdev-dpdk.c, Open vSwitch 3.2; utils/dropstats.c and include/vr_packet.h
//! (`VP_DROP_*`), Contrail vRouter 21.4.

use super::Pasted;
use super::Text;
use super::totals::number;
use base::number::{counted, plain, thousands};

/// `Event coverage, avg rate over last: 5 seconds, last minute, last hour, ..` and a row for each event.
pub(super) fn coverage(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    if !text.at(at).starts_with("Event coverage, avg rate over last:") {
        return 0;
    }
    let of = |line: usize| -> Option<(&str, [f64; 3], u64)> {
        let words: Vec<&str> = text.at(line).split_whitespace().collect();
        let [name, now, minute, hour, "total:", total] = words[..] else { return None };
        let rate = |word: &str| number(word.strip_suffix("/sec")?);
        Some((name, [rate(now)?, rate(minute)?, rate(hour)?], total.parse().ok()?))
    };
    let (mut end, mut told): (usize, Vec<(f64, String)>) = (at + 1, Vec::new());
    while let Some((name, [now, minute, hour], total)) = of(end) {
        let rates = format!(
            "{} a second now, {} in the last minute, {} in the last hour",
            plain(now),
            plain(minute),
            plain(hour)
        );
        pasted.quote("Open vSwitch's events", name, &format!("{rates}; {} in all", thousands(total)), text.place(end));
        let why = match name {
            "vhost_tx_contention" => {
                "several threads send to one queue of a guest's card, and wait for each other: more queues, or all that send to it on one thread"
            }
            "datapath_drop_upcall_error" => "packets whose upcall failed are lost",
            name if name.starts_with("datapath_drop_") => "packets are lost, for the reason in the name",
            _ => "",
        };
        let rate = [now, minute].into_iter().fold(0.0, f64::max);
        if rate > 0.0 && !why.is_empty() {
            told.push((rate, format!("{name}, {} a second ({why})", plain(rate))));
        }
        end += 1;
    }
    if text.at(end).ends_with(" events never hit") {
        end += 1;
    }
    told.sort_by(|one, other| other.0.total_cmp(&one.0));
    if !told.is_empty() {
        let all: Vec<String> = told.into_iter().map(|(_, said)| said).collect();
        pasted.summarize(format!("Open vSwitch counts {}.", base::number::list(&all)), text.place(at));
    }
    end - at
}

/// Names of `dropstats`, three of which on neighbouring lines tell it.
const OF_DROPS: &str = "Invalid IF|Trap No IF|IF TX Discard|IF Drop|IF RX Discard|Flow Unusable|Flow No Memory|Flow Table Full|Flow NAT no rip|\
                        Flow Action Drop|Flow Action Invalid|Flow Invalid Protocol|Flow Queue Limit Exceeded|Flow Evict|Discards|TTL Exceeded|\
                        Mcast Clone Fail|Cloned Original|Invalid NH|Invalid Label|Invalid Protocol|Invalid Source|Invalid Mcast Source|Push Fails|\
                        Pull Fails|Duplicated|Head Alloc Fails|PCOW fails|Invalid Packets|Misc|Nowhere to go|Checksum errors|No Fmd|Invalid VNID|\
                        Fragment errors|Jumbo Mcast Pkt with DF Bit|No L2 Route|Memory Failures|Fragment Queueing Failures|No Encrypt Path Failures|\
                        Invalid HBS received packet|VLAN fwd intf failed TX|VLAN fwd intf failed enq|Original Packet Trapped|Etree Leaf to Leaf";

/// Of a packet that is sent to many, the original is let go: nothing is lost.
const NO_LOSS: [&str; 2] = ["Cloned Original", "Original Packet Trapped"];

/// What a reason means, where its name does not say it.
const MEANINGS: [(&str, &str); 3] = [
    ("Flow Queue Limit Exceeded", "more packets of a flow came than are held until the agent has decided on it"),
    ("Invalid NH", "no next hop is known: routes that are not there yet, or not any more"),
    ("Flow Table Full", "the table of flows has no free entry"),
];

/// Rows of `dropstats`: why vRouter dropped packets.
pub(super) fn dropstats(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    let of = |line: usize| -> Option<(&str, u64)> {
        let (name, value) = text.at(line).rsplit_once([' ', '\t'])?;
        let name = name.trim();
        Some((name, value.parse().ok()?)).filter(|_| OF_DROPS.split('|').any(|known| known == name))
    };
    let is_begin = |place: usize| (place..place + 3).all(|line| of(line).is_some());
    if !is_begin(at) {
        return 0;
    }
    let (mut end, mut told): (usize, Vec<(u64, &str)>) = (at, Vec::new());
    // Blank lines part its groups.
    while end < text.lines.len() && (of(end).is_some() || text.at(end).is_empty()) {
        if let Some((name, dropped)) = of(end).filter(|(_, dropped)| *dropped > 0) {
            let note = if NO_LOSS.contains(&name) { ", which are no loss" } else { "" };
            pasted.quote("vRouter dropped", name, &format!("{} packets{note}", thousands(dropped)), text.place(end));
            if note.is_empty() {
                told.push((dropped, name));
            }
        }
        end += 1;
    }
    let end = (at..end).rev().find(|line| !text.at(*line).is_empty()).map_or(at, |last| last + 1);
    told.sort_by_key(|(dropped, _)| std::cmp::Reverse(*dropped));
    let said = match &told[..] {
        [] => "vRouter's dropstats counts no packet that was lost.".to_owned(),
        [(most, name), others @ ..] => {
            let meaning = MEANINGS.iter().find(|(known, _)| known == name);
            let meaning = meaning.map_or(String::new(), |(_, meaning)| format!(" ({meaning})"));
            let rest = others.iter().fold(0_u64, |sum, (dropped, _)| sum.saturating_add(*dropped));
            let more = match others.len() as u64 {
                0 => String::new(),
                count => format!(", and {} for {}", thousands(rest), counted(count, "other reason", "other reasons")),
            };
            format!("vRouter dropped {} packets as {name}{meaning}{more}, since it was started.", thousands(*most))
        }
    };
    pasted.summarize(said, text.place(at));
    end - at
}

#[cfg(test)]
mod tests {
    use crate::paste::whole_summaries_of;

    fn summary(text: &str) -> String {
        whole_summaries_of(text).join(" ")
    }

    #[test]
    fn events_that_lose_packets_or_wait_are_told_with_their_rates() {
        let text = "Event coverage, avg rate over last: 5 seconds, last minute, last hour,  hash=8ff1:\ndatapath_drop_upcall_error  0.0/sec   12.500/sec      3.0021/sec   total: 41\nvhost_tx_contention       200.6/sec 180.517/sec    170.1203/sec   total: 811\nnetdev_sent             41203.0/sec 40112.000/sec    39001.0000/sec   total: 9120411\n82 events never hit\n";
        let said = summary(text);
        assert!(said.starts_with("Open vSwitch counts vhost_tx_contention, 200.6 a second (several"), "{said}");
        assert!(said.contains("datapath_drop_upcall_error, 12.5 a second") && !said.contains("netdev_sent"), "{said}");
    }

    #[test]
    fn reasons_are_told_by_size_and_clones_are_no_loss() {
        let text = "Invalid IF                    0\nTrap No IF                    0\nIF Drop                       14\n\nFlow Queue Limit Exceeded     8812\nCloned Original               102113\n";
        let told = summary(text);
        assert!(told.starts_with("vRouter dropped 8,812 packets as Flow Queue Limit Exceeded (more"), "{told}");
        assert!(told.ends_with("and 14 for 1 other reason, since it was started."), "{told}");
        assert!(summary("Invalid IF 0\nTrap No IF 0\nIF Drop 0\n").contains("no packet that was lost"));
    }
}
