//! What does this program do when it is the first process of the lab's machine?
//!
//! ```text
//! mount -> load modules -> start recording -> run the guest -> stop -> pack, write it to the disk -> power off
//!                                         \-> do the work --^   where it is the innermost of the Linux guests
//! ```
//! In: [`Orders`], a file of the initramfs: a [`Job`], to be a [`router`], a [`Measurement`], or a side of a channel. Out: a cpio archive on the disk, which [`super::harvest`] reads, and lines on the
//! console, which [`super::emulator`] shows. Whatever goes wrong is said there too.

mod bench;
mod heard;
mod linux;
pub mod measurement;
mod offspring;
mod prepare;
pub mod router;
mod workload;

use super::settings::{Guest, Settings};
use super::toy::Truth;
use super::{cpio, initramfs, toy};
#[cfg(feature = "channel")]
use crate::bench::channel::ivshmem::Ends;
use crate::journal::Journal;
use crate::tracefs::{Plan, Tracefs, TracefsRecorder};
use crate::{Error, Recorder};
use base::recording::{ClockPair, Part, PartKind, PartState};
use measurement::Measurement;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{BufWriter, ErrorKind, Seek, SeekFrom, Write};
use std::path::Path;
use std::time::Duration;

/// Before each line that is meant for whoever started the lab.
pub const SAYS: &str = "kvmscope lab: ";
/// The last such line of a machine that did its work.
pub const DONE: &str = "done";
/// The beginning of the last such line of one that did not.
pub const FAILED: &str = "failed: ";
/// The level of the machine that has no guest.
pub const INNERMOST: u8 = 2;
/// Names of the recording's files in the archive begin with it.
pub const FILES: &str = "recording/";
/// What those files are, as JSON.
pub const HARVEST: &str = "harvest.json";
/// What is known of toy guests, as JSON: a part of the recording.
const TRUTH: &str = "truth.json";
/// Where the recording lies meanwhile.
const RECORDING: &str = "/tmp/recording";
/// Of each CPU. An emulated machine is slow to empty it.
const BUFFER_KIB: u64 = 16 << 10;
/// How often the recorder is asked to do what has piled up.
const POLL: Duration = Duration::from_millis(200);

/// Where a machine with a Linux guest finds that guest's kernel.
pub const GUEST_KERNEL: &str = "/guest/vmlinuz";
/// Where it finds that guest's initramfs.
pub const GUEST_INITRAMFS: &str = "/guest/initramfs";

/// What a machine that boots into this program is told.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Orders {
    /// Be a level of nested virtualization.
    Level(Box<Job>),
    /// Forward packets.
    Route(router::Router),
    /// Measure the machine's own latency.
    Measure(Measurement),
    /// Be one side of a channel.
    #[cfg(feature = "channel")]
    Channel(Box<Ends>),
}

impl Orders {
    /// The modules that are loaded first, in order.
    pub fn modules(&mut self) -> &mut Vec<String> {
        match self {
            Orders::Level(job) => &mut job.modules,
            Orders::Route(router) => &mut router.modules,
            Orders::Measure(measurement) => &mut measurement.modules,
            #[cfg(feature = "channel")]
            Orders::Channel(ends) => &mut ends.modules,
        }
    }
}

/// What the machine is to do.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Job {
    /// Which machine it is: 0 is the host.
    pub level: u8,
    /// The run.
    pub settings: Settings,
    /// Modules in the order in which they are loaded.
    pub modules: Vec<String>,
    /// Parameters of modules.
    pub parameters: Vec<(String, String)>,
    /// The disk that takes what was recorded; a machine without one does not record.
    pub disk: String,
    /// Where on the disk; beside it there is something else.
    pub disk_offset: u64,
    /// The clock of the trace.
    pub clock: String,
    /// What its guest is to do, where that boots into what this machine booted into.
    pub guest: Option<Box<Job>>,
}

/// What a machine hands over beside files.
#[derive(Debug, Serialize, Deserialize)]
pub struct Harvest {
    /// What the files are.
    pub parts: Vec<Part>,
    /// What its clocks showed when it began to record and when it ended, where they were read.
    pub clock_pairs: Vec<ClockPair>,
}

/// Does the job and switches the machine off. Never returns a success: the machine is gone then.
///
/// # Errors
/// If this process is not the first one of a machine.
pub fn run() -> Result<(), Error> {
    if std::process::id() != 1 {
        let sentence = "this runs only as the first process of a machine of the lab";
        return Err(Error::Denied(sentence.to_owned()));
    }
    match work() {
        Ok(()) => say(DONE),
        Err(error) => say(&format!("{FAILED}{error}")),
    }
    rustix::fs::sync();
    prepare::power_off()
}

fn say(line: &str) {
    println!("{SAYS}{line}");
}

fn work() -> Result<(), Error> {
    let text = std::fs::read(initramfs::JOB).map_err(|error| Error::io(initramfs::JOB, error))?;
    let orders: Orders = serde_json::from_slice(&text).map_err(|error| Error::io(initramfs::JOB, error.into()))?;
    prepare::mount_all()?;
    let job = match orders {
        Orders::Level(job) => job,
        Orders::Route(router) => {
            prepare::load(&router.modules, &[])?;
            return router.run(&mut || say(router::FORWARDS));
        }
        Orders::Measure(measurement) => {
            prepare::load(&measurement.modules, &[])?;
            return measurement.run();
        }
        #[cfg(feature = "channel")]
        Orders::Channel(ends) => {
            prepare::load(&ends.modules, &[])?;
            return ends.run(Path::new("/"), &mut |line| say(line));
        }
    };
    let level = job.level;
    say(&format!("L{level} is up"));
    prepare::load(&job.modules, &job.parameters)?;
    if job.disk.is_empty() {
        say(&format!("L{level} does its work"));
        return workload::run(&job.settings);
    }
    if job.settings.guest == Guest::Bench {
        say("L0 measures what its guests cost");
        let (root, id) = (Path::new(RECORDING), format!("L{level}"));
        let parts = bench::run(&job.settings, root, &id, &mut |line| say(line))?;
        return hand_over(&job.disk, job.disk_offset, root, &Harvest { parts, clock_pairs: Vec::new() });
    }
    say(&format!("L{level} records and {}", if level == INNERMOST { "does its work" } else { "starts its guest" }));
    let mut parts = Vec::new();
    let tracefs = Tracefs::find(Path::new("/"))?;
    let plan = Plan { clock: Some(job.clock.clone()), buffer_kib: BUFFER_KIB, ..Plan::default() };
    let (root, id) = (Path::new(RECORDING), format!("L{level}"));
    let journal = Journal::new("/tmp/journal", "/proc");
    let mut recorder = TracefsRecorder::start(&tracefs, &journal, &plan, root, &id)?;
    let ran = run_recorded(&job, &mut recorder);
    say(&format!("L{level} packs its trace"));
    parts.extend(Box::new(recorder).stop()?);
    if let Some(truth) = ran? {
        let path = Path::new(&id).join(TRUTH);
        let text = serde_json::to_vec_pretty(&truth).map_err(|error| Error::io(TRUTH, error.into()))?;
        std::fs::write(root.join(&path), text).map_err(|error| Error::io(&path, error))?;
        parts.push(Part { path, machine: id, kind: PartKind::Notes, clock: None, state: PartState::Complete });
    }
    hand_over(&job.disk, job.disk_offset, root, &Harvest { parts, clock_pairs: Vec::new() })
}

/// Runs the guest, or does the work, to its end while the recorder records. The thread's name is what traces show.
fn run_recorded(job: &Job, recorder: &mut TracefsRecorder) -> Result<Option<Truth>, Error> {
    let innermost = job.level == INNERMOST;
    let name = if innermost { "workload" } else { "hypervisor" };
    let run = || match job.settings.guest {
        Guest::Toy | Guest::Bench => toy::run(&job.settings).map(Some),
        Guest::Linux if innermost => workload::run(&job.settings).map(|()| None),
        Guest::Linux => match &job.guest {
            Some(guest) => offspring::run(job, guest).map(|()| None),
            None => linux::run(job).map(|()| None),
        },
    };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn_scoped(scope, run);
        let thread = thread.map_err(|error| Error::refused(format_args!("no thread for the {name}"), error))?;
        while !thread.is_finished() {
            recorder.poll()?;
            std::thread::sleep(POLL);
        }
        thread.join().unwrap_or_else(|_| Err(Error::Died(format!("the {name}'s thread died"))))
    })
}

/// Writes all files below `root`, and what they are, to the disk, from `offset` on.
fn hand_over(disk: &str, offset: u64, root: &Path, harvest: &Harvest) -> Result<(), Error> {
    let io = |error| Error::io(disk, error);
    let mut disk = File::options().write(true).open(disk).map_err(io)?;
    disk.seek(SeekFrom::Start(offset)).map_err(io)?;
    let mut archive = cpio::Archive::new(BufWriter::with_capacity(1 << 20, &disk));
    archive.file(HARVEST, &serde_json::to_vec(harvest).map_err(|error| io(error.into()))?).map_err(io)?;
    let mut directories = vec![root.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(&directory).map_err(|error| Error::io(&directory, error))? {
            let path = entry.map_err(|error| Error::io(&directory, error))?.path();
            if path.is_dir() {
                directories.push(path);
            } else if let Ok(name) = path.strip_prefix(root) {
                archive.copy(&format!("{FILES}{}", name.display()), &path).map_err(io)?;
            }
        }
    }
    archive.finish().and_then(|mut out| out.flush()).map_err(io)?;
    match disk.sync_all() {
        // Memory has nothing to wait for.
        Err(error) if error.kind() == ErrorKind::InvalidInput => Ok(()),
        written => written.map_err(io),
    }
}
