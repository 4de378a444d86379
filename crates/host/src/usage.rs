//! How was each CPU used between two looks?
//!
//! In: two readings of `/proc/stat`. Out: for each CPU the shares of the time that it was busy, in interrupts, taken away by
//! the machine below, and idle. Ticks are 10 ms: readings closer than half a second give little.
//! Source: Documentation/filesystems/proc.rst, 1.8; guest time is inside of user time.

use crate::machine::CpuUse;
use std::collections::BTreeMap;

/// How each CPU was used between two readings of `/proc/stat`, as shares.
pub fn between(first: &str, last: &str) -> BTreeMap<u32, CpuUse> {
    let ticks = |text: &str| -> BTreeMap<u32, Vec<u64>> {
        let rows = text.lines().filter_map(|line| {
            let mut words = line.strip_prefix("cpu")?.split_whitespace();
            let cpu = words.next()?.parse().ok().filter(|_| line.as_bytes()[3].is_ascii_digit())?;
            Some((cpu, words.take(8).filter_map(|word| word.parse().ok()).collect::<Vec<u64>>()))
        });
        rows.filter(|(_, ticks)| ticks.len() == 8).collect()
    };
    let (first, last) = (ticks(first), ticks(last));
    let share = |(cpu, now): (&u32, &Vec<u64>)| {
        let before = first.get(cpu)?;
        let passed: Vec<f64> = now.iter().zip(before).map(|(now, before)| now.saturating_sub(*before) as f64).collect();
        let all: f64 = passed.iter().sum();
        let [user, nice, system, idle, iowait, irq, softirq, steal] = passed[..] else { return None };
        (all > 0.0).then(|| {
            let of = |ticks: f64| ticks / all;
            let (busy, idle) = (of(user + nice + system), of(idle + iowait));
            (*cpu, CpuUse { busy, irq: of(irq), softirq: of(softirq), steal: of(steal), idle })
        })
    };
    last.iter().filter_map(share).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_of_the_time_between_the_readings() {
        let first = "cpu  1 1 1 1 1 1 1 1 0 0\ncpu0 100 0 100 700 100 10 20 0 50 0\ncpu1 0 0 0 0 0 0 0 0 0 0\nintr 7\n";
        let last = "cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 140 0 110 720 100 15 40 5 90 0\ncpu2 5 5 5 5 5 5 5 5 0 0\nintr 9\n";
        let used = between(first, last);
        let expected = CpuUse { busy: 0.5, irq: 0.05, softirq: 0.2, steal: 0.05, idle: 0.2 };
        assert_eq!(used, BTreeMap::from([(0, expected)]), "a CPU of one reading alone has no use");
        assert!(between(first, first).is_empty(), "no time has passed");
    }
}
