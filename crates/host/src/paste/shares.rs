//! Where time went by programs' own sums: `perf stat` of host and guests, `strace -c` of a VMM, `virsh cpu-stats`, `kvmtop`, and
//! `/proc/PID/sched` of a thread.
//!
//! ```text
//! 12,041,882,113      cycles:Gk               61.20    8.412011          71    118203        44 ioctl
//! cpu_time       6173017.263233824 seconds    wait_max                :           312.448113
//! ```
//! Sources: perf-stat(1) and perf-list(1) (modifiers G and H), Linux 6.12; strace(1) 6.1; virsh(1), cpu-stats; kernel/sched/debug.c
//! (`proc_sched_show_task`), Linux 6.12; github.com/cha87de/kvmtop 2.1.

use super::totals::number;
use super::{Pasted, Text, waits};
use base::number::{duration, percent, plain, thousands};
use std::collections::BTreeMap;

/// A row of `perf stat` whose event is told apart by host and guests: its time where an interval was asked for, the event, its modifiers, its count.
fn counted(line: &str) -> Option<(Option<&str>, &str, &str, u64)> {
    let words: Vec<&str> = line.split_whitespace().take(3).collect();
    let at =
        words.iter().position(|word| word.contains(':') && !word.starts_with(|first: char| first.is_ascii_digit()))?;
    let (event, kind) = words[at].split_once(':')?;
    let is_kind = kind.bytes().any(|byte| b"HG".contains(&byte)) && kind.bytes().all(|byte| b"HGkup".contains(&byte));
    let count = words[at.checked_sub(1)?].replace(',', "").parse().ok()?;
    let when = at.checked_sub(2).map(|at| words[at]);
    (is_kind && event.bytes().all(|byte| byte.is_ascii_lowercase() || b"-_".contains(&byte)))
        .then_some((when, event, kind, count))
}

/// Rows of `perf stat` of `:G`, `:H` and both, their head and the time below them: the guests' part of all.
pub(super) fn guests(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    let is_head = text.at(at).starts_with("Performance counter stats for");
    let first = (at..text.lines.len().min(at + 3)).find(|line| counted(text.at(*line)).is_some());
    let Some(first) = first.filter(|first| is_head || *first == at) else { return 0 };
    let mut sums: BTreeMap<&str, [f64; 3]> = BTreeMap::new();
    let (mut end, mut line) = (first, first);
    let is_time =
        |line: &str| [" seconds time elapsed", " seconds user", " seconds sys"].iter().any(|time| line.ends_with(time));
    while line < text.lines.len() {
        if let Some((when, event, kind, count)) = counted(text.at(line)) {
            let until = when.map_or(String::new(), |when| format!(", until {when} s"));
            pasted.quote("perf stat", &format!("{event}:{kind}{until}"), &thousands(count), text.place(line));
            let of = match (kind.contains('G'), kind.contains('H')) {
                (true, true) => 2,
                (true, false) => 0,
                _ => 1,
            };
            sums.entry(event).or_default()[of] += count as f64;
        } else if !(text.at(line).is_empty() || is_time(text.at(line))) {
            break;
        }
        line += 1;
        if !text.at(line - 1).is_empty() {
            end = line;
        }
    }
    for (event, [guests, host, both]) in sums {
        // What both have tells the other one; two sums of their own make up all.
        let (guests, all) = match (guests > 0.0, host > 0.0, both > 0.0) {
            (true, true, _) => (guests, guests + host),
            (true, false, true) => (guests, both),
            (false, true, true) => (both - host, both),
            _ => continue,
        };
        if guests <= all && guests >= 0.0 {
            let said = format!(
                "perf stat: of all {event} that it counted {} were of guests, and {} of the host for them or for others.",
                percent(guests / all),
                percent((all - guests) / all)
            );
            pasted.summarize(said, text.place(first));
        }
    }
    end - at
}

/// `% time seconds usecs/call calls errors syscall` of `strace -c`, and a row for each call.
pub(super) fn strace(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    if text.at(at).split_whitespace().collect::<Vec<_>>()
        != ["%", "time", "seconds", "usecs/call", "calls", "errors", "syscall"]
    {
        return 0;
    }
    // `timeout 10 strace -c -f -p 4121`.
    let words: Vec<&str> = text.at(at.saturating_sub(1)).split_whitespace().collect();
    let seconds = words
        .windows(2)
        .find(|pair| pair[0] == "timeout")
        .and_then(|pair| number(pair[1].trim_end_matches('s')))
        .filter(|seconds| *seconds > 0.0);
    let (mut end, mut calls): (usize, Vec<(u64, String)>) = (at + 1, Vec::new());
    while end < text.lines.len() {
        let cells: Vec<&str> = text.at(end).split_whitespace().collect();
        let is_rule = cells.first().is_some_and(|cell| cell.starts_with("---"));
        let row = match cells[..] {
            [_, _, each, count, name] | [_, _, each, count, _, name] => {
                count.parse::<u64>().ok().map(|count| (each, count, name))
            }
            _ => None,
        };
        match row {
            Some((each, count, name)) if name != "total" => {
                pasted.quote(
                    "strace -c",
                    name,
                    &format!("{} calls, {each} us of CPU time each", thousands(count)),
                    text.place(end),
                );
                calls.push((count, name.to_owned()));
            }
            _ if is_rule || cells.last() == Some(&"total") => {}
            _ => break,
        }
        end += 1;
    }
    calls.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
    let all: u64 = calls.iter().map(|(count, _)| count).sum();
    if let Some((most, name)) = calls.first() {
        let rate = seconds
            .map_or(String::new(), |seconds| format!(", {} a second", thousands((*most as f64 / seconds) as u64)));
        let what = if name == "ioctl" {
            ". A VMM's vCPU threads call ioctl for KVM_RUN above all: each return from it is an exit that KVM left to the VMM"
        } else {
            ""
        };
        let said = format!(
            "strace counted {} system calls: {name} most often, {} times{rate}{what}. Its own stops make each of them slower.",
            thousands(all),
            thousands(*most)
        );
        pasted.summarize(said, text.place(at));
    }
    if calls.is_empty() { 0 } else { end - at }
}

/// `Total:` or `CPU0:` of `virsh cpu-stats`, and the times below it.
pub(super) fn cpu_stats(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    let head = text
        .at(at)
        .strip_suffix(':')
        .filter(|head| *head == "Total" || head.strip_prefix("CPU").is_some_and(|cpu| cpu.parse::<u32>().is_ok()));
    let of = |line: usize| -> Option<(&str, f64)> {
        let [name, value, "seconds"] = text.at(line).split_whitespace().collect::<Vec<_>>()[..] else { return None };
        Some((name, number(value)?)).filter(|(name, _)| name.ends_with("_time"))
    };
    let first = at + usize::from(head.is_some());
    if of(first).is_none_or(|(name, _)| name != "cpu_time") {
        return 0;
    }
    let head = head.unwrap_or("Total");
    let (mut end, mut times): (usize, BTreeMap<&str, f64>) = (first, BTreeMap::new());
    while let Some((name, seconds)) = of(end) {
        pasted.quote(name, &format!("the VM, {head}"), &duration(seconds * 1e9), text.place(end));
        times.insert(name, seconds);
        end += 1;
    }
    if let (Some(all), Some(user), Some(system)) =
        (times.get("cpu_time"), times.get("user_time"), times.get("system_time"))
        && head == "Total"
        && *all > 0.0
    {
        let rest = (all - user - system).max(0.0);
        let guest = if rest / all > 0.01 {
            format!(
                "; the other {} are in neither, as kernels count the guest's own code that keep it apart",
                percent(rest / all)
            )
        } else {
            String::new()
        };
        let said = format!(
            "The VM's threads ran for {} since it began, {} of it in the host's kernel and {} as user code{guest}. A load is the difference of two looks.",
            duration(all * 1e9),
            percent(system / all),
            percent(user / all)
        );
        pasted.summarize(said, text.place(at));
    }
    end - at
}

/// `UUID name cores total steal total used` of kvmtop, the heads above it, and a row for each VM.
pub(super) fn kvmtop(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    let head: Vec<&str> = text.at(at).split_whitespace().collect();
    if !head.starts_with(&["UUID", "name"]) || head.len() < 4 {
        return 0;
    }
    let (mut end, mut most): (usize, Option<(f64, String)>) = (at + 1, None);
    loop {
        let cells: Vec<&str> = text.at(end).split_whitespace().collect();
        if cells.len() != head.len() || !cells[2..].iter().all(|cell| number(cell).is_some()) {
            break;
        }
        let told: Vec<String> = head.iter().zip(&cells).skip(2).map(|(name, cell)| format!("{name} {cell}")).collect();
        pasted.quote("kvmtop", cells[1], &told.join(", "), text.place(end));
        // The first sum is of CPU time.
        let column = head.iter().position(|name| *name == "total");
        let share = column.filter(|_| head.contains(&"cores")).and_then(|column| number(cells[column]));
        if let Some(share) = share.filter(|share| most.as_ref().is_none_or(|(most, _)| share > most)) {
            most = Some((share, cells[1].to_owned()));
        }
        end += 1;
    }
    if let Some((share, name)) = most {
        pasted.summarize(
            format!("kvmtop: {name} takes most CPU time of the host, {} % as it counts.", plain(share)),
            text.place(at),
        );
    }
    if end == at + 1 { 0 } else { end - at }
}

/// `CPU 2/KVM (4130, #threads: 1)`, a rule, and the names and values of `/proc/PID/sched`.
pub(super) fn sched(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    let Some((who, threads)) = text.at(at).split_once(", #threads: ") else { return 0 };
    if !threads.ends_with(')') || !text.at(at + 1).starts_with("-----") {
        return 0;
    }
    let who = format!("{who})");
    let of = |line: usize| {
        let (name, value) = text.at(line).split_once(':')?;
        let name = name.trim().trim_start_matches("se.statistics.").trim_start_matches("se.");
        Some((name, number(value.trim())?)).filter(|(name, _)| !name.contains(' '))
    };
    let mut values: BTreeMap<&str, f64> = BTreeMap::new();
    let mut end = at + 2;
    while let Some((name, value)) = of(end) {
        values.insert(name, value);
        end += 1;
    }
    let value = |name: &str| values.get(name).copied();
    // In ms.
    if let (Some(ran), Some(waited)) = (value("sum_exec_runtime"), value("wait_sum")) {
        waits::note(pasted, (who.clone(), 0), (ran * 1e6, waited * 1e6), text.place(at));
    }
    let mut told: Vec<String> = Vec::new();
    told.extend(value("wait_max").map(|ms| format!("waited {} for a CPU at most", duration(ms * 1e6))));
    told.extend(
        value("nr_involuntary_switches")
            .map(|count| format!("was taken off its CPU {} times", thousands(count as u64))),
    );
    told.extend(value("nr_migrations").map(|count| format!("moved to another one {} times", thousands(count as u64))));
    if !told.is_empty() {
        pasted.quote("since it began", &who, &told.join(", "), text.place(at));
        pasted.summarize(format!("{who} {}, since it began.", base::number::list(&told)), text.place(at));
    }
    if values.is_empty() { 0 } else { end - at }
}

#[cfg(test)]
mod tests {
    use crate::machine::GaugeKind;
    use crate::paste::{read, whole_summaries_of};

    fn summary(text: &str) -> String {
        whole_summaries_of(text).join(" ")
    }

    #[test]
    fn guests_have_their_part_of_what_perf_counted() {
        let apart = "Performance counter stats for 'system wide':\n\n    3,000      cycles:Gk\n    4,000      cycles:Gu\n    2,500      cycles:Hk\n      500      cycles:Hu\n\n      10.004128871 seconds time elapsed\n";
        assert!(
            summary(apart).contains("of all cycles that it counted 70.0 % were of guests, and 30.0 %"),
            "{}",
            summary(apart)
        );
        let both = "1.001 10000 cycles:HG\n1.001 9900 cycles:H\n";
        assert!(summary(both).contains("1.0 % were of guests"), "{}", summary(both));
        assert_eq!(summary("1.001 9900 cycles:H\n"), "", "the host alone tells no part");
    }

    #[test]
    fn sums_of_calls_and_times_are_told() {
        let strace = "# timeout 10 strace -c -f -p 41\n% time     seconds  usecs/call     calls    errors syscall\n------ ----------- ----------- --------- --------- ----------------\n 61.20    8.412011          71    118203        44 ioctl\n 30.11    4.139112         118     35011           ppoll\n------ ----------- ----------- --------- --------- ----------------\n100.00   13.745655                209561       146 total\n";
        assert!(
            summary(strace).contains("153,214 system calls: ioctl most often, 118,203 times, 11,820 a second. A VMM's"),
            "{}",
            summary(strace)
        );
        let virsh = "Total:\n\tcpu_time         1000.0 seconds\n\tuser_time          10.0 seconds\n\tsystem_time        40.0 seconds\n";
        assert!(
            summary(virsh).contains("4.0 % of it in the host's kernel and 1.0 % as user code; the other 95.0 %"),
            "{}",
            summary(virsh)
        );
    }

    #[test]
    fn a_threads_own_file_tells_how_long_it_waited() {
        let text = "CPU 2/KVM (4130, #threads: 1)\n-------------------\nse.sum_exec_runtime                          :          9000.0\nse.statistics.wait_max                       :           312.5\nse.statistics.wait_sum                       :          1000.0\nnr_involuntary_switches                      :             9102\n";
        assert_eq!(
            summary(text),
            "CPU 2/KVM (4130) waited 312.5 ms for a CPU at most and was taken off its CPU 9,102 times, since it began."
        );
        let machine = read(&[("t".to_owned(), text.to_owned())]);
        let told: Vec<_> = machine.gauges.iter().map(|gauge| (gauge.kind, gauge.value)).collect();
        assert_eq!(told, [(GaugeKind::Waited, 0.1)]);
    }
}
