//! `mpstat -P ALL`, `sar -P ALL` and `sar -u`: how each CPU was used.

use super::{Pasted, Text, totals};
use crate::machine::CpuUse;
use base::number::{counted, percent};

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
    let (mut end, mut totals, mut broken) = (at + 1, Vec::new(), 0);
    loop {
        let mut cells: Vec<&str> = text.at(end).split_whitespace().collect();
        // Below a clock of twelve hours the word of averages stands for two.
        if cells.first() == Some(&"Average:") && matches!(header.get(1), Some(&"AM" | &"PM")) {
            cells.insert(1, "");
        }
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
            // Columns overlap in no version, and cut digits take little.
            let sum: f64 = header
                .iter()
                .zip(&cells)
                .filter(|(name, _)| name.starts_with('%'))
                .filter_map(|(_, cell)| totals::number(cell))
                .sum();
            match sum >= WHOLE {
                true => totals.push(text.fact(told, end)),
                false => broken += 1,
            }
        }
        if let Some(number) = cells[cpu].parse::<u32>().ok().filter(|cpu| *cpu < base::cpus::MOST_CPUS) {
            let [irq, softirq, steal] = ["%irq", "%soft", "%steal"].map(|name| share(column(name)));
            let idle = (share(Some(idle)) + share(column("%iowait"))).min(1.0);
            let busy = (1.0 - idle - irq - softirq - steal).max(0.0);
            pasted.machine.cpu_use.insert(number, CpuUse { busy, irq, softirq, steal, idle });
        }
        end += 1;
    }
    if end == at + 1 {
        return 0;
    }
    if broken > 0 {
        let said = format!(
            "The shares of {} in this table do not add up to the time: its counters went backwards, as a guest's do whose stolen time jumped. Neither \
             such rows nor those with all time stolen are used.",
            counted(broken, "row", "rows")
        );
        pasted.summarize(said, text.place(at));
        totals.retain(|told| told.value.shares.steal < 0.99);
    }
    totals.into_iter().for_each(|told| pasted.total(told));
    pasted.uses = text.place(at);
    end - at
}

/// What all shares of a row add up to at least, in percent.
const WHOLE: f64 = 90.0;

/// CPUs that are named where nothing else tells of them.
const MOST_CPUS: usize = 16;

/// How idle CPUs were that no list of CPUs has.
pub(super) fn finish(pasted: &mut Pasted) {
    if pasted.uses.is_empty() || pasted.cpu_count.is_some() || !pasted.machine.topology.cpus.is_empty() {
        return;
    }
    let told: Vec<(u32, f64)> = pasted.machine.cpu_use.iter().map(|(cpu, told)| (*cpu, told.idle)).collect();
    let place = pasted.uses.clone();
    for (cpu, idle) in told.iter().take(MOST_CPUS) {
        pasted.quote("idle, of the time", &format!("CPU {cpu}"), &percent(*idle), place.clone());
    }
    if told.len() > MOST_CPUS {
        pasted.leave_out("CPUs of mpstat beyond the first", MOST_CPUS);
    }
}
