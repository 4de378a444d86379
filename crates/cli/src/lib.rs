//! `kvmscope`: where KVM hosts lose performance, and what to change.
//!
//! This file is the table of contents: a command per file, the arguments that several share in `arguments/`, and the
//! exit codes in the crate `process`. stdout is the answer alone; everything else goes to stderr.

mod agent;
mod apply;
mod arguments;
#[cfg(all(feature = "labs", target_arch = "x86_64", target_os = "linux"))]
mod bench;
mod budget;
mod check;
mod clocks;
mod compare;
mod completed;
mod completions;
mod cut;
mod experiments;
mod explain;
mod export;
mod fleet;
mod groups;
mod history;
mod join;
#[cfg(all(feature = "labs", target_arch = "x86_64", target_os = "linux"))]
mod lab;
mod man;
mod pack;
mod plan;
mod record;
mod report;
mod schema;
mod serve;
#[cfg(all(not(feature = "labs"), target_arch = "x86_64", target_os = "linux"))]
mod slim;
mod snapshot;
mod top;
mod undo;

use base::plain::{misleads, plain_lines};
#[cfg(all(feature = "labs", target_arch = "x86_64", target_os = "linux"))]
use bench::Bench;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
#[cfg(all(feature = "labs", target_arch = "x86_64", target_os = "linux"))]
use lab::Lab;
use process::exit::{Exit, WrongUse};
#[cfg(all(not(feature = "labs"), target_arch = "x86_64", target_os = "linux"))]
use slim::{Bench, Lab};
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

/// Where the time of every vCPU went, by level, and what to change.
#[derive(Parser)]
#[command(name = "kvmscope", version, max_term_width = 100)]
#[command(override_usage = "kvmscope <COMMAND>\n       kvmscope FILE...   (as kvmscope report FILE...)")]
#[command(after_help = "Start with:\n  kvmscope record --seconds 10 -o web\n  kvmscope report web\n\nOr use what you \
    have, a trace of trace-cmd, LTTng or perf, a paste, an attachment:\n  kvmscope trace.dat\n  kvmscope ticket.txt")]
struct Program {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Report(Box<report::Report>),
    Cut(cut::Cut),
    Record(record::Record),
    Undo(undo::Undo),
    Snapshot(snapshot::Snapshot),
    Join(join::Join),
    Pack(pack::Pack),
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    Lab(Lab),
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    Bench(Bench),
    Export(Box<export::Export>),
    Serve(serve::Serve),
    Check(check::Check),
    Explain(explain::Explain),
    Budget(budget::Budget),
    Clocks(clocks::Clocks),
    Apply(apply::Apply),
    #[command(alias = "diff")]
    Compare(compare::Compare),
    History(history::History),
    Agent(Box<agent::Agent>),
    Fleet(fleet::Fleet),
    Plan(plan::Plan),
    Top(Box<top::Top>),
    Schema(schema::Schema),
    Completions(completions::Completions),
    #[command(hide = true)]
    Man(man::Manual),
}

/// The program: its arguments are those of the process.
pub fn main() -> ExitCode {
    completions::answer();
    let arguments: Vec<OsString> = std::env::args_os().collect();
    if let Some(word) = unexpanded(&arguments) {
        let text = format!("the shell did not expand the ~ in {word}: use $HOME instead");
        return Exit::from_error(WrongUse(text).into()).into();
    }
    let outcome = match parsed(with_command(arguments)).command {
        Command::Report(report) => report.run(),
        Command::Cut(cut) => cut.run(),
        Command::Record(record) => record.run(),
        Command::Undo(undo) => undo.run(),
        Command::Snapshot(snapshot) => snapshot.run(),
        Command::Join(join) => join.run(),
        Command::Pack(pack) => pack.run(),
        #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
        Command::Lab(lab) => lab.run(),
        #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
        Command::Bench(bench) => bench.run(),
        Command::Export(export) => export.run(),
        Command::Serve(serve) => serve.run(),
        Command::Check(check) => check.run(),
        Command::Explain(explain) => explain.run(),
        Command::Budget(budget) => budget.run(),
        Command::Clocks(clocks) => clocks.run(),
        Command::Apply(apply) => apply.run(),
        Command::Compare(compare) => compare.run(),
        Command::History(history) => history.run(),
        Command::Agent(agent) => agent.run(),
        Command::Fleet(fleet) => fleet.run(),
        Command::Plan(plan) => plan.run(),
        Command::Top(top) => top.run(),
        Command::Schema(schema) => schema.run(),
        Command::Completions(completions) => completions.run(),
        Command::Man(manual) => manual.run(),
    };
    outcome.unwrap_or_else(Exit::from_error).into()
}

/// The command that is asked for, or the end with what is wrong. What clap repeats of a word is without what misleads, also where that
/// is a line's end.
fn parsed(arguments: Vec<OsString>) -> Program {
    let mut program = groups::grouped(Program::command());
    let matches = program.try_get_matches_from_mut(&arguments);
    matches.and_then(|matches| Program::from_arg_matches(&matches)).unwrap_or_else(|error| {
        let words = arguments.iter().map(|word| word.to_string_lossy());
        // Of `--option=value` clap repeats either side.
        let words: Vec<String> =
            words.flat_map(|word| word.split('=').map(str::to_owned).collect::<Vec<_>>()).collect();
        let misleading: Vec<&String> =
            words.iter().filter(|word| !word.trim().is_empty() && word.contains(misleads)).collect();
        if misleading.is_empty() {
            error.exit()
        }
        let rendered = error.render().to_string();
        let said = misleading
            .iter()
            .fold(rendered, |said, word| said.replace(word.as_str(), &word.chars().map(escaped).collect::<String>()));
        // Of a sequence for a terminal clap repeats the rest, so that the word is not found.
        eprint!("{}", plain_lines(&said).replace("\nkvmscope: ", "\n  kvmscope: "));
        std::process::exit(error.exit_code())
    })
}

/// What misleads as Rust writes it: `\u{1b}`.
fn escaped(letter: char) -> String {
    if misleads(letter) { letter.escape_default().collect() } else { letter.to_string() }
}

/// A path below a directory called `~`, which nobody means: shells expand it neither in quotes nor behind `--html=`.
fn unexpanded(arguments: &[OsString]) -> Option<&str> {
    let is_home = |path: &str| path == "~" || path.starts_with("~/");
    let of_option = |word: &str| word.starts_with("--") && word.split_once('=').is_some_and(|(_, path)| is_home(path));
    let ours = arguments.iter().filter_map(|word| word.to_str()).take_while(|word| *word != "--");
    ours.skip(1).find(|word| is_home(word) || of_option(word))
}

/// The same arguments, behind `report` where the user named no command and something that is there: `kvmscope paste.txt`.
fn with_command(mut arguments: Vec<OsString>) -> Vec<OsString> {
    let is_command = |word: &OsString| {
        let known = Program::command();
        let is_it = known.get_subcommands().any(|command| command.get_name() == word);
        is_it || word == "help"
    };
    let given = arguments.get(1..).unwrap_or_default();
    let is_there = |word: &OsString| word == "-" || Path::new(word).exists();
    if !given.iter().any(is_command) && given.iter().any(is_there) {
        arguments.insert(1, "report".into());
    }
    arguments
}
