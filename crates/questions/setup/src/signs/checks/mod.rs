//! The checks of the rules, by what they look at.

pub(super) mod busy;
pub(super) mod caches;
pub(super) mod clock;
pub(super) mod firmware;
pub(super) mod storage;
pub(super) mod tracer;
