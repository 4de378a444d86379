//! Small tests that people run first: `dd`, `ioping`, `ping`, `pveperf`, and LatencyMon in a Windows guest.
//!
//! ```text
//! 1073741824 bytes (1.1 GB, 1.0 GiB) copied, 186.2 s, 5.8 MB/s
//! min/avg/max/mdev = 12.1 ms / 68.0 ms / 198.3 ms / 51.2 ms
//! FSYNCS/SECOND:     26.41
//! ```
//! Sources: dd(1) of coreutils 9.1, ioping(1) 1.3, ping(8) of iputils 20221126, pveperf(1) of Proxmox VE 8, LatencyMon 7.31 (resplendence.com).

use super::totals::number;
use super::{Pasted, Text};
use base::number::{counted, duration, plain};

/// One of them.
pub(super) fn block(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    const READERS: [fn(&Text<'_>, usize, &mut Pasted) -> usize; 4] = [dd, pings, pveperf, latencymon];
    READERS.iter().map(|read| read(text, at, pasted)).find(|taken| *taken > 0).unwrap_or(0)
}

/// Lines from the command to the end of `dd`.
const OF_DD: usize = 4;

/// `1024+0 records in`, `1024+0 records out`, and what they took; the command above says how they were written.
fn dd(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    let records =
        |line: usize, way: &str| text.at(line).strip_suffix(way)?.trim().split('+').next()?.parse::<u64>().ok();
    let (first, blocks) = match records(at, "records in") {
        Some(_) => (at + 2, records(at + 1, "records out")),
        None => (at, None),
    };
    let Some((amount, told)) = text.at(first).split_once(" copied, ") else { return 0 };
    let seconds = || number(told.split_once(" s").or_else(|| told.split_once(" second"))?.0);
    let Some(seconds) = seconds().filter(|seconds| *seconds > 0.0 && amount.contains(" bytes")) else { return 0 };
    let command = (at.saturating_sub(OF_DD)..at)
        .rev()
        .map(|line| text.at(line))
        .find(|line| line.contains("dd ") && line.contains("of="));
    let has = |name: &str| command.is_some_and(|command| command.contains(name));
    let each = blocks.filter(|blocks| *blocks > 0).map_or(String::new(), |blocks| {
        format!(", {} of {} each", counted(blocks, "block", "blocks"), duration(seconds * 1e9 / blocks as f64))
    });
    let how = match command {
        Some(_) if has("oflag=dsync") || has("oflag=sync") || has("oflag=direct,sync") => {
            ": each is on the disk before the next one is written, so that this is the time of a synced write"
        }
        Some(_) if has("direct") => ", past the page cache",
        Some(_) if has("conv=fdatasync") || has("conv=fsync") => ", with one sync at the end",
        Some(_) if has("of=/dev/null") => ": what the page cache had was not read from the disk",
        Some(_) => ": into the page cache, so that it is not the rate of the disk (oflag=direct, or conv=fdatasync)",
        None => "",
    };
    let rate = told.rsplit(", ").next().unwrap_or_default().trim();
    pasted.summarize(
        format!(
            "dd copied {} in {}, {rate}{each}{how}.",
            amount.split(" (").next().unwrap_or(amount),
            duration(seconds * 1e9)
        ),
        text.place(first),
    );
    pasted.quote("dd", "", text.at(first), text.place(first));
    first + 1 - at
}

/// `--- 10.0.0.1 ping statistics ---` and `--- . (ext4 /dev/vda1) ioping statistics ---`, and the answers above them.
fn pings(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    let line = text.at(at);
    let is_answer = line.contains(" bytes from ") && line.contains(" time=") && line.contains(" ms")
        || line.contains(" <<< ") && line.contains(": request=") && line.contains(" time=")
        || line.starts_with("PING ") && line.contains(" bytes of data");
    if is_answer {
        return 1;
    }
    let head = line.strip_prefix("--- ").and_then(|rest| rest.strip_suffix(" statistics ---"));
    let Some((whom, program)) =
        head.and_then(|head| head.rsplit_once(' ')).filter(|(_, by)| matches!(*by, "ping" | "ioping"))
    else {
        return 0;
    };
    let mut end = at + 1;
    while end < text.lines.len() && end < at + 5 && !text.at(end).is_empty() {
        let line = text.at(end);
        end += 1;
        pasted.quote(program, whom, line, text.place(end - 1));
        let Some((_, values)) = line.split_once("min/avg/max/mdev = ") else { continue };
        let words: Vec<&str> = values.split(['/', ' ']).filter(|word| !word.is_empty()).collect();
        // ping has one unit for all, behind them; ioping one behind each.
        let unit = |word: &&str| matches!(*word, "ns" | "us" | "ms" | "s");
        let scale = |unit: &str| match unit {
            "ns" => 1.0,
            "us" => 1e3,
            "ms" => 1e6,
            _ => 1e9,
        };
        let last = words.iter().rev().find(|word| unit(word)).copied().unwrap_or("ms");
        let ns: Vec<f64> = (0..words.len())
            .filter_map(|place| {
                let own = words.get(place + 1).copied().filter(|next| unit(next)).unwrap_or(last);
                Some(number(words[place])? * scale(own))
            })
            .collect();
        if let [least, mean, most, ..] = ns[..] {
            let what = if program == "ping" { "an answer" } else { "a request" };
            let said = format!(
                "{program}: {what} of {whom} took {} on average, {} at least and {} at most.",
                duration(mean),
                duration(least),
                duration(most)
            );
            pasted.summarize(said, text.place(end - 1));
        }
        break;
    }
    end - at
}

/// `FSYNCS/SECOND: 26.41` among the other lines of `pveperf`.
fn pveperf(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    const NAMES: [&str; 8] = [
        "CPU BOGOMIPS",
        "REGEX/SECOND",
        "HD SIZE",
        "BUFFERED READS",
        "AVERAGE SEEK TIME",
        "FSYNCS/SECOND",
        "DNS EXT",
        "DNS INT",
    ];
    let Some((name, value)) = text.at(at).split_once(':').filter(|(name, _)| NAMES.contains(name)) else { return 0 };
    pasted.quote("pveperf", name, value.trim(), text.place(at));
    if let Some(syncs) = number(value.trim()).filter(|syncs| name == "FSYNCS/SECOND" && *syncs > 0.0) {
        let said = format!(
            "pveperf: the storage syncs {} times a second, {} each: a guest that waits for its writes waits so long.",
            plain(syncs),
            duration(1e9 / syncs)
        );
        pasted.summarize(said, text.place(at));
    }
    1
}

/// The parts of LatencyMon's report that measure: an interrupt's way to a process, and the longest routines with their drivers.
fn latencymon(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    const HIGHEST: &str = "Highest measured interrupt to process latency";
    const DPC: &str = "Highest DPC routine execution time";
    const OTHERS: [&str; 6] = [
        "Average measured interrupt to",
        "Highest measured interrupt to",
        "Highest ISR routine execution time",
        DPC,
        "Driver with highest ",
        "LatencyMon has been analyzing",
    ];
    let line = text.at(at);
    if !OTHERS.iter().any(|name| line.starts_with(name)) {
        return 0;
    }
    let value = |line: usize, name: &str| {
        let (told, value) = text.at(line).split_once(':')?;
        number(value.trim()).filter(|_| told.starts_with(name) && told.contains("s)"))
    };
    let (name, told) = line.split_once(':').unwrap_or((line, ""));
    pasted.quote("LatencyMon", name.trim(), told.trim(), text.place(at));
    if let Some(us) = value(at, HIGHEST) {
        // The report of one run has some sixty lines.
        let below = |name: &str| (at..text.lines.len().min(at + 64)).find_map(|line| Some((line, value(line, name)?)));
        let dpc = below(DPC).map_or(String::new(), |(line, dpc)| {
            let driver = (line..line + 3)
                .find_map(|line| text.at(line).strip_prefix("Driver with highest DPC routine execution time:"));
            let driver = driver.map_or(String::new(), |driver| {
                format!(", of {}", driver.trim().split(" - ").next().unwrap_or_default())
            });
            let outside = if dpc * 2.0 < us {
                ": no single routine of the guest is so long, so look for what stops its vCPU"
            } else {
                ""
            };
            format!("; the longest routine of a driver took {}{driver}{outside}", duration(dpc * 1e3))
        });
        pasted.summarize(
            format!(
                "LatencyMon in the guest: an interrupt reached its process {} late at most{dpc}.",
                duration(us * 1e3)
            ),
            text.place(at),
        );
    }
    1
}

#[cfg(test)]
mod tests {
    use crate::paste::summaries_of;

    fn summary(text: &str) -> String {
        summaries_of(text).join(" ")
    }

    #[test]
    fn writes_are_told_by_what_they_waited_for() {
        let rows =
            "1024+0 records in\n1024+0 records out\n1073741824 bytes (1.1 GB, 1.0 GiB) copied, 204.8 s, 5.2 MB/s\n";
        let synced = summary(&format!("# dd if=/dev/zero of=test bs=1M count=1024 oflag=dsync\n{rows}"));
        assert!(synced.contains("1,024 blocks of 200.0 ms each: each is on the disk before"), "{synced}");
        assert!(
            summary(&format!("# dd if=/dev/zero of=test bs=1M count=1024\n{rows}"))
                .contains("not the rate of the disk")
        );
        assert!(summary(rows).ends_with("200.0 ms each."), "nobody told how");
        assert_eq!(
            summary("pve# pveperf\nFSYNCS/SECOND:     25\n"),
            "pveperf: the storage syncs 25 times a second, 40.0 ms each: a guest that waits for its writes waits so long."
        );
    }

    #[test]
    fn both_pings_have_their_own_units() {
        let disk = summary(
            "--- . (ext4 /dev/vda1) ioping statistics ---\n9 requests completed in 612.4 ms\nmin/avg/max/mdev = 900 us / 68.0 ms / 1.98 s / 51.2 ms\n",
        );
        assert_eq!(
            disk,
            "ioping: a request of . (ext4 /dev/vda1) took 68.0 ms on average, 900.0 us at least and 2.0 s at most."
        );
        let net = summary(
            "--- 10.0.0.1 ping statistics ---\n10 packets transmitted, 9 received, 10% packet loss, time 9012ms\nrtt min/avg/max/mdev = 0.120/0.450/12.300/0.500 ms\n",
        );
        assert_eq!(net, "ping: an answer of 10.0.0.1 took 450.0 us on average, 120.0 us at least and 12.3 ms at most.");
    }

    #[test]
    fn a_wait_that_no_routine_explains_is_told() {
        let text = "Highest measured interrupt to process latency (\u{b5}s):   5211.40\nHighest DPC routine execution time (\u{b5}s):              412.20\nDriver with highest DPC routine execution time:       nvlddmkm.sys - NVIDIA\n";
        assert_eq!(
            summary(text),
            "LatencyMon in the guest: an interrupt reached its process 5.2 ms late at most; the longest routine of a driver took 412.2 us, of nvlddmkm.sys: no single routine of the guest is so long, so look for what stops its vCPU."
        );
        assert!(!summary(&text.replace("412.20", "4912.20")).contains("no single routine"));
    }
}
