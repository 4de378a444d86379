//! `/proc/meminfo`, `free`, the totals above the rows of `top`, and `numastat` of processes.
//!
//! Sources: proc_meminfo(5), free(1) and top(1) of procps-ng 4.0, numastat(8) of numactl 2.0.16.

use super::{Pasted, Text, prompt, totals};
use crate::budget;
use crate::machine::{GaugeKind, ProcessMemory};

/// Lines of meminfo that say something of their own; the others stand between them and are read with them.
const KEPT: &[(&str, GaugeKind)] = &[
    ("MemTotal", GaugeKind::MemoryTotal),
    ("MemAvailable", GaugeKind::MemoryAvailable),
    ("AnonHugePages", GaugeKind::HugeAnonymous),
    ("HugePages_Total", GaugeKind::HugePages),
    ("HugePages_Free", GaugeKind::HugePagesFree),
];

/// Lines of meminfo that are known by themselves, where people took some out with grep.
const KNOWN: &[&str] = &["MemFree", "Buffers", "Cached", "SwapTotal", "SwapFree", "Hugepagesize", "HugePages_Rsvd"];

/// `MemTotal:       131801088 kB`: a name and a number.
fn pair(line: &str) -> Option<(&str, f64)> {
    let (name, rest) = line.split_once(':')?;
    let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_()".contains(&byte));
    let mut words = rest.split_whitespace();
    let number: f64 = words.next()?.parse().ok()?;
    let scale = match (words.next(), words.next()) {
        (Some("kB"), None) => 1_024.0,
        (None, None) => 1.0,
        _ => return None,
    };
    is_name.then_some((name, number * scale))
}

/// Lines of `/proc/meminfo`.
pub(super) fn meminfo(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    let is_known = |name: &str| KEPT.iter().any(|(known, _)| *known == name) || KNOWN.contains(&name);
    if !pair(text.at(at)).is_some_and(|(name, _)| is_known(name)) {
        return 0;
    }
    let (mut end, mut swap) = (at, (None, None));
    while let Some((name, value)) = pair(text.at(end)) {
        match name {
            "SwapTotal" => swap.0 = Some(value),
            "SwapFree" => swap.1 = Some(value),
            // How large they are, and how many of the free ones are promised already.
            "Hugepagesize" => {
                let value = text.at(end).split_once(':').map_or("", |(_, value)| value.trim());
                pasted.quote("size of a huge page", "", value, text.place(end));
            }
            "HugePages_Rsvd" => {
                pasted.quote("huge pages promised, of the free ones", "", &format!("{value:.0}"), text.place(end));
            }
            _ => {
                if let Some((_, kind)) = KEPT.iter().find(|(known, _)| *known == name) {
                    pasted.gauge(*kind, "", value, text.place(end));
                }
            }
        }
        if let (Some(total), Some(free)) = swap {
            pasted.gauge(GaugeKind::SwapUsed, "", (total - free).max(0.0), text.place(end));
            swap = (None, None);
        }
        end += 1;
    }
    end - at
}

/// `Node 0 HugePages_Free: 96`, of /sys/devices/system/node/node0/meminfo: what lies on one node.
pub(super) fn of_node(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    let told = |line: usize| -> Option<(u32, &str, &str)> {
        let (node, rest) = text.at(line).strip_prefix("Node ")?.split_once(' ')?;
        let (name, value) = rest.trim().split_once(':')?;
        let value = value.split_whitespace().next().filter(|_| !name.contains(' '))?;
        Some((node.parse().ok().filter(|node| *node < budget::NODES)?, name, value))
    };
    let mut end = at;
    while let Some((node, name, value)) = told(end) {
        let subject = format!("node {node}");
        match (KEPT.iter().find(|(known, _)| *known == name && name.starts_with("HugePages_")), value.parse()) {
            (Some((_, kind)), Ok(value)) => pasted.gauge(*kind, &subject, value, text.place(end)),
            _ => pasted.quote(name, &subject, value, text.place(end)),
        }
        end += 1;
    }
    end - at
}

/// `total used free ..` and the rows `Mem:` and `Swap:`; the unit stands in the command or behind each number.
pub(super) fn free(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    let header = |line: usize| -> Option<Vec<&str>> {
        let words: Vec<&str> = text.at(line).split_whitespace().collect();
        words.starts_with(&["total", "used", "free"]).then_some(words)
    };
    // The command stands just above, in prose or at a prompt.
    let begin = at;
    let is_command = text.at(at).split_whitespace().any(|word| word == "free") && text.at(at).contains(" -");
    let Some(at) = (at..=at + if is_command { ABOVE } else { 0 }).find(|line| header(*line).is_some()) else {
        return 0;
    };
    let header = header(at).unwrap_or_default();
    let above = (begin.min(at.saturating_sub(ABOVE))..at).rev().map(|line| text.at(line));
    let asked = { above }.find(|line| !line.is_empty()).unwrap_or_default();
    let has = |option: char| {
        let is_option = |word: &str| word.starts_with('-') && !word.starts_with("--") && word.contains(option);
        asked.contains("free") && asked.split_whitespace().any(is_option)
    };
    let scale = [('b', 1.0), ('m', 1_048_576.0), ('g', 1_073_741_824.0)];
    let scale = scale.iter().find(|(option, _)| has(*option)).map_or(1_024.0, |(_, scale)| *scale);
    let column = |name: &str| header.iter().position(|known| *known == name);
    let mut end = at + 1;
    while let Some((name, rest)) = text.at(end).split_once(':') {
        if !["Mem", "Swap", "Total", "-/+ buffers/cache"].contains(&name) {
            break;
        }
        let cells: Vec<&str> = rest.split_whitespace().collect();
        let cell = |column: Option<usize>| size(cells.get(column?)?, scale);
        let told = match name {
            "Mem" => [
                (GaugeKind::MemoryTotal, cell(column("total"))),
                (GaugeKind::MemoryAvailable, cell(column("available"))),
            ],
            "Swap" => [(GaugeKind::SwapUsed, cell(column("used"))), (GaugeKind::SwapUsed, None)],
            _ => [(GaugeKind::SwapUsed, None); 2],
        };
        for (kind, value) in told.into_iter().filter_map(|(kind, value)| Some((kind, value?))) {
            pasted.gauge(kind, "", value, text.place(end));
        }
        end += 1;
    }
    if end == at + 1 { 0 } else { end - begin }
}

/// Lines between a command and its table, and the command's own.
const ABOVE: usize = 2;

/// `7.8Gi` of `free -h`, or a number in the unit that was asked for.
fn size(cell: &str, scale: f64) -> Option<f64> {
    let end = cell.find(|letter: char| letter.is_ascii_alphabetic()).unwrap_or(cell.len());
    let number = totals::number(&cell[..end])?;
    let scale = match &cell[end..] {
        "" => scale,
        "B" => 1.0,
        "K" | "Ki" => 1_024.0,
        "M" | "Mi" => 1_048_576.0,
        "G" | "Gi" => 1_073_741_824.0,
        "T" | "Ti" => 1_099_511_627_776.0,
        _ => return None,
    };
    Some(number * scale)
}

/// What top calls its line of swap: in English and German, French, Spanish (po/ of procps-ng 4).
const SWAP: [&str; 4] = ["Swap", "Éch", "Ech", "Interc"];

/// `MiB Mem : 128712.0 total, ..` and `MiB Swap: 32767.0 total, 24744.0 free, 8023.0 used. 310.0 avail Mem` of top.
pub(super) fn of_screen(text: &Text<'_>, at: usize, pasted: &mut Pasted) {
    let Some((head, rest)) = text.at(at).split_once(':') else { return };
    let mut words = head.split_whitespace();
    let scale = match words.next() {
        Some("KiB" | "Mem" | "Swap") => 1_024.0,
        Some("MiB") => 1_048_576.0,
        Some("GiB") => 1_073_741_824.0,
        _ => return,
    };
    let words: Vec<&str> = rest.split_whitespace().map(|word| word.trim_end_matches([',', '.'])).collect();
    let told = |name: &str| {
        let at = words.iter().position(|word| word.starts_with(name))?;
        size(words.get(at.checked_sub(1)?)?.trim_end_matches(['k', '+']), scale)
    };
    let is_swap = SWAP.iter().any(|word| head.contains(word));
    // In other languages the names are others, and the order is that of procps-ng: total, free, used, available.
    let nth = |place: usize| words.iter().filter_map(|word| size(word.trim_end_matches(['k', '+']), scale)).nth(place);
    let is_english = told("used").is_some();
    let by_place = |place: usize| if is_english { None } else { nth(place) };
    let kinds: &[(&str, usize, GaugeKind)] = match is_swap {
        true => &[("used", 2, GaugeKind::SwapUsed), ("avail", 3, GaugeKind::MemoryAvailable)],
        false => &[("total", 0, GaugeKind::MemoryTotal)],
    };
    for (name, place, kind) in kinds {
        if let Some(value) = told(name).or_else(|| by_place(*place)) {
            pasted.gauge(*kind, "", value, text.place(at));
        }
    }
}

/// `VmSwap:   12911300 kB` of `/proc/PID/status`, by itself or among others of its lines.
pub(super) fn of_process(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    const SHOWN: [(&str, &str); 2] = [("VmRSS", "memory in RAM (VmRSS)"), ("VmSwap", "memory swapped out (VmSwap)")];
    let told = text.at(at).split_once(':').and_then(|(name, value)| {
        let kib = value.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()?;
        Some((SHOWN.iter().find(|(known, _)| *known == name)?.1, kib))
    });
    let Some((what, kib)) = told else { return 0 };
    let asked = (at.saturating_sub(SHOWN.len())..at).rev().find_map(|above| {
        let pid = text.at(above).split_once("/proc/")?.1.split_once("/status")?.0;
        pid.parse::<u32>().ok()
    });
    let whose = asked.map_or("a process".to_owned(), |pid| format!("process {pid}"));
    pasted.quote(what, &whose, &base::number::bytes(kib.saturating_mul(1 << 10) as f64), text.place(at));
    1
}

/// `numastat -c qemu-kvm`: a row for each process, a column for each node, in MB.
pub(super) fn numastat(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    let titled = usize::from(text.at(at).starts_with("Per-node process memory usage"));
    if let Some(whose) = text.at(at).split_once(" for PID ").filter(|_| titled == 1).map(|(_, whose)| whose) {
        return numastat_of_one(text, at, whose, pasted);
    }
    let header = text.at(at + titled);
    let nodes: Vec<u32> = match header.strip_prefix("PID") {
        Some(columns) => {
            let words: Vec<&str> = columns.split_whitespace().collect();
            words.windows(2).filter(|pair| pair[0] == "Node").filter_map(|pair| pair[1].parse().ok()).collect()
        }
        None => Vec::new(),
    };
    if nodes.is_empty() || nodes.iter().any(|node| *node >= budget::NODES) {
        return 0;
    }
    let mut end = at + titled + 1;
    loop {
        let line = text.at(end);
        let is_rule = line.starts_with("---");
        // A long name is cut, and its parenthesis with it: `4391 (qemu-syste   8373`.
        let row = line.split_once(" (").and_then(|(pid, rest)| {
            let (name, rest) = rest.split_once(')').or_else(|| rest.split_once(' '))?;
            let cells: Vec<f64> = rest.split_whitespace().map_while(|cell| cell.parse().ok()).collect();
            Some((pid.trim().parse::<i32>().ok()?, name, cells))
        });
        match row.filter(|(_, _, cells)| cells.len() > nodes.len()) {
            Some((pid, name, cells)) if pasted.may_take_row() => {
                let bytes = nodes.iter().copied().zip(cells.iter().map(|cell| (cell * 1_048_576.0) as u64));
                let bytes = text.fact(bytes.collect(), end);
                pasted.process_memory(ProcessMemory { pid, name: name.to_owned(), bytes });
            }
            Some(_) => {}
            None if is_rule || line.starts_with("Total ") => {}
            // Pages put blank lines around its rules.
            None if line.is_empty() && end < at + MOST_SPACED => {}
            None => break,
        }
        end += 1;
    }
    let written = (at..end).rev().find(|line| !text.at(*line).is_empty()).unwrap_or(at);
    written + 1 - at
}

/// Lines of such a table in which blank ones are passed over.
const MOST_SPACED: usize = 24;

/// What a row of kind `Huge` is called.
const OF_HUGETLB: &str = "memory on huge pages";

/// `numastat -p PID`: rows for kinds of memory, of which the last is the sum; `whose` is `8812 (qemu-kvm)`.
fn numastat_of_one(text: &Text<'_>, at: usize, whose: &str, pasted: &mut Pasted) -> usize {
    let words: Vec<&str> = text.at(at + 1).split_whitespace().collect();
    let nodes = words.windows(2).filter(|pair| pair[0] == "Node").filter_map(|pair| pair[1].parse::<u32>().ok());
    let nodes: Vec<u32> = nodes.collect();
    let name =
        whose.split_once(" (").and_then(|(pid, name)| Some((pid.parse::<i32>().ok()?, name.trim_end_matches(')'))));
    let Some((pid, name)) = name.filter(|_| !nodes.is_empty() && nodes.iter().all(|node| *node < budget::NODES)) else {
        return 0;
    };
    let sizes = |line: usize, kind: &str| {
        let cells = text.at(line).strip_prefix(kind).filter(|rest| rest.starts_with(char::is_whitespace))?;
        cells.split_whitespace().map(|cell| cell.parse::<f64>().ok()).collect::<Option<Vec<_>>>()?.last().copied()
    };
    let of_kind = |kind: &str| (at + 2..at + 12).find_map(|line| sizes(line, kind)).unwrap_or(0.0);
    if let Some(domain) = prompt::asked_guest(text, at).and_then(|vm| pasted.domain(vm)) {
        domain.pid = Some(pid);
        domain.huge_pages |= of_kind("Huge") > of_kind("Total") / 2.0;
    }
    // Rows of kinds and rules of dashes.
    for end in at + 2..text.lines.len().min(at + 12) {
        let told = text.at(end).strip_prefix("Huge ").map(|rest| rest.split_whitespace().collect::<Vec<_>>());
        for (node, cell) in nodes.iter().zip(told.iter().flatten()) {
            if let Some(mebibytes) = cell.parse::<f64>().ok().filter(|size| *size > 0.0) {
                let size = base::number::bytes(mebibytes * 1_048_576.0);
                pasted.quote(OF_HUGETLB, &format!("{pid} ({name}), node {node}"), &size, text.place(end));
            }
        }
        let Some(rest) = text.at(end).strip_prefix("Total") else { continue };
        let cells: Vec<f64> = rest.split_whitespace().map_while(|cell| cell.parse().ok()).collect();
        if cells.len() > nodes.len() && pasted.may_take_row() {
            let bytes = nodes.iter().copied().zip(cells.iter().map(|cell| (cell * 1_048_576.0) as u64));
            let bytes = text.fact(bytes.collect(), end);
            pasted.process_memory(ProcessMemory { pid, name: name.to_owned(), bytes });
        }
        return end + 1 - at;
    }
    0
}

/// Columns of `sar -r`, `-S`, `-W`, `-q` that are kept, and how much one of their unit is; a page is one of x86.
const SAR: &[(&str, GaugeKind, f64)] = &[
    ("kbavail", GaugeKind::MemoryAvailable, 1_024.0),
    ("kbswpused", GaugeKind::SwapUsed, 1_024.0),
    ("pswpin/s", GaugeKind::SwappedIn, 4_096.0),
    ("pswpout/s", GaugeKind::SwappedOut, 4_096.0),
    ("runq-sz", GaugeKind::RunQueue, 1.0),
    ("blocked", GaugeKind::TasksBlocked, 1.0),
];

/// `sar -r` and others: a row for each interval, counted from its end, because a clock of twelve hours is two words.
pub(super) fn sar(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    let header: Vec<&str> = text.at(at).split_whitespace().collect();
    let kept: Vec<(usize, GaugeKind, f64)> = SAR
        .iter()
        .filter_map(|(name, kind, scale)| Some((header.iter().position(|known| known == name)?, *kind, *scale)))
        .collect();
    let is_clock = |word: &str| word.matches(':').count() == 2 || word == "Average:";
    if kept.is_empty() || !header.first().is_some_and(|first| is_clock(first)) {
        return 0;
    }
    let mut end = at + 1;
    loop {
        let cells: Vec<&str> = text.at(end).split_whitespace().collect();
        if !cells.first().is_some_and(|first| is_clock(first)) || cells.contains(&header[header.len() - 1]) {
            break;
        }
        for (column, kind, scale) in &kept {
            let cell = cells.len().checked_sub(header.len() - column).and_then(|place| cells.get(place));
            if let Some(value) = cell.and_then(|cell| totals::number(cell)) {
                pasted.gauge(*kind, "", value * scale, text.place(end));
            }
        }
        end += 1;
    }
    if end == at + 1 { 0 } else { end - at }
}

#[cfg(test)]
mod tests {
    use crate::machine::{GaugeKind, Machine};
    use crate::paste::read;

    fn machine(text: &str) -> Machine {
        let machine = read(&[("t".to_owned(), text.to_owned())]);
        assert_eq!(machine.sources[0].2, 0, "{:?}", machine.strange);
        machine
    }

    fn gauges(text: &str) -> Vec<(GaugeKind, f64)> {
        machine(text).gauges.iter().map(|gauge| (gauge.kind, gauge.value)).collect()
    }

    #[test]
    fn every_program_tells_the_same_memory() {
        const GIB: f64 = 1_073_741_824.0;
        let told =
            [(GaugeKind::MemoryTotal, 128.0 * GIB), (GaugeKind::MemoryAvailable, GIB), (GaugeKind::SwapUsed, GIB)];
        let meminfo = "MemTotal:       134217728 kB\nMemFree:         1000 kB\nMemAvailable:    1048576 kB\nSwapTotal:       33554432 kB\nSwapFree:       32505856 kB\n";
        let free = |option: &str, cells: [&str; 4]| {
            let [total, available, swap, used] = cells;
            format!(
                "$ free {option}\n              total        used        free      shared  buff/cache   available\nMem:   {total} 1 1 1 1 {available}\nSwap:  {swap} {used} 1\n"
            )
        };
        let top = "MiB Mem : 131072.0 total,    198.4 free, 130000.0 used,    624.0 buff/cache\nMiB Swap:  32768.0 total,  31744.0 free,   1024.0 used.   1024.0 avail Mem\n";
        for text in [
            meminfo,
            &free("-m", ["131072", "1024", "32768", "1024"]),
            &free("-h", ["128Gi", "1,0Gi", "32Gi", "1.0Gi"]),
        ] {
            assert_eq!(gauges(text), told, "{text}");
        }
        assert_eq!(gauges(top), [told[0], told[2], told[1]]);
    }

    #[test]
    fn huge_pages_are_told_by_a_few_lines() {
        let text = "# grep -i huge /proc/meminfo\nAnonHugePages:         0 kB\nHugePages_Total:       8\nHugePages_Free:        2\nHugepagesize:       2048 kB\n";
        assert_eq!(
            gauges(text),
            [(GaugeKind::HugeAnonymous, 0.0), (GaugeKind::HugePages, 8.0), (GaugeKind::HugePagesFree, 2.0)]
        );
    }

    #[test]
    fn sar_tells_memory_whatever_the_clock() {
        for clock in ["10:00:01 AM", "10:00:01"] {
            let text = format!(
                "{clock} kbmemfree   kbavail kbmemused  %memused\n{clock}    201234    1048576 127890123     98.10\nAverage:    201234    2097152 127890123     98.10\n"
            );
            let told: Vec<f64> = machine(&text).gauges.iter().map(|gauge| gauge.value).collect();
            assert_eq!(told, [1_073_741_824.0, 2_147_483_648.0], "{clock}");
        }
    }

    #[test]
    fn numastat_tells_the_memory_of_processes_by_node() {
        let text = "# numastat -c qemu-kvm\n\nPer-node process memory usage (in MBs)\nPID              Node 0 Node 1 Total\n---------------  ------ ------ -----\n10587 (qemu-kvm)   1216  14902 16118\n---------------  ------ ------ -----\nTotal              1216  14902 16118\n";
        let [process] = &machine(text).process_memory[..] else { panic!("one process") };
        assert_eq!((process.pid, process.name.as_str()), (10_587, "qemu-kvm"));
        assert_eq!(process.bytes.value, [(0, 1_216 << 20), (1, 14_902 << 20)].into());
    }

    #[test]
    fn a_process_is_the_vm_that_its_command_asked_for_and_its_last_look_counts() {
        let look = |node: u64| {
            format!(
                "Per-node process memory usage (in MBs) for PID 44 (qemu-kvm)\n  Node 0 Node 1 Total\n------\nHuge 0.00 0.00 0.00\nTotal {node}.00 3.00 9.00\n"
            )
        };
        let text = format!("# numastat -p $(pgrep -f guest=sbc1)\n\n{}# numastat -p 44\n{}", look(5), look(6));
        let machine = machine(&text);
        assert_eq!(machine.vm_memory["sbc1"].value, [(0, 6 << 20), (1, 3 << 20)].into());
        assert!(machine.process_memory.is_empty());
        assert_eq!(machine.quoted[0].what, "memory on node 0, before");
    }
}
