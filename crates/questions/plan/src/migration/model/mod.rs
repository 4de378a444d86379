//! What a pre-copy migration does, by arithmetic alone.
//!
//! ```text
//! WorkingSet  W(T): pages dirtied in T     \
//! Memory      what the first pass sends     >-- passes: one pass after another, until what is left is short enough --> Course
//! Pace        even, or in QEMU's windows   /    sweep: the same page by page, with dirty bits cleared on send
//! limit, throttle                         /
//!                                               ways_out: where it would never end, the least change that ends it
//! ```
//! Sources: `migration_iteration_run`, `ram_save_iterate` and `migration_bitmap_sync` in migration/{migration,ram}.c, QEMU 7.2 and 10.0.

pub mod hibernation;
pub mod memory;
pub(crate) mod methods;
pub mod pace;
pub mod passes;
pub(crate) mod scan;
pub(crate) mod sweep;
pub(crate) mod ways_out;
pub mod working_set;
