//! How does a machine of the lab boot, and what does it boot into?
//!
//! ```text
//! packages -> kernel, modules --\
//! this program, orders, files ---+--> initramfs --> emulator, or pc --> inside: this program, the machine's first process
//!                                                       |  console, disk            page, words: memory that both see
//!                                                       '--> harvest -> a part of a recording
//! ```
//! Nothing is installed or changed on this computer: packages lie in a cache, all else in a scratch directory. What a machine is to do
//! is not known here: each lab brings a [`inside::Work`].

pub(crate) mod cpio;
pub mod emulator;
pub(crate) mod harvest;
pub mod initramfs;
pub mod inside;
pub mod modules;
pub(crate) mod needs;
pub mod packages;
pub(crate) mod page;
pub(crate) mod pc;
mod prepare;
pub mod qemu;
pub mod scratch;
pub(crate) mod vmlinux;
pub mod words;

use base::recording::Destination;
use std::path::{Path, PathBuf};

/// What every kernel of the lab is told: talk on the serial line, give up at once when something is wrong, and start
/// this program with the words after the dashes.
pub const KERNEL_ARGUMENTS: &str = "console=ttyS0 quiet mitigations=off nokaslr panic=-1 oops=panic \
    rdinit=/kvmscope -- lab inside";

#[derive(Debug, Clone)]
pub struct Places {
    /// This program's file, which becomes the first process of the machines.
    pub program: PathBuf,
    /// Packages and scratch files.
    pub cache: PathBuf,
    /// Directories in which programs are looked for.
    pub programs: Vec<PathBuf>,
    pub output: Destination,
}

/// Where packages are kept when the user names no place: `$XDG_CACHE_HOME/kvmscope` or `$HOME/.cache/kvmscope`.
pub fn default_cache(variable: impl Fn(&str) -> Option<std::ffi::OsString>) -> Option<PathBuf> {
    let named = |name: &str| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = named("XDG_CACHE_HOME").or_else(|| Some(named("HOME")?.join(Path::new(".cache"))))?;
    Some(cache.join("kvmscope"))
}
