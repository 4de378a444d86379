//! The checks of the rules, by what they look at.

pub(super) mod busy;
pub(super) mod caches;
pub(super) mod clock;
pub(super) mod firmware;
pub(super) mod hypervisors;
pub(super) mod limits;
pub(super) mod polling;
pub(super) mod real_time;
pub(super) mod recovery;
pub(super) mod storage;
pub(super) mod threads;
pub(super) mod tracer;
pub(super) mod unmovable;
