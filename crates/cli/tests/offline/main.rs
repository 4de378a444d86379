//! What the program says of recordings and of plans, on any machine.

mod api;
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
mod floor;
mod history;
mod html;
mod join;
mod layers;
mod option_counts;
mod options;
mod output;
mod outsiders;
mod pack;
mod patience;
mod plan;
mod plan_chain;
mod plan_migration;
mod program;
mod readme;
mod report_many;
mod report_narrow;
mod report_silent;
mod schema;
mod symbols;
mod words;
mod workspace;
