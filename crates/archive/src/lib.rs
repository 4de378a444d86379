//! How does a recording become one file, and a file a directory again?
//!
//! In: a recording; an archive that somebody sent: ours (`.kvmscope`), a sosreport, a must-gather. Out: the archive; a private
//! directory with what was in it, which is removed when it is dropped.
//!
//! ```text
//! recording --pack--> tar in zstd, the manifest first --unpack--> directory/NAME/recording.json ..
//! sosreport.tar.xz, must-gather.tar.gz, ..            --unpack--> directory/NAME/..
//! ```
//! An archive is never trusted: [`bounds`] says how many entries and bytes are taken out of it, only plain paths below the
//! directory are written, nothing is written through a link, and what is left out is counted.

pub mod bounds;
mod error;
mod format;
mod pack;
mod paths;
mod taking;
mod unpack;

pub use error::Error;
pub use format::{Format, format_of};
pub use pack::{pack, pack_into};
pub use unpack::{Links, Unpacked, is_recording, manifest, private, unpack};

/// How names of packed recordings end.
pub const EXTENSION: &str = "kvmscope";
