//! What does the innermost Linux guest do, again and again? The thing whose exits are to be looked at.

use crate::nested::settings::{Settings, Workload};
use lab::Error;
use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::time::Duration;

/// A pause that outlasts halt polling: the CPU really halts.
const PAUSE: Duration = Duration::from_millis(20);
/// How long an idle guest is watched, per round.
const IDLE: Duration = Duration::from_millis(200);
/// CPUIDs, port writes or blocks in a round.
const IN_A_ROUND: u64 = 20;
/// POST codes go there, which nobody hears (IBM PC AT; also what Linux uses to wait for a microsecond).
const POST_PORT: u64 = 0x80;
const BLOCK_BYTES: usize = 4096;
/// The first takes the trace.
const DISK: &str = "/dev/vdb";

pub(super) fn run(settings: &Settings) -> Result<(), Error> {
    let mut work = Work::new(settings.workload)?;
    (0..u64::from(settings.loops)).try_for_each(|round| work.round(round))
}

enum Work {
    Cpuid,
    Ports(File),
    Idle,
    Timer,
    Disk(File),
}

impl Work {
    fn new(workload: Workload) -> Result<Self, Error> {
        let open = |path: &str, write: bool| {
            let file = File::options().read(true).write(write).open(path);
            file.map_err(|error| Error::io(path, error))
        };
        Ok(match workload {
            Workload::Cpuid => Work::Cpuid,
            Workload::Pio => Work::Ports(open("/dev/port", true)?),
            Workload::Idle => Work::Idle,
            Workload::Timer => Work::Timer,
            Workload::Disk => Work::Disk(open(DISK, false)?),
        })
    }

    fn round(&mut self, round: u64) -> Result<(), Error> {
        match self {
            Work::Idle => std::thread::sleep(IDLE),
            Work::Timer => std::thread::sleep(PAUSE),
            Work::Cpuid => {
                for leaf in 0..IN_A_ROUND {
                    std::hint::black_box(std::arch::x86_64::__cpuid((leaf % 2) as u32));
                }
            }
            Work::Ports(ports) => {
                for _ in 0..IN_A_ROUND {
                    let written = ports.seek(SeekFrom::Start(POST_PORT)).and_then(|_| ports.write_all(&[0]));
                    written.map_err(|error| Error::io("/dev/port", error))?;
                }
            }
            Work::Disk(disk) => {
                let mut block = [0; BLOCK_BYTES];
                let blocks = disk.seek(SeekFrom::End(0)).map_err(|error| Error::io(DISK, error))? / BLOCK_BYTES as u64;
                for index in 0..IN_A_ROUND {
                    // Strides that read-ahead does not follow.
                    let at = (round * IN_A_ROUND + index) * 97 % blocks.max(1) * BLOCK_BYTES as u64;
                    disk.read_exact_at(&mut block, at).map_err(|error| Error::io(DISK, error))?;
                }
            }
        }
        Ok(())
    }
}
