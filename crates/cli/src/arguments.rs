//! Arguments that several commands take.

mod narrow;
mod recordings;
mod seconds;

pub use narrow::Narrow;
pub use recordings::Recordings;
pub use seconds::nanoseconds;
