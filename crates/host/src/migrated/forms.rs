//! Sums of a migration in the other forms that people have them in: QEMU's answer as JSON or as a Python dictionary, and logs of what
//! drives QEMU, or is none.
//!
//! ```text
//! {"return": {"status": "active", "ram": {"remaining": 4513075200, ..}}}         query-migrate, bare, pretty, with -nan
//! {'status': 'active', 'ram': {'remaining': 285523968, ..}}                      the same, printed by Python
//! .. Migration info for UID: TimeElapsed:120003ms DataRemaining:2841MiB ..       KubeVirt's virt-launcher
//! migrationUid: .. failed: true .. completionTimeoutPerGiB: 150                  status.migrationState of its VMI
//! kubevirt_vmi_migration_data_remaining_bytes{name="web"} 5.1e+09                metrics of its virt-handler
//! .. Precopy: iter=1 total=11562MiB curr=5418MiB bw=1824.44MiB/s ..              Cloud Hypervisor
//! .. Dirty memory migration 1 of 5                                               the same, before version 50
//! .. migration active, transferred 40.6 GiB of 32.0 GiB VM-state, 34.5 MiB/s     Proxmox
//! ```
//! Sources: qapi/migration.json, QEMU 9.0; vmm/src/lib.rs, Cloud
//! Hypervisor 48 and 51; PVE/QemuMigrate.pm, qemu-server 7.1 and 8.2.

use super::account::{Account, By};
use super::{kubevirt, proxmox};
use serde_json::Value;
use std::borrow::Cow;

/// An object of JSON in a text: a QEMU answers with some kilobytes.
const MOST_BYTES: usize = 1 << 20;

/// All accounts in a text, in order of their forms; of a log the last line counts.
pub fn read(text: &str) -> Vec<Account> {
    let mut accounts: Vec<Account> = objects(text).iter().filter_map(of_answer).collect();
    accounts.extend(kubevirt::of_log(text));
    accounts.extend(kubevirt::of_state(text));
    accounts.extend(kubevirt::of_metrics(text));
    accounts.extend(of_cloud_hypervisor(text).or_else(|| of_old_cloud_hypervisor(text)));
    accounts.extend(proxmox::of_log(text));
    accounts
}

/// The last line that has these words, from them on.
pub(super) fn last<'t>(text: &'t str, words: &str) -> Option<Cow<'t, str>> {
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

/// The passes of `Precopy:` lines: what the last of them had to send is what was dirtied while the one before was sent; and how it ended.
fn of_cloud_hypervisor(text: &str) -> Option<Account> {
    let signs = ["Precopy: iter=", "Precopy complete: iter="];
    let mut passes =
        text.lines().rev().filter_map(|line| Some(&line[signs.iter().find_map(|sign| line.find(sign))?..]));
    let (line, before) = (passes.next(), passes.next());
    fn value<'l>(line: &'l str, name: &str) -> Option<&'l str> {
        line.split_whitespace().find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
    }
    let seconds = |line: &str, name: &str| -> Option<f64> { value(line, name)?.strip_suffix('s')?.parse().ok() };
    let mebibytes = |name: &str| -> Option<f64> {
        Some(value(line?, name)?.split("MiB").next()?.parse::<f64>().ok()? * f64::from(1 << 20))
    };
    let milliseconds = |word: &str| word.trim_end_matches(')').strip_suffix("ms")?.parse::<u64>().ok();
    let mut notes: Vec<String> = Vec::new();
    notes.extend(last(text, "Precopy: Pausing VM, ").map(|why| format!("the guest was paused {}", why.trim())));
    notes.extend(last(text, "Downtime breakdown: ").map(|parts| format!("of the downtime: {}", parts.trim())));
    // `Migration completed after 62.2s with a downtime of 2171ms (goal was 50ms)`.
    if let Some(end) = last(text, "Migration completed after ") {
        let words: Vec<&str> = end.split_whitespace().collect();
        let behind = |name: &str| words.iter().position(|word| *word == name).and_then(|at| words.get(at + 1).copied());
        let passes = line.and_then(|line| value(line, "iter")?.parse::<u64>().ok());
        notes.extend(
            passes.map(|before| format!("{} before the last one", base::number::counted(before, "pass", "passes"))),
        );
        notes.extend(behind("was").and_then(milliseconds).map(|ms| format!("the goal was a downtime of {ms} ms")));
        return Some(Account {
            total_ms: words
                .first()
                .and_then(|word| Some(word.strip_suffix('s')?.parse::<f64>().ok()? * 1e3))
                .map(|ms| ms as u64),
            downtime_ms: behind("of").and_then(milliseconds),
            transferred_bytes: mebibytes("total").map(|bytes| bytes as u64),
            notes,
            ..Account::of(By::CloudHypervisor, "completed")
        });
    }
    let line = line?;
    let (left, sent) = (mebibytes("curr")?, mebibytes("bw")?);
    // What it sends was dirtied while the pass before it was sent.
    let pass_s = before.and_then(|before| seconds(before, "transfer")).filter(|seconds| *seconds > 0.0);
    Some(Account {
        total_ms: seconds(line, "elapsed").map(|seconds| (seconds * 1e3) as u64),
        transferred_bytes: mebibytes("total").map(|bytes| bytes as u64),
        // One more pass of that size is left, as long as nothing else changes.
        remaining_bytes: Some(left as u64),
        expected_downtime_ms: value(line, "est_downtime").and_then(milliseconds),
        passes: value(line, "iter").and_then(|pass| pass.parse().ok()),
        dirty_bytes_per_s: pass_s.map(|pass_s| left / pass_s),
        sent_bytes_per_s: Some(sent),
        notes,
        ..Account::of(By::CloudHypervisor, "active")
    })
}

/// The passes of `Dirty memory migration 1 of 5`, each with the ranges that it had to send (vmm/src/lib.rs and memory_manager.rs, Cloud
/// Hypervisor 21): no line has a rate, and none an end.
fn of_old_cloud_hypervisor(text: &str) -> Option<Account> {
    const PASS: &str = " -- Dirty memory migration ";
    let lines: Vec<&str> = text.lines().collect();
    let last = lines.iter().rposition(|line| line.contains(PASS))?;
    let passes = lines.iter().filter(|line| line.contains(PASS)).count() as u64;
    let behind = &lines[last..];
    let kibibytes = |line: &&str| line.split_once(" size: ")?.1.strip_suffix(" (KiB)")?.trim().parse::<u64>().ok();
    let is_empty = behind.iter().any(|line| line.contains("Dirty Memory Range Table is empty"));
    let left = behind.iter().filter_map(kibibytes).map(|kib| kib.saturating_mul(1_024)).fold(0, u64::saturating_add);
    let of = lines[last].split_once(PASS)?.1.trim();
    let mut notes = vec![format!("dirty memory was sent {of} times, counted from 0")];
    if is_empty {
        notes.push(
            "the last look found no dirty memory: what is left is the state of the devices, which the target has to take over".to_owned(),
        );
    }
    Some(Account {
        passes: Some(passes),
        remaining_bytes: (is_empty || left > 0).then_some(left),
        notes,
        ..Account::of(By::CloudHypervisor, "active")
    })
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
        assert_eq!((account.sent_bytes_per_s, account.dirty_bytes_per_s), (Some(64e6), Some(72e6)), "of an old one");
        let new =
            kubevirt.replace("MemoryBandwidth:8Mbps DirtyRate:9Mbps", "MemoryBandwidth:516Mbps DirtyRate:600Mbps");
        let account = &read(&new)[0];
        assert_eq!((account.sent_bytes_per_s, account.dirty_bytes_per_s), (Some(64.5e6), Some(75e6)));
        let account = &read(&new.replace("TimeElapsed:120003ms", "TimeElapsed:0ms"))[0];
        assert_eq!((account.sent_bytes_per_s, account.dirty_bytes_per_s), (None, None), "either is possible");
        let hypervisor = "x: Precopy: iter=1 total=11562MiB curr=5418MiB bw=1824.44MiB/s transfer=2.97s\nx: Precopy: iter=2 total=16980MiB curr=5418MiB bw=1854.25MiB/s transfer=2.92s overhead=59ms est_downtime=2969ms elapsed=9.12s avg_bw=1862.17MiB/s\n";
        let account = &read(hypervisor)[0];
        let dirty = account.dirty_bytes_per_s.unwrap() / f64::from(1 << 20);
        assert!((dirty - 5_418.0 / 2.97).abs() < 1.0 && account.expected_downtime_ms == Some(2_969), "{account:?}");
    }

    #[test]
    fn behind_the_switch_to_post_copy_the_account_says_so() {
        let answer =
            r#"{"return": {"status": "postcopy-active", "ram": {"remaining": 5, "mbps": 8.0, "dirty-pages-rate": 0}}}"#;
        assert_eq!(read(answer)[0].notes, [super::super::account::POSTCOPY]);
        assert!(read(&answer.replace("postcopy-", ""))[0].notes.is_empty());
    }

    #[test]
    fn old_logs_and_metrics_are_accounts() {
        let old = "c: 10.4s: <vmm> INFO:vmm/src/lib.rs:1087 -- Dirty memory migration 0 of 5\nc: 10.5s: <vmm> INFO:m.rs:2282 -- GPA: 0 size: 64 (KiB)\n\
            c: 10.5s: <vmm> INFO:vmm/src/lib.rs:1087 -- Dirty memory migration 1 of 5\nc: 10.6s: <vmm> INFO:m.rs:2278 -- Dirty Memory Range Table is empty\n";
        let account = &read(old)[0];
        assert_eq!((account.passes, account.remaining_bytes, account.status.as_str()), (Some(2), Some(0), "active"));
        assert_eq!(
            read(old.split_inclusive('\n').take(2).collect::<String>().as_str())[0].remaining_bytes,
            Some(65_536)
        );
        let metrics = "# HELP kubevirt_vmi_migration_data_processed_bytes The total.\nkubevirt_vmi_migration_data_processed_bytes{name=\"a\"} 1.9022e+11\n\
            kubevirt_vmi_migration_data_remaining_bytes{name=\"a\"} 5.0e+09\nkubevirt_vmi_migration_data_total_bytes{name=\"a\"} 3e+10\n\
            kubevirt_vmi_migration_dirty_memory_rate_bytes{name=\"a\"} 6.7e+08\nkubevirt_vmi_migration_disk_transfer_rate_bytes{name=\"a\"} 6.7e+07\n";
        let account = &read(metrics)[0];
        assert_eq!((account.remaining_bytes, account.dirty_bytes_per_s), (Some(5_000_000_000), Some(6.7e8)));
        assert_eq!((account.sent_bytes_per_s, account.total_bytes), (Some(6.7e7), Some(30_000_000_000)));
        assert_eq!(read("kubevirt_vmi_migration_succeeded{name=\"a\"} 1\n"), []);
    }

    #[test]
    fn a_log_that_ends_tells_its_end_and_why() {
        let text = "x: Precopy: iter=2 curr=2911MiB total=24185MiB bw=1168.90MiB/s transfer=2.49s est_downtime=2487ms elapsed=20.70s\n\
            x: Precopy: Pausing VM, ignoring target downtime (50ms) due to timeout (60s): Estimated downtime: 2041ms\n\
            x: Precopy complete: iter=22 curr=2402MiB total=71910MiB bw=1169.81MiB/s transfer=2.05s est_downtime=2054ms elapsed=62.07s\n";
        let over = format!(
            "{text}x: Migration completed after 62.2s with a downtime of 2171ms (goal was 50ms)\nx: Downtime breakdown: 2171ms (final_iter:2068ms complete:58ms)\n"
        );
        let [account] = &read(&over)[..] else { panic!("one") };
        assert_eq!(
            (account.status.as_str(), account.total_ms, account.downtime_ms),
            ("completed", Some(62_200), Some(2_171))
        );
        assert_eq!((account.passes, account.transferred_bytes.map(|bytes| bytes >> 20)), (None, Some(71_910)));
        assert!(
            account.notes[0].contains("due to timeout (60s)")
                && account.notes.contains(&"22 passes before the last one".to_owned()),
            "{:?}",
            account.notes
        );
        // A line that is none of a pass hides no pass.
        let paused = &read(text.lines().take(2).collect::<Vec<_>>().join("\n").as_str())[0];
        assert_eq!((paused.status.as_str(), paused.passes), ("active", Some(2)));
        let proxmox = "2026-10-20 21:02:15 migration downtime limit: 100 ms\n2026-10-20 21:02:15 start migrate command to unix:/run/x\n2026-10-20 21:07:21 migration active, transferred 33.3 GiB of 32.0 GiB VM-state, 110.0 MiB/s, VM dirties lots of memory: 131.5 MiB/s\n[...]\n\
            2026-10-20 21:08:31 auto-increased downtime to continue migration: 200 ms\n2026-10-20 21:11:12 average migration speed: 61.1 MiB/s - downtime 1388 ms\n2026-10-20 21:11:12 migration status: completed\n";
        let account = &read(proxmox)[0];
        assert_eq!(
            (account.total_ms, account.downtime_ms, account.transferred_bytes),
            (Some(537_000), Some(1_388), None)
        );
        assert_eq!(account.sent_bytes_per_s, Some(110.0 * f64::from(1 << 20)));
        assert_eq!(
            account.notes,
            [
                "35.8 GB had been sent 231 s before it ended",
                "the guest dirtied 137.9 MB/s while 115.3 MB/s were sent",
                "the downtime limit was raised 1 time, from 100 ms to 200 ms",
                "64.1 MB/s on average, by its own account"
            ]
        );
    }

    #[test]
    fn a_migration_state_alone_tells_how_it_ended_and_its_limits() {
        let text = "completed: true\nendTimestamp: \"2026-10-21T14:22:13Z\"\nfailed: true\nfailureReason: 'aborted: by client'\nmigrationConfiguration:\n  allowAutoConverge: false\n  \
            bandwidthPerMigration: 64Mi\n  completionTimeoutPerGiB: 150\nmigrationUid: 3f0c\nstartTimestamp: \"2026-10-21T13:02:11Z\"\n";
        let [account] = &read(text)[..] else { panic!("one") };
        assert_eq!(
            (account.status.as_str(), account.total_ms, account.error.as_deref()),
            ("failed", Some(4_802_000), Some("aborted: by client"))
        );
        assert!(account.notes[1].ends_with("4802 s are the limit of 32.0 GiB"), "{:?}", account.notes);
        assert_eq!(read(&text.replace("migrationUid", "  migrationUid")), [], "within an object it is read with it");
        let deep: String = text.lines().map(|line| format!("    {line}\n")).collect();
        assert_eq!(read(&deep).len(), 1, "as it stands in what `kubectl get vmi -o yaml` prints");
    }
}
