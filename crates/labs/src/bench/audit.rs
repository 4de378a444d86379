//! What disturbed a measurement? Nothing is thrown away for it: it is said.
//!
//! In: the machine's root directory (`/proc`, `/dev/cpu`), before and after. Out: a sentence for each disturbance.
//!
//! Sources: /proc/stat's eighth number is stolen time (proc_stat(5)); MSR 0x34 counts SMIs, 0xe7 and 0xe8 count the core's
//! and the reference clock (Intel SDM volume 4); they are readable where the module `msr` is loaded, which we do not do.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

const MSR_SMI_COUNT: u64 = 0x34;
const MSR_MPERF: u64 = 0xe7;
const MSR_APERF: u64 = 0xe8;
/// What /proc/stat counts in: a hundredth of a second (USER_HZ is 100 on x86).
const TICK_MS: u64 = 10;
/// Turns of a chain of four multiplications, each of which waits for the one before. Additions of constants would not do:
/// recent cores take several in a cycle.
const CHAIN_TURNS: u64 = 500;
/// The least of so many chains is not disturbed.
const CHAINS: u32 = 7;
/// A clock that differs less than this is the same.
const SAME_CLOCK: f64 = 0.05;

/// Watches one CPU and this thread.
pub(super) struct Audit {
    root: PathBuf,
    cpu: u32,
    before: Moment,
}

#[derive(Debug, Clone, Default, PartialEq)]
struct Moment {
    involuntary: i64,
    disk_faults: i64,
    steal_ticks: Option<u64>,
    smi: Option<u64>,
    core: Option<(u64, u64)>,
    chain: f64,
}

impl Audit {
    /// Begins to watch `cpu`, on which this thread runs.
    pub(super) fn begin(root: &Path, cpu: u32) -> Self {
        Self { root: root.to_owned(), cpu, before: Moment::now(root, cpu) }
    }

    /// What has disturbed since.
    pub(super) fn end(&self) -> Vec<String> {
        said(&self.before, &Moment::now(&self.root, self.cpu))
    }
}

impl Moment {
    fn now(root: &Path, cpu: u32) -> Self {
        let stat = std::fs::read_to_string(root.join("proc/stat")).unwrap_or_default();
        let msrs = File::open(root.join(format!("dev/cpu/{cpu}/msr"))).ok();
        let msr = |index| {
            let mut value = [0; 8];
            msrs.as_ref()?.read_exact_at(&mut value, index).ok()?;
            Some(u64::from_le_bytes(value))
        };
        let (involuntary, disk_faults) = usage();
        Self {
            involuntary,
            disk_faults,
            steal_ticks: steal(&stat, cpu),
            smi: msr(MSR_SMI_COUNT),
            core: msr(MSR_APERF).zip(msr(MSR_MPERF)),
            chain: chain(),
        }
    }
}

fn said(before: &Moment, after: &Moment) -> Vec<String> {
    let mut said = Vec::new();
    let grown = |before: Option<u64>, after: Option<u64>| after.zip(before).map_or(0, |(a, b)| a.saturating_sub(b));
    let preempted = after.involuntary - before.involuntary;
    if preempted > 0 {
        said.push(format!("preempted {preempted} x by other threads"));
    }
    let faults = after.disk_faults - before.disk_faults;
    if faults > 0 {
        said.push(format!("waited {faults} x for a page from disk"));
    }
    let steal = grown(before.steal_ticks, after.steal_ticks) * TICK_MS;
    if steal > 0 {
        said.push(format!("{steal} ms stolen by the hypervisor below"));
    }
    let smi = grown(before.smi, after.smi);
    if smi > 0 {
        said.push(format!("{smi} SMIs of the firmware"));
    }
    let ratio = |moment: &Moment, other: &Moment| {
        let ((aperf, mperf), (aperf_before, mperf_before)) = moment.core.zip(other.core)?;
        let reference = mperf.checked_sub(mperf_before).filter(|more| *more > 0)?;
        Some(aperf.checked_sub(aperf_before)? as f64 / reference as f64)
    };
    if let Some(ratio) = ratio(after, before).filter(|ratio| (ratio - 1.0).abs() > SAME_CLOCK) {
        said.push(format!("the core ran at {ratio:.2} of the rate of its reference clock"));
    }
    let change = after.chain / before.chain - 1.0;
    if before.chain > 0.0 && change.abs() > SAME_CLOCK {
        said.push(format!("the core's clock changed by {:+.0} % against the counter", -100.0 * change));
    }
    said
}

/// How often this thread was made to leave its CPU, and waited for a page from a disk.
fn usage() -> (i64, i64) {
    // SAFETY: all of the structure is numbers, for which zeros are values.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the structure is ours, and as large as the call expects.
    let answered = unsafe { libc::getrusage(libc::RUSAGE_THREAD, &mut usage) } == 0;
    if answered { (usage.ru_nivcsw, usage.ru_majflt) } else { (0, 0) }
}

fn steal(stat: &str, cpu: u32) -> Option<u64> {
    let name = format!("cpu{cpu}");
    let line = stat.lines().find(|line| line.split(' ').next() == Some(&name))?;
    line.split_whitespace().nth(8)?.parse().ok()
}

/// Ticks of the time-stamp counter for a multiplication, the least of a few chains.
fn chain() -> f64 {
    use std::arch::x86_64::{_mm_lfence, _rdtsc};
    let once = || {
        // SAFETY: every x86-64 processor has LFENCE and RDTSC, which touch no memory.
        let begin = unsafe { (_mm_lfence(), _rdtsc()).1 };
        // SAFETY: only registers named here are changed.
        unsafe {
            std::arch::asm!(
                "2: imul {product}, {product}", "imul {product}, {product}",
                "imul {product}, {product}", "imul {product}, {product}",
                "dec {turns}", "jnz 2b",
                product = inout(reg) 3_u64 => _,
                turns = inout(reg) CHAIN_TURNS => _,
                options(nomem, nostack),
            );
        }
        // SAFETY: as above.
        let end = unsafe { (_mm_lfence(), _rdtsc()).1 };
        end.wrapping_sub(begin) as f64 / (4 * CHAIN_TURNS) as f64
    };
    (0..CHAINS).map(|_| once()).fold(f64::INFINITY, f64::min)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steal_is_the_eighth_number_of_its_cpu() {
        let stat = "cpu  1 2 3 4 5 6 7 8 9 10\ncpu0 1 2 3 4 5 6 7 80 9 10\ncpu1 1 2 3 4 5 6 7 81 9 10\n";
        assert_eq!((steal(stat, 0), steal(stat, 1), steal(stat, 2)), (Some(80), Some(81), None));
    }

    #[test]
    fn a_disturbance_is_said_and_quiet_is_silent() {
        let quiet = Moment {
            involuntary: 4,
            disk_faults: 1,
            steal_ticks: Some(7),
            smi: None,
            core: Some((100, 100)),
            chain: 0.5,
        };
        assert!(said(&quiet, &quiet).is_empty());
        let loud = Moment {
            involuntary: 6,
            disk_faults: 4,
            steal_ticks: Some(9),
            smi: Some(1),
            core: Some((220, 200)),
            chain: 0.6,
        };
        let said = said(&quiet, &loud);
        assert_eq!(said[..2], ["preempted 2 x by other threads", "waited 3 x for a page from disk"]);
        assert_eq!(said[2], "20 ms stolen by the hypervisor below");
        assert!(said[3].contains("1.20") && said[4].contains("-20 %"), "{said:?}");
    }
}
