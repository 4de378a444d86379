//! The log of a task of Proxmox that migrates a VM (PVE/QemuMigrate.pm, qemu-server 6.3 to 8.2).

use super::account::{Account, By, size};
use super::forms::last;

/// The task log of a migration: how much was sent at which speed, and how it ended.
pub(super) fn of_log(text: &str) -> Option<Account> {
    const ACTIVE: &str = "migration active, transferred ";
    /// Before qemu-server 7.0: `active (transferred 294227312, remaining 155041792), total 554508288)`.
    const OLD: &str = "migration status: active (";
    let active = text.lines().rev().find(|line| line.contains(ACTIVE) || line.contains(OLD));
    let told = active.and_then(|line| line.split_once(ACTIVE)).map_or("", |(_, told)| told);
    let old = |what: &str| {
        let told = last(text, OLD)?;
        let part = told.split([',', ')']).find_map(|part| part.trim().strip_prefix(what))?.trim();
        // People write sizes there: `transferred 1.2 MiB of 260.0 MiB`.
        let words = || part.split_whitespace().take(2).collect::<Vec<_>>().join(" ");
        part.parse::<u64>().ok().or_else(|| size(&words()))
    };
    let status = last(text, "migration status: ");
    let began = text.lines().find(|line| line.contains(" start migrate command to "));
    if active.is_none() && (status.is_none() || began.is_none()) {
        return None;
    }
    let failed = ["ERROR: online migrate failure - ", "ERROR: migration finished with problems"];
    let why =
        failed.iter().find_map(|words| last(text, words).map(|why| why.trim().trim_start_matches('-').to_owned()));
    let word = |status: &str| status.split(" (").next().unwrap_or_default().trim().to_owned();
    let status = status.map(|status| word(&status)).or_else(|| why.as_ref().map(|_| "failed".to_owned()));
    let status = status.unwrap_or_else(|| "active".to_owned());
    let words: Vec<&str> = told.split_whitespace().collect();
    let (sent, total) = match words.as_slice() {
        [sent, unit, "of", total, total_unit, ..] => {
            (size(&format!("{sent} {unit}")), size(&format!("{total} {total_unit}")))
        }
        _ => {
            let all = last(text, OLD).and_then(|told| size(told.split([',', ')']).next()?.split_once(" of ")?.1));
            (old("transferred"), old("total").or(all))
        }
    };
    // The last line of all counts what was sent in the end (since qemu-server 7.0).
    let in_all = last(text, "migration completed, transferred ").and_then(|told| {
        let words: Vec<&str> = told.split_whitespace().take(2).collect();
        size(&words.join(" "))
    });
    let rate = |text: &str| size(text.trim().strip_suffix("/s")?).map(|rate| rate as f64);
    let speed = told.split(", ").find_map(rate);
    let dirtied = text.lines().rev().find_map(|line| rate(line.split_once("VM dirties lots of memory: ")?.1));
    let ended = text.lines().rev().find_map(|line| line.contains("migration ").then(|| seconds(line))?);
    let took = || ended?.checked_sub(began.and_then(seconds)?);
    let total_ms =
        last(text, "(duration ").and_then(|told| of_clock(&told)).or_else(took).map(|seconds| seconds * 1_000);
    let downtime = last(text, "migration speed: ")
        .and_then(|line| line.split_once("downtime ")?.1.split_whitespace().next()?.parse().ok());
    // Where lines before the end were cut off, nobody knows what was sent in all.
    let is_whole = in_all.is_some()
        || status == "active"
        || active.and_then(seconds).zip(ended).is_some_and(|(last, ended)| ended.saturating_sub(last) <= LAST_LINES_S);
    let mut notes: Vec<String> = Vec::new();
    let per_second = |rate: f64| format!("{}/s", base::number::bytes(rate));
    if let Some((sent, before)) = sent.zip(active.and_then(seconds).zip(ended)).filter(|_| !is_whole) {
        let before = before.1.saturating_sub(before.0);
        notes.push(format!("{} had been sent {before} s before it ended", base::number::bytes(sent as f64)));
    }
    if status != "active" {
        notes.extend(dirtied.zip(speed).map(|(dirtied, sent)| {
            format!("the guest dirtied {} while {} were sent", per_second(dirtied), per_second(sent))
        }));
    }
    notes.extend(standstill(text, &[ACTIVE, OLD]).filter(|_| status == "active"));
    let first = last(text, "migration downtime limit: ");
    let raised: Vec<&str> = text
        .lines()
        .filter_map(|line| Some(line.split_once("auto-increased downtime to continue migration: ")?.1.trim()))
        .collect();
    notes.extend(match (first, raised.last()) {
        (first, Some(last)) => {
            let from = first.map_or(String::new(), |first| format!(" from {}", first.trim()));
            let times = base::number::counted(raised.len() as u64, "time", "times");
            Some(format!("the downtime limit was raised {times},{from} to {last}"))
        }
        (Some(first), None) => Some(format!("the downtime limit is {}", first.trim())),
        (None, None) => None,
    });
    let mean = last(text, "migration speed: ").and_then(|told| rate(told.split(" - ").next()?));
    notes.extend(mean.map(|mean| format!("{} on average, by its own account", per_second(mean))));
    notes.extend(last(text, "xbzrle: ").map(|told| format!("XBZRLE, {}", told.trim())));
    Some(Account {
        total_ms,
        downtime_ms: downtime,
        transferred_bytes: in_all.or(sent.filter(|_| is_whole)),
        total_bytes: total,
        remaining_bytes: old("remaining").filter(|_| status == "active"),
        dirty_bytes_per_s: dirtied,
        sent_bytes_per_s: speed,
        notes,
        error: why.filter(|why| !why.is_empty() && !why.starts_with('(')),
        ..Account::of(By::Proxmox, &status)
    })
}

/// What says that nothing was sent between the last looks of a log.
fn standstill(text: &str, signs: &[&str]) -> Option<String> {
    let looks = text.lines().rev().filter_map(|line| {
        let told = signs.iter().find_map(|sign| line.split_once(sign))?.1;
        Some((told.split(',').next()?.trim(), seconds(line)))
    });
    let mut looks = looks.peekable();
    let (told, until) = *looks.peek()?;
    let same: Vec<_> = looks.take_while(|(other, _)| *other == told).collect();
    let from = same.last().filter(|_| same.len() > 1)?.1;
    let span = until.zip(from).and_then(|(until, from)| until.checked_sub(from)).filter(|span| *span > 0);
    let over = span.map_or(String::new(), |span| format!(" within {span} s"));
    Some(format!("nothing was sent between its last {} looks{over}", same.len()))
}

/// Proxmox prints a line a second; the target takes over what is left in a few.
const LAST_LINES_S: u64 = 10;

/// `00:01:08)` in seconds.
fn of_clock(text: &str) -> Option<u64> {
    let numbers: Option<Vec<u64>> = text.split([':', ')']).take(3).map(|word| word.trim().parse().ok()).collect();
    let [hours, minutes, seconds] = numbers?[..] else { return None };
    hours.checked_mul(3_600)?.checked_add(minutes.checked_mul(60)?)?.checked_add(seconds)
}

/// `2022-03-03 17:48:58 ..` in seconds since some day: months count as 31 days, and a log goes on over the end of one rarely.
pub(super) fn seconds(line: &str) -> Option<u64> {
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
    use super::super::forms::read;

    #[test]
    fn a_log_tells_its_own_sums_in_every_form() {
        let proxmox = "2022-03-03 17:48:58 start migrate command to unix:/run/x\n2022-03-03 18:08:34 migration active, transferred 40.6 GiB of 32.0 GiB VM-state, 34.5 MiB/s\n2022-03-03 18:12:01 average migration speed: 23.7 MiB/s - downtime 230 ms\n2022-03-03 18:12:01 migration status: completed\n";
        let account = &read(proxmox)[0];
        assert_eq!(
            (account.status.as_str(), account.downtime_ms, account.total_ms),
            ("completed", Some(230), Some(1_383_000))
        );
        assert_eq!(account.transferred_bytes, None, "what was sent in the last minutes is not told");
        let mean = "24.9 MB/s on average, by its own account";
        assert_eq!(account.notes, ["43.6 GB had been sent 207 s before it ended", mean]);
        let counted = proxmox.replace("\n2022-03-03 18:12:01 migration status", "\n2022-03-03 18:12:01 migration completed, transferred 44.2 GiB VM-state\n2022-03-03 18:12:01 migration status");
        let account = &read(&counted)[0];
        assert_eq!((account.transferred_bytes.map(|bytes| bytes >> 20), account.notes.len()), (Some(45_260), 1));
        let old = "2021-04-22 01:02:12 start migrate command to unix:/run/x\n2021-04-22 01:02:13 migration status: active (transferred 294227312, remaining 155041792), total 554508288)\n2021-04-22 01:02:14 migration speed: 256.00 MB/s - downtime 57 ms\n2021-04-22 01:02:14 migration status: completed\n2021-04-22 01:02:17 migration finished successfully (duration 00:00:08)\n";
        let account = &read(old)[0];
        assert_eq!(
            (account.status.as_str(), account.downtime_ms, account.total_ms),
            ("completed", Some(57), Some(8_000))
        );
        assert_eq!((account.transferred_bytes, account.total_bytes), (Some(294_227_312), Some(554_508_288)));
        let still =
            "2026-03-04 09:14:02 migration status: active (transferred 1.5 MiB of 260.0 MiB), remaining 258.5 MiB\n";
        let still = format!("{still}{}", still.replace("14:02", "14:09"));
        let account = &read(&still)[0];
        assert_eq!((account.transferred_bytes, account.total_bytes), (Some(1_572_864), Some(260 << 20)));
        assert_eq!(account.remaining_bytes, Some(271_056_896));
        assert_eq!(account.notes, ["nothing was sent between its last 2 looks within 7 s"]);
        let cut = &read(&old.split_inclusive('\n').take(2).collect::<String>())[0];
        assert_eq!((cut.status.as_str(), cut.remaining_bytes), ("active", Some(155_041_792)));
    }
}
