//! A machine out of its snapshots: the last one says what holds, the first and the last together say how fast things go.
//!
//! In: samples of one machine in the order of their times. Every rate is divided by the time between the reads of its own
//! file, which the snapshot notes beside each; with one sample there are no rates.

mod cpus;
mod devices;
mod tasks;
mod vmbus;

use super::{Fact, Machine, domains_of};
use crate::Snapshot;

/// Samples closer together than this give no rates: ticks of `/proc/stat` are 10 ms.
const SHORTEST_SPAN_NS: u64 = 500_000_000;

/// Settings that rules ask about.
const SETTINGS: &[&str] = &[
    "proc/sys/vm/swappiness",
    "proc/sys/net/core/somaxconn",
    "proc/sys/kernel/numa_balancing",
    "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
    "sys/kernel/mm/ksm/run",
    "sys/kernel/mm/transparent_hugepage/enabled",
    "sys/devices/virtual/workqueue/cpumask",
];

/// The first and the last sample, and how far apart a file of both was read.
struct Samples<'a> {
    first: Option<&'a Snapshot>,
    last: &'a Snapshot,
}

impl Samples<'_> {
    /// A file in both samples, with the ns between its reads.
    fn both(&self, path: &str) -> Option<(String, String, u64)> {
        let first = self.first?;
        let span = self.last.read_at_ns(path)?.checked_sub(first.read_at_ns(path)?)?;
        (span >= SHORTEST_SPAN_NS).then_some(())?;
        Some((first.read(path)?, self.last.read(path)?, span))
    }

    /// How much the number in a file grew a second.
    fn rate(&self, path: &str) -> Option<f64> {
        let (first, last, span) = self.both(path)?;
        let number = |text: String| text.trim().parse::<u64>().ok();
        Some(number(last)?.saturating_sub(number(first)?) as f64 / (span as f64 / 1e9))
    }
}

impl Machine {
    /// What the samples of one machine say.
    pub fn of_snapshots(samples: &[Snapshot]) -> Self {
        let mut machine = Self::default();
        let Some(last) = samples.last() else { return machine };
        let samples = Samples { first: samples.first().filter(|_| samples.len() > 1), last };
        machine.topology = cpus::topology(last);
        machine.nodes = cpus::nodes(last);
        machine.cpu_use = cpus::usage(&samples);
        machine.span_ns = samples.both("proc/stat").map(|(_, _, span)| span);
        domains(last, &mut machine);
        tasks::threads(&samples, &mut machine);
        machine.nics = devices::nics(&samples);
        machine.channels = vmbus::channels(&samples);
        machine.irqs = devices::irqs(&samples);
        for path in SETTINGS {
            if let Some(value) = last.line(path) {
                machine.settings.insert((*path).to_owned(), Fact::new(value, *path));
            }
        }
        machine.unread.extend(last.unreadable().iter().map(|(path, reason)| format!("{path}: {reason}")));
        machine
    }
}

/// Domain XML that was copied along, else libvirt's own files of running domains.
fn domains(snapshot: &Snapshot, machine: &mut Machine) {
    for directory in ["libvirt", "etc/libvirt/qemu", "sos_commands/virsh"] {
        for name in snapshot.names(directory).into_iter().filter(|name| name.ends_with(".xml")) {
            let path = format!("{directory}/{name}");
            let Some(text) = snapshot.read(&path) else { continue };
            match domains_of(&text, &path, 1, "") {
                Ok(domains) => domains.into_iter().filter(|told| told.whole.is_some()).for_each(|told| {
                    if machine.domains.iter().all(|known| known.name != told.name) {
                        machine.domains.push(told);
                    }
                }),
                Err(error) => machine.unread.push(error),
            }
        }
    }
}
