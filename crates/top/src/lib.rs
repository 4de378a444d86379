//! What the vCPUs of a host do right now: one interval after the other, and a table of it.
//!
//! ```text
//! fold, in the kernel --read, read, ..--> Observer --> Frame: the difference of two readings --> text
//! /proc alone, where that is not allowed ---^
//! ```
//! Nothing is recorded and nothing is changed; missing is missing, and never 0.

mod observe;
mod proc;
mod reasons;
mod table;

pub use observe::{Frame, Head, Observer, Options};
pub use table::{fitted, text};
