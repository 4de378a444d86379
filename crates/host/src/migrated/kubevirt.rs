//! What KubeVirt says of a live migration: lines of virt-launcher's log, and the state that it keeps of the VMI.
//!
//! Sources: pkg/virt-launcher/virtwrap/live-migration-source.go, KubeVirt 1.0 and 1.3; staging/src/kubevirt.io/api/core/v1/types.go,
//! KubeVirt 1.3.

use super::account::{Account, By};
use super::proxmox::seconds;

/// Bytes a second of one of KubeVirt's `Mbps`: a megabit since it multiplies by 8, 8 megabytes as long as it divided by it
/// (`LogMigrationInfo`, pkg/virt-launcher/virtwrap/live-migration-source.go).
const MBPS: [f64; 2] = [125_000.0, 8_000_000.0];

/// How virt-launcher says that it gave a migration up (the same file): the reason stands behind the words, or is the line's `reason`.
const GAVE_UP: [&str; 2] = ["Live migration abort detected with reason: ", "Live migration failed"];

/// How virt-launcher says that it cancels a migration itself, and the limit that it goes by (`processInflightMigration`, the same file).
const OWN: [(&str, &str, &str); 2] = [
    ("Live migration stuck for ", "it saw no progress for", "progressTimeout"),
    ("Live migration is not completed after ", "it had not ended after", "completionTimeoutPerGiB"),
];

/// What a configuration of KubeVirt sets that decides whether a migration ends.
const SET: [&str; 5] =
    ["allowAutoConverge", "allowPostCopy", "progressTimeout", "completionTimeoutPerGiB", "bandwidthPerMigration"];

/// The last look that a log has, and where it was given up after that, why and when.
pub(super) fn of_log(text: &str) -> Option<Account> {
    let of = |line: &str| of_look(line.split_once("Migration info for ")?.1);
    let look = text.lines().enumerate().filter_map(|(at, line)| Some((at, of(line)?))).last();
    let is_end = |line: &str| GAVE_UP.iter().any(|words| line.contains(words));
    let lines: Vec<&str> = text.lines().collect();
    let end = lines.iter().rposition(|line| is_end(line)).filter(|end| look.as_ref().is_none_or(|(at, _)| at < end));
    let Some(end) = end else { return look.map(|(_, account)| account) };
    let quoted = |words: &str| Some(lines[end].split_once(words)?.1.split('"').next()?.trim().to_owned());
    let reason = quoted(GAVE_UP[0]).or_else(|| quoted("\"reason\":\""));
    let when =
        |line: &&str| seconds(&line.split_once("\"timestamp\":\"")?.1.split(['.', 'Z']).next()?.replace('T', " "));
    let began = lines[..end].iter().rev().find(|line| line.contains("Initiating live migration"));
    let took_s = began.and_then(when).zip(when(&lines[end])).and_then(|(began, end)| end.checked_sub(began));
    let mut notes: Vec<String> = Vec::new();
    notes.extend(took_s.map(|seconds| format!("it ended {seconds} s after its begin")));
    if let Some((_, look)) = &look {
        let at = look.total_ms.map_or(String::new(), |ms| format!(", {} s after its begin", ms / 1_000));
        let size = |what: Option<u64>| what.map(|bytes| base::number::bytes(bytes as f64));
        let rate = |what: Option<f64>| what.map(|rate| format!("{}/s", base::number::bytes(rate)));
        let told = [
            size(look.remaining_bytes).map(|left| format!("{left} were left")),
            rate(look.dirty_bytes_per_s).map(|dirtied| format!("the guest dirtied {dirtied}")),
            rate(look.sent_bytes_per_s).map(|sent| format!("{sent} were sent")),
        ];
        notes.push(format!(
            "at its last look{at}, {}",
            base::number::list(&told.into_iter().flatten().collect::<Vec<_>>())
        ));
    }
    let own = OWN.iter().find_map(|(words, what, limit)| {
        let line = lines[..=end].iter().rev().find(|line| line.contains(words))?;
        let seconds = line.split_once(words)?.1.split(' ').next()?.parse::<u64>().ok()?;
        Some(format!("virt-launcher cancelled it by itself, since {what} {seconds} s ({limit})"))
    });
    notes.extend(own);
    let set = SET.iter().filter_map(|name| {
        let line = lines.iter().find_map(|line| line.trim().strip_prefix(name)?.strip_prefix(':'))?;
        Some(format!("{name} {}", line.trim().trim_matches(['"', '\''])))
    });
    notes.extend(set);
    let look = look.map_or_else(|| Account::of(By::KubeVirt, "failed"), |(_, look)| look);
    // What was looked at before the end says nothing of what was sent by then.
    Some(Account {
        error: reason,
        total_ms: took_s.map(|seconds| seconds * 1_000),
        total_bytes: look.total_bytes,
        remaining_bytes: look.remaining_bytes,
        dirty_bytes_per_s: look.dirty_bytes_per_s,
        sent_bytes_per_s: look.sent_bytes_per_s,
        notes,
        ..Account::of(By::KubeVirt, "failed")
    })
}

/// Metrics of virt-handler, as Prometheus asks for them (docs/observability/metrics.md, KubeVirt 1.3: `disk_transfer_rate` is the rate at
/// which memory is transferred). Of several migrations the first counts.
pub(super) fn of_metrics(text: &str) -> Option<Account> {
    let value = |name: &str| -> Option<f64> {
        let of = |line: &str| {
            let rest = line.trim().strip_prefix("kubevirt_vmi_migration_")?.strip_prefix(name)?;
            let rest = rest.split_once('}').map_or(rest, |(_, rest)| rest);
            rest.split_whitespace().next()?.parse::<f64>().ok().filter(|value| (0.0..1e18).contains(value))
        };
        text.lines().find_map(of)
    };
    let remaining = value("data_remaining_bytes")?;
    let rate = |names: [&str; 2]| names.into_iter().find_map(&value).filter(|rate| *rate > 0.0);
    Some(Account {
        remaining_bytes: Some(remaining as u64),
        transferred_bytes: value("data_processed_bytes").map(|bytes| bytes as u64),
        total_bytes: value("data_total_bytes").map(|bytes| bytes as u64),
        dirty_bytes_per_s: rate(["dirty_memory_rate_bytes", "memory_dirty_rate_bytes"]),
        sent_bytes_per_s: rate(["disk_transfer_rate_bytes", "memory_transfer_rate_bytes"]),
        ..Account::of(By::KubeVirt, "active")
    })
}

/// `UID: TimeElapsed:120003ms DataProcessed:7390MiB .. Iteration:4 ..`.
fn of_look(line: &str) -> Option<Account> {
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
    let count = |name: &str| number(name).map(|count| count as u64);
    // What was sent in all says which of the two units its rates are in: with neither, they are not known.
    let average = number("MemoryProcessed").zip(number("TimeElapsed")).filter(|(_, ms)| *ms > 0.0);
    let average = average.map(|(mebibytes, ms)| mebibytes * f64::from(1 << 20) / (ms / 1e3)).filter(|rate| *rate > 0.0);
    let sent = number("MemoryBandwidth").filter(|rate| *rate > 0.0);
    let unit = average.zip(sent).and_then(|(average, sent)| {
        let off = |unit: &f64| (sent * unit / average).ln().abs();
        MBPS.into_iter().min_by(|a, b| off(a).total_cmp(&off(b)))
    });
    let per_second = |name: &str| Some(number(name)? * unit?);
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

/// `status.migrationState` of a VMI, by itself: how it ended, and the limits that it ended by.
pub(super) fn of_state(text: &str) -> Option<Account> {
    let value = |name: &str| {
        let line = text.lines().find_map(|line| line.trim().strip_prefix(name)?.strip_prefix(':'))?;
        Some(line.trim().trim_matches(['"', '\''])).filter(|value| !value.is_empty())
    };
    // Within an object it is read with it; by itself all of its keys are as deep as the first one.
    let depth = |line: &str| line.len() - line.trim_start().len();
    let first = text.lines().find(|line| !line.trim().is_empty()).map(depth);
    if !text.lines().any(|line| line.trim_start().starts_with("migrationUid:") && Some(depth(line)) == first) {
        return None;
    }
    let is = |name: &str| value(name) == Some("true");
    let status = match (is("failed"), is("completed")) {
        (true, _) => "failed",
        (_, true) => "completed",
        _ => "active",
    };
    let at = |name: &str| seconds(&value(name)?.trim_end_matches('Z').replace('T', " "));
    let took_s = at("endTimestamp").zip(at("startTimestamp")).and_then(|(end, begin)| end.checked_sub(begin));
    let mut notes: Vec<String> = Vec::new();
    notes.extend(took_s.map(|seconds| format!("it took {seconds} s, from startTimestamp to endTimestamp")));
    let per_gib =
        value("completionTimeoutPerGiB").and_then(|value| value.parse::<u64>().ok()).filter(|limit| *limit > 0);
    notes.extend(per_gib.map(|limit| {
        let reached = took_s
            .map_or(String::new(), |took| format!(": {took} s are the limit of {:.1} GiB", took as f64 / limit as f64));
        format!("KubeVirt aborts it after {limit} s for each GiB of memory (completionTimeoutPerGiB){reached}")
    }));
    notes.extend(value("bandwidthPerMigration").map(|limit| match limit {
        "0" => "no limit of bandwidth (bandwidthPerMigration 0)".to_owned(),
        limit => format!("at most {limit} may be sent in a second (bandwidthPerMigration)"),
    }));
    for (name, what) in [("allowAutoConverge", "auto-converge"), ("allowPostCopy", "post-copy")] {
        notes.extend(
            value(name)
                .map(|allowed| format!("{what} {}allowed ({name})", if allowed == "true" { "" } else { "not " })),
        );
    }
    Some(Account {
        error: value("failureReason").map(str::to_owned),
        total_ms: took_s.map(|seconds| seconds * 1_000),
        notes,
        ..Account::of(By::KubeVirt, status)
    })
}
