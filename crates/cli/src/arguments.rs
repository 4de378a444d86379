//! Arguments that several commands take.

mod brought;
mod budget;
mod destination;
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
mod words;

pub(crate) use brought::{brought, opened};
pub(crate) use budget::{BudgetOption, WorkloadOption, read_budget, read_budget_text};
pub(crate) use destination::DestinationOptions;
pub(crate) use input::{Stdin, is_dash};
pub(crate) use journal::JournalPlace;
pub(crate) use level::machine_level;
pub(crate) use machine::machine;
pub(crate) use narrow::Narrow;
pub(crate) use output::{Answered, OutputOptions, ReplaceOptions};
pub(crate) use recordings::Recordings;
pub(crate) use seconds::{duration, instant, kept, length, span};
pub(crate) use survey::SurveyOptions;
pub(crate) use symbols::SymbolFiles;
#[cfg(feature = "labs")]
pub(crate) use words::described;
pub(crate) use words::named;
