//! `ethtool -c` (coalescing), `-k` (offloads), `-l` (queues).
//!
//! Formats: ethtool 6.1, netlink/coalesce.c, netlink/features.c, netlink/channels.c; older versions print the same words.

use super::{Pasted, Text};

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
    let mut most = std::collections::BTreeMap::new();
    let (mut end, mut present) = (at + 1, false);
    loop {
        match text.at(end) {
            "Pre-set maximums:" => present = false,
            "Current hardware settings:" => present = true,
            line => {
                let Some((key, value)) = line.split_once(':') else { break };
                let key = key.trim().to_lowercase();
                if !["rx", "tx", "other", "combined"].contains(&key.as_str()) {
                    break;
                }
                if let Ok(value) = value.trim().parse::<u32>() {
                    if present {
                        let most = most.get(&key).copied().unwrap_or(value);
                        pasted.nic(name).channels.insert(key, (text.fact(value, end), most));
                    } else {
                        most.insert(key, value);
                    }
                }
            }
        }
        end += 1;
    }
    end - at
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
}
