//! Arguments that several commands take.

mod machine;
mod narrow;
mod recordings;
mod seconds;

pub use machine::machine;
pub use narrow::Narrow;
pub use recordings::Recordings;
pub use seconds::nanoseconds;
