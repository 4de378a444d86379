//! How all CPUs together were used: `vmstat`, the rows `all` of `sar` and `mpstat`, iostat's `avg-cpu`, the first line of /proc/stat, and
//! the head of `top`.
//!
//! Sources: vmstat(8) and top(1) of procps-ng 4.0, sar(1), mpstat(1) and iostat(1) of sysstat 12.6, proc_stat(5).

use super::{Pasted, Text};
use crate::machine::{CpuUse, Fact, GaugeKind, TotalUse};
use std::collections::BTreeMap;

/// Lines of `vmstat` and `sar` that are kept: a day in steps of a minute.
const MOST_TOTALS: usize = 1_440;

/// Shares of the time of all CPUs, each by its name in percent; what a program does not print is 0 in it.
pub(super) fn of_percents(percent: impl Fn(&[&str]) -> Option<f64>) -> Option<TotalUse> {
    let share = |names: &[&str]| percent(names).map(|percent| (percent / 100.0).clamp(0.0, 1.0));
    let (idle, wait) = (share(&["id", "%idle"])?, share(&["wa", "%iowait"]).unwrap_or(0.0));
    let irq = share(&["hi", "%irq"]).unwrap_or(0.0);
    let softirq = share(&["si", "%soft"]).unwrap_or(0.0);
    let steal = share(&["st", "%steal"]).unwrap_or(0.0);
    let idle = (idle + wait).min(1.0);
    let busy = (1.0 - idle - irq - softirq - steal).max(0.0);
    Some(TotalUse { shares: CpuUse { busy, irq, softirq, steal, idle }, wait })
}

impl Pasted {
    pub(super) fn total(&mut self, told: Fact<TotalUse>) {
        if self.machine.total_use.len() < MOST_TOTALS {
            self.machine.total_use.push(told);
        } else {
            self.leave_out("rows of all CPUs beyond the first", MOST_TOTALS);
        }
    }
}

/// `2.5`, or `2,5` where the language writes it so.
pub(super) fn number(cell: &str) -> Option<f64> {
    cell.replace(',', ".").parse().ok()
}

/// `vmstat`: two lines of heads, and a row for each interval; the first one is an average since boot.
pub(super) fn vmstat(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    let groups = usize::from(text.at(at).starts_with("procs") && text.at(at).contains("-cpu-"));
    let header: Vec<&str> = text.at(at + groups).split_whitespace().collect();
    let column = |name: &str| header.iter().position(|known| *known == name);
    // `si` is both swapped in and, in no version, a share of time.
    if header.first() != Some(&"r") || column("us").is_none() || column("id").is_none() {
        return 0;
    }
    // With `-t` the zone stands behind the columns, and the date and the time behind the row.
    let last = ["gu", "st", "wa", "id"].iter().find_map(|name| column(name)).map_or(header.len(), |last| last + 1);
    let behind = header.len() - last;
    let mut end = at + groups + 1;
    loop {
        let mut cells: Vec<&str> = text.at(end).split_whitespace().collect();
        let is_stamped =
            behind > 0 && cells.len() == last + 2 && cells[last].contains('-') && cells[last + 1].contains(':');
        if is_stamped {
            cells.truncate(last);
        }
        if cells.len() != last
            || behind > 0 && !is_stamped
            || !cells.iter().all(|cell| cell.bytes().all(|byte| byte.is_ascii_digit()))
        {
            break;
        }
        let percent = |names: &[&str]| number(cells[column(names[0]).filter(|_| names[0] != "si")?]);
        if let Some(told) = of_percents(percent) {
            pasted.total(text.fact(told, end));
        }
        // Swapped in and out stand before the shares, in KiB a second.
        let places = [
            ("si", GaugeKind::SwappedIn, 1_024.0),
            ("so", GaugeKind::SwappedOut, 1_024.0),
            ("b", GaugeKind::TasksBlocked, 1.0),
            ("r", GaugeKind::RunQueue, 1.0),
        ];
        for (name, kind, scale) in places {
            if let Some(value) = column(name).and_then(|column| number(cells[column])) {
                pasted.gauge(kind, "", value * scale, text.place(end));
            }
        }
        end += 1;
    }
    if end == at + groups + 1 { 0 } else { end - at }
}

/// The row of all CPUs in `sar` and `mpstat`, whose columns `header` names.
pub(super) fn row(header: &[&str], cells: &[&str]) -> Option<TotalUse> {
    let column = |name: &str| header.iter().position(|known| *known == name);
    of_percents(|names| number(cells.get(column(names[1])?)?))
}

/// `avg-cpu: %user %nice ..` of iostat, and the values below it.
pub(super) fn average(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    let Some(header) = text.at(at).strip_prefix("avg-cpu:") else { return 0 };
    let header: Vec<&str> = header.split_whitespace().collect();
    let cells: Vec<&str> = text.at(at + 1).split_whitespace().collect();
    match row(&header, &cells).filter(|_| cells.len() == header.len()) {
        Some(told) => {
            pasted.total(text.fact(told, at + 1));
            2
        }
        None => 0,
    }
}

/// `cpu  100000 0 20000 800000 100 0 50 79850 0 0` of /proc/stat, and the lines of each CPU below: sums since boot; of a second copy what was
/// added since the first.
pub(super) fn stat(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    let of = |line: &str| -> Option<Vec<f64>> {
        let ticks: Vec<f64> = line.split_whitespace().skip(1).map_while(|cell| cell.parse().ok()).collect();
        (ticks.len() >= 8).then_some(ticks)
    };
    let Some(ticks) = of(text.at(at)).filter(|_| text.at(at).starts_with("cpu ")) else { return 0 };
    let cpu = |line: usize| -> Option<u32> {
        let name = text.at(line).strip_prefix("cpu")?.split_whitespace().next()?;
        name.parse().ok().filter(|cpu| *cpu < base::cpus::MOST_CPUS)
    };
    let others = (at + 1..text.lines.len()).take_while(|line| cpu(*line).is_some()).count();
    let own = (at + 1..=at + others).filter_map(|line| Some((cpu(line)?, of(text.at(line))?))).collect();
    let stat = Stat { all: ticks, own, place: text.place(at) };
    match pasted.stat.take().and_then(|before| stat.since(&before)) {
        Some(since) => {
            // What came since is told instead of what was since boot.
            let boot = format!("{}{SINCE_BOOT}", since.place);
            pasted.machine.total_use.retain(|told| told.place != boot);
            let told = used(&since.all).map(|told| Fact::new(told, format!("{}, since {}", stat.place, since.place)));
            told.into_iter().for_each(|told| pasted.total(told));
            for (cpu, ticks) in &since.own {
                if let Some(used) = used(ticks) {
                    pasted.machine.cpu_use.insert(*cpu, used.shares);
                }
            }
        }
        None => {
            let told = used(&stat.all).map(|told| Fact::new(told, format!("{}{SINCE_BOOT}", stat.place)));
            told.into_iter().for_each(|told| pasted.total(told));
        }
    }
    pasted.stat = Some(stat);
    1 + others
}

/// Behind the place of sums.
const SINCE_BOOT: &str = ", since boot";

/// Ticks of all CPUs and of each one, since boot.
pub(super) struct Stat {
    all: Vec<f64>,
    own: BTreeMap<u32, Vec<f64>>,
    place: String,
}

impl Stat {
    /// What was added since another copy, at its place; `None` where something fell: then the two are of two machines, or it was booted.
    fn since(&self, before: &Self) -> Option<Self> {
        let added =
            |now: &[f64], then: &[f64]| -> Vec<f64> { now.iter().zip(then).map(|(now, then)| now - then).collect() };
        let all = added(&self.all, &before.all);
        let own: BTreeMap<u32, Vec<f64>> =
            self.own.iter().filter_map(|(cpu, ticks)| Some((*cpu, added(ticks, before.own.get(cpu)?)))).collect();
        let grew =
            all.iter().chain(own.values().flatten()).all(|ticks| *ticks >= 0.0) && all.iter().any(|ticks| *ticks > 0.0);
        (grew && self.own.len() == before.own.len()).then(|| Self { all, own, place: before.place.clone() })
    }
}

/// Shares of ticks. Guests' time is part of user and nice.
fn used(ticks: &[f64]) -> Option<TotalUse> {
    let all: f64 = ticks.iter().take(8).sum();
    let place = |names: &[&str]| match names[0] {
        "id" => Some(3),
        "wa" => Some(4),
        "hi" => Some(5),
        "si" => Some(6),
        "st" => Some(7),
        _ => None,
    };
    of_percents(|names| Some(ticks.get(place(names)?)? * 100.0 / all.max(1.0)))
}

#[cfg(test)]
mod tests {
    use crate::paste::read;

    fn steals(text: &str) -> Vec<(u64, u64, String)> {
        let machine = read(&[("t".to_owned(), text.to_owned())]);
        assert_eq!(machine.sources[0].2, 0, "{:?}", machine.strange);
        let percent = |share: f64| (share * 1_000.0).round() as u64;
        let of = |fact: &crate::machine::Fact<crate::machine::TotalUse>| {
            (percent(fact.value.shares.steal), percent(fact.value.wait), fact.place.clone())
        };
        machine.total_use.iter().map(of).collect()
    }

    #[test]
    fn every_program_tells_how_all_cpus_were_used() {
        let vmstat = "procs -----------memory---------- ---swap-- -----io---- -system-- ------cpu-----\n r  b   swpd   free   buff  cache   si   so    bi    bo   in   cs us sy id wa st\n 4  0      0 100000  10000 200000    7    0     0     5  900 1200 30  5 17  3 45\n";
        assert_eq!(steals(vmstat), [(450, 30, "t:3".to_owned())]);
        let stamped = vmstat
            .replace("------cpu-----\n", "------cpu----- -----timestamp-----\n")
            .replace(" wa st\n", " wa st                 UTC\n")
            .replace(" 3 45\n", " 3 45 2026-03-02 01:05:05\n");
        assert_eq!(steals(&stamped), [(450, 30, "t:3".to_owned())]);
        let sar = "10:00:01 AM     CPU     %user     %nice   %system   %iowait    %steal     %idle\n10:10:01 AM     all     20.00      0.00      5.00      0.00     39.00     36.00\n";
        assert_eq!(steals(sar), [(390, 0, "t:2".to_owned())]);
        let iostat = "avg-cpu:  %user   %nice %system %iowait  %steal   %idle\n           2,00    0,00    1,00   10,00    5,00   82,00\n";
        assert_eq!(steals(iostat), [(50, 100, "t:2".to_owned())]);
        let stat = "cpu  100000 0 20000 800000 100 0 50 79850 0 0\ncpu0 50000 0 10000 400000 50 0 25 39925 0 0\n";
        assert_eq!(steals(stat), [(80, 0, "t:1, since boot".to_owned())]);
        let top = "%Cpu(s):  4.0 us,  1.8 sy,  0.0 ni, 54.6 id,  0.0 wa,  0.0 hi,  0.6 si, 39.0 st\n";
        assert_eq!(steals(top), [(390, 0, "t:1".to_owned())]);
    }

    #[test]
    fn of_two_copies_what_was_added_between_them_counts() {
        let first = "cpu  1000 0 0 9000 0 0 0 0 0 0\ncpu0 500 0 0 4500 0 0 0 0 0 0\ncpu1 500 0 0 4500 0 0 0 0 0 0\n";
        let second = "cpu  1060 0 0 9100 0 0 0 40 0 0\ncpu0 530 0 0 4530 0 0 0 40 0 0\ncpu1 530 0 0 4570 0 0 0 0 0 0\n";
        assert_eq!(steals(&format!("{first}\n{second}")), [(200, 0, "t:5, since t:1".to_owned())]);
        let machine = read(&[("t".to_owned(), format!("{first}\n{second}"))]);
        assert_eq!(
            machine.cpu_use.iter().map(|(cpu, used)| (*cpu, used.steal)).collect::<Vec<_>>(),
            [(0, 0.4), (1, 0.0)]
        );
        // Of two machines, or with a boot between them, each is by itself.
        assert_eq!(steals(&format!("{second}\n{first}")).len(), 2);
    }
}
