//! A machine out of its snapshots: the last one says what holds, the first and the last together say how fast things go.
//!
//! In: samples of one machine in the order of their times. Every rate is divided by the time between the reads of its own
//! file, which the snapshot notes beside each; with one sample there are no rates.

mod cgroups;
mod commands;
mod cpus;
mod devices;
mod gathered;
mod holders;
mod memory;
mod polling;
mod statuses;
mod strain;
mod tasks;
mod vmbus;

use super::ovsdb::Tables;
use super::{Fact, Machine, Topology, domains_of};
use crate::processor::Processor;
use crate::snapshot::DOMAINS;
use crate::{Snapshot, budget};
use std::collections::BTreeSet;

/// Samples closer together than this give no rates: ticks of `/proc/stat` are 10 ms.
const SHORTEST_SPAN_NS: u64 = 500_000_000;

/// Settings that rules ask about, as patterns.
const SETTINGS: &[&str] = &[
    "proc/cmdline",
    "proc/irq/default_smp_affinity",
    "sys/devices/system/cpu/cpu*/cpufreq/{scaling_governor,scaling_cur_freq,scaling_max_freq,cpuinfo_max_freq,base_frequency,energy_performance_preference}",
    "sys/devices/system/cpu/intel_pstate/{max_perf_pct,no_turbo}",
    "sys/devices/system/cpu/{cpufreq/boost,present,smt/control}",
    "sys/devices/system/cpu/cpu*/cpu_capacity",
    "sys/devices/cpu_atom/cpus",
    "sys/devices/virtual/workqueue/cpumask",
    "sys/kernel/mm/ksm/{run,pages_to_scan,sleep_millisecs,pages_sharing}",
    "sys/kernel/mm/transparent_hugepage/{enabled,defrag}",
    "sys/kernel/mm/transparent_hugepage/khugepaged/{scan_sleep_millisecs,pages_to_scan}",
    "sys/module/kvm_intel/parameters/ple_gap",
    "sys/module/kvm/parameters/{halt_poll_ns,kvmclock_periodic_sync,nx_huge_pages_recovery_ratio,nx_huge_pages_recovery_period_ms}",
    "sys/module/zfs/parameters/zfs_arc_max",
    "sys/block/*/queue/{rotational,read_ahead_kb}",
    "sys/class/thermal/cooling_device*/{type,cur_state}",
];

/// The same below `proc/sys`, which sosreports have as `sysctl -a` prints it.
const SYSCTLS: &str = "vm.swappiness vm.stat_interval vm.zone_reclaim_mode vm.min_free_kbytes vm.watermark_scale_factor vm.compaction_proactiveness net.core.somaxconn net.core.busy_poll net.core.busy_read \
    kernel.numa_balancing kernel.nmi_watchdog kernel.timer_migration kernel.sched_rt_runtime_us kernel.sched_rt_period_us";

/// Where Open vSwitch keeps its database.
const DATABASES: &[&str] =
    &["etc/openvswitch/conf.db", "var/lib/openvswitch/conf.db", "usr/local/etc/openvswitch/conf.db"];

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
    /// The wanted threads of a machine's last sample, by their ids, and what groups of cgroups limit them. What role they have is not
    /// looked for.
    pub fn of_threads(samples: &[Snapshot], wanted: &dyn Fn(i32) -> bool) -> Self {
        let mut machine = Self::default();
        let Some(last) = samples.last() else { return machine };
        let samples = Samples { first: samples.first().filter(|_| samples.len() > 1), last };
        machine.threads = tasks::some(last, wanted);
        cgroups::groups(&samples, &mut machine);
        machine
    }

    /// What the samples of one machine say.
    pub fn of_snapshots(samples: &[Snapshot]) -> Self {
        let mut machine = Self::default();
        let Some(last) = samples.last() else { return machine };
        let samples = Samples { first: samples.first().filter(|_| samples.len() > 1), last };
        machine.topology = Topology::of_snapshot(last);
        let says = ["proc/version", "sos_commands/kernel/uname_-a", "proc/sys/kernel/osrelease"];
        machine.kernel = says.into_iter().find_map(|file| last.line(file));
        machine.vendor = Processor::of(last).map(|processor| Fact::new(processor.vendor, "proc/cpuinfo"));
        machine.nodes = cpus::nodes(last);
        machine.cpu_use = cpus::usage(&samples);
        machine.span_ns = samples.both("proc/stat").map(|(_, _, span)| span);
        domains(last, &mut machine);
        tasks::threads(&samples, &mut machine);
        machine.nics = devices::nics(&samples);
        machine.channels = vmbus::channels(&samples);
        machine.irqs = devices::irqs(&samples);
        if let Some((path, text)) = DATABASES.iter().find_map(|path| Some((path, last.read(path)?))) {
            let (tables, ended) = Tables::of_file(&text);
            machine.switch = tables.switch(path);
            if text.len() > budget::JSON_BYTES {
                let (bytes, most) = (text.len(), budget::JSON_BYTES);
                machine.unread.push(format!("{path}: only the first {most} of {bytes} bytes were read"));
            }
            let cut = |line| {
                format!("{path}:{line}: not a complete record of a standalone database, so nothing after it was read")
            };
            machine.unread.extend(ended.map(cut));
        }
        gathered::add(last, &mut machine);
        let told = commands::told(last, &machine);
        let is_process = |name: &String| name.parse::<i32>().is_ok();
        machine.lists_processes =
            last.names("proc").iter().any(is_process) || gathered::lists_threads(last) || !told.screens.is_empty();
        commands::add(last, &mut machine, told);
        polling::threads(&mut machine);
        // A domain that is defined and does not run has no threads and no say.
        let running: BTreeSet<String> = machine.threads.iter().filter_map(|thread| thread.vm.clone()).collect();
        machine.domains.retain(|domain| running.contains(&domain.name));
        devices::pci_nodes(last, &mut machine);
        cgroups::groups(&samples, &mut machine);
        memory::of_vms(last, &mut machine);
        machine.pages_moved_per_s = memory::pages_moved(&samples);
        for path in SETTINGS.iter().flat_map(|pattern| last.find(pattern)) {
            if let Some(value) = last.line(&path) {
                machine.settings.insert(path.clone(), Fact::new(value, path));
            }
        }
        machine.vhost_net = vhost_net(last);
        if !machine.domains.is_empty() {
            machine.gauges.extend(strain::gauges(&samples));
            machine.gauges.extend(strain::limited(&samples, &machine));
            machine.disk_limits = strain::limited_disks(&samples, &machine);
            holders::add(last, &mut machine);
        }
        sysctls(last, &mut machine);
        machine.unread.extend(last.unreadable().iter().map(|(path, reason)| format!("{path}: {reason}")));
        machine
    }
}

/// A module is listed; what is built in has its device all the same (`misc_register` in drivers/vhost/net.c, Linux 6.12).
fn vhost_net(snapshot: &Snapshot) -> Option<Fact<bool>> {
    let (modules, devices) = (snapshot.read("proc/modules")?, snapshot.read("proc/misc")?);
    let has = |text: &str, word: &str| text.split_whitespace().any(|known| known == word);
    Some(Fact::new(has(&modules, "vhost_net") || has(&devices, "vhost-net"), "proc/modules and proc/misc"))
}

/// Settings of the kernel, by their files, else as a command printed them.
fn sysctls(snapshot: &Snapshot, machine: &mut Machine) {
    const PRINTED: &str = "sos_commands/kernel/sysctl_-a";
    let printed = snapshot.read(PRINTED).unwrap_or_default();
    for name in SYSCTLS.split(' ') {
        let path = format!("proc/sys/{}", name.replace('.', "/"));
        let line = |(index, line): (usize, &str)| {
            let value = line.strip_prefix(name)?.trim_start().strip_prefix('=')?;
            Some(Fact::new(value.trim().to_owned(), format!("{PRINTED}:{}", index + 1)))
        };
        let own = snapshot.line(&path).map(|value| Fact::new(value, path.clone()));
        if let Some(fact) = own.or_else(|| printed.lines().enumerate().find_map(line)) {
            machine.settings.insert(path, fact);
        }
    }
}

/// Domain XML: that of our snapshots, else of running domains by libvirt's own state, else as printed, else as defined.
fn domains(snapshot: &Snapshot, machine: &mut Machine) {
    let mut known = BTreeSet::new();
    for path in DOMAINS.iter().flat_map(|pattern| snapshot.find(pattern)) {
        let Some(text) = snapshot.read(&path) else { continue };
        match domains_of(&text, &path, 1, "") {
            Ok(domains) => {
                for told in domains.into_iter().filter(|told| told.whole.is_some()) {
                    if known.len() >= budget::DOMAINS {
                        let most = budget::DOMAINS;
                        machine.unread.push(format!("{path}: domains after the first {most} were not read"));
                        return;
                    }
                    if known.insert(told.name.clone()) {
                        machine.domains.push(told);
                    }
                }
            }
            Err(error) => machine.unread.push(error),
        }
    }
}
