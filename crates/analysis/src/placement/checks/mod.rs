//! The checks behind the rules: each looks at a machine and returns what it saw, or nothing.

pub mod conflicts;
pub mod evidence;
pub mod guest;
pub mod knobs;
pub mod memory;
pub mod overlap;
pub mod pins;
pub mod place;
pub mod polling;
pub mod proposed;
pub mod queues;
pub mod starved;
