//! What generators of traffic say of a whole run, which is shown as it stands: netperf, the summary of NFVbench, the console of TRex.
//!
//! ```text
//! MIGRATED TCP REQUEST/RESPONSE TEST from ..       | NDR |  64  |  3.3000 Gbps  |  4,910,714 pps  | ..
//! 16384  131072 1        1       10.00    14322.17       opackets   |  558120044 |  558121310 |  1116241354
//! ```
//! Sources: netperf 2.7, src/nettest_bsd.c; NFVbench 5.1, summarizer.py; TRex 3.04, trex_stl_lib/utils/text_tables.py.

use super::{Pasted, Text};
use base::number::{percent, thousands};

/// A test's head, the heads of its columns, and its rows of numbers.
pub(super) fn netperf(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    let head = text.at(at);
    let name = head.strip_prefix("MIGRATED ").unwrap_or(head);
    let Some((name, _)) = name.split_once(" TEST from ") else { return 0 };
    let is_row = |line: usize| {
        let mut cells = text.at(line).split_whitespace();
        cells.clone().count() >= 2 && cells.all(|cell| cell.parse::<f64>().is_ok())
    };
    let rows_at = (at + 1..at + 8).find(|line| is_row(*line));
    let Some(rows_at) = rows_at else { return 0 };
    let mut end = rows_at;
    while is_row(end) {
        let cells: Vec<f64> = text.at(end).split_whitespace().filter_map(|cell| cell.parse().ok()).collect();
        let value = match cells.last() {
            Some(rate) if name.contains("REQUEST") && cells.len() >= 5 => {
                format!("{rate} transactions per second, {:.1} us each", 1e6 / rate.max(f64::MIN_POSITIVE))
            }
            Some(rate) if !name.contains("REQUEST") && cells.len() >= 3 => {
                let what = if end == rows_at { "" } else { " received" };
                format!("{rate} Mbit/s{what}")
            }
            _ => text.at(end).to_owned(),
        };
        pasted.quote("netperf", name, &value, text.place(end));
        end += 1;
    }
    end - at
}

/// `| NDR |  64  |  3.3000 Gbps  |  4,910,714 pps  |  0.0008%  |  41.2  |  14  |  612  |`, with its head and rules.
pub(super) fn nfvbench(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    let cells = |line: usize| -> Vec<&str> {
        let line = text.at(line);
        line.strip_prefix('|').map_or(Vec::new(), |rest| rest.trim_end_matches('|').split('|').map(str::trim).collect())
    };
    let head = cells(at);
    if !(head.len() >= 5 && head[1] == "L2 Frame Size") {
        return 0;
    }
    let mut end = at + 1;
    while text.at(end).starts_with('+') || cells(end).len() == head.len() {
        let row = cells(end);
        if let [name, frames, values @ ..] = &row[..] {
            let told: Vec<String> =
                head[2..].iter().zip(values).map(|(head, value)| format!("{head} {value}")).collect();
            pasted.quote(
                &format!("NFVbench, {name}"),
                &format!("frames of {frames}"),
                &told.join("; "),
                text.place(end),
            );
        }
        end += 1;
    }
    end - at
}

/// Rows of TRex's tables that tell of packets.
const OF_PORTS: &[&str] = &[
    "Tx bps L2",
    "Rx bps L2",
    "Tx pps",
    "Rx pps",
    "Line Util.",
    "opackets",
    "ipackets",
    "oerrors",
    "ierrors",
    "CPU util.",
    "queue_full",
];

/// Names of `Global Statistics`, two columns of them.
const GLOBAL: &str = "connection version cpu_util. rx_cpu_util. async_util. total_cps. total_tx_L2 total_tx_L1 total_rx total_pps drop_rate queue_full";

/// `cpu_util.    : 100.0% @ 1 cores (1 per dual port)    total_rx     : 0 bps`, below `Global Statistics`.
pub(super) fn trex_global(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    // `opackets` and others have their own table.
    if !text.at(at).to_lowercase().starts_with("global statisti") {
        return 0;
    }
    let mut end = at + 1;
    while end < text.lines.len() {
        let line = text.at(end);
        let pairs = pairs_of(line);
        if !line.is_empty() && pairs.is_empty() {
            break;
        }
        for (name, value) in pairs {
            pasted.quote("TRex", name, &value, text.place(end));
        }
        end += 1;
    }
    let last = (at..end).rev().find(|line| !text.at(*line).is_empty()).unwrap_or(at);
    if last == at { 0 } else { last + 1 - at }
}

/// The names that are known on a line, each with what stands behind it.
fn pairs_of(line: &str) -> Vec<(&'static str, String)> {
    let mut found: Vec<(usize, usize, &'static str)> = GLOBAL
        .split(' ')
        .filter_map(|name| {
            let at = line.match_indices(name).find(|(at, _)| *at == 0 || line[..*at].ends_with(' '))?.0;
            let behind = line[at + name.len()..]
                .find(':')
                .filter(|blank| line[at + name.len()..][..*blank].trim().is_empty())?;
            Some((at, at + name.len() + behind + 1, name))
        })
        .collect();
    found.sort_unstable();
    let ends = found.iter().skip(1).map(|(at, ..)| *at).chain([line.len()]);
    found.iter().zip(ends).map(|((_, from, name), to)| (*name, line[*from..to.max(*from)].trim().to_owned())).collect()
}

/// `opackets   |  558120044 |  558121310 |  1116241354`, and beside them the rows of the same table that say the same in other units.
pub(super) fn trex(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    let cells = |line: usize| -> Vec<&str> { text.at(line).split('|').map(str::trim).collect() };
    let head = cells(at);
    // One port alone has no column of all.
    let has_total = head.len() >= 3 && head.last() == Some(&"total");
    let is_one =
        head.len() == 2 && head[1].bytes().all(|byte| byte.is_ascii_digit()) && text.at(at + 1).starts_with("---");
    if head[0] != "port" || !(has_total || is_one) {
        return 0;
    }
    let (mut end, mut sent) = (at + 1, None);
    while text.at(end).starts_with("--") || cells(end).len() == head.len() {
        let row = cells(end);
        let sum = || row.last()?.parse::<u64>().ok();
        match row[0] {
            "opackets" => sent = sum(),
            // What was still on its way when the console was asked is in it, too.
            "ipackets" => {
                if let Some((sent, back)) = sent.zip(sum()).filter(|(sent, back)| back < sent) {
                    let share = percent((sent - back) as f64 / sent as f64);
                    let told = format!("{} of {} sent ({share})", thousands(sent - back), thousands(sent));
                    pasted.quote("TRex", "not received when asked", &told, text.place(end));
                    pasted.summarize(
                        format!("Of the packets of TRex {told} had not come back when it was asked."),
                        text.place(end),
                    );
                }
            }
            _ => {}
        }
        if OF_PORTS.contains(&row[0]) && row.len() == head.len() {
            let named = head.iter().zip(&row).skip(1).filter(|(_, value)| !value.is_empty());
            let told: Vec<String> = named
                .map(
                    |(port, value)| {
                        if *port == "total" { format!("in all {value}") } else { format!("port {port} {value}") }
                    },
                )
                .collect();
            pasted.quote("TRex", row[0], &told.join(", "), text.place(end));
        }
        end += 1;
    }
    end - at
}

#[cfg(test)]
mod tests {
    use crate::paste::read;

    fn quoted(text: &str) -> Vec<(String, String)> {
        let machine = read(&[("t".to_owned(), text.to_owned())]);
        assert_eq!(machine.sources[0].2, 0, "{:?}", machine.strange);
        machine.quoted.into_iter().map(|told| (told.subject, told.value)).collect()
    }

    #[test]
    fn netperf_tells_a_rate_and_of_datagrams_what_arrived() {
        let rr = "MIGRATED TCP REQUEST/RESPONSE TEST from 0.0.0.0 () port 0 AF_INET to 192.0.2.45 () port 0 AF_INET : first burst 0\n\
                  Local /Remote\nSocket Size   Request  Resp.   Elapsed  Trans.\nSend   Recv   Size     Size    Time     Rate\nbytes  Bytes  bytes    bytes   secs.    per sec\n\n\
                  16384  131072 1        1       10.00    10000.00\n16384  131072\n";
        assert_eq!(quoted(rr)[0].1, "10000 transactions per second, 100.0 us each");
        let udp = "MIGRATED UDP STREAM TEST from 0.0.0.0 () port 0 AF_INET to 192.0.2.45 () port 0 AF_INET\nSocket  Message  Elapsed      Messages\n\
                   Size    Size     Time         Okay Errors   Throughput\nbytes   bytes    secs            #      #   10^6bits/sec\n\n\
                   212992    1400   10.00     4410233      0    4939.46\n212992           10.00     2120331           2374.77\n";
        let told: Vec<String> = quoted(udp).into_iter().map(|(_, value)| value).collect();
        assert_eq!(told, ["4939.46 Mbit/s", "2374.77 Mbit/s received"]);
    }

    #[test]
    fn tables_of_generators_are_shown_with_their_heads() {
        let nfvbench = "+-----+---+---+---+---+\n|  -  |  L2 Frame Size  |  Rate (fwd+rev)  |  Rate (fwd+rev)  |  Avg Drop Rate  |\n+=====+===+===+===+===+\n\
                        | NDR |       64        |   3.3000 Gbps    |  4,910,714 pps   |     0.0008%     |\n+-----+---+---+---+---+\n";
        let machine = read(&[("t".to_owned(), nfvbench.to_owned())]);
        let told = &machine.quoted[0];
        assert_eq!((told.what.as_str(), told.subject.as_str()), ("NFVbench, NDR", "frames of 64"));
        assert!(told.value.ends_with("4,910,714 pps; Avg Drop Rate 0.0008%"), "{}", told.value);
        let alone = "Global Statistics\n\nconnection   : localhost, Port 4501                       total_tx_L2  : 207.33 Mbps\n\
                     cpu_util.    : 100.0% @ 1 cores (1 per dual port)         queue_full   : 5 pkts\n\n\
                     port    |         0\n-----------+----\nTx pps     |       350.21 Kpps\nopackets   | 9\nipackets   | 0\n";
        let told = quoted(alone);
        let has = |name: &str, value: &str| told.iter().any(|(known, of)| known == name && of == value);
        assert!(has("cpu_util.", "100.0% @ 1 cores (1 per dual port)") && has("queue_full", "5 pkts"), "{told:?}");
        assert!(
            has("Tx pps", "port 0 350.21 Kpps") && has("not received when asked", "9 of 9 sent (100 %)"),
            "{told:?}"
        );
        let trex = "   port    |         0         |         1         |       total\n-----------+----+----+----\nstate      | UP | UP |\n\
                    opackets   |         558120044 |         558121310 |        1116241354\n";
        assert_eq!(
            quoted(trex),
            [("opackets".to_owned(), "port 0 558120044, port 1 558121310, in all 1116241354".to_owned())]
        );
    }
}
