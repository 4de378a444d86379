//! Programs that sum a machine up by themselves: `virt-top`, VPP's `show runtime`, `perf sched latency`, how fast QEMU measured a guest
//! to dirty its memory, and Firecracker's metrics. Each is told in a sentence, and its values stand below it.
//!
//! ```text
//!    ID S RDRQ WRRQ RXBY TXBY %CPU %MEM    TIME   NAME          Thread 4 vpp_wk_3 (lcore 9)
//!     3 R    0  412  11M 2.1M 74.6 25.0  92:11:09 oracle        Time 26440.9, average vectors/node 185.50, ..
//! ```
//! Sources: virt-top(1) 1.1; VPP 23.06, src/vlib/cli.c (`show_node_runtime`) and VLIB_FRAME_SIZE in src/vlib/node.h; perf-sched(1), Linux
//! 6.12; qapi/migration.json (`DirtyRateInfo`), QEMU 9.0; src/vmm/src/logger/metrics.rs, Firecracker 1.7.

use super::totals::number;
use super::{Pasted, Text};
use crate::machine::{Role, role_of};
use base::number::{counted, plain, thousands};
use serde_json::Value;

/// Rows of such a table that are kept.
const MOST_ROWS: usize = 256;

/// The head of `virt-top` (`virt-top 14:11:02 - x86_64 16/16CPU 2400MHz 128730MB 91.8%`) and its sums below.
pub(super) fn virt_top_head(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    let line = text.at(at);
    let is_sums = line.contains(" domains, ") && line.contains(" running, ") && line.contains(" D:");
    if is_sums || line.starts_with("CPU: ") && line.contains("%  Mem: ") && line.ends_with("by guests)") {
        return 1;
    }
    let cpus =
        line.split_whitespace().find_map(|word| word.strip_suffix("CPU")?.split_once('/')?.0.parse::<u32>().ok());
    let Some(cpus) = cpus.filter(|_| line.starts_with("virt-top ") && line.contains("MHz ")) else { return 0 };
    pasted.count_cpus(cpus, text.place(at));
    if let Some(busy) = line.rsplit(' ').next().and_then(|last| number(last.strip_suffix('%')?)) {
        pasted.quote("CPU time that VMs take", "", &format!("{} %, of all {cpus} CPUs", plain(busy)), text.place(at));
    }
    1
}

/// The rows of `virt-top`: shares are of all CPUs of the host together.
pub(super) fn virt_top(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    let header: Vec<&str> = text.at(at).split_whitespace().collect();
    if header.first() != Some(&"ID") || !["%CPU", "TIME", "NAME"].iter().all(|name| header.contains(name)) {
        return 0;
    }
    let (mut end, mut all) = (at + 1, Vec::new());
    while end < text.lines.len() {
        let cells: Vec<&str> = text.at(end).split_whitespace().collect();
        // A VM that does not run has its name alone.
        let is_off = cells.first() == Some(&"-") && cells.len() >= 2;
        // Disks and cards that nobody can read leave blanks: what it ran for and its name stand behind all others.
        let time =
            cells.iter().position(|cell| cell.contains(':') && cell.starts_with(|first: char| first.is_ascii_digit()));
        let row = time.filter(|time| *time >= 4).and_then(|time| {
            let name = cells.get(time + 1..).filter(|name| !name.is_empty())?.join(" ");
            Some((number(cells[time - 2])?, number(cells[time - 1])?, name))
        });
        let Some((share, memory, name)) = row else {
            if is_off {
                end += 1;
                continue;
            }
            break;
        };
        if all.len() < MOST_ROWS {
            let told = format!("{} % of all CPUs, {} % of the memory", plain(share), plain(memory));
            pasted.quote("virt-top", &name, &told, text.place(end));
            all.push((share, name));
        }
        end += 1;
    }
    if let Some((share, name)) = all.iter().max_by(|one, other| one.0.total_cmp(&other.0)) {
        let cpus = pasted.cpu_count.as_ref().map_or(String::new(), |told| {
            format!(", which is {} of {} CPUs", plain(share / 100.0 * f64::from(told.value)), told.value)
        });
        let sum: f64 = all.iter().map(|(share, _)| share).sum();
        let said = format!(
            "virt-top: {name} takes most of the VMs, {} % of the time of all CPUs{cpus}; the {} that it lists {} % together.",
            plain(*share),
            counted(all.len() as u64, "VM", "VMs"),
            plain(sum)
        );
        pasted.summarize(said, text.place(at));
    }
    if all.is_empty() { 0 } else { end - at }
}

/// `show runtime` of VPP: how many packets each call handles tells how full a thread is, since it polls at 100 % always.
pub(super) fn vpp(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    /// Packets of a frame at most.
    const FRAME: f64 = 256.0;
    let head = text.at(at);
    let Some(thread) = head.strip_prefix("Thread ").filter(|_| text.at(at + 1).contains(" vectors/node ")) else {
        return 0;
    };
    let name = thread.split_whitespace().nth(1).unwrap_or("?").to_owned();
    let rates = |name: &str| {
        let line = text.at(at + 2);
        let word = line.split_once("vector rates ")?.1.split(", ").find_map(|part| part.trim().strip_prefix(name))?;
        word.trim().parse::<f64>().ok()
    };
    let vectors = text
        .at(at + 1)
        .split_once("vectors/node ")
        .and_then(|(_, rest)| rest.split(',').next()?.trim().parse::<f64>().ok());
    let mut end = at + 2;
    if text.at(end).starts_with("vector rates") {
        end += 1;
    }
    let is_row = |line: usize| {
        let cells: Vec<&str> = text.at(line).split_whitespace().collect();
        cells.first() == Some(&"Name")
            || cells.len() >= 7 && cells.last().is_some_and(|last| last.parse::<f64>().is_ok())
    };
    let mut dearest: Option<(f64, String)> = None;
    // How many packets a poll of cards finds: a full thread finds many each time.
    let mut found: Option<f64> = None;
    while is_row(end) {
        let cells: Vec<&str> = text.at(end).split_whitespace().collect();
        let count = |back: usize| cells.get(cells.len().checked_sub(back)?)?.parse::<f64>().ok();
        if let (Some(packets), Some(clocks), Some(per_call)) = (count(4), count(2), count(1)) {
            let told = format!(
                "{} packets, {} cycles each, {} in a call",
                thousands(packets as u64),
                plain(clocks),
                plain(per_call)
            );
            pasted.quote(&format!("VPP, {name}"), cells[0], &told, text.place(end));
            if cells[1] == "polling" {
                found = Some(found.unwrap_or(0.0).max(per_call));
            }
            if packets > 0.0 && dearest.as_ref().is_none_or(|(most, _)| clocks > *most) {
                dearest = Some((clocks, cells[0].to_owned()));
            }
        }
        end += 1;
    }
    let Some(vectors) = vectors else { return end - at };
    let rate = rates("in").map_or(String::new(), |rate| format!(", {} packets a second", thousands(rate as u64)));
    let lost = rates("drop")
        .filter(|rate| *rate > 0.0)
        .map_or(String::new(), |rate| format!("; it drops {} a second", thousands(rate as u64)));
    let full = match vectors {
        _ if found.is_some_and(|found| found < 1.0) => {
            "it has room, since a poll finds less than one packet on average"
        }
        vectors if vectors >= FRAME * 0.9 => "it is full",
        vectors if vectors >= FRAME / 2.0 => "it has little room left",
        _ => "it has room",
    };
    let dear = dearest
        .map_or(String::new(), |(clocks, node)| format!("; {node} costs most, {} cycles a packet", plain(clocks)));
    pasted.summarize(
        format!(
            "VPP's thread {name} handles {} packets at a time of at most 256{rate}: {full}{lost}{dear}.",
            plain(vectors)
        ),
        text.place(at),
    );
    end - at
}

/// `perf sched latency`: how long each task waited for a CPU behind its wake-up.
pub(super) fn perf_sched(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    let cells = |line: usize| -> Vec<&str> { text.at(line).split('|').map(str::trim).collect() };
    let head = cells(at);
    if head.first() != Some(&"Task") || !head.iter().any(|cell| cell.starts_with("Max delay ms")) {
        return 0;
    }
    let of = |cell: &str, name: &str| number(cell.strip_prefix(name).unwrap_or(cell).trim().strip_suffix("ms")?.trim());
    let (mut end, mut worst): (usize, Option<(f64, f64, String, bool)>) = (at + 1, None);
    while end < text.lines.len() {
        let row = cells(end);
        if text.at(end).starts_with("---") || row[0] == "TOTAL:" {
            end += 1;
            continue;
        }
        let told =
            (row.len() >= 5).then(|| Some((of(row[1], "")?, of(row[3], "avg:")?, of(row[4], "max:")?))).flatten();
        let Some((ran, mean, most)) = told else { break };
        let what = format!(
            "ran {} ms in {} switches, waited {} ms on average and {} ms at most",
            plain(ran),
            row[2],
            plain(mean),
            plain(most)
        );
        pasted.quote("perf sched latency", row[0], &what, text.place(end));
        let is_vcpu =
            matches!(role_of(row[0].rsplit_once(':').map_or(row[0], |(name, _)| name)), Some((Role::Vcpu(_), _)));
        if worst.as_ref().is_none_or(|(longest, _, _, of_vm)| (is_vcpu, most) > (*of_vm, *longest)) {
            worst = Some((most, mean, row[0].to_owned(), is_vcpu));
        }
        end += 1;
    }
    let Some((most, mean, task, is_vcpu)) = worst else { return 0 };
    let who = if is_vcpu { "vCPU thread " } else { "" };
    let others = if is_vcpu { " of the vCPUs" } else { "" };
    pasted.summarize(
        format!("perf sched latency: {who}{task} waited longest{others} for a CPU, {} ms at most and {} ms on average: woken, and not run.", plain(most), plain(mean)),
        text.place(at),
    );
    end - at
}

/// `{"return": {"status": "measured", .. "dirty-rate": 1108, "calc-time": 10}}`, and the commands and empty answers around it.
pub(super) fn dirty_rate(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    let line = text.at(at);
    if let Some(rate) =
        line.strip_prefix("Dirty rate: ").and_then(|rest| rest.strip_suffix(" (MB/s)")?.trim().parse::<u64>().ok())
    {
        say_dirty(rate, None, text, at, pasted);
        return 1;
    }
    if !line.starts_with('{') {
        return 0;
    }
    let is_dialogue = line.contains("calc-dirty-rate\"") || line.contains("\"query-dirty-rate\"");
    let Ok(value) = serde_json::from_str::<Value>(line) else { return 0 };
    let answer = value.get("return").unwrap_or(&value);
    let Some(rate) = answer["dirty-rate"].as_u64().filter(|_| answer["calc-time"].is_u64()) else {
        return usize::from(is_dialogue);
    };
    say_dirty(rate, answer["calc-time"].as_u64(), text, at, pasted);
    1
}

fn say_dirty(mebibytes: u64, seconds: Option<u64>, text: &Text<'_>, at: usize, pasted: &mut Pasted) {
    let over = seconds.map_or(String::new(), |seconds| format!(" over {seconds} s"));
    let bits = mebibytes as f64 * f64::from(1 << 20) * 8.0 / 1e9;
    pasted.quote("memory that the guest dirties", "", &format!("{} MiB/s{over}", thousands(mebibytes)), text.place(at));
    let said = format!(
        "QEMU measured that the guest dirties {} MiB/s{over} ({} Gbit/s): a migration that sends no more than that does not end by itself; \
         `kvmscope plan migration` has its rates.",
        thousands(mebibytes),
        plain(bits)
    );
    pasted.summarize(said, text.place(at));
}

/// A line of Firecracker's metrics: what its vCPUs left to it, and whom its limiters held back, since the line before.
pub(super) fn firecracker(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    let line = text.at(at);
    if !line.starts_with('{') || !line.contains("\"utc_timestamp_ms\":") {
        return 0;
    }
    let Ok(value) = serde_json::from_str::<Value>(line) else { return 0 };
    // A version that does not have a counter says nothing of it.
    let count = |group: &str, name: &str| value[group][name].as_u64();
    let sum = |group: &str, names: &[&str]| names.iter().filter_map(|name| count(group, name)).reduce(|a, b| a + b);
    for (group, what) in
        [("vcpu", "vCPUs of Firecracker"), ("block", "disk of Firecracker"), ("net", "network card of Firecracker")]
    {
        for (name, counted) in value[group].as_object().into_iter().flatten() {
            if let Some(counted) = counted.as_u64().filter(|counted| *counted > 0) {
                pasted.quote(name, what, &thousands(counted), text.place(at));
            }
        }
    }
    let accesses = |count: u64| counted(count, "access", "accesses");
    let mut told: Vec<String> = Vec::new();
    let left = [
        (sum("vcpu", &["exit_io_in", "exit_io_out"]), "of ports"),
        (sum("vcpu", &["exit_mmio_read", "exit_mmio_write"]), "of devices' memory"),
    ];
    let left: Vec<String> =
        left.iter().filter_map(|(count, of)| Some(format!("{} {of}", accesses((*count)?)))).collect();
    if !left.is_empty() {
        told.push(format!("Firecracker counts {} that its vCPUs left to it.", left.join(" and ")));
    }
    let held = [
        (sum("block", &["rate_limiter_throttled_events"]), "the disk"),
        (sum("net", &["rx_rate_limiter_throttled", "tx_rate_limiter_throttled"]), "the network"),
    ];
    let limited: Vec<String> = held
        .iter()
        .filter_map(|(count, of)| Some(format!("{of} {} times", thousands(count.filter(|count| *count > 0)?))))
        .collect();
    let unlimited: Vec<&str> = held.iter().filter(|(count, _)| *count == Some(0)).map(|(_, of)| *of).collect();
    if !limited.is_empty() {
        told.push(format!(
            "Its rate limiters held back {}: these are limits that somebody set.",
            limited.join(" and ")
        ));
    } else if !unlimited.is_empty() {
        told.push(format!("Its rate limiters did not hold back {}.", unlimited.join(" or ")));
    }
    if let Some(failed) = count("vcpu", "failures").filter(|failed| *failed > 0) {
        told.push(format!("{} of a vCPU failed.", counted(failed, "run", "runs")));
    }
    if !told.is_empty() {
        pasted.summarize(told.join(" "), text.place(at));
    }
    1
}

/// `10:00:01  IFACE  rxpck/s ..` and `.. rxdrop/s txdrop/s ..` of `sar -n DEV` and `-n EDEV`: what cards and taps carry and drop.
pub(super) fn interfaces(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    let header: Vec<&str> = text.at(at).split_whitespace().collect();
    let Some(name) =
        header.iter().position(|cell| *cell == "IFACE").filter(|_| header.iter().any(|cell| cell.ends_with("/s")))
    else {
        return 0;
    };
    let mut end = at + 1;
    let mut drops: Vec<(f64, String)> = Vec::new();
    while end < text.lines.len() {
        let cells: Vec<&str> = text.at(end).split_whitespace().collect();
        if cells.len() != header.len() || cells[name + 1..].iter().any(|cell| number(cell).is_none()) {
            break;
        }
        let rates: Vec<(&str, f64)> =
            header.iter().zip(&cells).skip(name + 1).filter_map(|(head, cell)| Some((*head, number(cell)?))).collect();
        let told: Vec<String> = rates
            .iter()
            .filter(|(_, rate)| *rate > 0.0)
            .map(|(head, rate)| format!("{head} {}", plain(*rate)))
            .collect();
        if !told.is_empty() {
            pasted.quote("sar -n", cells[name], &told.join(", "), text.place(end));
        }
        for (head, rate) in
            rates.iter().filter(|(head, rate)| *rate > 0.0 && matches!(*head, "rxdrop/s" | "txdrop/s" | "rxfifo/s"))
        {
            // The kernel counts a tap's directions as the host sees them: what is dropped on the way out was for the guest.
            let is_tap = ["vnet", "tap", "vhost"].iter().any(|kind| cells[name].starts_with(kind));
            let why = match (*head, is_tap) {
                ("txdrop/s", true) => {
                    " on the way to its guest, whose receive ring was full: the guest did not take them in time"
                }
                ("txdrop/s", false) => " on the way out",
                _ => " on the way in",
            };
            drops.push((*rate, format!("{} drops {} packets a second{why}", cells[name], plain(*rate))));
        }
        end += 1;
    }
    if end == at + 1 {
        return 0;
    }
    drops.sort_by(|one, other| other.0.total_cmp(&one.0));
    if let Some((_, worst)) = drops.first() {
        let more = if drops.len() > 1 {
            format!("; {} as well", counted(drops.len() as u64 - 1, "other drops packets", "others drop packets"))
        } else {
            String::new()
        };
        pasted.summarize(format!("sar: {worst}{more}."), text.place(at));
    }
    end - at
}

/// `Default max sleep:   50 us`, above what `pmd-sleep-show` prints of each polling thread.
pub(super) fn pmd_sleep(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    let told = text
        .at(at)
        .strip_prefix("Default max sleep:")
        .and_then(|rest| rest.trim().strip_suffix(" us")?.trim().parse::<u32>().ok());
    let Some(us) = told else { return 0 };
    pasted.quote("polling threads may sleep by default", "Open vSwitch", &format!("{us} us"), text.place(at));
    1
}

#[cfg(test)]
mod tests {
    use crate::paste::read;

    fn summaries(text: &str) -> Vec<String> {
        let machine = read(&[("t".to_owned(), text.to_owned())]);
        assert_eq!(machine.sources[0].2, 0, "{:?}", machine.strange);
        machine.summaries.into_iter().map(|summary| summary.value).collect()
    }

    #[test]
    fn virt_top_tells_who_takes_most_of_all_cpus() {
        let text = "virt-top 14:11:02 - x86_64 16/16CPU 2400MHz 128730MB 50.0%\n2 domains, 1 active, 1 running, 0 sleeping, 0 paused, 1 inactive D:0 O:0 X:0\n\
                    CPU: 50.0%  Mem: 73728 MB (73728 MB by guests)\n\n   ID S RDRQ WRRQ RXBY TXBY %CPU %MEM    TIME   NAME\n\
                    \x20   3 R    0  412  11M 2.1M 25.0 25.0  92:11:09 a b\n    7 R              0    0  0,5 26,0   0:30.71 c\n    -                                           (off)\n";
        assert_eq!(
            summaries(text),
            [
                "virt-top: a b takes most of the VMs, 25 % of the time of all CPUs, which is 4 of 16 CPUs; the 2 VMs that it lists 25.5 % together."
            ]
        );
    }

    #[test]
    fn vpp_tells_how_full_a_thread_is() {
        let text = |vectors: &str| {
            format!(
                "Thread 4 vpp_wk_3 (lcore 9)\nTime 26440.9, average vectors/node {vectors}, last 128 main loops 0.00 per node 0.00\n  vector rates in 1.2370e7, out 1.2370e7, drop 0.0000e0, punt 0.0000e0\n\
             \x20            Name                 State         Calls          Vectors        Suspends         Clocks       Vectors/Call\ndpdk-input   polling   1907   3270   0   6.91e1   17.15\n"
            )
        };
        assert!(summaries(&text("185.50"))[0].contains("185.5 packets at a time of at most 256, 12,370,000 packets a second: it has little room left; dpdk-input costs most, 69.1"));
        assert!(summaries(&text("12.00"))[0].contains(": it has room"));
    }

    #[test]
    fn a_vcpu_that_waited_is_told_before_others() {
        let text = "  Task                  |   Runtime ms  | Switches | Avg delay ms    | Max delay ms    | Max delay start           | Max delay end          |\n ----------\n\
                    \x20 CPU 0/KVM:21432       |   6120.311 ms |    18212 | avg:   0.812 ms | max:  48.221 ms | max start: 8123.1 s | max end: 8123.2 s\n\
                    \x20 kswapd0:91            |   1902.100 ms |     2012 | avg:   0.044 ms | max:  94.100 ms | max start: 8122.0 s | max end: 8122.1 s\n ----------\n  TOTAL:  | 8000.0 ms | 20224 |\n";
        assert!(
            summaries(text)[0].starts_with(
                "perf sched latency: vCPU thread CPU 0/KVM:21432 waited longest of the vCPUs for a CPU, 48.22"
            ),
            "{:?}",
            summaries(text)
        );
    }

    #[test]
    fn what_a_guest_dirties_and_what_a_vmm_counts_are_sentences() {
        let rate = "{\"execute\": \"calc-dirty-rate\", \"arguments\": {\"calc-time\": 10}}\n{\"return\": {\"status\": \"measured\", \"dirty-rate\": 1108, \"calc-time\": 10}}\n";
        assert!(summaries(rate)[0].contains("1,108 MiB/s over 10 s (9.2"), "{:?}", summaries(rate));
        let metrics = "{\"utc_timestamp_ms\":1,\"block\":{\"rate_limiter_throttled_events\":7},\"vcpu\":{\"exit_io_in\":1,\"exit_io_out\":2,\"exit_mmio_write\":5}}\n";
        assert!(
            summaries(metrics)[0].starts_with("Firecracker counts 3 accesses of ports and 5 accesses"),
            "{:?}",
            summaries(metrics)
        );
        assert!(summaries(metrics)[0].ends_with("held back the disk 7 times: these are limits that somebody set."));
        let without = |groups: &str| summaries(&format!("{{\"utc_timestamp_ms\":1{groups}}}\n"));
        assert_eq!(without(""), Vec::<String>::new(), "what is not counted is not 0");
        assert_eq!(
            without(",\"net\":{\"rx_rate_limiter_throttled\":0}"),
            ["Its rate limiters did not hold back the network."]
        );
    }

    #[test]
    fn a_tap_that_drops_names_its_guest() {
        let text = "10:00:06        IFACE   rxerr/s   txerr/s    coll/s  rxdrop/s  txdrop/s\n10:00:11         eno1      0.00      0.00      0.00      0.00      0.00\n10:00:11        vnet3      0.00      0.00      0.00      0.00   5120.40\n";
        assert!(
            summaries(text)[0].starts_with("sar: vnet3 drops 5,120.4 packets a second on the way to its guest"),
            "{:?}",
            summaries(text)
        );
        assert_eq!(summaries(&text.replace("5120.40", "0.00")), Vec::<String>::new());
    }
}
