//! Threads that want a whole CPU, as a vCPU does whose guest is busy.

use super::inside::{Stop, WorkerThreads};
use super::pin;
use lab::Error;

/// Rounds between two looks whether it is to end: some hundred microseconds.
const ROUNDS: u32 = 200_000;

/// Starts one on `cpu`, named as QEMU names its vCPU threads, so that everything that knows those knows it.
pub(super) fn start(workers: &mut WorkerThreads, index: usize, cpu: u32) -> Result<u32, Error> {
    let tid = workers.start(
        &format!("CPU {index}/KVM"),
        None,
        || Ok(()),
        |(), stop: &Stop| {
            let mut value = 1_u64;
            while !stop.asked() {
                for _ in 0..ROUNDS {
                    value = std::hint::black_box(value.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
                }
            }
            Ok(())
        },
    )?;
    pin(tid, cpu)?;
    Ok(tid)
}
