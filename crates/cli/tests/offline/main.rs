//! What the program says of recordings and of plans, on any machine.

mod apply_proposal;
mod budget;
mod check;
mod check_placement;
mod command_line;
mod compare;
mod cut;
mod examples;
mod explain;
mod export;
#[cfg(feature = "full")]
mod fleet;
mod history;
mod html;
mod join;
mod option_counts;
mod options;
mod output;
mod outsiders;
mod pack;
mod plan;
mod plan_chain;
mod plan_migration;
mod program;
mod public;
mod readme;
mod report_many;
mod report_narrow;
mod report_silent;
mod schema;
mod slide;
mod symbols;
mod top;
mod words;
