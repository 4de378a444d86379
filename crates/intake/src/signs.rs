//! How pieces begin and end that are neither results nor traces: objects of JSON, migrations, switches.

use crate::commands::typed;
use crate::normal::Line;
use base::recording::{is_of_migration, is_of_switch};

/// Lines of an object: what QEMU says of a migration has some fifty, lscpu some hundred, iperf3 of many streams some thousand.
const MOST_LINES: usize = 20_000;

/// Where the object of JSON ends that begins at a line; none where its braces do not close. Each line that is looked at is taken from
/// `left`.
pub(crate) fn object(lines: &[Line], at: usize, left: &mut usize) -> Option<usize> {
    // Python prints its dictionaries behind whatever a log puts before them.
    if !lines[at].text.trim_start().starts_with('{') && !lines[at].text.contains("{'") {
        return None;
    }
    let (mut depth, mut quoted, mut escaped) = (0_i64, false, false);
    for (place, line) in lines.iter().enumerate().skip(at).take(MOST_LINES) {
        *left = left.checked_sub(1)?;
        for byte in line.text.bytes() {
            match byte {
                _ if escaped => escaped = false,
                b'\\' if quoted => escaped = true,
                b'"' => quoted = !quoted,
                b'{' if !quoted => depth += 1,
                b'}' if !quoted => depth -= 1,
                _ => {}
            }
        }
        if depth <= 0 {
            return Some(place + 1);
        }
    }
    None
}

/// Whether an object is QEMU's answer to `query-migrate`.
pub(crate) fn is_migration_object(text: &str) -> bool {
    let has = |name: &str| text.contains(&format!("\"{name}\"")) || text.contains(&format!("'{name}'"));
    has("status") && (has("ram") || has("expected-downtime")) || text.contains(":vmstate_downtime")
}

/// Lines of settings before the status, in QEMU 10.0.
const MOST_HEAD: usize = 12;

/// Keys of a VMI's migrationState, one of which it begins with, as they are sorted.
const OF_STATE: &[&str] = &[
    "abortRequested:",
    "abortStatus:",
    "completed:",
    "endTimestamp:",
    "failed:",
    "migrationConfiguration:",
    "migrationUid:",
];

/// Lines of such a state.
const MOST_STATE: usize = 48;

/// Where what QEMU or libvirt print of a migration ends, if it begins at a line: lines of a name and a value. It goes on behind a mark that lines
/// were left out, and behind the commands that ask how it was set.
pub(crate) fn migration(lines: &[Line], at: usize) -> Option<usize> {
    let is_sign = |line: &Line| is_of_migration(line.text.as_bytes());
    // The monitor says first what is switched on.
    let is_head = ["capabilities:", "globals:"].iter().any(|head| lines[at].text.trim_start().starts_with(head));
    let leads =
        || lines[at..].iter().take(MOST_HEAD).any(|line| line.text.trim_start().starts_with("Migration status:"));
    let is_status = lines[at].text.trim_start().starts_with("Status:") && lines.get(at + 1).is_some_and(is_sign);
    // Within a whole object it is read with it.
    let is_whole = || lines[..at].iter().any(|line| line.text.starts_with("apiVersion:"));
    let is_state = || {
        OF_STATE.iter().any(|key| lines[at].text.trim_start().starts_with(key))
            && !(lines[at].text.starts_with(' ') && is_whole())
            && lines[at..]
                .iter()
                .take(MOST_STATE)
                .take_while(|line| line.text.contains(':'))
                .any(|line| line.text.trim_start().starts_with("migrationUid:"))
    };
    let asked = settings_before(lines, at);
    if !(is_sign(&lines[at]) || is_status || is_head && leads() || is_state() || asked.is_some()) {
        return None;
    }
    let at = asked.unwrap_or(at);
    // A task of Proxmox that copies disks alone, or was cut before it came to the memory, is no migration of a guest's memory.
    let is_begin = lines[at].text.contains(" starting migration of VM ");
    let is_pair = |line: &Line| {
        let text = line.text.trim();
        let name = text.split_once(':').map(|(name, _)| name);
        text.is_empty()
            || text == "TASK OK"
            || name.is_some_and(|name| name.len() < 40 && name.split_whitespace().count() <= 4)
            || text.starts_with('{')
    };
    // Another task begins another migration.
    let goes_on = |line: &Line| is_pair(line) || is_sign(line) || is_of_task(&line.text);
    let anew = |from: usize, to: usize| {
        let begins = |place: &usize| {
            lines[*place].text.contains(" starting migration of VM ") && lines[at + 1..*place].iter().any(is_sign)
        };
        (from..to).find(begins)
    };
    let mut last = end(lines, at, goes_on);
    loop {
        if let Some(next) = anew(at + 1, last) {
            let written = (at..next).rev().find(|place| !lines[*place].text.trim().is_empty());
            return Some(written.map_or(next, |place| place + 1));
        }
        let written = |from: usize| (from..lines.len()).find(|place| !lines[*place].text.trim().is_empty());
        let is_memory = !is_begin || lines[at + 1..last].iter().any(is_sign);
        let Some(next) = written(last).filter(|_| is_memory) else { return is_memory.then_some(last) };
        let asks = ["info migrate_parameters", "info migrate_capabilities"];
        let asks = asks.iter().any(|command| lines[next].text.contains(command));
        // The same program goes on with the word that its lines begin with.
        let first = |line: &Line| line.text.split_whitespace().next().map(str::to_owned);
        let is_same =
            |behind: usize| first(&lines[behind]).is_some_and(|word| word.len() > 8 && Some(word) == first(&lines[at]));
        let behind = written(next + 1)
            .filter(|behind| asks || is_left_out(&lines[next].text) && (is_sign(&lines[*behind]) || is_same(*behind)));
        let Some(behind) = behind else { return Some(last) };
        last = end(lines, behind, goes_on);
    }
}

/// What a task of Proxmox prints of disks between its dated lines, and the dated ones.
fn is_of_task(text: &str) -> bool {
    let text = text.trim_start();
    let is_dated = || {
        let mut words = text.split(' ');
        let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        let parts =
            |word: Option<&str>, by: char| word.map_or(0, |word| word.split(by).filter(|part| is_number(part)).count());
        parts(words.next(), '-') == 3 && parts(words.next(), ':') == 3
    };
    is_of_disk(text) || text.starts_with("drive-") || text.starts_with("all 'mirror' jobs") || is_dated()
}

/// Whether a line of a task of Proxmox is of a disk that it copies.
pub(crate) fn is_of_disk(text: &str) -> bool {
    let text = text.trim_start();
    text.starts_with("drive mirror is starting for ") || text.starts_with("drive-") && text.contains(": transferred ")
}

/// Where the monitor tells of a migration whose settings somebody asked for before, if these begin at a line.
fn settings_before(lines: &[Line], at: usize) -> Option<usize> {
    const NAMES: [&str; 5] = ["announce-initial:", "compress-level:", "max-bandwidth:", "downtime-limit:", "xbzrle:"];
    let text = |line: &Line| line.text.trim().to_owned();
    if !NAMES.iter().any(|name| lines[at].text.trim_start().starts_with(name)) {
        return None;
    }
    let is_between = |line: &Line| {
        let text = text(line);
        text.is_empty()
            || typed(&text).is_some()
            || text.split_once(':').is_some_and(|(name, _)| !name.trim().contains(' '))
            || text == "info migrate:"
    };
    let behind = lines[at..].iter().take(MOST_SETTINGS);
    let status = behind.take_while(|line| is_between(line) || text(line).starts_with("Migration status:"));
    let ahead = status.into_iter().position(|line| text(line).starts_with("Migration status:"))?;
    Some(at + ahead)
}

/// Lines of `info migrate_parameters`, some forty in QEMU 10.0.
const MOST_SETTINGS: usize = 64;

/// Where what KubeVirt is set to do with migrations ends, if it begins at a line: `liveMigrationConfig:` of a HyperConverged, `migrations:` of a
/// KubeVirt, and the keys below.
pub(crate) fn migration_settings(lines: &[Line], at: usize) -> Option<usize> {
    const KEYS: [&str; 3] = ["allowAutoConverge:", "allowPostCopy:", "progressTimeout:"];
    if !["liveMigrationConfig:", "migrations:"].contains(&lines[at].text.trim()) {
        return None;
    }
    let is_pair = |line: &&Line| {
        line.text.trim().split_once(": ").is_some_and(|(key, value)| !key.contains(' ') && !value.contains(' '))
    };
    let below = lines[at + 1..].iter().take_while(is_pair).count();
    let has = lines[at + 1..=at + below].iter().any(|line| KEYS.iter().any(|key| line.text.trim().starts_with(key)));
    has.then_some(at + 1 + below)
}

/// A mark that lines were left out, whatever somebody says of them: `[...]`, `[... goes on like that ...]`.
fn is_left_out(text: &str) -> bool {
    let bare = text.trim();
    ["[..", "[\u{2026}", "(..", "<..", "..."].iter().any(|mark| bare.starts_with(mark))
        || trace::text::told(text) == trace::text::Told::Cut
}

/// Where what a switch printed ends, if it begins at a line.
pub(crate) fn switch(lines: &[Line], at: usize) -> Option<usize> {
    is_of_switch(lines[at].text.as_bytes()).then(|| end(lines, at, |line| !is_prose(&line.text)))
}

/// Where what a program counted ends, if it begins at a line: `perf kvm stat`, `kvm_stat`, `perf stat` of KVM's events.
pub(crate) fn counts(lines: &[Line], at: usize) -> Option<usize> {
    let whole = || files_of_kvm(lines, at).or_else(|| batch_of_debugfs(lines, at)).or_else(|| by_number(lines, at));
    if let Some(end) = whole() {
        return Some(end);
    }
    if !is_counts(&lines[at].text) {
        return None;
    }
    // What `perf kvm stat` prints between its rows is no sentence of somebody's.
    let is_perfs = |line: &Line| {
        line.text.trim_start().starts_with("unknown kvm exit code:")
            || is_head_of_prof(&line.text)
            || is_head_of_perf(&line.text)
            || is_of_kvmexit(&line.text)
    };
    let end = end(lines, at, |line| is_perfs(line) || !is_prose(&line.text) && !is_sentence(&line.text));
    // `perf kvm stat` ends with its sum, whatever stands behind.
    let is_sum = |line: &Line| line.text.trim().starts_with("Total Samples:") && line.text.contains("time:");
    let end = (at..end).find(|place| is_sum(&lines[*place])).map_or(end, |sum| sum + 1);
    // Counters of others than KVM are nobody's.
    let has_rows = |line: &Line| {
        is_row_of_exits(&line.text)
            || is_row_of_batch(&line.text)
            || is_head_of_prof(&line.text)
            || is_of_kvmexit(&line.text)
            || is_head_of_csv(&line.text)
            || ["kvm:", "%Total", OF_DEBUGFS].iter().any(|sign| line.text.contains(sign))
    };
    lines[at..end].iter().any(has_rows).then_some(end)
}

/// Where exits by the number of their reason end, if they begin at a line: below bpftrace's script, or SystemTap's head.
fn by_number(lines: &[Line], at: usize) -> Option<usize> {
    let text = |place: usize| lines.get(place).map_or("", |line| line.text.trim());
    let run = |from: usize, is_row: fn(&str) -> bool| {
        let end = from + lines[from.min(lines.len())..].iter().take_while(|line| is_row(line.text.trim())).count();
        (from < end).then_some(end)
    };
    if text(at).contains("reason: count sum(us)") {
        return run(at + 1, |row| {
            row.split_whitespace().count() == 6 && row.starts_with(|first: char| first.is_ascii_digit())
        });
    }
    if !(text(at).contains("bpftrace") && text(at).contains("kvm_exit")) {
        return None;
    }
    let first = (at + 1..lines.len().min(at + 1 + MOST_BETWEEN)).find(|place| text(*place).starts_with('@'))?;
    run(first, |row| row.starts_with('@') && row.contains("]: "))
}

/// Counters that every KVM on x86 has, one of which tells its files from other names with numbers (arch/x86/kvm/x86.c, `kvm_vcpu_stats_desc`).
const OF_KVM: [&str; 4] = ["exits:", "halt_exits:", "irq_exits:", "mmio_exits:"];

/// Names that nothing else has, two of which tell it where only some were printed.
const OF_HALTS: [&str; 5] =
    ["halt_attempted_poll:", "halt_successful_poll:", "halt_poll_fail_ns:", "halt_poll_success_ns:", "halt_wait_ns:"];

/// Names of arm64, two of which tell it (arch/arm64/kvm/guest.c, `kvm_vcpu_stats_desc`).
const OF_ARM: [&str; 4] = ["wfi_exit_stat:", "wfe_exit_stat:", "mmio_exit_user:", "hvc_exit_stat:"];

/// Lines between two copies of them: a prompt, the time.
const MOST_BETWEEN: usize = 4;

/// Where KVM's counters end that somebody printed in their own folder (`grep . *`), with the time above them and a second copy below, if
/// they begin at a line.
fn files_of_kvm(lines: &[Line], at: usize) -> Option<usize> {
    let is_row = |line: &Line| {
        let Some((name, value)) = in_folder(&line.text).split_once(':') else { return false };
        let is_number = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
        let is_word = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        is_number && name.starts_with(|first: char| first.is_ascii_lowercase()) && name.bytes().all(is_word)
    };
    let is_number = |line: &Line| line.text.trim().parse::<u64>().is_ok();
    let run = |from: usize| from + lines[from..].iter().take_while(|line| is_row(line)).count();
    // Rows are looked at from their first one, or from the time above it.
    let first = match is_row(&lines[at]) {
        true if at > 0 && is_row(&lines[at - 1]) => return None,
        true => at,
        // Whoever asks for one of them by itself first sees its number alone.
        false if is_before_rows(&lines[at].text) => (at + 1..lines.len().min(at + 3))
            .take_while(|line| *line == at + 1 || is_number(&lines[at + 1]))
            .find(|line| is_row(&lines[*line]))?,
        false => return None,
    };
    let has = |rows: &[Line]| {
        let is_there = |name: &&&str| rows.iter().any(|row| in_folder(&row.text).starts_with(**name));
        OF_ARM.iter().filter(is_there).count() >= 2
            || OF_KVM.iter().filter(is_there).count() == OF_KVM.len()
            || OF_HALTS.iter().filter(is_there).count() >= 2
    };
    let mut end = run(first);
    if !has(&lines[first..end]) {
        return None;
    }
    while let Some(next) = (end..lines.len().min(end + MOST_BETWEEN)).find(|place| is_row(&lines[*place])) {
        let is_between = |line: &Line| {
            let text = line.text.trim();
            text.is_empty() || typed(text).is_some() || text.starts_with(['#', '$']) || is_time_of_day(text)
        };
        if !lines[end..next].iter().all(is_between) {
            break;
        }
        end = run(next);
    }
    Some(end)
}

/// A row without the folder of its vCPU: `vcpu0/exits:812044`.
fn in_folder(text: &str) -> &str {
    let text = text.trim();
    let is_vcpu = |folder: &str| folder.strip_prefix("vcpu").is_some_and(|number| number.parse::<u32>().is_ok());
    text.split_once('/').filter(|(folder, _)| is_vcpu(folder)).map_or(text, |(_, row)| row)
}

/// The time, or the command that prints them twice: `grep . exits halt_*; sleep 10; grep . exits halt_*`.
fn is_before_rows(text: &str) -> bool {
    is_time_of_day(text) || typed(text).is_some_and(|command| command.contains("grep") && command.contains("sleep "))
}

/// Where `kvm_stat -1` of debugfs's counters ends (`halt_exits   1480113   2122`), if it begins at a line: several of its names tell it.
fn batch_of_debugfs(lines: &[Line], at: usize) -> Option<usize> {
    let row = |line: &Line| {
        let words: Vec<&str> = line.text.split_whitespace().collect();
        let [name, total, more] = words[..] else { return None };
        let is_number = |word: &str| word.bytes().all(|byte| byte.is_ascii_digit());
        let is_word = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        let is_row = name.starts_with(|first: char| first.is_ascii_lowercase()) && name.bytes().all(is_word);
        (is_row && is_number(total) && is_number(more)).then(|| name.to_owned())
    };
    // Within a run of them they were looked at before.
    if at.checked_sub(1).is_some_and(|above| row(&lines[above]).is_some()) {
        return None;
    }
    let names: Vec<String> = lines[at..].iter().map_while(row).collect();
    let known = OF_KVM.iter().filter(|known| names.iter().any(|name| known.trim_end_matches(':') == name)).count();
    (known >= 2).then_some(at + names.len())
}

/// `10:22:01.004118221`, as `date +%T.%N` prints it.
fn is_time_of_day(text: &str) -> bool {
    let text = text.trim();
    text.split(':').count() == 3
        && text.split(':').all(|part| part.len() >= 2 && part.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.'))
}

/// Where KVM's own counters lie.
const OF_DEBUGFS: &str = "/sys/kernel/debug/kvm/";

/// The head of such a text, or a row of `perf kvm stat` without one.
fn is_counts(text: &str) -> bool {
    const HEADS: [&str; 4] =
        ["kvm statistics - ", "Performance counter stats for", "Analyze events for", "Total Samples:"];
    let text = text.trim();
    HEADS.iter().any(|head| text.starts_with(head))
        || is_head_of_csv(text)
        || text.contains("VM-EXIT") && text.contains("Samples")
        || is_head_of_perf(text)
        || text.starts_with("Event ") && text.contains("%Total")
        || is_head_of_prof(text)
        || is_of_kvmexit(text)
        || is_row_of_exits(text)
        || is_row_of_batch(text)
        || text.starts_with(OF_DEBUGFS)
        || text.starts_with("==> ") && text.contains(OF_DEBUGFS)
}

/// `timestamp,exits,halt_exits,..` of `kvm_stat -l -c`.
fn is_head_of_csv(text: &str) -> bool {
    let mut names = text.split(',').map(str::trim);
    names.next().is_some_and(|first| first.eq_ignore_ascii_case("timestamp"))
        && names.any(|name| name.starts_with("kvm_") || OF_KVM.iter().any(|known| known.trim_end_matches(':') == name))
}

/// `Event name  Samples  Sample%  Time (ns)` of `perf kvm stat` since Linux 6.4.
fn is_head_of_perf(text: &str) -> bool {
    text.trim_start().starts_with("Event name ") && text.contains(" Sample%")
}

/// `exit_reason calls total(us) min(us)` of perf-prof.
fn is_head_of_prof(text: &str) -> bool {
    text.contains("exit_reason ") && text.contains(" calls ") && text.contains(" total(")
}

/// The lines above the rows of bcc's `kvmexit`.
fn is_of_kvmexit(text: &str) -> bool {
    text.starts_with("Display kvm exit reasons and statistics for")
        || text.contains("KVM_EXIT_REASON ") && text.contains(" COUNT")
}

/// `HLT 40833 95.85% 99.69% 1.16us ..`, maybe wrapped behind that.
fn is_row_of_exits(text: &str) -> bool {
    let words: Vec<&str> = text.split_whitespace().collect();
    let [name, count, share, ..] = words.as_slice() else { return false };
    let is_name = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '0');
    is_name && count.bytes().all(|byte| byte.is_ascii_digit()) && share.ends_with('%') && share.contains('.')
}

/// `kvm_exit(HLT)   912300   9215` of `kvm_stat -1`.
fn is_row_of_batch(text: &str) -> bool {
    let words: Vec<&str> = text.split_whitespace().collect();
    let [name, total, more] = words.as_slice() else { return false };
    let is_number = |word: &str| word.bytes().all(|byte| byte.is_ascii_digit());
    name.starts_with("kvm_") && is_number(total) && is_number(more)
}

/// The end of the lines that `goes_on` holds for, before the next command; blank lines at the end are not among them.
fn end(lines: &[Line], at: usize, goes_on: impl Fn(&Line) -> bool) -> usize {
    let stops = |line: &Line| typed(&line.text).is_some() || !goes_on(line);
    let end = (at + 1..lines.len()).find(|place| stops(&lines[*place])).unwrap_or(lines.len());
    (at..end).rev().find(|place| !lines[*place].text.trim().is_empty()).map_or(at + 1, |last| last + 1)
}

/// A sentence of somebody's: several words, none of them with a digit, nothing that programs put between names and values.
fn is_prose(text: &str) -> bool {
    let text = text.trim().trim_end_matches([':', '.', ',']);
    // A line of dashes below the heads of columns has no letter.
    let is_word = |word: &str| {
        let is_letter = |byte: u8| byte.is_ascii_alphabetic();
        word.bytes().any(is_letter) && word.bytes().all(|byte| is_letter(byte) || b"',.-?!".contains(&byte))
    };
    text.split_whitespace().count() >= 4 && text.split_whitespace().all(is_word)
}

/// A sentence with numbers in it: five words at least, and hardly anything else. Tables of counters have no such line.
fn is_sentence(text: &str) -> bool {
    let marks = |letter: char| "'\",.-?!():;*/`".contains(letter);
    let is_word = |word: &&str| {
        let bare = word.trim_matches(marks);
        !bare.is_empty() && bare.chars().all(|letter| letter.is_alphabetic() || marks(letter))
    };
    let words = text.split_whitespace().filter(is_word).count();
    words >= 5 && words * 3 >= text.split_whitespace().count() * 2
}
