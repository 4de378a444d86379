//! `/proc/interrupts`, `/proc/softirqs` and `mpstat -P ALL`.
//!
//! One copy of a counter is a sum since boot and no rate; it is kept as counts.

use super::{Pasted, Text, totals};
use crate::budget;
use crate::machine::{CpuUse, Irq};
use std::collections::BTreeMap;

/// `CPU0 CPU1 ..` and the rows below it. A CPU that is off has no column.
pub(super) fn interrupts(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    let cpus: Option<Vec<u32>> =
        text.at(at).split_whitespace().map(|word| word.strip_prefix("CPU")?.parse().ok()).collect();
    let most = base::cpus::MOST_CPUS as usize;
    let Some(cpus) = cpus.filter(|cpus| (1..=most).contains(&cpus.len())) else { return 0 };
    let last = cpus.iter().copied().max().unwrap_or(0);
    pasted.count_cpus(last + 1, text.place(at));
    let mut end = at + 1;
    while let Some((name, rest)) = text.at(end).split_once(':') {
        if name.is_empty() || name.contains(char::is_whitespace) {
            break;
        }
        let counts: Vec<u64> = rest.split_whitespace().map_while(|word| word.parse().ok()).take(cpus.len()).collect();
        if counts.is_empty() {
            break;
        }
        let left = pasted.counters_left.checked_sub(counts.len());
        pasted.counters_left = left.unwrap_or(pasted.counters_left);
        if left.is_none() {
            pasted.leave_out("interrupts behind the counters beyond the first", budget::IRQ_COUNTERS);
        } else if let Ok(number) = name.parse::<u32>() {
            let words: Vec<&str> = rest.split_whitespace().skip(counts.len()).collect();
            let counts: BTreeMap<u32, u64> = cpus.iter().copied().zip(counts).collect();
            let name = words.last().copied().unwrap_or_default().to_owned();
            pasted.machine.irqs.push(Irq { number, name, counts, ..Irq::default() });
        }
        end += 1;
    }
    if end == at + 1 { 0 } else { end - at }
}

/// `Linux 5.14.0 (kvm7)  11/28/2026  _x86_64_  (8 CPU)`, above what programs of sysstat print.
pub(super) fn system(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    let told = text.at(at).strip_prefix("Linux ").and_then(|rest| rest.strip_suffix(" CPU)")?.rsplit_once('('));
    let Some(count) = told.and_then(|(_, count)| count.parse::<u32>().ok()) else { return 0 };
    pasted.count_cpus(count, text.place(at));
    1
}

/// `mpstat -P ALL`, `sar -P ALL` and `sar -u`: a row for each CPU or for all; of several intervals the last counts.
pub(super) fn mpstat(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    let header: Vec<&str> = text.at(at).split_whitespace().collect();
    let column = |name: &str| header.iter().position(|known| *known == name);
    let (Some(cpu), Some(idle), Some(_)) = (column("CPU"), column("%idle"), column("%usr").or(column("%user"))) else {
        return 0;
    };
    let mut end = at + 1;
    loop {
        let cells: Vec<&str> = text.at(end).split_whitespace().collect();
        if cells.len() != header.len() {
            break;
        }
        let share = |column: Option<usize>| -> f64 {
            let percent = column.and_then(|column| cells[column].replace(',', ".").parse::<f64>().ok());
            (percent.unwrap_or(0.0) / 100.0).clamp(0.0, 1.0)
        };
        if cells[cpu] == "all"
            && let Some(told) = totals::row(&header, &cells)
        {
            pasted.total(text.fact(told, end));
        }
        if let Some(number) = cells[cpu].parse::<u32>().ok().filter(|cpu| *cpu < base::cpus::MOST_CPUS) {
            let [irq, softirq, steal] = ["%irq", "%soft", "%steal"].map(|name| share(column(name)));
            let idle = (share(Some(idle)) + share(column("%iowait"))).min(1.0);
            let busy = (1.0 - idle - irq - softirq - steal).max(0.0);
            pasted.machine.cpu_use.insert(number, CpuUse { busy, irq, softirq, steal, idle });
        }
        end += 1;
    }
    if end == at + 1 { 0 } else { end - at }
}
