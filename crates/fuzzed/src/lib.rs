//! What the fuzz targets do with their bytes, apart from libFuzzer: `fuzz/targets` calls each with inputs that are mutated under its
//! coverage, and the tests of this crate replay the seeds, damaged a little, on any machine.
//!
//! A parser must survive any bytes. Each function takes [`Room`] for its files and panics where a promise is broken.

mod answer;
mod archive;
mod bench;
mod brought;
mod budget;
mod chain;
mod ctf2_metadata;
mod ctf_metadata;
mod ctf_stream;
mod cut_from;
mod domain_xml;
mod event_format;
mod http;
mod journal;
mod live;
mod manifest;
mod moved;
mod ovsdb;
mod parquet;
mod paste;
mod perfdata;
mod polled;
mod qmp;
mod room;
mod samples;
#[cfg(feature = "seeds")]
mod seeds;
mod sosreport;
mod symbols;
mod text;
mod tracedat;

pub use answer::answer;
pub use archive::archive;
pub use bench::bench;
pub use brought::brought;
pub use budget::budget;
pub use chain::chain;
pub use ctf_metadata::ctf_metadata;
pub use ctf_stream::ctf_stream;
pub use ctf2_metadata::ctf2_metadata;
pub use cut_from::cut_from;
pub use domain_xml::domain_xml;
pub use event_format::event_format;
pub use http::http;
pub use journal::journal;
pub use live::live;
pub use manifest::manifest;
pub use moved::moved;
pub use ovsdb::ovsdb;
pub use parquet::parquet;
pub use paste::paste;
pub use perfdata::perfdata;
pub use polled::polled;
pub use qmp::qmp;
pub use room::Room;
pub use samples::samples;
#[cfg(feature = "seeds")]
pub use seeds::{Seed, seeds};
pub use sosreport::sosreport;
pub use symbols::symbols;
pub use text::text;
pub use tracedat::tracedat;
