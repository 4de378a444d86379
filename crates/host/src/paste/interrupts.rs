//! `/proc/interrupts` and `/proc/softirqs`, once or several times.
//!
//! One copy of a counter is a sum since boot and no rate. Of two copies the difference counts; it is a rate where the text tells how
//! long lies between them (`clock`).
//! ```text
//!            CPU0       CPU1
//! 128:          0    9912331  IR-PCI-MSI 3145728-edge  eno1-TxRx-0        LOC: 44012231 43012311 Local timer interrupts
//! ```
//! Sources: proc_interrupts(5); kernel/softirq.c, `softirq_to_name`, Linux 6.12.

use super::clock::{ABOVE, When, is_moment, seconds_slept};
use super::{Pasted, Text};
use crate::budget;
use crate::machine::{Fact, Irq};
use base::number::{rate, thousands};
use std::collections::BTreeMap;

/// Rows of `/proc/softirqs`.
const SOFTIRQS: &[&str] =
    &["HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU"];

/// CPUs of which a row says how often each was interrupted.
const MOST_CPUS: usize = 4;

/// One look at the counters.
pub(super) struct Look {
    is_soft: bool,
    when: When,
    place: String,
    /// Seconds since the look before, as the text tells it.
    since: Option<f64>,
    /// By their names: what they are of, and how often by CPU.
    rows: Vec<(String, String, BTreeMap<u32, u64>)>,
}

/// `CPU0 CPU1 ..` and the rows below it. A CPU that is off has no column.
pub(super) fn counters(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    let cpus: Option<Vec<u32>> =
        text.at(at).split_whitespace().map(|word| word.strip_prefix("CPU")?.parse().ok()).collect();
    let most = base::cpus::MOST_CPUS as usize;
    let Some(cpus) = cpus.filter(|cpus| (1..=most).contains(&cpus.len())) else { return 0 };
    let last = cpus.iter().copied().max().unwrap_or(0);
    pasted.count_cpus(last + 1, text.place(at));
    table(text, at, at + 1, &cpus, pasted)
}

/// Columns without a heading are numbered from 0, as those of a machine whose CPUs are all on.
const CONTROLLERS: [&str; 6] = ["PCI-MSI", "IR-PCI-MSI", "IO-APIC", "IR-IO-APIC", "PCI-MSIX", "IR-PCI-MSIX"];

/// Rows of `grep virtio0-input /proc/interrupts`, which leaves the heading out: numbers of one count, then who delivers the interrupt.
pub(super) fn grepped(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    let columns = |line: &str| {
        let (number, rest) = line.split_once(':')?;
        number.parse::<u32>().ok()?;
        let counts = rest.split_whitespace().take_while(|word| word.bytes().all(|byte| byte.is_ascii_digit())).count();
        let controller = rest.split_whitespace().nth(counts)?;
        let is_one = CONTROLLERS
            .iter()
            .any(|name| controller.strip_prefix(name).is_some_and(|rest| !rest.starts_with(char::is_alphabetic)));
        (counts > 0 && counts <= base::cpus::MOST_CPUS as usize && is_one).then_some(counts as u32)
    };
    let Some(cpus) = columns(text.at(at)) else { return 0 };
    let rows = (at..text.lines.len()).take_while(|row| columns(text.at(*row)) == Some(cpus)).count();
    // The heading is above it where all was printed.
    if rows == 0 || at > 0 && text.at(at - 1).contains("CPU0") {
        return 0;
    }
    table(text, at, at, &(0..cpus).collect::<Vec<u32>>(), pasted)
}

/// The rows from `first` on, of these CPUs.
fn table(text: &Text<'_>, at: usize, first: usize, cpus: &[u32], pasted: &mut Pasted) -> usize {
    let (mut end, mut rows) = (first, Vec::new());
    while let Some((name, rest)) = text.at(end).split_once(':') {
        if name.is_empty() || name.contains(char::is_whitespace) {
            break;
        }
        let counts: Vec<u64> = rest.split_whitespace().map_while(|word| word.parse().ok()).take(cpus.len()).collect();
        if counts.is_empty() {
            break;
        }
        match pasted.counters_left.checked_sub(counts.len()) {
            Some(left) => {
                pasted.counters_left = left;
                let words: Vec<&str> = rest.split_whitespace().skip(counts.len()).collect();
                // Behind the controller and its edge stands who asked for it; of the kernel's own a description.
                let device = match name.parse::<u32>() {
                    Ok(_) => words.last().copied().unwrap_or_default().to_owned(),
                    Err(_) => words.join(" "),
                };
                rows.push((name.to_owned(), device, cpus.iter().copied().zip(counts).collect()));
            }
            None => pasted.leave_out("interrupts behind the counters beyond the first", budget::IRQ_COUNTERS),
        }
        end += 1;
    }
    if end == first {
        return 0;
    }
    let is_soft = rows.first().is_some_and(|(name, ..)| SOFTIRQS.contains(&name.as_str()));
    let before = pasted.looks.iter().rev().find(|look| look.is_soft == is_soft);
    let mut when = When::of(text, at, end);
    let since = before.and_then(|before| when.since(text, &before.when));
    pasted.looks.push(Look { is_soft, when, place: text.place(at), since, rows });
    end - at
}

/// A date or a `sleep` above such a table: it says when the machine was looked at.
pub(super) fn stamp(text: &Text<'_>, at: usize, _: &mut Pasted) -> usize {
    let is_header = |line: usize| text.at(line).starts_with("CPU") && text.at(line).contains("CPU1");
    let is_above = (at + 1..=at + ABOVE).any(is_header);
    usize::from(is_above && (is_moment(text.at(at)) || seconds_slept(text.at(at)).is_some()))
}

/// The interrupts of the last look, with their rates where two looks tell them; and what each of them and each CPU had.
pub(super) fn finish(pasted: &mut Pasted) {
    let looks = std::mem::take(&mut pasted.looks);
    for is_soft in [false, true] {
        let mut of_kind = looks.iter().filter(|look| look.is_soft == is_soft).rev();
        let Some(last) = of_kind.next() else { continue };
        let first = of_kind.next().filter(|first| last.when.is_of_the_text_of(&first.when));
        let seconds = first.and(last.since);
        let mut moved: Vec<(&str, &str, BTreeMap<u32, u64>)> = Vec::new();
        for (name, device, counts) in &last.rows {
            let before = first.and_then(|first| first.rows.iter().find(|row| row.0 == *name)).map(|row| &row.2);
            let since = |cpu: &u32| first.map_or(Some(0), |_| before?.get(cpu).copied());
            // A counter that is smaller now was made anew.
            let more = counts.iter().filter_map(|(cpu, count)| Some((*cpu, count.checked_sub(since(cpu)?)?)));
            let more: BTreeMap<u32, u64> = more.filter(|(_, count)| *count > 0).collect();
            if let (Ok(number), false) = (name.parse::<u32>(), is_soft) {
                let (name, counts) = (device.clone(), counts.clone());
                let rate = |(cpu, count): (&u32, &u64)| Some((*cpu, *count as f64 / seconds?));
                let per_s = more.iter().filter_map(rate).collect();
                pasted.machine.irqs.push(Irq { number, name, counts, per_s, ..Irq::default() });
            }
            if name == "LOC"
                && !is_soft
                && let Some(seconds) = seconds
            {
                let rates = more.iter().map(|(cpu, count)| (*cpu, *count as f64 / seconds)).collect();
                pasted.machine.timer_interrupts = Some(Fact::new(rates, last.place.clone()));
            }
            moved.push((name, device, more));
        }
        quote(pasted, last, &moved, (first.is_some(), seconds));
    }
}

/// Shows what interrupted each CPU most, and how often each interrupt came to the CPUs that it came to most.
fn quote(pasted: &mut Pasted, last: &Look, moved: &[(&str, &str, BTreeMap<u32, u64>)], of: (bool, Option<f64>)) {
    let kind = if last.is_soft { "softirq" } else { "interrupt" };
    let (since, amount): (&str, Box<dyn Fn(u64) -> String>) = match of {
        (_, Some(seconds)) => ("per second", Box::new(move |count| rate(count as f64 / seconds))),
        (true, None) => ("between the two copies", Box::new(thousands)),
        (false, None) => ("since boot", Box::new(thousands)),
    };
    let called = |name: &str, device: &str| format!("{name} {device}").trim_end().to_owned();
    let mut busiest: BTreeMap<u32, (u64, String)> = BTreeMap::new();
    for (name, device, more) in moved {
        for (cpu, count) in more.iter().filter(|(_, count)| **count > 0) {
            let most = busiest.entry(*cpu).or_default();
            if *count > most.0 {
                *most = (*count, called(name, device));
            }
        }
    }
    for (cpu, (count, name)) in busiest {
        let what = format!("most frequent {kind} of CPU {cpu}, {since}");
        pasted.quote(&what, &name, &amount(count), last.place.clone());
    }
    for (name, device, more) in moved.iter().filter(|(.., more)| !more.is_empty()) {
        let mut cpus: Vec<(&u32, &u64)> = more.iter().collect();
        cpus.sort_by_key(|(cpu, count)| (std::cmp::Reverse(**count), **cpu));
        let told = cpus.iter().take(MOST_CPUS).map(|(cpu, count)| format!("CPU {cpu}: {}", amount(**count)));
        let mut told: Vec<String> = told.collect();
        let others = cpus.iter().skip(MOST_CPUS).map(|(_, count)| **count);
        if cpus.len() > MOST_CPUS {
            told.push(format!("{} other CPUs: {}", cpus.len() - MOST_CPUS, amount(others.sum())));
        }
        pasted.quote(&format!("{kind}s {since}"), &called(name, device), &told.join(", "), last.place.clone());
    }
}

#[cfg(test)]
mod tests {
    use crate::machine::Machine;
    use crate::paste::read;

    const FIRST: &str = "      CPU0   CPU2\n  40:   100   5000   PCI-MSI 1-edge   eth1-rx-0\n LOC:  7000    900   Local timer interrupts\n";
    const LAST: &str = "      CPU0   CPU2\n  40:   100   9000   PCI-MSI 1-edge   eth1-rx-0\n LOC:  9000    904   Local timer interrupts\n";

    fn of(text: &str) -> Machine {
        let machine = read(&[("t".to_owned(), text.to_owned())]);
        assert_eq!(machine.irqs.len(), 1, "one interrupt, however often it was asked for");
        machine
    }

    fn busiest(machine: &Machine, cpu: u32) -> (String, String) {
        let what = format!(" of CPU {cpu}, ");
        let told = machine.quoted.iter().find(|told| told.what.contains(&what)).expect("the CPU was interrupted");
        (told.what.clone(), format!("{}: {}", told.subject, told.value))
    }

    #[test]
    fn two_looks_are_a_rate_where_the_text_tells_the_time_between_them() {
        let cat = "$ cat /proc/interrupts\n";
        for text in [
            format!("{cat}{FIRST}$ sleep 4; cat /proc/interrupts\n{LAST}"),
            format!("$ cat /proc/interrupts; sleep 4; cat /proc/interrupts\n{FIRST}{LAST}"),
            format!("Tue Mar 12 10:00:58 UTC 2024\n{FIRST}Tue Mar 12 10:01:02 UTC 2024\n{LAST}"),
            format!("2024-03-12 10:00:58\n{FIRST}2024-03-12 10:01:02\n{LAST}"),
            format!("1710237658\n{FIRST}1710237662\n{LAST}"),
        ] {
            let machine = of(&text);
            assert_eq!(machine.irqs[0].per_s, [(2, 1_000.0)].into(), "{text}");
            let told = ("most frequent interrupt of CPU 2, per second".to_owned(), "40 eth1-rx-0: 1,000".to_owned());
            assert_eq!(busiest(&machine, 2), told, "{text}");
        }
        let apart = of(&format!("{cat}{FIRST}{cat}{LAST}"));
        assert!(apart.irqs[0].per_s.is_empty(), "nobody told how long lies between them");
        assert_eq!(busiest(&apart, 0).1, "LOC Local timer interrupts: 2,000");
        let once = of(&format!("{cat}{FIRST}"));
        assert_eq!(busiest(&once, 0).0, "most frequent interrupt of CPU 0, since boot");
    }
}
