//! Rules that hold over all sources and pages of this repository: who uses whom, what is public, what tests wait for, where links lead.

mod api;
mod floor;
mod layers;
mod pages;
mod patience;
mod schemas;
mod workspace;
