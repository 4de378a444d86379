//! DPDK's ring of pointers, by DPDK's own test: `ring_perf_autotest`, two threads of one process on two CPUs, each of which moves 8 bytes for a
//! frame and touches no frame.
//!
//! ```text
//! ### Testing using two physical cores ###                  or two hyperthreads, or two NUMA nodes: as the CPUs are related
//! legacy APIs: SP/SC: bulk (size: 8): 17.50                 cycles that one pointer takes the side that puts it in, and the other one, added
//! legacy APIs: MP/MC: bulk (size: 8): 30.31
//! legacy APIs: SP/SC: bulk (size: 32): 8.02
//! ```
//! Both sides work at the same time and move the same number of pointers, so that one of them arrives in half of that. The test measures
//! batches of 8 and 32, and 2^15 of them: milliseconds, which are one slice. Whether it is clean is told by the waits of both threads.
//!
//! Source: app/test/test_ring_perf.c, DPDK 22.11 (`run_on_core_pair`, `enqueue_dequeue_bulk_helper`, `iter_shift`, `RING_SIZE`).

use super::super::Plan;
use super::super::side::Usage;
use super::bed::Bed;
use super::threads::Poller;
use base::channel::{POINTER_BYTES, Run, Setup, Side};
use lab::Error;
use labs::bench::launch::ns_per_tick;
use labs::child::ChildProcess;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// The program that has the test, and what brings it.
pub(super) const PROGRAM: &str = "dpdk-test";
pub(crate) const PACKAGE: &str = "dpdk-dev";

/// Batches that the test measures.
const BATCHES: [u32; 2] = [8, 32];
const ROUNDS: u64 = 1 << 15;
/// Pointers that its ring has room for.
const SLOTS: u32 = 4_096;
/// What the program takes of huge pages.
const PROGRAM_MIB: u64 = 32;
/// How often it is looked what it has printed.
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// It takes seconds until it comes to two cores.
const WITHIN: Duration = Duration::from_secs(120);
/// A thread that waited for its CPU for more of the time was disturbed.
const WAITED: f64 = 0.02;

/// Measures one setup.
///
/// # Errors
/// If the test does not measure such batches or frames, or does not come that far.
pub(super) fn carry(plan: &Plan, setup: &Setup, bed: &Bed) -> Result<Run, Error> {
    if !BATCHES.contains(&setup.batch) {
        return Err(Error::Absent(format!(
            "DPDK's ring_perf_autotest measures batches of {} and {}",
            BATCHES[0], BATCHES[1]
        )));
    }
    if setup.size_bytes != POINTER_BYTES {
        return Err(Error::Absent(format!(
            "a ring of pointers moves {POINTER_BYTES} bytes of a frame, whatever its size"
        )));
    }
    // The test takes the first logical core for the side that puts in, and they are called by their CPUs.
    let cpus = [plan.cpus.0.min(plan.cpus.1), plan.cpus.0.max(plan.cpus.1)];
    let directory = tempfile::tempdir_in(&bed.directory).map_err(|error| Error::io(&bed.directory, error))?;
    let mut command = Command::new("stdbuf");
    command.args(["-oL", PROGRAM]).args(bed.options(PROGRAM_MIB)).args(["--no-pci", "--file-prefix=ring"]);
    command.args(["-l", &format!("{},{}", cpus[0], cpus[1]), &format!("--main-lcore={}", cpus[0])]);
    command.arg("ring_perf_autotest").env("RUNTIME_DIRECTORY", directory.path());
    let mut test = ChildProcess::of(command, &bed.with_spare(&cpus))?;
    bed.note(test.pid())?;

    let begun = Instant::now();
    let mut since = None;
    loop {
        let stage = stage(&test.said(), setup.batch);
        // Threads are there once it tests; before, nothing is to be known of them.
        let now = pollers(&test, cpus).and_then(|pollers| Ok((Instant::now(), usages(&pollers)?, pollers)));
        match (stage, now, &since) {
            (Stage::Before, Ok(now), _) => since = Some(now),
            (Stage::Done(cycles), Ok((at, until, _)), Some((from, before, pollers))) => {
                let took = at - *from;
                let sides = [0, 1].map(|side: usize| pollers[side].side(took, before[side], until[side]));
                return Ok(measured(plan, setup, cycles, sides));
            }
            _ => {}
        }
        if test.has_ended() {
            return Err(Error::Died(format!(
                "{PROGRAM} has ended before it had tested two cores {}",
                test.complaint()
            )));
        }
        if begun.elapsed() > WITHIN {
            return Err(Error::TimedOut(format!("{PROGRAM} had not tested two cores after {} s", WITHIN.as_secs())));
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

fn pollers(test: &ChildProcess, cpus: [u32; 2]) -> Result<[Poller; 2], Error> {
    let proc = Path::new("/proc");
    Ok([Poller::first(proc, test.pid(), cpus[0])?, Poller::of(proc, test.pid(), cpus[1], cpus[1])?])
}

fn usages(pollers: &[Poller; 2]) -> Result<[Usage; 2], Error> {
    Ok([pollers[0].usage()?, pollers[1].usage()?])
}

/// The run in which a pointer took both sides so many cycles together.
fn measured(plan: &Plan, setup: &Setup, cycles: f64, [producer, consumer]: [Side; 2]) -> Run {
    let packets = ROUNDS * u64::from(setup.batch);
    let ns = ((packets as f64 * cycles / 2.0 * ns_per_tick()) as u64).max(1);
    let is_clean = [&producer, &consumer].iter().all(|side| side.waited_ns as f64 <= WAITED * side.ns as f64);
    let of_clean = |count: u64| if is_clean { count } else { 0 };
    Run {
        setup: setup.clone(),
        slots: SLOTS,
        moved_bytes: POINTER_BYTES,
        ring_bytes: u64::from(SLOTS * POINTER_BYTES),
        ns,
        packets,
        slices: 1,
        slice_ns: ns,
        clean_slices: of_clean(1),
        clean_packets: of_clean(packets),
        verified: false,
        counted: false,
        lost: 0,
        duplicated: 0,
        reordered: 0,
        torn: 0,
        dropped: 0,
        others: Vec::new(),
        emulated: false,
        window_ns: 0.0,
        kicks: 0,
        setup_ns: None,
        setup_parts: Vec::new(),
        pair: plan.pair.clone(),
        producer,
        consumer,
    }
}

/// How far the test has come.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Stage {
    /// It does not test this batch between two CPUs yet.
    Before,
    Tests,
    /// It has: cycles of a pointer, of both sides together.
    Done(f64),
}

fn stage(said: &str, batch: u32) -> Stage {
    let Some((_, between)) = said.split_once("### Testing using two ") else { return Stage::Before };
    let lines = || between.lines().filter_map(|line| line.strip_prefix("legacy APIs: ")?.split_once(": bulk (size: "));
    let own = |(kind, rest): (&str, &str)| {
        let (size, cycles) = rest.split_once("): ")?;
        let cycles = cycles.trim().parse().ok()?;
        (kind == "SP/SC" && size.parse() == Ok(batch)).then_some(cycles)
    };
    let wanted = lines().find_map(own);
    // Each batch before it has two lines.
    let before = BATCHES.iter().filter(|one| **one < batch).count() * 2;
    match wanted {
        Some(cycles) => Stage::Done(cycles),
        None if lines().count() >= before => Stage::Tests,
        None => Stage::Before,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A whole test on two cores of a machine with other work.
    const SAID: &str = include_str!("../../../../fixtures/dpdk-channel/ring-perf.txt");

    #[test]
    fn cycles_of_both_cores_are_read_of_pointers_alone() {
        assert_eq!(stage(SAID, 8), Stage::Done(1543.08));
        assert_eq!(stage(SAID, 32), Stage::Done(1268.81));
    }

    #[test]
    fn the_test_has_come_as_far_as_what_it_printed() {
        let until = |sign: &str| SAID.split_once(sign).unwrap().0;
        assert_eq!(stage("", 8), Stage::Before);
        // One core alone does the same before, under another heading.
        assert_eq!(stage(until("### Testing using two"), 8), Stage::Before);
        assert_eq!(
            [8, 32].map(|batch| stage(until("legacy APIs: SP/SC: bulk (size: 8): 1543.08"), batch)),
            [Stage::Tests, Stage::Before]
        );
        assert_eq!(stage(until("legacy APIs: SP/SC: bulk (size: 32): 1268.81"), 32), Stage::Tests);
        assert_eq!(stage(until("legacy APIs: MP/MC: bulk (size: 8): 1814.65"), 32), Stage::Before);
    }

    #[test]
    fn both_sides_work_at_once_so_that_a_pointer_arrives_in_half_of_what_they_take_together() {
        let plan = crate::tests::plan();
        let setup = Setup {
            path: "rte-ring".to_owned(),
            window: "none".to_owned(),
            size_bytes: 8,
            batch: 32,
            policy: "poll".to_owned(),
            vms: 2,
        };
        let side = |waited_ns| Side { ns: 10_000_000, waited_ns, ..Side::default() };
        let run = measured(&plan, &setup, 20.0, [side(0), side(100_000)]);
        assert_eq!((run.packets, run.slices, run.clean_slices, run.clean_packets), (1 << 20, 1, 1, 1 << 20));
        // 10 cycles a pointer: one cycle, as this machine has them, is a tenth of that.
        let ns = run.ns as f64 / run.packets as f64 / 10.0;
        assert!((ns / ns_per_tick() - 1.0).abs() < 0.2, "{ns}");
        assert_eq!(run.clean_mpps(), Some(run.raw_mpps()));
        let disturbed = measured(&plan, &setup, 20.0, [side(0), side(3_000_000)]);
        assert_eq!((disturbed.clean_slices, disturbed.clean_mpps()), (0, None));
    }
}
