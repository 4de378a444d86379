//! What threads of a machine did, event by event: who had which CPU, in which state, at which level of nesting.
//!
//! ```text
//! trace events --events--> walk (who is on which CPU) --> thread (one state machine each) --> Sink
//!                            |--> stages (interrupts and timers on their way to a guest)
//! ```
//! In: an opened trace ([`Part`]). Out: whatever a [`Sink`] keeps of the states, exits and chains that it receives. Nothing is
//! summed up here, and nothing is known of recordings with several machines.

mod axis;
pub mod events;
pub mod faults;
pub mod kernel_threads;
pub mod keyed;
mod part;
pub mod stages;
pub mod state;
pub mod thread;
mod walk;

pub use axis::Axis;
pub use events::{Isa, Reason, Role};
pub use part::Part;
pub use state::{State, TracedLevel};
pub use walk::{
    Interruption, LONGEST_NS, Preemptor, Sink, Waker, Walk, backfill, continued, cut_from, replay, samples, vcpu_names,
};
