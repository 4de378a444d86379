//! What tests of the live side share: the machine for one test at a time, a directory to work in, waiting for a state instead of a
//! time, and programs that are in the way.

mod hogs;
mod machine;
mod process;
mod wait;

pub use hogs::Hogs;
pub use machine::{Machine, Workspace, machine};
pub use process::{Running, cannot_record, missing, processes_with, send, was_hangup_ignored};
pub use wait::{wait_for, wait_for_output, wait_for_value};
