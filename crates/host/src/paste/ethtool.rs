//! `ethtool -c` (coalescing), `-k` (offloads), `-l` (queues), `-g` (rings), `-S` (counters).
//!
//! Formats: ethtool 6.1, netlink/coalesce.c, netlink/features.c, netlink/channels.c, netlink/rings.c, ethtool.c (`do_gstats`); older versions print the same words.

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

/// `Features for eth0:`, then `generic-receive-offload: on`, `rx-lro: off [fixed]`.
pub(super) fn offloads(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    let Some(name) = device(text, at, "Features for ") else { return 0 };
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
    end - at
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

/// `NIC statistics:` and the counters below it, or counters below the command, where `grep` took the head away.
pub(super) fn statistics(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    let is_head = text.at(at) == "NIC statistics:";
    let counter = |line: usize| {
        let (name, value) = text.at(line).rsplit_once(": ")?;
        let is_name = !name.is_empty() && name.len() <= 64;
        Some((name.trim().to_owned(), value.trim().parse::<u64>().ok().filter(|_| is_name)?))
    };
    let asked = match is_head {
        true => (at.saturating_sub(2)..at).rev().find_map(|line| asked(text.at(line))),
        false => asked(text.at(at)),
    };
    if !is_head && asked.is_none() {
        return 0;
    }
    let counters: BTreeMap<String, u64> = (at + 1..text.lines.len()).map_while(counter).take(MOST_COUNTERS).collect();
    if counters.is_empty() {
        return 0;
    }
    let end = (at + 1..text.lines.len()).find(|line| counter(*line).is_none()).unwrap_or(text.lines.len());
    let looks = &mut pasted.nic(asked.unwrap_or("a card without a name")).counters;
    // The first and the last one tell how much it grew.
    looks.truncate(2);
    if looks.len() == 2 {
        looks.pop();
    }
    looks.push(text.fact(counters, at + 1));
    end - at
}

/// The device in `ethtool -S eth0`, wherever the command stands.
fn asked(line: &str) -> Option<&str> {
    let words: Vec<&str> =
        line.split(|letter: char| letter.is_whitespace() || letter == ';' || letter == '|').collect();
    let is_one = |three: &&[&str]| {
        three[0].rsplit('/').next() == Some("ethtool")
            && matches!(three[1], "-S" | "--statistics")
            && !three[2].is_empty()
    };
    words.windows(3).find(is_one).map(|three| three[2])
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
    fn rings_and_counters_are_of_the_card_that_was_asked_for() {
        let counters = "     rx_packets: 100\n     rx_out_of_buffer: 7\n     port.rx_dropped: 0\n";
        let text = format!(
            "# ethtool -g eth1\nRing parameters for eth1:\nPre-set maximums:\nRX:\t\t4096\nRX Mini:\tn/a\nTX:\t4096\nCurrent hardware settings:\nRX:\t\t256\nRX Mini:\tn/a\nTX:\t512\n\
            RX Buf Len:\t\tn/a\nTX Push:\toff\n# ethtool -S eth1 | grep rx\n{counters}# sleep 9; ethtool -S eth1\nNIC statistics:\n{}",
            counters.replace("100", "300")
        );
        let machine = read(&[("t".to_owned(), text)]);
        assert_eq!(machine.sources[0].2, 1, "the command before a head: {:?}", machine.strange);
        let [nic] = &machine.nics[..] else { panic!("{:?}", machine.nics) };
        assert_eq!((nic.rings["rx"].0.value, nic.rings["rx"].1, nic.rings["tx"].0.value), (256, 4096, 512));
        let packets: Vec<_> = nic.counters.iter().map(|look| look.value["rx_packets"]).collect();
        assert_eq!((packets, nic.counters[0].value["rx_out_of_buffer"]), (vec![100, 300], 7));
    }
}
