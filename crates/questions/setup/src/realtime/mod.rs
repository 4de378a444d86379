//! Is this host set up to keep the latencies that real time needs, and do its settings have the effect that they are set for?
//!
//! In: snapshots of machines, with rates where there are two. Out: one Section with a row for each knob, and findings.
//! ```text
//! snapshots --host--> Host: CPUs that real time is for, command line, rates --needs--> why it is asked at all, else no answer
//!                      |-- knobs/: what is set, what is wanted -------\
//!                      '-- effects: what these CPUs did meanwhile ----> State --> row of table knobs
//!                                                                         '-----> finding, where something is to be changed
//! traces of the machine --losses--> ranking: what vCPUs lost to causes that each knob is about --> table ranking
//! ```
//! A setting is compared with what is wanted, and its effect is measured where two samples show it: a knob that is set and has no
//! effect is worse than one that is not set, because nobody looks there any more. Rows are data (`knobs/`), one file a group.

mod checks;
mod effects;
mod host;
mod knobs;
mod needs;
mod ranking;
mod section;
mod tables;

pub use section::{QUESTION, answer};
pub use tables::TABLES;

/// What its rules say of themselves.
pub fn words() -> Vec<base::rule::Words> {
    knobs::all().map(knobs::Rule::words).collect()
}
