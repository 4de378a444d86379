//! What several questions need: which events play which role, what exit codes mean, and who ran when.
//!
//! ```text
//! trace events --roles--> walk (who is on which CPU) --> machine (one per thread) --> Sink (a question's sums)
//! ```

pub mod align;
pub mod cut_from;
pub mod details;
pub mod interrupts;
pub mod keyed;
pub mod launches;
pub mod machine;
pub mod profile;
pub mod ranks;
pub mod reasons;
pub mod roles;
pub mod rule;
pub mod settle;
pub mod spread;
pub mod starvation;
pub mod state;
pub mod vcpu_names;
pub mod vendor;
pub mod walk;

pub use reasons::{Isa, Reason};
pub use roles::Role;
pub use rule::{Hit, Rule};
pub use state::{Lv, State};
pub use walk::{Preemptor, Sink, Walk};
