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

mod bochs;
mod boot;
pub mod cpio;
pub mod emulator;
pub mod harvest;
pub mod initramfs;
pub mod inside;
pub mod modules;
pub mod needs;
pub mod packages;
pub mod page;
mod pc;
pub(crate) mod qemu;
pub mod scratch;
pub mod settings;
pub mod toy;
pub mod vmlinux;
pub mod words;

pub use settings::{Arch, Guest, Settings, Workload};

use crate::Error;
use base::recording::{self, Destination, Draft, Machine, Recording};
use boot::Boot;
use packages::Flavour;
use scratch::Scratch;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

/// What every kernel of the lab is told: talk on the serial line, give up at once when something is wrong, and start
/// this program with the words after the dashes.
pub(crate) const KERNEL_ARGUMENTS: &str = "console=ttyS0 quiet mitigations=off nokaslr panic=-1 oops=panic \
    rdinit=/kvmscope -- lab inside";

/// Where things lie.
#[derive(Debug, Clone)]
pub struct Places {
    /// This program's file, which becomes the first process of the machines.
    pub program: PathBuf,
    /// Packages and scratch files.
    pub cache: PathBuf,
    /// Directories in which programs are looked for.
    pub programs: Vec<PathBuf>,
    /// The recording to be.
    pub output: Destination,
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
    needs::check(settings, &places.programs, Path::new("/"))?;
    // Made and let go: a place that is taken is better said before the machine boots than after.
    drop(Draft::new(&places.output)?);
    let cache = std::path::absolute(&places.cache).map_err(|error| Error::io(&places.cache, error))?;
    let kernel = packages::kernel(&cache, Flavour::Stock, say)?;
    let scratch = Scratch::new(&cache)?;
    let boot = Boot { settings, program: &places.program, kernel: &kernel, scratch: &scratch };
    let disks = boot.run(say, stop)?;
    say("putting the recording together");
    let draft = Draft::new(&places.output)?;
    let (mut machines, mut parts, mut clock_pairs) = (Vec::new(), Vec::new(), Vec::new());
    for (level, disk) in (0..).zip(&disks) {
        let id = format!("L{level}");
        let harvest = harvest::harvest(disk, &draft)?;
        parts.extend(harvest.parts);
        clock_pairs.extend(harvest.clock_pairs);
        let parent = machines.last().map(|outer: &Machine| outer.id.clone());
        // Emulated: nothing that is found in it is ever applied, so nobody asks which boot it was.
        machines.push(Machine { id, level, parent, name: None, identity: recording::Identity::default() });
    }
    let recording = Recording {
        root: places.output.path.clone(),
        emulated: Some(match settings.arch {
            Arch::Svm => recording::Emulator::Tcg,
            Arch::Vmx => recording::Emulator::Bochs,
        }),
        machines,
        parts,
        clock_pairs,
        ..Recording::made(&format!("kvmscope lab nested {}: {settings}", env!("CARGO_PKG_VERSION")), created)
    };
    Ok(draft.finish(recording)?)
}

/// Where packages are kept when the user names no place: `$XDG_CACHE_HOME/kvmscope` or `$HOME/.cache/kvmscope`.
pub fn default_cache(variable: impl Fn(&str) -> Option<std::ffi::OsString>) -> Option<PathBuf> {
    let named = |name: &str| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = named("XDG_CACHE_HOME").or_else(|| Some(named("HOME")?.join(Path::new(".cache"))))?;
    Some(cache.join("kvmscope"))
}
