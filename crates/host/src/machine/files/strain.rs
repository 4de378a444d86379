//! What a host says of its memory as a whole: how much is left, what is swapped, what tasks wait for.
//!
//! Sources: Documentation/filesystems/proc.rst (meminfo), Documentation/accounting/psi.rst, mm/vmstat.c
//! (pswpin, pswpout, pgmajfault, compact_stall, allocstall_ZONE), Documentation/admin-guide/iostats.rst (diskstats), Linux 6.12.

use super::Samples;
use super::cgroups::above;
use crate::machine::{DiskLimit, DiskLimitKind, Gauge, GaugeKind, Machine};
use std::collections::BTreeMap;

/// A page, in which the kernel counts what is swapped, on x86.
const PAGE_BYTES: f64 = 4_096.0;

pub(super) fn gauges(samples: &Samples<'_>) -> Vec<Gauge> {
    let mut gauges = memory(samples);
    gauges.extend(paged(samples));
    gauges.extend(polled(samples));
    gauges.extend(disks(samples));
    gauges.extend(waited_for_disks(samples));
    for resource in ["memory", "io"] {
        gauges.extend(waited(samples, resource));
    }
    gauges
}

fn gauge(kind: GaugeKind, subject: String, value: f64, place: &str) -> Gauge {
    Gauge { kind, subject, value, place: place.to_owned() }
}

fn memory(samples: &Samples<'_>) -> Vec<Gauge> {
    const PATH: &str = "proc/meminfo";
    let text = samples.last.read(PATH).unwrap_or_default();
    let bytes = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        Some(line.split_whitespace().next()?.parse::<f64>().ok()? * 1_024.0)
    };
    let used = || Some((bytes("SwapTotal")? - bytes("SwapFree")?).max(0.0));
    let told = [
        (GaugeKind::MemoryTotal, bytes("MemTotal")),
        (GaugeKind::MemoryAvailable, bytes("MemAvailable")),
        (GaugeKind::SwapUsed, used()),
        (GaugeKind::SharedMemory, bytes("Shmem")),
        (GaugeKind::KernelObjects, bytes("SUnreclaim")),
    ];
    let told = told.into_iter().filter_map(|(kind, value)| Some(gauge(kind, String::new(), value?, PATH)));
    told.chain(zfs_cache(samples)).collect()
}

/// The size of ZFS's cache, which `MemAvailable` does not count (arcstats, `size`, OpenZFS 2.2).
fn zfs_cache(samples: &Samples<'_>) -> Option<Gauge> {
    const PATH: &str = "proc/spl/kstat/zfs/arcstats";
    let text = samples.last.read(PATH)?;
    let row =
        text.lines().find_map(|line| line.strip_prefix("size ")?.split_whitespace().nth(1)?.parse::<f64>().ok())?;
    Some(gauge(GaugeKind::ZfsCache, String::new(), row, PATH))
}

/// What KVM polled for all VMs together, whether a vCPU woke meanwhile or not (Documentation/virt/kvm/halt-polling.rst, Linux 6.12).
fn polled(samples: &Samples<'_>) -> Option<Gauge> {
    const SUCCESS: &str = "sys/kernel/debug/kvm/halt_poll_success_ns";
    let ns_per_s = samples.rate(SUCCESS)? + samples.rate("sys/kernel/debug/kvm/halt_poll_fail_ns")?;
    (ns_per_s > 0.0).then(|| gauge(GaugeKind::HaltPolling, String::new(), ns_per_s / 1e9, SUCCESS))
}

/// What was paged between two samples.
fn paged(samples: &Samples<'_>) -> Vec<Gauge> {
    const PATH: &str = "proc/vmstat";
    let Some((before, after, span_ns)) = samples.both(PATH) else { return Vec::new() };
    let count =
        |text: &str, name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok());
    let per_s = |name: &str| {
        let times = count(&after, name)?.checked_sub(count(&before, name)?)?;
        Some(times as f64 * 1e9 / span_ns as f64)
    };
    let told = [
        (GaugeKind::SwappedIn, "pswpin ", PAGE_BYTES),
        (GaugeKind::SwappedOut, "pswpout ", PAGE_BYTES),
        (GaugeKind::MajorFaults, "pgmajfault ", 1.0),
        (GaugeKind::CompactionStalls, "compact_stall ", 1.0),
    ];
    // Counted by zone since Linux 4.8.
    let zones = after.lines().filter_map(|line| line.split(' ').next().filter(|name| name.starts_with("allocstall")));
    let reclaim = zones.filter_map(|name| per_s(&format!("{name} "))).reduce(|all, zone| all + zone);
    let told = told.into_iter().filter_map(|(kind, name, each)| Some((kind, per_s(name)? * each)));
    let told = told.chain(reclaim.map(|often| (GaugeKind::ReclaimStalls, often)));
    told.filter(|(_, value)| *value > 0.0).map(|(kind, value)| gauge(kind, String::new(), value, PATH)).collect()
}

/// What disks did between two samples, without partitions and what is made of other disks or of memory: how busy they were, and how long
/// a request took.
fn disks(samples: &Samples<'_>) -> Vec<Gauge> {
    const PATH: &str = "proc/diskstats";
    let Some((before, after, span_ns)) = samples.both(PATH) else { return Vec::new() };
    let row = |line: &str| -> Option<(String, Vec<u64>)> {
        let mut words = line.split_whitespace().skip(2);
        Some((words.next()?.to_owned(), words.map_while(|word| word.parse().ok()).collect()))
    };
    let [before, after] = [before, after].map(|text| text.lines().filter_map(row).collect::<BTreeMap<_, _>>());
    // `sda1` is of `sda`, `nvme0n1p1` of `nvme0n1`.
    let is_part = |name: &str| {
        let stem = name.trim_end_matches(|letter: char| letter.is_ascii_digit());
        stem != name && [stem, stem.trim_end_matches('p')].iter().any(|whole| after.contains_key(*whole))
    };
    let is_made = |name: &str| ["dm-", "md", "loop", "ram", "zram"].iter().any(|begin| name.starts_with(begin));
    let mut gauges = Vec::new();
    for (name, now) in after.iter().filter(|(name, _)| !is_part(name) && !is_made(name)) {
        let more = |field: usize| Some(now.get(field)?.checked_sub(*before.get(name)?.get(field)?)? as f64);
        let each = |count: usize, ms: usize| Some(more(ms)? * 1e6 / more(count).filter(|count| *count > 0.0)?);
        let busy = more(9).map(|ms| (ms * 1e6 / span_ns as f64).min(1.0)).filter(|busy| *busy > 0.0);
        let told = [(GaugeKind::DiskBusy, busy), (GaugeKind::DiskRead, each(0, 3)), (GaugeKind::DiskWrite, each(4, 7))];
        gauges.extend(told.into_iter().filter_map(|(kind, value)| Some(gauge(kind, name.clone(), value?, PATH))));
    }
    gauges
}

/// `iowait` of all CPUs together.
fn waited_for_disks(samples: &Samples<'_>) -> Option<Gauge> {
    const PATH: &str = "proc/stat";
    let (before, after, _) = samples.both(PATH)?;
    let all = |text: &str| -> Option<Vec<f64>> {
        text.lines().next()?.split_whitespace().skip(1).take(8).map(|word| word.parse().ok()).collect()
    };
    let passed: Vec<f64> = all(&after)?.iter().zip(all(&before)?).map(|(after, before)| after - before).collect();
    let waited = passed.get(4).filter(|waited| **waited > 0.0)?;
    Some(gauge(GaugeKind::DiskWait, String::new(), waited / passed.iter().sum::<f64>(), PATH))
}

/// Groups of VMs that reach a limit of memory between two samples, and that limit: `max` stops those who want more until some was given
/// back, `high` slows them down (Documentation/admin-guide/cgroup-v2.rst, memory.events, Linux 6.12).
pub(super) fn limited(samples: &Samples<'_>, machine: &Machine) -> Vec<Gauge> {
    let mut gauges = Vec::new();
    for path in above(machine, |thread| thread.time_group.as_deref().filter(|_| thread.vm.is_some())) {
        let of = |file: &str| format!("sys/fs/cgroup{path}/{file}");
        let Some((before, after, span_ns)) = samples.both(&of("memory.events")) else { continue };
        let count = |text: &str, name: &str| {
            text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse::<u64>().ok())
        };
        for name in ["max", "high"] {
            // `max` in place of a number is no limit: what counts then are groups below.
            let limit =
                samples.last.line(&of(&format!("memory.{name}"))).and_then(|text| text.trim().parse::<u64>().ok());
            let times =
                count(&after, name).zip(count(&before, name)).and_then(|(after, before)| after.checked_sub(before));
            if let (Some(limit), Some(times @ 1..)) = (limit, times) {
                let per_s = times as f64 * 1e9 / span_ns as f64;
                gauges.push(gauge(GaugeKind::LimitReached, path.to_owned(), per_s, &of("memory.events")));
                gauges.push(gauge(
                    GaugeKind::MemoryLimit,
                    path.to_owned(),
                    limit as f64,
                    &of(&format!("memory.{name}")),
                ));
                break;
            }
        }
    }
    gauges
}

/// Limits of disks of the groups of VMs, with what these did there between two samples.
pub(super) fn limited_disks(samples: &Samples<'_>, machine: &Machine) -> Vec<DiskLimit> {
    let text = samples.last.read("proc/diskstats").unwrap_or_default();
    let row = |line: &str| {
        let mut words = line.split_whitespace().map(str::to_owned);
        Some((format!("{}:{}", words.next()?, words.next()?), words.next()?))
    };
    let disks: BTreeMap<String, String> = text.lines().filter_map(row).collect();
    let mut limits = Vec::new();
    for path in above(machine, |thread| thread.time_group.as_deref().filter(|_| thread.vm.is_some())) {
        let of = |file: &str| format!("sys/fs/cgroup{path}/{file}");
        let (place, stat) = (of("io.max"), of("io.stat"));
        let (Some(told), Some((before, after, span_ns))) = (samples.last.read(&place), samples.both(&stat)) else {
            continue;
        };
        for (number, values) in told.lines().filter_map(|line| line.split_once(' ')) {
            let value = |text: &str, key: &str| {
                text.split_whitespace().find_map(|word| word.strip_prefix(key)?.strip_prefix('=')?.parse::<u64>().ok())
            };
            let counted = |text: &str, key: &str| {
                value(text.lines().find_map(|line| line.strip_prefix(number)?.strip_prefix(' '))?, key)
            };
            limits.extend(DiskLimitKind::ALL.into_iter().filter_map(|kind| {
                let most = value(values, kind.key())?;
                let more =
                    counted(&after, kind.counter())?.checked_sub(counted(&before, kind.counter()).unwrap_or(0))?;
                let disk = disks.get(number).cloned();
                let did = more as f64 * 1e9 / span_ns as f64;
                Some(DiskLimit {
                    group: path.to_owned(),
                    number: number.to_owned(),
                    disk,
                    kind,
                    most,
                    did,
                    place: place.clone(),
                })
            }));
        }
    }
    limits
}

/// Of the time between two samples, where both tell it; else the average of the last ten seconds.
fn waited(samples: &Samples<'_>, resource: &str) -> Vec<Gauge> {
    let path = format!("proc/pressure/{resource}");
    let cell = |text: &str, kind: &str, name: &str| {
        let line = text.lines().find(|line| line.split_whitespace().next() == Some(kind))?;
        line.split_whitespace().find_map(|word| word.strip_prefix(name)?.parse::<f64>().ok())
    };
    let both = samples.both(&path);
    let last = samples.last.read(&path).unwrap_or_default();
    let kinds = [(GaugeKind::PressureSome, "some"), (GaugeKind::PressureFull, "full")];
    let told = kinds.into_iter().filter_map(|(kind, name)| {
        let measured = both.as_ref().and_then(|(before, after, span_ns)| {
            let us = cell(after, name, "total=")? - cell(before, name, "total=")?;
            Some((format!("{resource}, {:.1} s", *span_ns as f64 / 1e9), (us * 1e3 / *span_ns as f64).clamp(0.0, 1.0)))
        });
        let average = || Some((format!("{resource}, 10 s"), cell(&last, name, "avg10=")? / 100.0));
        let (subject, share) = measured.or_else(average)?;
        Some(gauge(kind, subject, share, &path))
    });
    told.collect()
}
