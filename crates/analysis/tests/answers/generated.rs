//! Does every format give the answer that the generator knows to be true?
//!
//! The generator's stories are written in every format, opened again and analysed. What a format cannot tell is declared
//! in `limits.rs`; everything else must be equal to the nanosecond. `KVMSCOPE_TORTURE=1` tries many times as many.

mod answer;
mod equal;
mod limits;
mod losses;
mod lost;
mod missing;
mod no_isa;
mod said;
mod unseen;
