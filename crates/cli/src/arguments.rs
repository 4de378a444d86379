//! Arguments that several commands take.

mod budget;
mod destination;
mod fail_on;
mod html;
mod input;
mod journal;
mod level;
mod machine;
mod narrow;
mod output;
mod recordings;
mod seconds;
mod survey;
mod symbols;

pub use budget::{BudgetOption, WorkloadOption, read_budget, read_budget_text};
pub use destination::DestinationOptions;
pub use fail_on::FailOn;
pub use input::{Stdin, is_dash};
pub use journal::JournalPlace;
pub use level::machine_level;
pub use machine::machine;
pub use narrow::Narrow;
pub use output::{Answered, OutputOptions, ReplaceOptions};
pub use recordings::{Recordings, Wanted, opened};
pub use seconds::{duration, instant, length, span};
pub use survey::SurveyOptions;
pub use symbols::SymbolFiles;
