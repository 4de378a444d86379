//! `iperf3`, as text and as JSON: what a run carried.
//!
//! Of the text the summary counts (`receiver`; of several streams the line `[SUM]`), of the JSON `end`. Bits that arrived
//! are taken, not those that were sent: iperf3(1), 3.12.

use super::{Pasted, Text, json};
use crate::machine::Throughput;

/// The header `[ ID] Interval           Transfer     Bitrate` and the rows below it.
pub(super) fn text(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    if !(text.at(at).starts_with("[ ID]") && text.at(at).contains("Interval")) {
        return 0;
    }
    let mut end = at + 1;
    let (mut streams, mut whole, mut sent_again) = (0, None, None);
    while text.at(end).starts_with('[') || text.at(end).starts_with("- -") {
        let line = text.at(end);
        let row = line.split_once(']').and_then(|(name, rest)| Some((name.trim_start_matches('[').trim(), row(rest)?)));
        if let Some((name, (seconds, bits_per_s))) = row {
            if line.ends_with("receiver") {
                streams += u32::from(name != "SUM");
                // The line of the sum comes last, where there is one.
                whole = Some((bits_per_s, seconds, end));
            } else if line.ends_with("sender") {
                let words: Vec<&str> = line.split_whitespace().collect();
                sent_again = words.get(words.len().wrapping_sub(2)).and_then(|count| count.parse().ok()).or(sent_again);
            }
        }
        end += 1;
    }
    if let Some((bits_per_s, seconds, line)) = whole {
        let bits_per_s = text.fact(bits_per_s, line);
        pasted.machine.throughput.push(Throughput { bits_per_s, streams, seconds, retransmits: sent_again });
    }
    end - at
}

/// `0.00-10.00  sec  3.17 GBytes  2.72 Gbits/sec`: seconds and bits a second.
fn row(text: &str) -> Option<(f64, f64)> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let (from, to) = words.first()?.split_once('-')?;
    let at = words.iter().position(|word| word.ends_with("bits/sec"))?;
    let scale = match *words.get(at)? {
        "bits/sec" => 1.0,
        "Kbits/sec" => 1e3,
        "Mbits/sec" => 1e6,
        "Gbits/sec" => 1e9,
        "Tbits/sec" => 1e12,
        _ => return None,
    };
    let rate: f64 = words.get(at.checked_sub(1)?)?.parse().ok()?;
    Some((to.parse::<f64>().ok()? - from.parse::<f64>().ok()?, rate * scale))
}

/// The JSON object of `iperf3 --json`.
pub(super) fn json(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    let Some((value, lines)) = json::object(text, at, "start", pasted) else { return 0 };
    let ended = &value["end"];
    let sum = [&ended["sum_received"], &ended["sum"]].into_iter().find(|sum| sum["bits_per_second"].is_number());
    if let Some(sum) = sum {
        pasted.machine.throughput.push(Throughput {
            bits_per_s: text.fact(sum["bits_per_second"].as_f64().unwrap_or_default(), at),
            streams: ended["streams"].as_array().map_or(0, Vec::len) as u32,
            seconds: sum["seconds"].as_f64().unwrap_or_default(),
            retransmits: ended["sum_sent"]["retransmits"].as_u64(),
        });
    }
    lines
}

#[cfg(test)]
mod tests {
    use crate::paste::read;

    #[test]
    fn text_and_json_say_the_same() {
        let text = "[ ID] Interval           Transfer     Bitrate         Retr  Cwnd\n\
                    [  5]   0.00-1.00   sec   170 MBytes  1.43 Gbits/sec    0    400 KBytes\n\
                    [  7]   0.00-1.00   sec   154 MBytes  1.29 Gbits/sec    0    400 KBytes\n\
                    [SUM]   0.00-1.00   sec   324 MBytes  2.72 Gbits/sec    0\n- - - - - - - - -\n\
                    [ ID] Interval           Transfer     Bitrate         Retr\n\
                    [  5]   0.00-10.00  sec  1.66 GBytes  1.43 Gbits/sec   12             sender\n\
                    [  5]   0.00-10.04  sec  1.66 GBytes  1.42 Gbits/sec                  receiver\n\
                    [  7]   0.00-10.00  sec  1.50 GBytes  1.29 Gbits/sec    3             sender\n\
                    [  7]   0.00-10.04  sec  1.50 GBytes  1.28 Gbits/sec                  receiver\n\
                    [SUM]   0.00-10.00  sec  3.16 GBytes  2.72 Gbits/sec   15             sender\n\
                    [SUM]   0.00-10.04  sec  3.16 GBytes  2.70 Gbits/sec                  receiver\n\niperf Done.\n";
        let machine = read(&[("t".to_owned(), text.to_owned())]);
        let [run] = &machine.throughput[..] else { panic!("{:?}", machine.throughput) };
        assert_eq!((run.bits_per_s.value, run.streams, run.retransmits), (2.7e9, 2, Some(15)));
        assert!((run.seconds - 10.04).abs() < 1e-9);
        let json = "{\n\t\"start\": {},\n\t\"intervals\": [],\n\t\"end\": {\n\t\t\"streams\": [{}, {}],\n\
                    \t\t\"sum_sent\": {\"retransmits\": 15},\n\
                    \t\t\"sum_received\": {\"seconds\": 10.04, \"bits_per_second\": 2.7e9}\n\t}\n}\n";
        let machine = read(&[("t".to_owned(), json.to_owned())]);
        assert_eq!((machine.throughput[0].streams, machine.throughput[0].bits_per_s.value), (2, 2.7e9));
        assert_eq!(machine.sources[0].2, 0);
    }
}
