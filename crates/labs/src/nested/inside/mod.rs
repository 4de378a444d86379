//! What does this program do when it is a level of nested virtualization?
//!
//! ```text
//! start recording -> run the guest -> stop -> pack, write it to the disk
//!                \-> do the work --^   where it is the innermost of the Linux guests
//! ```
//! In: a [`Job`], out of the orders of the initramfs. Out: a cpio archive on the disk.

mod bench;
mod heard;
mod linux;
mod offspring;
mod workload;

use super::settings::{Guest, Settings};
use super::toy;
use super::toy::Truth;
use crate::machine::inside::{BUFFER_KIB, Harvest, Orders, POLL, RECORDING, Work, details, hand_over, say};
use base::recording::{Part, PartKind, PartState, TRUTH_FILE};
use lab::journal::Journal;
use lab::tracefs::{Plan, Tracefs, TracefsRecorder};
use lab::{Error, Recorder};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// A level of nested virtualization.
pub(crate) const LEVEL: Work = Work { name: "level", run: |orders| run(details(orders)?) };
/// The level of the machine that has no guest.
pub(crate) const INNERMOST: u8 = 2;

/// Where a machine with a Linux guest finds that guest's kernel.
pub(crate) const GUEST_KERNEL: &str = "/guest/vmlinuz";
/// Where it finds that guest's initramfs.
pub(crate) const GUEST_INITRAMFS: &str = "/guest/initramfs";

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Job {
    /// Which machine it is: 0 is the host.
    pub level: u8,
    pub settings: Settings,
    /// Modules that are loaded first, in order, where the machine's initramfs is made by its host.
    pub modules: Vec<String>,
    pub parameters: Vec<(String, String)>,
    /// The disk that takes what was recorded; a machine without one does not record.
    pub disk: String,
    /// Where on the disk; beside it there is something else.
    pub(crate) disk_offset: u64,
    pub clock: String,
    /// What its guest is to do, where that boots into what this machine booted into.
    pub guest: Option<Box<Job>>,
}

impl Job {
    /// The orders of a machine that is to do it.
    ///
    /// # Errors
    /// If they cannot be written down.
    pub(super) fn orders(&self) -> Result<Orders, Error> {
        let (modules, parameters) = (self.modules.clone(), self.parameters.clone());
        Ok(Orders { modules, parameters, ..Orders::new(LEVEL, self)? })
    }
}

fn run(job: Job) -> Result<(), Error> {
    let level = job.level;
    say(&format!("L{level} is up"));
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
        let path = Path::new(&id).join(TRUTH_FILE);
        let text = serde_json::to_vec_pretty(&truth).map_err(|error| Error::io(TRUTH_FILE, error.into()))?;
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
