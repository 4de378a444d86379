//! What happens when a guest runs guests? A machine of our own shows it, on any computer.
//!
//! ```text
//! this computer   packages -> modules, initramfs -> emulator ---------------> harvest -> recording
//!                                                      |  console, disk          |
//! L0, emulated                     a stock Debian kernel, KVM, tracefs, this very program as its first process
//! L1                               a guest with a hypervisor: toy, or Linux
//! L2                               the guest's guest
//! ```
//! In: [`Settings`]. Out: a recording directory, marked as emulated, with the truth about the guests beside the trace.
//! Order, counts and causes in it are real; nanoseconds are the emulator's. Nothing is installed or changed on this
//! computer: packages lie in a cache, all else in a scratch directory.

pub mod cpio;
pub mod emulator;
pub mod harvest;
pub mod initramfs;
pub mod inside;
pub mod modules;
pub mod packages;
mod qemu;
pub mod scratch;
pub mod settings;
pub mod toy;

pub use settings::{Arch, Guest, Settings, Workload};

use crate::Error;
use base::recording::{self, Draft, Machine, Part, PartKind, PartState, Recording};
use emulator::Emulator;
use inside::Job;
use scratch::Scratch;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// What every kernel of the lab is told: talk on the serial line, give up at once when something is wrong, and start
/// this program with the words after the dashes.
const KERNEL_ARGUMENTS: &str = "console=ttyS0 quiet mitigations=off nokaslr panic=-1 oops=panic \
    rdinit=/kvmscope -- lab inside";

/// The disk grows as it is written; it is never this large.
const DISK_BYTES: u64 = 4 << 30;

/// Where things lie.
#[derive(Debug, Clone)]
pub struct Places {
    /// This program's file, which becomes the first process of the machines.
    pub program: PathBuf,
    /// Packages and scratch files.
    pub cache: PathBuf,
    /// The recording to be.
    pub output: PathBuf,
}

/// Runs the lab once. `created` is when, for the manifest; `say` hears what is going on, `stop` ends it early.
///
/// # Errors
/// If something is missing or goes wrong on the way; the sentence says what. Nothing is left behind then.
pub fn run(
    settings: &Settings,
    places: &Places,
    created: String,
    say: &mut dyn FnMut(&str),
    stop: &AtomicBool,
) -> Result<Recording, Error> {
    if settings.arch == Arch::Vmx || settings.guest == Guest::Linux {
        return Err(Error::Unable("the lab runs the toy guest under SVM so far".to_owned()));
    }
    let draft = Draft::new(&places.output).map_err(of_recording)?;
    let kernel = packages::kernel(&places.cache, say)?;
    let scratch = Scratch::new(&places.cache)?;
    let (initramfs, console, disk) = (scratch.join("initramfs"), scratch.join("console"), scratch.join("disk"));
    let job = Job {
        settings: settings.clone(),
        modules: Vec::new(),
        parameters: vec![("kvm_amd".to_owned(), "nested=1".to_owned())],
        disk: qemu::DISK.to_owned(),
        clock: "mono".to_owned(),
    };
    initramfs::write(&initramfs, &places.program, &job, qemu::MODULES, &modules::Modules::of(&kernel)?)?;
    let file = std::fs::File::create(&disk).map_err(|error| Error::io(&disk, error))?;
    file.set_len(DISK_BYTES).map_err(|error| Error::io(&disk, error))?;
    say(&format!("booting L0, Linux {} in QEMU TCG with SVM", kernel.version));
    let emulator = Emulator {
        command: qemu::command(settings, &kernel, &initramfs, &console, &disk),
        package: "qemu-system-x86",
        console,
        log: scratch.join("log"),
        limit: Duration::from_secs(300),
        stop,
    };
    emulator.run(say)?;
    say("putting the recording together");
    let harvest = harvest::unpack(&disk, scratch.path())?;
    let trace = PathBuf::from("L0/trace.dat");
    harvest.write_trace(&draft.part(&trace).map_err(of_recording)?)?;
    let truth = PathBuf::from("L0/truth.json");
    let path = draft.part(&truth).map_err(of_recording)?;
    std::fs::write(&path, harvest.truth()).map_err(|error| Error::io(path, error))?;
    let part = |path, kind, clock| Part { path, machine: "L0".to_owned(), kind, clock, state: PartState::Complete };
    let recording = Recording {
        root: places.output.clone(),
        created: Some(created),
        tool: Some(format!("kvmscope lab nested {}: {settings}", env!("CARGO_PKG_VERSION"))),
        emulated: Some(recording::Emulator::Tcg),
        machines: vec![Machine { id: "L0".to_owned(), level: 0, parent: None, name: None }],
        parts: vec![
            part(trace, PartKind::TraceDat, Some(harvest.clock().to_owned())),
            part(truth, PartKind::Notes, None),
        ],
        problems: Vec::new(),
    };
    draft.finish(recording).map_err(of_recording)
}

fn of_recording(error: recording::Error) -> Error {
    Error::Unable(error.to_string())
}

/// Where packages are kept when the user names no place: `$XDG_CACHE_HOME/kvmscope` or `$HOME/.cache/kvmscope`.
pub fn default_cache(variable: impl Fn(&str) -> Option<std::ffi::OsString>) -> Option<PathBuf> {
    let named = |name: &str| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = named("XDG_CACHE_HOME").or_else(|| Some(named("HOME")?.join(Path::new(".cache"))))?;
    Some(cache.join("kvmscope"))
}
