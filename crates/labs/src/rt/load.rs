//! What does this computer do beside the guest? Threads that compute, copy memory, or write to the disk.
//!
//! They are ordinary threads on the CPUs that are not the vCPU's, named after what they do. KVM4NFV ran `stress` for the same.

use super::Environment;
use base::CpuSet;
use lab::Error;
use lab::setting::thread;
use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// Memory that a thread copies: more than a last-level cache has for a core.
const COPIED_BYTES: usize = 64 << 20;
/// A block that is written before the disk is waited for.
const BLOCK_BYTES: usize = 1 << 20;
/// The file that is written again and again.
const FILE_BLOCKS: u64 = 64;
/// Rounds between two looks whether it is to end: some hundred microseconds.
const ROUNDS: u32 = 200_000;

/// The names of the threads of an environment, one for each; none if this computer does nothing.
pub(super) fn names(environment: Environment, cpus: &CpuSet) -> Vec<&'static str> {
    match environment {
        Environment::IdleIdle => Vec::new(),
        Environment::CpustressIdle => cpus.iter().map(|_| "cpustress").collect(),
        Environment::MemorystressIdle => cpus.iter().map(|_| "memorystress").collect(),
        Environment::IostressIdle => vec!["iostress"],
    }
}

/// Does what the environment says on `cpus` until `over`; `file` may be written.
pub(super) fn work(environment: Environment, cpus: &CpuSet, file: &Path, over: &AtomicBool) -> Result<(), Error> {
    thread::set_affinity(thread::own(), cpus)?;
    match environment {
        Environment::IdleIdle => Ok(()),
        Environment::CpustressIdle => {
            while !over.load(Ordering::Relaxed) {
                spin();
            }
            Ok(())
        }
        Environment::MemorystressIdle => {
            let mut memory = vec![1_u8; COPIED_BYTES];
            while !over.load(Ordering::Relaxed) {
                memory.copy_within(..COPIED_BYTES / 2, COPIED_BYTES / 2);
                std::hint::black_box(&mut memory);
            }
            Ok(())
        }
        Environment::IostressIdle => written(file, over).map_err(|error| Error::io(file, error)),
    }
}

fn written(path: &Path, over: &AtomicBool) -> std::io::Result<()> {
    let block = vec![1_u8; BLOCK_BYTES];
    let mut file = File::create(path)?;
    for round in 0.. {
        if over.load(Ordering::Relaxed) {
            break;
        }
        if round % FILE_BLOCKS == 0 {
            file.seek(SeekFrom::Start(0))?;
        }
        file.write_all(&block)?;
        file.sync_data()?;
    }
    Ok(())
}

/// Keeps the CPU busy for a moment.
pub(super) fn spin() {
    let mut value = 1_u64;
    for _ in 0..ROUNDS {
        value = std::hint::black_box(value.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use testing::wait_for;

    #[test]
    fn every_environment_works_until_it_is_over() {
        let place = tempfile::tempdir().unwrap();
        let (file, cpus) = (place.path().join("io"), thread::affinity(thread::own()).unwrap());
        let all = [
            Environment::IdleIdle,
            Environment::CpustressIdle,
            Environment::MemorystressIdle,
            Environment::IostressIdle,
        ];
        for environment in all {
            let over = AtomicBool::new(false);
            std::thread::scope(|scope| {
                let works = scope.spawn(|| work(environment, &cpus, &file, &over));
                if environment == Environment::IostressIdle {
                    wait_for("a written block", || {
                        works.is_finished() || file.metadata().is_ok_and(|file| file.len() > 0)
                    });
                }
                over.store(true, Ordering::Relaxed);
                works.join().unwrap().unwrap();
            });
            let threads = names(environment, &cpus).len();
            assert_eq!(threads > 0, environment != Environment::IdleIdle, "{}", environment.name());
        }
        assert!(std::fs::metadata(&file).unwrap().len() > 0);
    }
}
