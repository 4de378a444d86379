//! How many frames do DPDK's own paths between two processes carry, measured beside our ring?
//!
//! ```text
//! memif       testpmd, txonly, client    -- both sides copy --------------->  testpmd, rxonly, server
//! vhost-user  testpmd, net_virtio_user   -- the vhost side copies --------->  testpmd, net_vhost
//! rte-ring    dpdk-test: one thread puts pointers into a ring of this process, another one takes them out
//! ```
//! In: a setup, and the [`Bed`] that the process made which waits for this launch. Out: a [`Run`], in which nobody has looked at frames, but
//! both ends have counted them; or why there is none. A path that cannot be measured never ends the bench: others go on.
//!
//! Programs: DPDK 22.11 of Debian 12. They end with this process, however that ends.

mod bed;
mod ends;
mod rte_ring;
mod run;
mod telemetry;
mod threads;

pub use bed::{Bed, Prepared};
pub use labs::packet_memory::Memory;

use super::Plan;
use base::CpuSet;
use base::channel::{DPDK_PATHS, RTE_RING, Run, Setup};
use ends::Path;
use lab::Error;
use lab::program::installed;
use lab::setting::thread;

/// Programs that these paths take, all of them in Debian's package dpdk-dev.
#[cfg(test)]
const PROGRAMS: [&str; 2] = [labs::testpmd::PROGRAM, rte_ring::PROGRAM];
/// The largest burst of testpmd (`MAX_PKT_BURST` of app/test-pmd/testpmd.h).
const MOST_BATCH: u32 = 512;
/// The shortest frame that testpmd makes: headers of Ethernet, IPv4 and UDP (`set_tx_pkt_segments` of app/test-pmd/config.c).
const LEAST_BYTES: u32 = 42;
/// The longest that fits into one buffer, of testpmd (`DEFAULT_MBUF_DATA_SIZE`) and of memif (its option `bsize`).
const MOST_BYTES: u32 = 2_048;
/// The largest ring: each entry of a virtio queue may hold one of testpmd's buffers.
const MOST_SLOTS: u32 = 4_096;

/// Measures one setup.
///
/// # Errors
/// [`Error::Absent`] with the reason if it cannot be measured here, whatever that is.
pub fn carry(plan: &Plan, setup: &Setup) -> Result<Run, Error> {
    let carried = measure(plan, setup);
    // Rings of ours that are measured next begin on the CPU that this process was given.
    thread::set_affinity(thread::own(), &CpuSet::one(plan.cpus.0))?;
    carried.map_err(|error| Error::Absent(error.to_string()))
}

fn measure(plan: &Plan, setup: &Setup) -> Result<Run, Error> {
    possible(plan, setup)?;
    let bed = plan.dpdk.as_ref().map_err(|why| Error::Absent(why.clone()))?;
    bed.note(std::process::id())?;
    // Beside those that poll, where there is such a CPU.
    let beside = if bed.spare.is_empty() { vec![plan.cpus.0, plan.cpus.1] } else { bed.spare.clone() };
    thread::set_affinity(thread::own(), &CpuSet::from_iter(beside))?;
    match (setup.path.as_str(), Path::named(&setup.path)) {
        (RTE_RING, _) => {
            installed(rte_ring::PROGRAM, rte_ring::PACKAGE)?;
            rte_ring::carry(plan, setup, bed)
        }
        (_, Some(path)) => {
            installed(labs::testpmd::PROGRAM, "dpdk-dev")?;
            run::carry(plan, setup, bed, path)
        }
        (other, None) => Err(Error::WrongUse(format!("there is no path '{other}'"))),
    }
}

/// Whether DPDK's programs can do that.
fn possible(plan: &Plan, setup: &Setup) -> Result<(), Error> {
    let Setup { path, window, size_bytes, batch, policy, .. } = setup;
    let refuse = |why: String| Err(Error::Absent(why));
    if window != "none" || policy != "poll" {
        return refuse(format!("{} have no windows, and poll", DPDK_PATHS.join(", ")));
    }
    if plan.fifo {
        return refuse("under SCHED_FIFO the threads of DPDK that poll would keep off those that answer".to_owned());
    }
    if plan.cpus.0 == plan.cpus.1 {
        return refuse("two threads that poll, and never yield, cannot share a CPU".to_owned());
    }
    if path == RTE_RING {
        return Ok(());
    }
    if *batch > MOST_BATCH {
        return refuse(format!("testpmd sends {MOST_BATCH} frames at once at most"));
    }
    if !(LEAST_BYTES..=MOST_BYTES).contains(size_bytes) {
        return refuse(format!("testpmd makes frames of {LEAST_BYTES} to {MOST_BYTES} bytes here"));
    }
    if plan.slots > MOST_SLOTS {
        return refuse(format!("its buffers fill a ring of {MOST_SLOTS} slots at most; use --slots {MOST_SLOTS}"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use lab::journal::Journal;
    use std::time::Duration;

    fn setup(path: &str, size_bytes: u32) -> Setup {
        let (window, policy) = ("none".to_owned(), "poll".to_owned());
        Setup { path: path.to_owned(), window, size_bytes, batch: 32, policy, vms: 2 }
    }

    fn plan(cpus: (u32, u32), dpdk: Result<Bed, String>) -> Plan {
        Plan {
            cpus,
            slots: 1_024,
            length: Duration::from_millis(100),
            warm_up: Duration::from_millis(20),
            dpdk,
            ..super::super::tests::plan()
        }
    }

    #[test]
    fn what_these_programs_cannot_do_is_refused_with_its_reason() {
        let refused = |change: &dyn Fn(&mut Plan, &mut Setup)| {
            let (mut plan, mut setup) = (plan((0, 1), Err("no root".to_owned())), setup("memif", 64));
            change(&mut plan, &mut setup);
            measure(&plan, &setup).unwrap_err().to_string()
        };
        assert_eq!(refused(&|_, _| {}), "no root");
        assert!(refused(&|_, setup| setup.batch = 513).contains("512 frames"));
        assert!(refused(&|_, setup| setup.size_bytes = 41).contains("42 to 2048"));
        assert!(refused(&|_, setup| setup.window = "pkey".to_owned()).contains("no windows"));
        assert!(refused(&|plan, _| plan.slots = 8_192).contains("--slots 4096"));
        assert!(refused(&|plan, _| plan.fifo = true).contains("SCHED_FIFO"));
        assert!(refused(&|plan, _| plan.cpus = (1, 1)).contains("share a CPU"));
    }

    #[test]
    fn each_path_carries_frames_and_its_bed_is_put_back() {
        let cpus: Vec<u32> = thread::affinity(thread::own()).unwrap().iter().collect();
        let lacks = [PROGRAMS[0], PROGRAMS[1]].into_iter().find_map(|name| installed(name, "dpdk-dev").err());
        let [first, second, ..] = cpus[..] else { return println!("skipped: dpdk-testpmd: two CPUs are needed") };
        if let Some(error) = lacks {
            return println!("skipped: dpdk-testpmd: {error}");
        }
        let notes = tempfile::tempdir().unwrap();
        let journal = Journal::new(notes.path().join("journal"), "/proc");
        let prepared = match Prepared::begin(&journal, (first, second)) {
            Ok(prepared) => prepared,
            Err(error) => return println!("skipped: dpdk-testpmd: {error}"),
        };
        let bed = prepared.bed().clone();
        let plan = plan((first, second), Ok(bed.clone()));
        let runs = [("memif", 64), ("vhost-user", 64), ("rte-ring", 8)].map(|(path, size)| {
            let run = measure(&plan, &setup(path, size));
            thread::set_affinity(thread::own(), &cpus.iter().copied().collect()).unwrap();
            run
        });
        // This process is noted too, and is none that is to end here.
        std::fs::remove_file(bed.directory.join(format!("process-{}", std::process::id()))).unwrap();
        prepared.back().unwrap();
        assert!(!bed.directory.exists() && journal.is_empty().unwrap());
        for run in runs {
            let run = run.unwrap();
            let path = run.setup.path.as_str();
            assert!(run.packets > 0 && run.ns > 0 && run.slices > 0 && run.slice_ns > 0, "{run:?}");
            assert_eq!((run.lost, run.verified, run.counted), (0, false, path != RTE_RING), "{run:?}");
            assert_eq!(run.setup_parts.len(), if path == RTE_RING { 0 } else { 4 }, "{run:?}");
            assert!(run.producer.cpu_ns > 0 && run.consumer.cpu_ns > 0, "{run:?}");
            println!("{path}: {run:?}");
        }
    }
}
