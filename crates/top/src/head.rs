//! The first line: the host, what runs on it, how much is ready, and since when it is exact.

use super::columns::short;
use analysis::flow::live::{Vcpu, Vm};
use base::number::{duration, many, thousands};
use std::path::Path;
use std::time::Duration;

/// The line above the table.
#[derive(Debug, Clone, Default)]
pub struct Head {
    host: String,
    cpus: usize,
    vms: usize,
    vcpus: usize,
    exits_per_second: Option<f64>,
    returns_per_second: Option<f64>,
    ready: Option<f64>,
    missed: Option<u64>,
    /// How long it has been exact, or what it is instead.
    since: String,
}

impl Head {
    /// All of it in a line.
    pub fn line(&self, every: Duration) -> String {
        let rate = |rate: Option<f64>| rate.map(|rate| format!("{}/s", short(rate)));
        let exits = match (rate(self.exits_per_second), rate(self.returns_per_second)) {
            (Some(exits), _) => format!("exits {exits}"),
            (None, Some(returns)) => format!("to VMM {returns}"),
            (None, None) => "exits -".to_owned(),
        };
        let ready = self.ready.map_or("-".to_owned(), |share| format!("{:.1} %", 100.0 * share));
        let missed = self.missed.map_or("-".to_owned(), thousands);
        format!(
            "{} {} {} {}  {exits}  ready {ready}  missed {missed}  {}  {} s",
            self.host,
            many(self.cpus as u64, "CPU"),
            many(self.vms as u64, "VM"),
            many(self.vcpus as u64, "vCPU"),
            self.since,
            every.as_secs_f64(),
        )
    }

    /// Of what was observed on `host`, exactly for so long; `None`: by /proc alone, and nobody would know of what was missed.
    pub(crate) fn of(host: &Path, vcpus: &[Vcpu], exact_for: Option<Duration>) -> Self {
        let cpus = std::fs::read_to_string(host.join("sys/devices/system/cpu/online")).unwrap_or_default();
        let cpus = base::CpuSet::parse(cpus.trim()).map_or(0, |cpus| cpus.len());
        let since =
            exact_for.map_or("/proc only".to_owned(), |time| format!("exact for {}", duration(time.as_nanos() as f64)));
        let missed = exact_for.and_then(|_| vcpus.iter().map(|vcpu| vcpu.missed).sum());
        let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
        Self { missed, ..Self::summed((name, cpus), vcpus, since) }
    }

    /// Of a recording of a host with so many CPUs: which stretch of it.
    pub(crate) fn recorded((name, cpus): (&str, usize), vcpus: &[Vcpu], stretch: String) -> Self {
        Self::summed((name.to_owned(), cpus), vcpus, stretch)
    }

    fn summed((host, cpus): (String, usize), vcpus: &[Vcpu], since: String) -> Self {
        let vms = Vm::of(vcpus);
        let sum = |of: fn(&Vm<'_>) -> Option<f64>| vms.iter().map(of).sum::<Option<f64>>().filter(|_| !vms.is_empty());
        let wall_ns: u64 = vcpus.iter().map(|vcpu| vcpu.wall_ns).sum();
        let ready_ns = vcpus.iter().map(|vcpu| vcpu.ready_ns).sum::<Option<u64>>();
        Self {
            host,
            cpus,
            vms: vms.len(),
            vcpus: vcpus.len(),
            exits_per_second: sum(|vm| vm.exits_per_second),
            returns_per_second: sum(|vm| vm.userspace_exits_per_second),
            ready: ready_ns.filter(|_| wall_ns > 0).map(|ns| ns as f64 / wall_ns as f64),
            missed: None,
            since,
        }
    }
}
