//! Questions about how machines are set up: features, placement, real time.
//!
//! A module for each; they are functions of a [`facts::Case`], and none knows another crate of questions.

mod bootloader;
pub mod nesting;
mod page;
pub mod placement;
pub mod placements;
mod proxmox;
pub mod realtime;
pub mod signs;
mod tongue;
