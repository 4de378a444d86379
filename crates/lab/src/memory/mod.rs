//! What is in the memory of a guest that runs, and which pages does it write to? Looked at from outside, without leaving a trace.
//!
//! ```text
//! /proc/PID/maps  --mappings-->  the guest's memory  --pages: pagemap, SEEK_DATA-->  data, holes, swapped     counted, all of them
//! pages with data --a sample of each GiB, pread-->  zeros? one value? how small does zstd make them?
//! the same pages, later  --compared-->  changed?  how long would XBZRLE make the difference?
//! ```
//! A hole that is read through a mapping of shared memory is filled with a page, on this host and for good (`shmem_fault` in mm/shmem.c,
//! Linux 6.12): so nothing is mapped here, and nothing is read of which the kernel has not said that it is there. What was swapped out
//! stays there. In: a [`Target`]. Out: a bench (`base::Bench`), whose counters `analysis::migration` makes shares of.

pub mod dirty_rate;
mod mappings;
mod pages;
mod survey;
mod target;
mod xbzrle;

pub use survey::{Plan, survey};
pub use target::Target;

#[cfg(test)]
mod tests;
