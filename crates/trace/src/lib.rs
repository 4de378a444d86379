//! Kernel traces become event columns.
//!
//! ```text
//! file or directory --open--> dyn Trace { facts, lanes } --replay--> events in time order
//!                              one lane per CPU stream, cut into pieces that are decoded in parallel
//! ```
//! [`open()`] looks at the first bytes, never at the name. A [`Trace`] says what its file says of itself ([`Facts`]) and
//! hands out [`Lane`]s. A reader is asked for certain events and fields ([`Request`]); all others are only counted.
//! Fields are taken by name from the description inside the file. Damage is counted in [`Problem`](base::Problem)s.
//!
//! This crate knows formats, not KVM.

pub mod batch;
pub mod calibrate;
mod column;
pub mod ctf;
mod decoders;
pub mod error;
pub mod extract;
pub mod facts;
pub mod format;
pub mod in_place;
pub mod lane;
pub mod load;
pub mod open;
pub mod perfdata;
pub mod records;
pub mod replay;
pub mod request;
pub mod text;
pub mod tracedat;
pub mod write;

pub use batch::{Batch, Kind};
pub use error::Error;
pub use facts::{EventType, Facts, FieldKind, FieldType, Format};
pub use lane::{Lane, Pieces, Reading, Scratch, Source, Trace};
pub use open::{looks_like_trace, open};
pub use replay::{Event, Listener, Totals, replay};
pub use request::{Request, Wanted};
