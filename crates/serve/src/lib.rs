//! Recordings of a folder, over HTTP: what the dashboard shows and other programs ask for.
//!
//! ```text
//! request --guard--> may it ask? --routes--> what does it ask?
//!                                    |  folder: which recording is that, and does it lie in the folder?
//!                                    |  cache, opened, narrowed, compared: its answers and its timeline, computed once
//!                                    |  reading: how far it is   brief: of these, what a list shows
//!                                    v
//!                                  live: a recording that is being made, until it ends
//!                                  chains | events | metrics | page      pure: numbers become bytes
//! ```
//! In: a folder, an address, perhaps a token ([`Options`]). Out: a [`Server`] that answers until it is stopped. Nothing
//! but `--allow-upload` writes, and nothing outside the folder is read. No other crate is asynchronous: what computes
//! runs on threads of its own.

mod brief;
mod cache;
mod chains;
mod compared;
mod connections;
mod error;
mod events;
mod exposition;
mod folder;
mod guard;
mod id;
mod live;
mod metrics;
mod narrowed;
mod opened;
mod page;
mod reading;
mod routes;
mod server;
mod upload;

pub use error::Error;
pub use exposition::{Exposition, Listen};
pub use metrics::escaped;
pub use server::{Options, Server};
