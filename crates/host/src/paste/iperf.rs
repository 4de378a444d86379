//! `iperf3`, as text and as JSON: what a run carried.
//!
//! Of the text the summary counts (`receiver`; of several streams the line `[SUM]`), of the JSON `end`. Bits that arrived
//! are taken, not those that were sent: iperf3(1), 3.12.

use super::{Pasted, Text, json};
use crate::machine::Throughput;
use std::collections::BTreeMap;

/// Rows of one direction.
#[derive(Default)]
struct Run {
    /// What `receiver` says of the whole: bits a second, seconds, its line; the line of the sum comes last, where there is one.
    whole: Option<(f64, f64, usize)>,
    streams: u32,
    sent_again: Option<u64>,
    /// Intervals of the sum: bits and seconds.
    intervals: Option<(f64, f64, usize)>,
}

/// The header `[ ID] Interval           Transfer     Bitrate` and the rows below it, or rows whose header was left out.
pub(super) fn text(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    let is_header = |line: &str| line.starts_with("[ ID]") && line.contains("Interval");
    if !is_header(text.at(at)) && named_row(text.at(at)).is_none() {
        return 0;
    }
    let mut end = at;
    let mut runs: BTreeMap<&str, Run> = BTreeMap::new();
    while is_header(text.at(end)) && end == at || text.at(end).starts_with('[') || text.at(end).starts_with("- -") {
        let line = text.at(end);
        if let Some((name, direction, (seconds, bits_per_s))) = named_row(line) {
            let run = runs.entry(direction).or_default();
            if line.ends_with("receiver") {
                run.streams += u32::from(name != "SUM");
                run.whole = Some((bits_per_s, seconds, end));
            } else if line.ends_with("sender") {
                let words: Vec<&str> = line.split_whitespace().collect();
                let again = words.get(words.len().wrapping_sub(2)).and_then(|count| count.parse().ok());
                run.sent_again = again.or(run.sent_again);
            } else if name == "SUM" {
                let (bits, all, _) = run.intervals.unwrap_or_default();
                run.intervals = Some((bits + bits_per_s * seconds, all + seconds, end));
            }
        }
        end += 1;
    }
    // Without rows of both ways the command says which way it was.
    let is_reverse = (at.saturating_sub(MOST_ABOVE)..at)
        .rev()
        .map(|line| text.at(line))
        .find(|line| line.contains("iperf"))
        .is_some_and(|command| command.split_whitespace().any(|word| matches!(word, "--reverse" | "-R")));
    for (direction, run) in runs {
        let direction = match direction {
            "" if is_reverse => "in",
            "TX-C" => "out",
            "RX-C" => "in",
            "TX-S" => "out, by the server",
            "RX-S" => "in, by the server",
            _ => "",
        };
        let intervals = run.intervals.filter(|(_, seconds, _)| *seconds > 0.0);
        let whole = run.whole.or(intervals.map(|(bits, seconds, line)| (bits / seconds, seconds, line)));
        let Some((bits_per_s, seconds, line)) = whole else { continue };
        let bits_per_s = text.fact(bits_per_s, line);
        // More segments than a wire can have had are nobody's count.
        let most = bits_per_s.value / 8.0 * seconds / LEAST_SEGMENT;
        let retransmits = run.sent_again.filter(|count| *count as f64 <= most);
        let streams = run.streams;
        pasted.machine.throughput.push(Throughput { bits_per_s, streams, seconds, retransmits, direction });
    }
    end - at
}

/// Lines between a command and its table: the rows of seconds were left out, or not.
const MOST_ABOVE: usize = 4;

/// Payload of the least segment that a stream is cut into, in bytes (RFC 879).
const LEAST_SEGMENT: f64 = 536.0;

/// What iperf3 prints around its rows.
pub(super) fn around(text: &Text<'_>, at: usize, _: &mut Pasted) -> usize {
    let line = text.at(at);
    let heads =
        ["Connecting to host ", "Accepted connection from ", "Server listening on ", "iperf Done.", "Reverse mode, "];
    let is_stream = line.starts_with('[') && line.contains("] local ") && line.contains(" connected to ");
    usize::from(is_stream || heads.iter().any(|head| line.starts_with(head)))
}

/// `[SUM][TX-C]   0.00-10.00  sec ..`: the stream, the direction of `--bidir`, and what was carried.
fn named_row(line: &str) -> Option<(&str, &str, (f64, f64))> {
    let (name, rest) = line.strip_prefix('[')?.split_once(']')?;
    let (direction, rest) = match rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((direction, rest)) => (direction, rest),
        None => ("", rest),
    };
    Some((name.trim(), direction, row(rest)?))
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
            direction: "",
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
        let both = "[SUM][TX-C]   8.00-9.00   sec  1.40 GBytes  12.0 Gbits/sec  5126\n[ 13][RX-C]   8.00-9.00   sec   632 MBytes  5.30 Gbits/sec\n\
                    [SUM][RX-C]   8.00-9.00   sec  2.46 GBytes  21.2 Gbits/sec\n- - - -\n[SUM][TX-C]   9.00-10.00  sec  1.44 GBytes  12.4 Gbits/sec  4638\n";
        let machine = read(&[("t".to_owned(), both.to_owned())]);
        let told: Vec<_> =
            machine.throughput.iter().map(|run| (run.direction, run.bits_per_s.value, run.seconds)).collect();
        assert_eq!(told, [("in", 21.2e9, 1.0), ("out", 12.2e9, 2.0)], "rows without their header");
        let json = "{\n\t\"start\": {},\n\t\"intervals\": [],\n\t\"end\": {\n\t\t\"streams\": [{}, {}],\n\
                    \t\t\"sum_sent\": {\"retransmits\": 15},\n\
                    \t\t\"sum_received\": {\"seconds\": 10.04, \"bits_per_second\": 2.7e9}\n\t}\n}\n";
        let machine = read(&[("t".to_owned(), json.to_owned())]);
        assert_eq!((machine.throughput[0].streams, machine.throughput[0].bits_per_s.value), (2, 2.7e9));
        assert_eq!(machine.sources[0].2, 0);
    }
}
