//! `ethtool -c` (coalescing), `-k` (offloads), `-l` (queues), `-g` (rings), `-S` (counters).
//!
//! Formats: ethtool 6.1, netlink/coalesce.c, netlink/features.c, netlink/channels.c, netlink/rings.c, ethtool.c (`do_gstats`); older versions print the same words.

use super::clock::{ABOVE, When, is_moment};
use super::{Pasted, Text};
use crate::machine::Fact;
use std::collections::BTreeMap;

/// The heading of an output, and the device that it names.
fn device<'a>(text: &Text<'a>, at: usize, heading: &str) -> Option<&'a str> {
    text.at(at).strip_prefix(heading)?.strip_suffix(':')
}

/// `Coalesce parameters for eth0:`, then `Adaptive RX: on  TX: off` and `rx-usecs: 50`.
pub(super) fn coalescing(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    let Some(name) = device(text, at, "Coalesce parameters for ") else { return 0 };
    let mut end = at + 1;
    // Blank lines part groups; the output ends with the first line that is no setting.
    while text.at(end).is_empty() && end < text.lines.len() || text.at(end).contains(':') {
        let line = text.at(end);
        if line.ends_with(':') {
            break;
        }
        if let Some(rest) = line.strip_prefix("Adaptive RX:") {
            let mut words = rest.split_whitespace();
            let pair = [("adaptive-rx", words.next()), ("adaptive-tx", words.nth(1))];
            for (key, value) in pair {
                if let Some(value) = value {
                    pasted.nic(name).coalescing.insert(key.to_owned(), text.fact(value.to_owned(), end));
                }
            }
        } else if let Some((key, value)) = line.split_once(':') {
            let (key, value) = (key.trim(), value.trim());
            if key.contains(char::is_whitespace) && !key.starts_with("CQE") {
                break;
            }
            if value != "n/a" {
                pasted.nic(name).coalescing.insert(key.to_owned(), text.fact(value.to_owned(), end));
            }
        }
        end += 1;
    }
    end - at
}

/// `Features for eth0:`, then `generic-receive-offload: on`, `rx-lro: off [fixed]`; or these below the command, where `grep` took the
/// head away.
pub(super) fn offloads(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    let typed = asked(text.at(at), &["-k", "--show-features", "--show-offload"]);
    let Some(name) = device(text, at, "Features for ").or(typed.first().map(String::as_str)) else { return 0 };
    let mut end = at + 1;
    while let Some((key, value)) = text.at(end).split_once(':') {
        let on = match value.split_whitespace().next() {
            Some("on") => true,
            Some("off") => false,
            _ => break,
        };
        pasted.nic(name).offloads.insert(key.trim().to_owned(), text.fact(on, end));
        end += 1;
    }
    // Of a command alone its output is still to come.
    if end == at + 1 && !typed.is_empty() { 0 } else { end - at }
}

/// `Channel parameters for eth0:`, what there could be, and what there is.
pub(super) fn channels(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    let Some(name) = device(text, at, "Channel parameters for ") else { return 0 };
    let (told, end) = limited(text, at);
    pasted.nic(name).channels.extend(told);
    end - at
}

/// `Ring parameters for eth0:`, the same of rings.
pub(super) fn rings(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    let Some(name) = device(text, at, "Ring parameters for ") else { return 0 };
    let (told, end) = limited(text, at);
    pasted.nic(name).rings.extend(told);
    end - at
}

/// What is set, and the most that may be.
type Limited = (Fact<u32>, u32);

/// What is set, by its name, and the most that may be; and where that ends.
fn limited(text: &Text<'_>, at: usize) -> (BTreeMap<String, Limited>, usize) {
    let (mut most, mut told) = (BTreeMap::new(), BTreeMap::new());
    let (mut end, mut present) = (at + 1, false);
    loop {
        match text.at(end) {
            "Pre-set maximums:" => present = false,
            "Current hardware settings:" => present = true,
            line => {
                let Some((key, value)) = line.split_once(':') else { break };
                let key = key.trim().to_lowercase();
                let begins = |known: &&str| key.starts_with(*known);
                if !["rx", "tx", "other", "combined", "cqe size", "tcp data split"].iter().any(begins)
                    || key.contains('_')
                {
                    break;
                }
                if let Ok(value) = value.trim().parse::<u32>() {
                    if present {
                        let most = most.get(&key).copied().unwrap_or(value);
                        told.insert(key, (text.fact(value, end), most));
                    } else {
                        most.insert(key, value);
                    }
                }
            }
        }
        end += 1;
    }
    (told, end)
}

/// Counters of one device: those of mlx5 with 64 queues are some 4,000.
const MOST_COUNTERS: usize = 16_384;

/// The cards whose counters the last command asked for, and where its last output ended.
#[derive(Default)]
pub(super) struct AskedCards {
    cards: Vec<String>,
    /// Looks at them since: a loop asks for each in turn.
    looks: usize,
    end: usize,
    /// Of each card when the first look at it was, and the last.
    when: BTreeMap<String, (When, Option<f64>)>,
}

impl AskedCards {
    /// Takes what a command asks for; nothing, where it asks for no counters.
    pub(super) fn note(&mut self, line: &str, at: usize) {
        (self.cards, self.looks, self.end) = (asked(line, &COUNTERS), 0, at + 1);
    }
}

/// `NIC statistics:` and the counters below it, or counters below the command, where `grep` took the head away; a loop prints both again,
/// maybe behind a date.
pub(super) fn statistics(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    let counter = |line: usize| {
        let (name, value) = text.at(line).rsplit_once(": ")?;
        let is_name = !name.is_empty() && name.len() <= 64;
        Some((name.trim(), value.trim().parse::<u64>().ok().filter(|_| is_name)?))
    };
    let is_head = |line: usize| text.at(line) == "NIC statistics:";
    let is_command = !asked(text.at(at), &COUNTERS).is_empty();
    if is_command {
        pasted.asked.note(text.at(at), at);
    }
    let mut first = at + usize::from(is_command);
    while first < at + ABOVE && (is_moment(text.at(first)) || is_head(first)) {
        first += 1;
    }
    let asked = &mut pasted.asked;
    let goes_on = (asked.end..at).rev().take(ABOVE).all(|line| text.at(line).is_empty()) && asked.end + ABOVE >= at;
    let is_known = is_command || (at..first).any(is_head) || goes_on && !asked.cards.is_empty();
    if !is_known || counter(first).is_none() {
        return 0;
    }
    let (mut end, mut counters) = (first, BTreeMap::new());
    // A name that stands there again is of the next look.
    while let Some((name, value)) = counter(end).filter(|(name, _)| !counters.contains_key(*name)) {
        if counters.len() < MOST_COUNTERS {
            counters.insert(name.to_owned(), value);
        }
        end += 1;
    }
    let card = match asked.cards.len() {
        0 => "a card without a name".to_owned(),
        count => asked.cards[asked.looks % count].clone(),
    };
    (asked.looks, asked.end) = (asked.looks + 1, end);
    let mut when = When::of(text, first, end);
    let elapsed = match asked.when.get(&card) {
        Some((before, elapsed)) => when.since(text, before).zip(*elapsed).map(|(since, elapsed)| since + elapsed),
        None => Some(0.0),
    };
    asked.when.insert(card.clone(), (when, elapsed));
    let nic = pasted.nic(&card);
    // The first and the last one tell how much it grew.
    nic.counters.truncate(1);
    nic.counters_apart_s = elapsed.filter(|_| !nic.counters.is_empty());
    nic.counters.push(text.fact(counters, first));
    end - at
}

/// Options that ask for counters.
const COUNTERS: [&str; 2] = ["-S", "--statistics"];

/// The devices in `ethtool -S eth0`, with one of these options, wherever the command stands.
fn asked(line: &str, options: &[&str]) -> Vec<String> {
    if !line.contains("ethtool") {
        return Vec::new();
    }
    let words: Vec<&str> =
        line.split(|letter: char| letter.is_whitespace() || letter == ';' || letter == '|').collect();
    let is_one = |three: &&[&str]| {
        three[0].rsplit('/').next() == Some("ethtool") && options.contains(&three[1]) && !three[2].is_empty()
    };
    let mut cards: Vec<String> = words.windows(3).filter(is_one).map(|three| three[2].to_owned()).collect();
    // `ethtool -S eth0; sleep 1; ethtool -S eth0` goes round once.
    if cards.iter().all(|card| *card == cards[0]) {
        cards.truncate(1);
    }
    cards
}

#[cfg(test)]
mod tests {
    use crate::paste::read;

    #[test]
    fn three_outputs_of_one_card() {
        let text = "> ethtool -c eth0\nCoalesce parameters for eth0:\nAdaptive RX: on  TX: n/a\nstats-block-usecs: n/a\n\
                    sample-interval: n/a\n\nrx-usecs: 50\nrx-frames: n/a\n\nFeatures for eth0:\nrx-checksumming: on\n\
                    \ttx-checksum-ipv4: off [fixed]\ngeneric-receive-offload: off\n\nChannel parameters for eth0:\n\
                    Pre-set maximums:\nRX: n/a\nCombined: 63\nCurrent hardware settings:\nRX: n/a\nCombined: 4\n\nbye\n";
        let machine = read(&[("ticket".to_owned(), text.to_owned())]);
        let [nic] = &machine.nics[..] else { panic!("{:?}", machine.nics) };
        assert_eq!(nic.coalescing["rx-usecs"].value, "50");
        assert_eq!(
            (nic.coalescing["adaptive-rx"].value.as_str(), nic.coalescing.contains_key("rx-frames")),
            ("on", false)
        );
        assert_eq!(nic.coalescing["rx-usecs"].place, "ticket:7");
        assert!(!nic.offloads["generic-receive-offload"].value && nic.offloads["rx-checksumming"].value);
        assert_eq!((nic.channels["combined"].0.value, nic.channels["combined"].1), (4, 63));
        assert_eq!(machine.sources[0].2, 2, "the command and the last word");
    }

    #[test]
    fn offloads_that_somebody_grepped_are_of_the_card_that_was_asked_for() {
        let text = "$ ethtool -k ens3 | grep tcp-seg\ntcp-segmentation-offload: off\n\n$ ethtool -k eth0\nFeatures for eth0:\ntx-checksumming: on\n";
        let machine = read(&[("t".to_owned(), text.to_owned())]);
        let told = |name: &str| machine.nics.iter().find(|nic| nic.name == name).unwrap();
        assert!(
            !told("ens3").offloads["tcp-segmentation-offload"].value && told("eth0").offloads["tx-checksumming"].value
        );
        assert_eq!(machine.nics.len(), 2);
    }

    #[test]
    fn rings_and_counters_are_of_the_card_that_was_asked_for() {
        let counters = "     rx_packets: 100\n     rx_out_of_buffer: 7\n     port.rx_dropped: 0\n";
        let text = format!(
            "# ethtool -g eth1\nRing parameters for eth1:\nPre-set maximums:\nRX:\t\t4096\nRX Mini:\tn/a\nTX:\t4096\nCurrent hardware settings:\nRX:\t\t256\nRX Mini:\tn/a\nTX:\t512\n\
            RX Buf Len:\t\tn/a\nTX Push:\toff\n# ethtool -S eth1 | grep rx\n{counters}# sleep 9; ethtool -S eth1\nNIC statistics:\n{}",
            counters.replace("100", "300")
        );
        let machine = read(&[("t".to_owned(), text)]);
        assert_eq!((machine.sources[0].2, machine.nics[0].counters_apart_s), (0, Some(9.0)), "{:?}", machine.strange);
        let [nic] = &machine.nics[..] else { panic!("{:?}", machine.nics) };
        assert_eq!((nic.rings["rx"].0.value, nic.rings["rx"].1, nic.rings["tx"].0.value), (256, 4096, 512));
        let packets: Vec<_> = nic.counters.iter().map(|look| look.value["rx_packets"]).collect();
        assert_eq!((packets, nic.counters[0].value["rx_out_of_buffer"]), (vec![100, 300], 7));
    }

    #[test]
    fn a_loop_prints_dates_and_counters_again_and_again() {
        let loops = "$ while true; do date; ethtool -S eth1 | grep rx_; sleep 1; done\n";
        let look = |second: u32, lost: u64| {
            format!("Tue Mar 11 10:02:{second} CET 2025\n     rx_packets: 9\n     rx_missed: {lost}\n")
        };
        let text = format!("{loops}{}{}{}bye now\n", look(11, 5), look(12, 10), look(13, 25));
        let machine = read(&[("t".to_owned(), text.clone())]);
        assert_eq!(machine.sources[0].2, 1, "{:?}", machine.strange);
        let [nic] = &machine.nics[..] else { panic!("{:?}", machine.nics) };
        let lost: Vec<_> = nic.counters.iter().map(|look| look.value["rx_missed"]).collect();
        assert_eq!((lost, nic.counters_apart_s), (vec![5, 25], Some(2.0)));
        let without_dates: String =
            text.lines().filter(|line| !line.starts_with("Tue")).map(|line| format!("{line}\n")).collect();
        assert_eq!(read(&[("t".to_owned(), without_dates)]).nics[0].counters_apart_s, Some(2.0), "by the loop's sleep");
        let both =
            "# ethtool -S eth0; ethtool -S eth1\nNIC statistics:\n  rx_missed: 1\nNIC statistics:\n  rx_missed: 2\n";
        let machine = read(&[("t".to_owned(), both.to_owned())]);
        let told: Vec<_> =
            machine.nics.iter().map(|nic| (nic.name.as_str(), nic.counters[0].value["rx_missed"])).collect();
        assert_eq!(told, [("eth0", 1), ("eth1", 2)]);
        let later = read(&[("t".to_owned(), format!("{both}and then\n\nerrors: 5\n"))]);
        assert_eq!(later.sources[0].2, 2, "what somebody writes is no counter");
    }
}
