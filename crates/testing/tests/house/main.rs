//! Rules that hold over all sources of this repository: who uses whom, what is public, what tests wait for.

mod api;
mod floor;
mod layers;
mod patience;
mod schemas;
mod workspace;
