//! `iostat -x`: how busy each disk is, and how long a request takes.
//!
//! Source: iostat(1) of sysstat 12.6; before 11.5.5 the columns of writes and reads were one, `await` and `avgqu-sz`.

use super::totals::number;
use super::{Pasted, Text};
use crate::machine::GaugeKind;
use base::number::plain;
use std::collections::BTreeMap;

/// Columns, and how much one of their unit is.
const COLUMNS: &[(&str, GaugeKind, f64)] = &[
    ("%util", GaugeKind::DiskBusy, 0.01),
    ("r_await", GaugeKind::DiskRead, 1e6),
    ("w_await", GaugeKind::DiskWrite, 1e6),
    ("f_await", GaugeKind::DiskFlush, 1e6),
    ("aqu-sz", GaugeKind::DiskQueue, 1.0),
    ("avgqu-sz", GaugeKind::DiskQueue, 1.0),
];

/// `Device  r/s  ..  %util` and a row for each disk.
pub(super) fn iostat(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    let header: Vec<&str> = text.at(at).split_whitespace().collect();
    let is_head = header.first().is_some_and(|first| first.trim_end_matches(':') == "Device");
    if !is_head || header.last() != Some(&"%util") {
        return 0;
    }
    let mut end = at + 1;
    loop {
        let cells: Vec<&str> = text.at(end).split_whitespace().collect();
        if cells.len() != header.len() || !cells[1..].iter().all(|cell| number(cell).is_some()) {
            break;
        }
        let value =
            |name: &str| header.iter().position(|known| *known == name).and_then(|column| number(cells[column]));
        let is_none = |rate: &str| value(rate) == Some(0.0);
        for (name, kind, scale) in COLUMNS {
            // How long requests took that were not there is no time.
            let is_idle = name.strip_suffix("_await").is_some_and(|way| is_none(&format!("{way}/s")));
            if let Some(value) = value(name).filter(|_| !is_idle) {
                pasted.gauge(*kind, cells[0], value * scale, text.place(end));
            }
        }
        let queued = value("aqu-sz").or(value("avgqu-sz")).filter(|queued| *queued >= 1.0);
        let is_busy = value("%util").is_some_and(|util| util >= 99.0);
        if let Some(queued) = queued.filter(|_| is_busy && ["r/s", "w/s"].iter().all(|rate| is_none(rate))) {
            let said = format!(
                "{} has {} requests in its queue, and completed none in that interval: what is below it does not answer.",
                cells[0],
                plain(queued)
            );
            pasted.summarize(said, text.place(end));
        }
        end += 1;
    }
    if end == at + 1 { 0 } else { end - at }
}

/// What a VM's disk was asked for since the VM began, and how long that took.
pub(super) struct Requests {
    place: String,
    name: Option<String>,
    counts: BTreeMap<&'static str, f64>,
}

/// How `virsh domblkstat` calls it, with `--human`, and `virsh domstats` (virsh(1), libvirt 10.0).
const REQUESTS: &[(&str, &str, &str)] = &[
    ("rd_req", "number of read operations", "rd.reqs"),
    ("rd_total_times", "total duration of reads (ns)", "rd.times"),
    ("wr_req", "number of write operations", "wr.reqs"),
    ("wr_total_times", "total duration of writes (ns)", "wr.times"),
    ("flush_operations", "number of flush operations", "fl.reqs"),
    ("flush_total_times", "total duration of flushes (ns)", "fl.times"),
];

impl Requests {
    pub(super) fn new(place: String) -> Self {
        Self { place, name: None, counts: BTreeMap::new() }
    }

    /// A line of it.
    pub(super) fn take(&mut self, what: &str, value: &str) {
        let value = value.trim();
        if what == "name" {
            self.name = Some(value.to_owned());
        }
        let known = REQUESTS.iter().find(|(short, human, key)| [*short, *human, *key].contains(&what));
        if let (Some((known, ..)), Ok(value)) = (known, value.parse::<f64>()) {
            self.counts.insert(known, value);
        }
    }

    /// How long a request took on average.
    pub(super) fn tell(&self, number: &str, whose: &str, pasted: &mut Pasted) {
        let name = self.name.as_deref().unwrap_or(number);
        for (count, times, kind) in [
            ("rd_req", "rd_total_times", GaugeKind::DiskRead),
            ("wr_req", "wr_total_times", GaugeKind::DiskWrite),
            ("flush_operations", "flush_total_times", GaugeKind::DiskFlush),
        ] {
            let count = self.counts.get(count).filter(|count| **count > 0.0);
            if let (Some(count), Some(ns)) = (count, self.counts.get(times)) {
                pasted.gauge(kind, &format!("{name}{whose}, since the VM began"), ns / count, self.place.clone());
            }
        }
    }
}

/// What all disks of a VM are called together.
const ALL_DISKS: &str = "all disks";

/// `vda rd_req 12345` and so on, what `virsh domblkstat DOMAIN DISK` prints, without a disk ` rd_req 12345` of all of them; with `--human`
/// `Device: vda` and ` number of read operations: 12345`.
pub(super) fn domblkstat(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    let told = |line: usize| -> Option<(&str, &str, &str)> {
        let words: Vec<&str> = text.at(line).split_whitespace().collect();
        let (disk, name, value) = match words[..] {
            [disk, name, value] => (disk, name, value),
            [name, value] => (ALL_DISKS, name, value),
            _ => return None,
        };
        let is_known = ["rd_", "wr_", "flush_", "errs"].iter().any(|begin| name.starts_with(begin));
        Some((disk, name, value)).filter(|_| is_known && value.parse::<f64>().is_ok())
    };
    let human = |line: usize| {
        let (name, value) = text.at(line).split_once(':')?;
        (name.starts_with("number of ") || name.starts_with("total duration of ")).then_some((name, value))
    };
    let mut requests = Requests::new(text.place(at));
    let mut end = at;
    let is_first = |(disk, name, _): &(&str, &str, &str)| *disk != ALL_DISKS || *name == "rd_req";
    if let Some((disk, _, _)) = told(at).filter(is_first) {
        requests.name = Some(disk.to_owned());
        while let Some((_, name, value)) = told(end).filter(|(of, _, _)| *of == disk) {
            requests.take(name, value);
            end += 1;
        }
    } else if let Some(disk) = text.at(at).strip_prefix("Device:").filter(|_| human(at + 1).is_some()) {
        requests.take("name", disk);
        end += 1;
        while let Some((name, value)) = human(end) {
            requests.take(name, value);
            end += 1;
        }
    }
    requests.tell("disk", "", pasted);
    end - at
}

#[cfg(test)]
mod tests {
    use super::ALL_DISKS;
    use crate::machine::GaugeKind;
    use crate::paste::read;

    #[test]
    fn a_domains_disk_tells_the_mean_of_its_requests() {
        let text = "$ virsh domblkstat web vda\nvda rd_req 1000\nvda rd_bytes 4096000\nvda wr_req 0\nvda rd_total_times 5000000000\nvda wr_total_times 0\n";
        let machine = read(&[("t".to_owned(), text.to_owned())]);
        assert_eq!(machine.sources[0].2, 0, "{:?}", machine.strange);
        let told: Vec<_> = machine.gauges.iter().map(|gauge| (gauge.kind, gauge.value)).collect();
        assert_eq!(told, [(GaugeKind::DiskRead, 5e6)], "no write was asked for");
    }

    #[test]
    fn flushes_are_told_in_every_form_of_libvirts() {
        let human = "$ virsh domblkstat web vda --human\nDevice: vda\n number of read operations:      10\n number of bytes read:           4096\n \
                     number of flush operations:     4\n total duration of reads (ns):   50\n total duration of flushes (ns): 24000000\n";
        let bare = "$ virsh domblkstat web vda\nvda rd_req 10\nvda rd_total_times 50\nvda flush_operations 4\nvda flush_total_times 24000000\n";
        let all = "Domain: 'web'\n  block.count=1\n  block.0.name=vda\n  block.0.rd.reqs=10\n  block.0.rd.times=50\n  block.0.fl.reqs=4\n  block.0.fl.times=24000000\n";
        let summed = "$ virsh domblkstat web\n rd_req 10\n rd_total_times 50\n flush_operations 4\n flush_total_times 24000000\n";
        for (text, disk) in [(human, "vda"), (bare, "vda"), (all, "vda"), (summed, ALL_DISKS)] {
            let machine = read(&[("t".to_owned(), text.to_owned())]);
            assert_eq!(machine.sources[0].2, 0, "{:?}", machine.strange);
            let told: Vec<_> = machine.gauges.iter().map(|gauge| (gauge.kind, gauge.value)).collect();
            assert_eq!(told, [(GaugeKind::DiskRead, 5.0), (GaugeKind::DiskFlush, 6e6)], "{text}");
            assert!(machine.gauges[1].subject.starts_with(disk));
        }
    }

    #[test]
    fn a_disk_that_completes_nothing_has_no_time_of_requests() {
        let text = "Device:         rrqm/s   wrqm/s     r/s     w/s avgqu-sz   await r_await w_await  svctm  %util\nvda               0,00     0,00    0,00    0,00   128,00    0,0    0,00    0,00   0,00 100,00\n";
        let machine = read(&[("t".to_owned(), text.to_owned())]);
        let told: Vec<_> = machine.gauges.iter().map(|gauge| gauge.kind).collect();
        assert_eq!(told, [GaugeKind::DiskBusy, GaugeKind::DiskQueue]);
        assert!(machine.summaries[0].value.starts_with("vda has 128 requests in its queue, and completed none"));
    }

    #[test]
    fn rows_of_disks_have_columns_by_their_names() {
        let new = "Device            r/s     rkB/s   r_await     w/s  w_await  aqu-sz  %util\nsda            412.00  32112.00     88.21  510.00   140.11   42.12 100.00\n";
        let old = "Device:         rrqm/s   wrqm/s     r/s     w/s avgqu-sz   await r_await w_await  svctm  %util\nsda               0,00     1,00    2,00    3,00    42,12   90,0   88,21  140,11   1,00 100,00\n";
        for text in [new, old] {
            let machine = read(&[("t".to_owned(), text.to_owned())]);
            assert_eq!(machine.sources[0].2, 0, "{:?}", machine.strange);
            let told: Vec<_> = machine.gauges.iter().map(|gauge| (gauge.kind, gauge.value.round())).collect();
            let told_of = [
                (GaugeKind::DiskBusy, 1.0),
                (GaugeKind::DiskRead, 88_210_000.0),
                (GaugeKind::DiskWrite, 140_110_000.0),
                (GaugeKind::DiskQueue, 42.0),
            ];
            assert_eq!(told, told_of, "{text}");
        }
    }
}
