//! How often did the firmware take each CPU, out of sight of the kernel? System management interrupts, as processors of Intel count
//! them since the reset.
//!
//! `smi.json` of a snapshot: the count by the number of the CPU. Source: Intel SDM volume 4, MSR_SMI_COUNT.

use crate::Snapshot;
use std::collections::BTreeMap;

/// Name of the file in a snapshot.
pub const SMI_FILE: &str = "smi.json";

/// The register that counts them, of which the lower 32 bits do (Intel SDM volume 4, table 2-2).
pub const MSR_SMI_COUNT: u64 = 0x34;

/// How many came to each CPU between two samples; nothing where one of them lacks the counts.
pub fn between(first: &Snapshot, last: &Snapshot) -> Option<BTreeMap<u32, u32>> {
    let counts =
        |snapshot: &Snapshot| -> Option<BTreeMap<u32, u32>> { serde_json::from_str(&snapshot.read(SMI_FILE)?).ok() };
    let (before, after) = (counts(first)?, counts(last)?);
    let came = |(cpu, count): (u32, u32)| Some((cpu, count.wrapping_sub(*before.get(&cpu)?)));
    let came: BTreeMap<u32, u32> = after.into_iter().filter_map(came).collect();
    (!came.is_empty()).then_some(came)
}
