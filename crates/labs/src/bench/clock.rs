//! What does it cost to ask what time it is?
//!
//! ```text
//! clock_gettime(2)   by the C library: the vDSO reads the counter in this process, if the clocksource allows it
//! syscall(2)         the same in the kernel, whatever the clocksource
//! rdtsc, rdtscp      the counter alone
//! ```
//! The verdict is a ratio: where both ways cost the same, the vDSO hands over to the kernel. In: the root directory, for the
//! clocksource's name. Source: clock_gettime(2), vdso(7); Documentation/timers/timekeeping.rst (Linux 6.12).

use super::audit::Audit;
use super::launch::{Job, Launch, Tell, plan};
use super::sizing::{FIRST, Run, median, warm};
use base::bench::{Measured, Params};
use lab::Error;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The clocks, by the ends of their names in clock_gettime(2).
pub(crate) const CLOCKS: &[(&str, libc::clockid_t)] = &[
    ("REALTIME", libc::CLOCK_REALTIME),
    ("MONOTONIC", libc::CLOCK_MONOTONIC),
    ("MONOTONIC_RAW", libc::CLOCK_MONOTONIC_RAW),
    ("BOOTTIME", libc::CLOCK_BOOTTIME),
    ("TAI", libc::CLOCK_TAI),
    ("REALTIME_COARSE", libc::CLOCK_REALTIME_COARSE),
    ("MONOTONIC_COARSE", libc::CLOCK_MONOTONIC_COARSE),
    ("PROCESS_CPUTIME_ID", libc::CLOCK_PROCESS_CPUTIME_ID),
    ("THREAD_CPUTIME_ID", libc::CLOCK_THREAD_CPUTIME_ID),
];

/// Where the kernel tells its clocksource.
pub(crate) const CLOCKSOURCE: &str = "sys/devices/system/clocksource/clocksource0";

/// How a launch measures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Where the machine's files are.
    pub root: PathBuf,
    /// The CPU to stay on.
    pub cpu: u32,
    /// Nanoseconds of a tick of the time-stamp counter.
    pub ns_per_tick: f64,
    /// How long the samples of a clock may take.
    pub target: Duration,
    /// Whether to measure by the real-time policy SCHED_FIFO.
    pub fifo: bool,
    pub launch: u32,
}

pub const LAUNCH: Launch = Launch { name: "clock", run: |orders, tell| run(&plan(orders)?, tell) };

impl Plan {
    /// The plan of launch `number`.
    ///
    /// # Errors
    /// If it cannot be written down.
    pub fn launch(&self, number: u32) -> Result<Job, Error> {
        Job::new(LAUNCH, self.cpu, self.fifo, &Self { launch: number, ..self.clone() })
    }

    /// How many results a launch gives.
    pub fn results(&self) -> usize {
        2 * CLOCKS.len() + 2
    }
}

/// The clocksource in use, and all that could be; `None` where the kernel does not tell.
pub fn clocksources(root: &Path) -> (Option<String>, Vec<String>) {
    let line = |name: &str| std::fs::read_to_string(root.join(CLOCKSOURCE).join(name)).ok();
    let current = line("current_clocksource").map(|name| name.trim().to_owned());
    let available = line("available_clocksource").unwrap_or_default();
    (current, available.split_whitespace().map(str::to_owned).collect())
}

/// Measures all clocks, and tells each result as it comes.
///
/// # Errors
/// If `tell` fails.
pub fn run(plan: &Plan, tell: &mut Tell<'_>) -> Result<(), Error> {
    let (source, _) = clocksources(&plan.root);
    for (name, id) in CLOCKS {
        let params = Params { clock: Some((*name).to_owned()), source: source.clone(), ..params(plan) };
        tell(measured("clock_gettime", params.clone(), plan, &|| by_library(*id)))?;
        tell(measured("syscall", params, plan, &|| by_kernel(*id)))?;
    }
    let counter = Params { clock: Some("TSC".to_owned()), ..params(plan) };
    // SAFETY: every x86-64 processor has RDTSC, which touches no memory.
    tell(measured("rdtsc", counter.clone(), plan, &|| unsafe { std::arch::x86_64::_rdtsc() }))?;
    tell(measured("rdtscp", counter, plan, &|| {
        let mut cpu = 0;
        // SAFETY: the processors of KVM hosts have RDTSCP; it writes the number that it is given room for.
        unsafe { std::arch::x86_64::__rdtscp(&mut cpu) }
    }))
}

fn params(plan: &Plan) -> Params {
    Params { place: "here".to_owned(), ring: Some(3), launch: plan.launch, ..Params::default() }
}

fn measured(name: &str, params: Params, plan: &Plan, body: &dyn Fn() -> u64) -> Measured {
    let audit = Audit::begin(&plan.root, plan.cpu);
    let nothing: &dyn Fn() -> u64 = &|| 0;
    let timer = median(&timed(nothing, FIRST));
    let run = Run::sized(timer, median(&timed(body, FIRST)), plan.ns_per_tick, plan.target);
    let control = median(&timed(nothing, run));
    let samples = timed(body, run);
    Measured {
        name: name.to_owned(),
        params: Params { operations: Some(run.operations), control: Some(control as f64), ..params },
        unit: "cycles".to_owned(),
        hdr: warm(&samples).buckets(),
        interference: audit.end(),
        ..Measured::default()
    }
}

/// Calls `body` so often, and takes the time of each row of calls.
fn timed(body: &dyn Fn() -> u64, run: Run) -> Vec<u64> {
    use std::arch::x86_64::{__rdtscp, _mm_lfence, _rdtsc};
    let mut samples = Vec::with_capacity(run.samples as usize);
    for _ in 0..run.samples {
        // SAFETY: every x86-64 processor has LFENCE and RDTSC, which touch no memory.
        let begin = unsafe {
            _mm_lfence();
            let begin = _rdtsc();
            _mm_lfence();
            begin
        };
        for _ in 0..run.operations {
            std::hint::black_box(body());
        }
        let mut cpu = 0;
        // SAFETY: as above; RDTSCP writes the number that it is given room for.
        let end = unsafe { __rdtscp(&mut cpu) };
        samples.push(end.wrapping_sub(begin));
    }
    samples
}

fn by_library(id: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the clock is one of the kernel's, and the structure is ours.
    unsafe { libc::clock_gettime(id, &mut time) };
    time.tv_nsec as u64
}

fn by_kernel(id: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: as above; the kernel takes the same two arguments.
    unsafe { libc::syscall(libc::SYS_clock_gettime, id, &raw mut time) };
    time.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clocksource_is_what_the_tree_says() {
        let tree = tempfile::tempdir().unwrap();
        assert_eq!(clocksources(tree.path()), (None, Vec::new()));
        let directory = tree.path().join(CLOCKSOURCE);
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(directory.join("current_clocksource"), "hpet\n").unwrap();
        std::fs::write(directory.join("available_clocksource"), "tsc hpet acpi_pm \n").unwrap();
        let all = ["tsc", "hpet", "acpi_pm"].map(str::to_owned).to_vec();
        assert_eq!(clocksources(tree.path()), (Some("hpet".to_owned()), all));
    }

    #[test]
    fn every_clock_is_read_both_ways() {
        let plan = Plan {
            root: PathBuf::from("/"),
            cpu: 0,
            ns_per_tick: 0.5,
            target: Duration::from_millis(1),
            fifo: false,
            launch: 0,
        };
        let mut all = Vec::new();
        run(&plan, &mut |measured| {
            all.push(measured);
            Ok(())
        })
        .unwrap();
        assert_eq!(all.len(), plan.results());
        assert!(all.iter().all(|measured| measured.distribution().count() > 100));
    }
}
