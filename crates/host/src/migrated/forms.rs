//! Sums of a migration in the other forms that people have them in: QEMU's answer as JSON or as a Python dictionary, and logs of what
//! drives QEMU, or is none.
//!
//! ```text
//! {"return": {"status": "active", "ram": {"remaining": 4513075200, ..}}}         query-migrate, bare, pretty, with -nan
//! {'status': 'active', 'ram': {'remaining': 285523968, ..}}                      the same, printed by Python
//! .. Migration info for UID: TimeElapsed:120003ms DataRemaining:2841MiB ..       KubeVirt's virt-launcher
//! .. Precopy: iter=1 total=11562MiB curr=5418MiB bw=1824.44MiB/s ..              Cloud Hypervisor
//! .. migration active, transferred 40.6 GiB of 32.0 GiB VM-state, 34.5 MiB/s     Proxmox
//! ```
//! Sources: qapi/migration.json, QEMU 9.0; pkg/virt-launcher/virtwrap/live-migration-source.go, KubeVirt 1.0; vmm/src/lib.rs, Cloud
//! Hypervisor 48; PVE/QemuMigrate.pm, qemu-server 7.1.

use super::account::{Account, By, size};
use serde_json::Value;
use std::borrow::Cow;

/// An object of JSON in a text: a QEMU answers with some kilobytes.
const MOST_BYTES: usize = 1 << 20;

/// All accounts in a text, in order of their forms; of a log the last line counts.
pub fn read(text: &str) -> Vec<Account> {
    let mut accounts: Vec<Account> = objects(text).iter().filter_map(of_answer).collect();
    accounts.extend(last(text, "Migration info for ").as_deref().and_then(of_kubevirt));
    accounts.extend(of_cloud_hypervisor(text));
    accounts.extend(of_proxmox(text));
    accounts
}

/// The last line that has these words, from them on.
fn last<'t>(text: &'t str, words: &str) -> Option<Cow<'t, str>> {
    text.lines().rev().find_map(|line| Some(line.split_once(words)?.1.into()))
}

/// Objects of JSON, or of Python, that stand in a text.
fn objects(text: &str) -> Vec<Value> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find('{') {
        let Some(end) = closing(&rest[at..]) else { break };
        let object = &rest[at..at + end];
        rest = &rest[at + end..];
        found.extend(serde_json::from_str(&plain(object)).ok());
    }
    found
}

/// Where the object ends that a text begins with.
fn closing(text: &str) -> Option<usize> {
    let (mut depth, mut quoted, mut escaped) = (0_usize, None, false);
    for (at, byte) in text.bytes().enumerate().take(MOST_BYTES) {
        match (quoted, byte) {
            _ if escaped => escaped = false,
            (Some(_), b'\\') => escaped = true,
            (Some(quote), _) if byte == quote => quoted = None,
            (Some(_), _) => {}
            (None, b'"' | b'\'') => quoted = Some(byte),
            (None, b'{') => depth += 1,
            (None, b'}') if depth == 1 => return Some(at + 1),
            (None, b'}') => depth = depth.saturating_sub(1),
            (None, _) => {}
        }
    }
    None
}

/// JSON, where Python or C printed it: no number is no number, quotes are double, and no line has a prompt before it.
fn plain(object: &str) -> String {
    let lines = object.lines().map(|line| line.split_once("> ").map_or(line, |(_, rest)| rest));
    let text: String = lines.collect::<Vec<_>>().join("\n");
    let text = if text.contains('"') { text } else { text.replace('\'', "\"") };
    let words = [
        ("-nan", "null"),
        ("nan", "null"),
        ("-inf", "null"),
        ("inf", "null"),
        ("True", "true"),
        ("False", "false"),
        ("None", "null"),
    ];
    words.iter().fold(text, |text, (word, json)| {
        ["", " "].iter().fold(text, |text, blank| {
            let ends = [",", "}", "\n"];
            ends.iter()
                .fold(text, |text, end| text.replace(&format!(":{blank}{word}{end}"), &format!(":{blank}{json}{end}")))
        })
    })
}

/// What QEMU answered to query-migrate.
fn of_answer(answer: &Value) -> Option<Account> {
    let answer = answer.get("return").unwrap_or(answer);
    let (status, ram) = (answer["status"].as_str()?, &answer["ram"]);
    if !ram.is_object() && answer.get("expected-downtime").is_none() {
        return None;
    }
    // Megabits, of 10^6 bits (migration/migration.c, QEMU 9.0).
    let sent = ram["mbps"].as_f64().filter(|mbps| *mbps > 0.0).map(|mbps| mbps * 1e6 / 8.0);
    Some(Account {
        error: answer["error-desc"].as_str().map(str::to_owned),
        total_ms: answer["total-time"].as_u64(),
        downtime_ms: answer["downtime"].as_u64(),
        expected_downtime_ms: answer["expected-downtime"].as_u64(),
        transferred_bytes: ram["transferred"].as_u64(),
        remaining_bytes: ram["remaining"].as_u64(),
        total_bytes: ram["total"].as_u64(),
        disk_remaining_bytes: answer["disk"]["remaining"].as_u64(),
        zero_pages: ram["duplicate"].as_u64(),
        normal_pages: ram["normal"].as_u64(),
        page_bytes: ram["page-size"].as_u64(),
        passes: ram["dirty-sync-count"].as_u64(),
        dirty_pages_per_s: ram["dirty-pages-rate"].as_u64(),
        sent_bytes_per_s: sent,
        throttle_percent: answer["cpu-throttle-percentage"].as_u64(),
        ..Account::of(By::Qmp, status)
    })
}

/// `UID: TimeElapsed:120003ms DataProcessed:7390MiB .. Iteration:4 ..`.
fn of_kubevirt(line: &str) -> Option<Account> {
    let value = |name: &str| {
        let word = line.split_whitespace().find_map(|word| word.strip_prefix(name)?.strip_prefix(':'))?;
        Some(word.trim_matches(['"', ',']))
    };
    let digits = |text: &str| -> Option<f64> {
        let end = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(text.len());
        text[..end].parse().ok()
    };
    let number = |name: &str| value(name).and_then(digits);
    let mebibytes = |name: &str| number(name).map(|mebibytes| (mebibytes * f64::from(1 << 20)) as u64);
    // `Mbps` there is libvirt's bytes per second, shifted by 20: mebibytes.
    let per_second = |name: &str| number(name).map(|mebibytes| mebibytes * f64::from(1 << 20));
    let count = |name: &str| number(name).map(|count| count as u64);
    Some(Account {
        total_ms: count("TimeElapsed"),
        transferred_bytes: mebibytes("MemoryProcessed"),
        remaining_bytes: mebibytes("MemoryRemaining"),
        total_bytes: mebibytes("MemoryTotal"),
        expected_downtime_ms: count("ExpectedDowntime"),
        zero_pages: count("ConstantPages"),
        normal_pages: count("NormalPages"),
        passes: count("Iteration"),
        dirty_bytes_per_s: per_second("DirtyRate"),
        sent_bytes_per_s: per_second("MemoryBandwidth").filter(|rate| *rate > 0.0),
        ..Account::of(By::KubeVirt, "active")
    })
}

/// The passes of `Precopy:` lines: what the last of them had to send is what was dirtied while the one before was sent.
fn of_cloud_hypervisor(text: &str) -> Option<Account> {
    let mut passes = text.lines().rev().filter_map(|line| Some(line.split_once("Precopy: ")?.1));
    let (line, before) = (passes.next()?, passes.next());
    fn value<'l>(line: &'l str, name: &str) -> Option<&'l str> {
        line.split_whitespace().find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
    }
    let seconds = |line: &str, name: &str| -> Option<f64> { value(line, name)?.strip_suffix('s')?.parse().ok() };
    let mebibytes = |name: &str| -> Option<f64> {
        Some(value(line, name)?.split("MiB").next()?.parse::<f64>().ok()? * f64::from(1 << 20))
    };
    let (left, sent) = (mebibytes("curr")?, mebibytes("bw")?);
    // What it sends was dirtied while the pass before it was sent.
    let pass_s = before.and_then(|before| seconds(before, "transfer")).filter(|seconds| *seconds > 0.0);
    Some(Account {
        total_ms: seconds(line, "elapsed").map(|seconds| (seconds * 1e3) as u64),
        transferred_bytes: mebibytes("total").map(|bytes| bytes as u64),
        // One more pass of that size is left, as long as nothing else changes.
        remaining_bytes: Some(left as u64),
        expected_downtime_ms: value(line, "est_downtime").and_then(|ms| ms.strip_suffix("ms")?.parse().ok()),
        passes: value(line, "iter").and_then(|pass| pass.parse().ok()),
        dirty_bytes_per_s: pass_s.map(|pass_s| left / pass_s),
        sent_bytes_per_s: Some(sent),
        ..Account::of(By::CloudHypervisor, "active")
    })
}

/// The task log of a migration: how much was sent at which speed, and how it ended.
fn of_proxmox(text: &str) -> Option<Account> {
    let line = last(text, "migration active, transferred ")?;
    let words: Vec<&str> = line.split_whitespace().collect();
    let [sent, unit, "of", total, total_unit, ..] = words.as_slice() else { return None };
    let speed = line.rsplit_once(", ").and_then(|(_, speed)| size(speed.strip_suffix("/s")?));
    let status =
        last(text, "migration status: ").map_or_else(|| "active".to_owned(), |status| status.trim().to_owned());
    let total_ms =
        text.lines().find(|line| line.contains(" start migrate command to ")).and_then(seconds).and_then(|began| {
            let ended = text.lines().rev().find_map(|line| line.contains("migration ").then(|| seconds(line))?)?;
            ended.checked_sub(began).map(|seconds| seconds * 1_000)
        });
    let downtime = last(text, "average migration speed: ")
        .and_then(|line| line.split_once("downtime ")?.1.split_whitespace().next()?.parse().ok());
    Some(Account {
        total_ms,
        downtime_ms: downtime,
        transferred_bytes: size(&format!("{sent} {unit}")),
        total_bytes: size(&format!("{total} {total_unit}")),
        sent_bytes_per_s: speed.map(|speed| speed as f64),
        ..Account::of(By::Proxmox, &status)
    })
}

/// `2022-03-03 17:48:58 ..` in seconds since some day: months count as 31 days, and a log goes on over the end of one rarely.
fn seconds(line: &str) -> Option<u64> {
    let (date, rest) = line.trim().split_once(' ')?;
    let time = rest.split(' ').next()?;
    let numbers = |text: &str, by: char| -> Option<Vec<u64>> { text.split(by).map(|word| word.parse().ok()).collect() };
    let ([year, month, day], [hour, minute, second]) = (&numbers(date, '-')?[..], &numbers(time, ':')?[..]) else {
        return None;
    };
    Some((((year * 12 + month) * 31 + day) * 24 + hour) * 3_600 + minute * 60 + second)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_read_as_it_stands_pretty_by_python_and_with_no_numbers() {
        let bare = r#"{"return": {"expected-downtime": 1, "xbzrle-cache": {"cache-miss-rate": -nan, "pages": 0}, "status": "active", "total-time": 1543124, "ram": {"total": 8599183360, "remaining": 30695424, "mbps": 830.6, "dirty-pages-rate": 7, "page-size": 4096}}, "id": "libvirt-1"}"#;
        let account = &read(bare)[0];
        assert_eq!(
            (account.status.as_str(), account.remaining_bytes, account.total_ms),
            ("active", Some(30_695_424), Some(1_543_124))
        );
        assert_eq!((account.dirty_pages_per_s, account.sent_bytes_per_s), (Some(7), Some(103_825_000.0)));
        let python = "debug           | vm> {'blocked': False,\ndebug           | vm>  'expected-downtime': 4000,\ndebug           | vm>  'ram': {'mbps': 0.5,\ndebug           | vm>          'remaining': 285523968},\ndebug           | vm>  'status': 'active'}\n";
        assert_eq!(read(python)[0].remaining_bytes, Some(285_523_968));
        assert_eq!(read("{\"a\": 1} {'b': {}} {"), []);
    }

    #[test]
    fn logs_tell_their_last_line() {
        let kubevirt = r#"{"msg":"Migration info for 8e7d: TimeElapsed:120003ms DataProcessed:7390MiB MemoryProcessed:7390MiB MemoryRemaining:2841MiB MemoryTotal:32776MiB MemoryBandwidth:8Mbps DirtyRate:9Mbps Iteration:4 ExpectedDowntime:44391ms DiskMbps:0","name":"vm1"}"#;
        let account = &read(kubevirt)[0];
        assert_eq!(
            (account.by, account.remaining_bytes, account.expected_downtime_ms),
            (By::KubeVirt, Some(2841 << 20), Some(44_391))
        );
        let hypervisor = "x: Precopy: iter=1 total=11562MiB curr=5418MiB bw=1824.44MiB/s transfer=2.97s\nx: Precopy: iter=2 total=16980MiB curr=5418MiB bw=1854.25MiB/s transfer=2.92s overhead=59ms est_downtime=2969ms elapsed=9.12s avg_bw=1862.17MiB/s\n";
        let account = &read(hypervisor)[0];
        let dirty = account.dirty_bytes_per_s.unwrap() / f64::from(1 << 20);
        assert!((dirty - 5_418.0 / 2.97).abs() < 1.0 && account.expected_downtime_ms == Some(2_969), "{account:?}");
        let proxmox = "2022-03-03 17:48:58 start migrate command to unix:/run/x\n2022-03-03 18:08:34 migration active, transferred 40.6 GiB of 32.0 GiB VM-state, 34.5 MiB/s\n2022-03-03 18:12:01 average migration speed: 23.7 MiB/s - downtime 230 ms\n2022-03-03 18:12:01 migration status: completed\n";
        let account = &read(proxmox)[0];
        assert_eq!(
            (account.status.as_str(), account.downtime_ms, account.total_ms),
            ("completed", Some(230), Some(1_383_000))
        );
        assert_eq!(account.transferred_bytes.map(|bytes| bytes >> 20), Some(41_574));
    }
}
