//! Arguments that several commands take.

mod fail_on;
mod journal;
mod machine;
mod narrow;
mod recordings;
mod seconds;
mod symbols;

pub use fail_on::FailOn;
pub use journal::JournalPlace;
pub use machine::machine;
pub use narrow::Narrow;
pub use recordings::Recordings;
pub use seconds::nanoseconds;
pub use symbols::SymbolFiles;
