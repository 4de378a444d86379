//! What is known of the machines that measured, beside what they measured: from the bench's environment, and from their snapshots where there are any.

use super::windows::{self, Given};
use base::CpuSet;
use base::bench::POLICY;
use base::channel::{GIVEN_WINDOWS, L2_CACHE, ONLINE, PROTECTION_KEYS};
use facts::benches::{BenchRun, ns_per_tick};
use facts::machines::Machines;
use host::Snapshot;
use host::processor::Processor;

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Host {
    /// Its id in the recording.
    pub machine: String,
    /// Nanoseconds of a tick of its time-stamp counter.
    pub ns_per_tick: Option<f64>,
    /// The smallest second-level cache among the CPUs that measured; `None`: nobody told.
    pub(crate) l2_bytes: Option<u64>,
    /// Whether processes have protection keys there; `None`: nobody told.
    pub(crate) has_pku: Option<bool>,
    /// CPUs that are online beside those that measured; `None`: nobody told.
    pub(crate) other_cpus: Option<CpuSet>,
    /// Whether a hypervisor is below it; `None`: nobody told.
    pub is_guest: Option<bool>,
    /// The sides ran by a real-time policy.
    pub is_real_time: bool,
    /// Windows whose price somebody gave.
    pub given: Vec<Given>,
}

impl Host {
    /// The machine whose `bench` this is, and whose CPUs measured.
    pub(crate) fn of(bench: &BenchRun, cpus: impl Iterator<Item = u32>, machines: &Machines) -> Self {
        let snapshot = machines.of_machine(&bench.machine).and_then(|host| host.last());
        let cpus = CpuSet::from_iter(cpus);
        // Each bench tells some of it itself, as far as a machine says it.
        let said = |name: &str| bench.bench.environment.get(name).map(String::as_str);
        let is = |name: &str, wanted: &str| said(name).map(|said| said == wanted);
        let l2_bytes = snapshot.and_then(|snapshot| cpus.iter().filter_map(|cpu| second_level(snapshot, cpu)).min());
        let online = snapshot.and_then(|snapshot| CpuSet::parse(&snapshot.line("sys/devices/system/cpu/online")?));
        let online = online.or_else(|| CpuSet::parse(said(ONLINE)?));
        Self {
            machine: bench.machine.clone(),
            ns_per_tick: ns_per_tick(&bench.bench),
            l2_bytes: l2_bytes.or_else(|| size_bytes(said(L2_CACHE)?)),
            has_pku: snapshot.and_then(pku).or_else(|| is(PROTECTION_KEYS, "yes")),
            other_cpus: online.map(|online| online.without(&cpus)),
            is_guest: is("hypervisor below", "yes"),
            is_real_time: is(POLICY, "SCHED_FIFO") == Some(true),
            given: said(GIVEN_WINDOWS).map(Given::all).unwrap_or_default(),
        }
    }

    /// Windows that are modelled on it, as [`windows::modelled`] has them.
    pub(crate) fn modelled(&self) -> Vec<(&str, f64, bool, String)> {
        windows::modelled(&self.given, self.ns_per_tick)
    }
}

/// Whether the processor has keys, and the kernel hands them out (arch/x86/include/asm/cpufeatures.h, Linux 6.12).
fn pku(snapshot: &Snapshot) -> Option<bool> {
    let flags = Processor::of(snapshot)?.flags;
    Some(["pku", "ospke"].iter().all(|flag| flags.contains(*flag)))
}

/// The cache of level 2 that the CPU reads data from.
fn second_level(snapshot: &Snapshot, cpu: u32) -> Option<u64> {
    let caches = format!("sys/devices/system/cpu/cpu{cpu}/cache");
    let line = |name: &str, file: &str| snapshot.line(&format!("{caches}/{name}/{file}"));
    let is_wanted = |name: &String| {
        line(name, "level").is_some_and(|level| level == "2")
            && line(name, "type").is_none_or(|kind| kind != "Instruction")
    };
    size_bytes(&line(&snapshot.names(&caches).into_iter().find(is_wanted)?, "size")?)
}

/// `1024K`, as drivers/base/cacheinfo.c writes it (Linux 6.12).
fn size_bytes(text: &str) -> Option<u64> {
    let (digits, scale) = match text.strip_suffix('K') {
        Some(digits) => (digits, 1 << 10),
        None => (text.strip_suffix('M')?, 1 << 20),
    };
    digits.parse::<u64>().ok()?.checked_mul(scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cache_is_as_large_as_the_kernel_says() {
        assert_eq!(
            [size_bytes("512K"), size_bytes("2M"), size_bytes("12"), size_bytes("")],
            [Some(524_288), Some(2_097_152), None, None]
        );
    }

    #[test]
    fn a_snapshot_tells_of_keys_and_of_the_cache_that_data_is_read_from() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join("proc")).unwrap();
        std::fs::write(
            root.path().join("proc/cpuinfo"),
            "processor : 0\nvendor_id : AuthenticAMD\nflags : fpu pku ospke\n",
        )
        .unwrap();
        for (index, level, kind, size) in
            [(0, 1, "Data", "32K"), (1, 2, "Instruction", "64K"), (2, 2, "Unified", "1024K")]
        {
            let cache = root.path().join(format!("sys/devices/system/cpu/cpu3/cache/index{index}"));
            std::fs::create_dir_all(&cache).unwrap();
            for (file, text) in [("level", level.to_string()), ("type", kind.into()), ("size", size.into())] {
                std::fs::write(cache.join(file), format!("{text}\n")).unwrap();
            }
        }
        let snapshot = Snapshot::open(root.path()).unwrap();
        assert_eq!((pku(&snapshot), second_level(&snapshot, 3)), (Some(true), Some(1 << 20)));
        assert_eq!(second_level(&snapshot, 4), None);
    }
}
