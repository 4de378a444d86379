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
//! This crate knows formats, not KVM. Two objects are enough to begin with, a [`Trace`] and a [`Listener`] (a test holds this example,
//! `tests/readers/example.rs`):
//!
//! ```
//! use kvmscope_trace::{Event, Listener, Reading, Request, Wanted};
//!
//! /// Counts the exits of guests, and the time between the first and the last of them.
//! #[derive(Default)]
//! struct Exits {
//!     count: u64,
//!     times_ns: Option<(u64, u64)>,
//! }
//!
//! impl Listener for Exits {
//!     fn event(&mut self, event: &Event<'_>) {
//!         self.count += 1;
//!         let first_ns = self.times_ns.map_or(event.time_ns, |(first_ns, _)| first_ns);
//!         self.times_ns = Some((first_ns, event.time_ns));
//!     }
//! }
//!
//! let fixture = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/nested-svm-toy/L0/trace.dat");
//! let trace = kvmscope_trace::open(fixture.as_ref())?;
//! let exits = Wanted { names: vec!["kvm_exit".to_owned()], fields: vec![vec!["exit_reason".to_owned()]] };
//! let request = Request { events: vec![exits] };
//! let mut heard = Exits::default();
//! let totals = kvmscope_trace::replay(trace.as_ref(), &Reading { request: &request, fitted: None }, &mut heard);
//! println!("{} of {} events are exits, {:?}", heard.count, totals.events(), heard.times_ns);
//! ```

// Everybody builds on it: what it offers is documented, item by item.
#![deny(missing_docs)]

pub mod batch;
pub mod calibrate;
mod column;
pub mod ctf;
mod decoders;
mod error;
pub mod extract;
pub mod facts;
pub mod format;
pub mod in_place;
pub mod lane;
mod load;
mod mapped;
mod open;
pub mod perfdata;
pub mod records;
pub mod replay;
pub mod request;
pub mod text;
mod torn;
pub mod tracedat;
pub mod write;

pub use batch::{Batch, Kind};
pub use error::Error;
pub use facts::{EventType, Facts, FieldKind, FieldType, Format};
pub use lane::{Lane, Pieces, Reading, Scratch, Source, Trace};
pub use open::{looks_like_trace, open};
pub use replay::{Event, Listener, Totals, replay};
pub use request::{Request, Wanted};
