//! How did live migrations go that were recorded, and was what was said before them right?
//!
//! ```text
//! Migration --runs--> table runs            --passes--> table passes
//!     |--events, and QEMU's own account --downtimes--> table downtimes
//!     |--traces of both sides--> table devices <--waits-- the kernel's trace of the threads
//!     |--what packets saw--> table network
//!     |--passes, by their lengths--> table working_set
//!     |--its memory on both sides--> table moved_memory
//!     |--what the guest counted of its work--> table work
//!     |--with what was said before--> table residuals
//!     |--figures--> the same as pictures
//!     '--rules--> findings             guests saved to files --hibernated--> tables wakes, saves, residuals
//! ```

mod culprits;
mod devices;
mod downtimes;
mod figures;
mod hibernated;
mod jobs;
mod memory;
mod network;
mod pace;
mod passes;
mod residuals;
mod rules;
mod runs;
mod section;
mod waits;
mod windows;
mod work;

pub(super) use residuals::{actual, timed};
pub use rules::words;
pub use section::{QUESTION, answer};
pub use windows::points;

use base::TableSpec;

/// All tables, in reading order, with those of what is in memory.
pub const TABLES: &[&TableSpec] = &[
    &runs::RUNS,
    &pace::PACE,
    &jobs::JOBS,
    &passes::PASSES,
    &downtimes::DOWNTIMES,
    &network::NETWORK,
    &memory::MEMORY,
    &devices::DEVICES,
    &work::WORK,
    &residuals::RESIDUALS,
    &hibernated::WAKES,
    &hibernated::SAVES,
    &super::memory::SCANS,
    &super::memory::COMPRESSION,
    &super::memory::XBZRLE,
    &super::memory::LOOKED,
];
