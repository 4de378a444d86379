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
pub(crate) mod inside;
mod needs;
mod settings;
mod svm;
pub mod toy;

pub use settings::{Arch, Guest, Settings, Workload};

use crate::machine::packages::{self, Flavour};
use crate::machine::scratch::Scratch;
use crate::machine::{Places, harvest};
use base::recording::{self, Draft, Machine, Recording};
use boot::Boot;
use lab::Error;
use std::path::Path;
use std::sync::atomic::AtomicBool;

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
