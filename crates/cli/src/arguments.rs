//! Arguments that several commands take.

mod destination;
mod fail_on;
mod files;
mod input;
mod journal;
mod level;
mod machine;
mod narrow;
mod recordings;
mod seconds;
mod symbols;

pub use destination::DestinationOptions;
pub use fail_on::FailOn;
pub use files::FileOptions;
pub use input::{Stdin, is_dash};
pub use journal::JournalPlace;
pub use level::machine_level;
pub use machine::machine;
pub use narrow::Narrow;
pub use recordings::{Recordings, opened};
pub use seconds::{instant, length, span};
pub use symbols::SymbolFiles;
