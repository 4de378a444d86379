//! The checks behind the rules: each looks at a machine and returns what it saw, or nothing.

pub(crate) mod caches;
pub(crate) mod cards;
pub(crate) mod cells;
pub(crate) mod conflicts;
pub(crate) mod cores;
pub(crate) mod defined;
pub(crate) mod disks;
mod dropped;
pub(crate) mod evidence;
pub(crate) mod guest;
pub(crate) mod knobs;
pub(crate) mod memory;
pub(crate) mod overcommit;
pub(crate) mod overlap;
pub(crate) mod pins;
pub(crate) mod place;
pub(crate) mod polling;
pub(crate) mod proposed;
pub(crate) mod queues;
pub(crate) mod quota;
pub(crate) mod shape;
pub(crate) mod slice;
pub(crate) mod starved;
pub(crate) mod steering;
pub(crate) mod strain;
