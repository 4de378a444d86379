//! `kvmscope apply`: make the changes that a finding proposes, so that `kvmscope undo` can undo them.
//!
//! ```text
//! check now, or --from a report or recording --> finding ID --> about this host? --> plan: what holds, what it becomes,
//!    no, or not root: the commands are printed                                       what the model expects
//!    --dry-run: ends here
//!    asked, or --yes           journal, change, read back            --> `kvmscope undo` puts it back
//!    --trial SECONDS           measured before and after             --> kept, or put back at once
//!    --trial, several IDs      each tried alone by a budget          --> all put back, and ranked
//! ```

mod ablation;
mod origin;
mod proposal;
mod trial;
mod work;

use crate::arguments::{Answered, BudgetOption, JournalPlace, OutputOptions, ReplaceOptions};
use crate::experiments::trial::{Now, SPAN, Watched, lines};
use analysis::ablation::Trial;
use analysis::facts::ablation::least_runs;
use analysis::facts::budget::{Budget, built_in};
use analysis::facts::shares::Direction;
use analysis::{About, Answers, Case, Given};
use anyhow::bail;
use base::Change;
use base::recording::Recording;
use base::shell::printable;
use clap::Args;
use lab::setting::Host;
use process::Lines;
use process::exit::{Exit, WrongUse, complain};
use process::interrupt::Interrupt;
use proposal::Proposal;
use std::io::{BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use work::Work;

/// Changes are made on the machine that this program runs on.
const ROOT: &str = "/";

/// Make the changes that a finding proposes
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    kvmscope check --json > report.json\n  \
    kvmscope apply PLC-OVERLAP@web --from report.json --dry-run\n  \
    kvmscope apply PLC-OVERLAP@web --from report.json\n  \
    kvmscope apply PLC-OVERLAP@web --trial\n  \
    kvmscope apply PLC-IRQ@irq24 --trial 300 --yes\n  \
    kvmscope apply LAT-WORKQUEUE --trial --budget vnf.toml\n  \
    kvmscope apply 'LAT-*' --trial --budget vnf.toml --yes\n  \
    kvmscope apply 'LAT-*' --trial 600 --yes --json\n  \
    kvmscope undo --list\n\n\
    Exit status: 0 done, or undone because it did not help; 1 nothing was changed, or no verdict was possible;\n\
    2 wrong usage.")]
pub(crate) struct Apply {
    /// A finding, such as PLC-OVERLAP@web; with --trial several, or 'LAT-*' for all ids with that prefix, each tried separately
    #[arg(value_name = "ID", required = true)]
    ids: Vec<String>,
    /// Source of the finding: output of `check --json` or `report --json`, or a recording [default: this host, now]
    #[arg(long, value_name = "FILE|RECORDING")]
    from: Option<PathBuf>,
    /// Show the plan and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Make the change without asking
    #[arg(long)]
    yes: bool,
    /// Measure for this long before and after the change (default 60 s), and keep the change only if it helped
    #[arg(
        long,
        value_name = "SECONDS",
        num_args = 0..=1,
        default_missing_value = "60",
        value_parser = clap::value_parser!(u64).range(1..=86_400),
        conflicts_with = "dry_run"
    )]
    trial: Option<u64>,
    /// Number of recordings before and after the change, in a trial by a budget [default: 8, or as many
    /// as it takes]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=100), requires = "trial")]
    runs: Option<u32>,
    #[command(flatten)]
    budget: BudgetOption,
    #[command(flatten)]
    place: JournalPlace,
    #[command(flatten)]
    replace: ReplaceOptions,
    #[command(flatten)]
    output: OutputOptions,
}

/// How changes are tried by a budget.
struct Tries {
    /// How long without a change, and as long with it.
    seconds: Duration,
    /// In so many runs each.
    runs: u32,
}

impl Tries {
    /// How long a run is.
    fn length(&self) -> Duration {
        self.seconds / self.runs
    }
}

/// Runs each way, where the user does not say; five are the least that can show an effect of one change by five numbers.
const RUNS: u32 = 8;

/// The budget by which real-time settings are tried, where the user names none.
const BUDGET: &str = "kvm4nfv-2015";

impl Apply {
    /// Plans, asks, changes.
    pub(crate) fn run(&self) -> anyhow::Result<Exit> {
        let interrupt = Interrupt::watch()?;
        let budget = self.budget()?;
        if budget.is_none() && (self.output.json() || self.output.writes_files()) {
            bail!(WrongUse(
                "--json, --csv and --html show what a trial by a budget measured: add --trial and --budget".to_owned()
            ));
        }
        self.output.check(1, self.replace.force)?;
        let proposals = Proposal::find(&self.ids, self.from.as_deref(), budget.as_ref(), &interrupt)?;
        match (proposals.as_slice(), &self.ids[..]) {
            ([proposal], [id]) if !proposal::is_pattern(id) => self.one(proposal, budget.as_ref(), &interrupt),
            (several, _) => self.several(several, budget.as_ref(), &interrupt),
        }
    }

    /// The budget that a trial is judged by: the user's, or for settings of real time the published one. `None`: it is judged by
    /// who waits for a CPU.
    fn budget(&self) -> anyhow::Result<Option<Budget>> {
        let named = self.budget.read()?;
        if self.trial.is_none() && named.is_some() {
            bail!(WrongUse("a budget judges a trial: add --trial, or leave --budget out".to_owned()));
        }
        let of_latency = self.trial.is_some() && self.ids.iter().all(|id| id.starts_with("LAT-"));
        let budget = named.or_else(|| built_in(BUDGET).filter(|_| of_latency));
        if budget.is_none() && self.runs.is_some() {
            bail!(WrongUse("--runs is of trials that a budget judges: add --budget".to_owned()));
        }
        Ok(budget)
    }

    /// How `changes` changes are tried by `budget`.
    fn tries(&self, seconds: u64, budget: &Budget, changes: usize) -> Tries {
        let least = u32::try_from(least_runs(budget, changes)).unwrap_or(RUNS);
        Tries { seconds: Duration::from_secs(seconds), runs: self.runs.unwrap_or(RUNS.max(least)) }
    }

    /// Makes, or tries, the changes of one finding.
    fn one(&self, proposal: &Proposal, budget: Option<&Budget>, interrupt: &Interrupt) -> anyhow::Result<Exit> {
        let mut lines = self.lines();
        let when = proposal.origin.created.as_ref().map_or_else(String::new, |when| format!(" (recorded {when})"));
        lines.say(printable(&format!("{}: {}{when}", self.ids[0], proposal.title)));
        if proposal.changes.is_empty() {
            bail!("{}; run the commands yourself: {}", proposal.unmade(), proposal.commands());
        }
        if let Some(why) = proposal.origin.refusal(&host::identity(Path::new("/")), &proposal.changes) {
            print(&proposal.changes, &mut lines);
            bail!("nothing was changed: {why}; run the commands above on the right machine");
        }
        if !rustix::process::geteuid().is_root() {
            print(&proposal.changes, &mut lines);
            if self.dry_run {
                return lines.end().map(|()| Exit::Answered);
            }
            bail!("changing this host needs root: run the commands above, or run this as root");
        }
        let planned = Work::plan(Host::at(Path::new(ROOT)), self.place.journal(), &proposal.changes, lines);
        let mut work = planned.map_err(|(error, _)| error)?;
        let exit = self.work(&mut work, budget, interrupt)?;
        work.lines.end()?;
        Ok(exit)
    }

    fn work(&self, work: &mut Work<'_>, budget: Option<&Budget>, interrupt: &Interrupt) -> anyhow::Result<Exit> {
        if work.altered.is_empty() {
            work.lines.say("  nothing to change");
            return Ok(Exit::Answered);
        }
        let (watched, direction) = match expected(work) {
            // What cannot be modelled can be done; only a trial by who waits needs to know whom it concerns.
            Err(error) if self.trial.is_none() || budget.is_some() => {
                work.lines.say(format_args!("  not modelled: {error:#}"));
                (Watched::default(), Direction::Same)
            }
            expected => expected?,
        };
        if self.dry_run {
            return Ok(Exit::Answered);
        }
        if direction == Direction::Worse && self.trial.is_none() {
            bail!(
                "nothing was changed, because the model predicts that it makes things worse; `--trial 60` measures \
                 it and keeps it only if it helps"
            );
        }
        if !self.agreed("Make these changes?")? {
            work.lines.say("  nothing was changed");
            return Ok(Exit::NoAnswer);
        }
        // What is changed from here on is either whole, or put back by the trial.
        let stop = interrupt.hold();
        match (self.trial, budget) {
            (None, _) => keep(work, &stop),
            (Some(seconds), None) => trial::trial(work, &watched, Duration::from_secs(seconds), &stop),
            (Some(seconds), Some(budget)) => {
                let tries = self.tries(seconds, budget, 1);
                let (exit, trial) = ablation::one(work, &self.ids[0], budget, &tries, &stop)?;
                self.answered(exit, trial, interrupt)
            }
        }
    }

    /// Tries the changes of several findings, each alone.
    fn several(&self, proposals: &[Proposal], budget: Option<&Budget>, interrupt: &Interrupt) -> anyhow::Result<Exit> {
        let Some((seconds, budget)) = self.trial.zip(budget) else {
            bail!(WrongUse(
                "several findings can only be tried: add --trial, and --budget unless all are LAT- findings".to_owned()
            ));
        };
        let mut lines = self.lines();
        let (mut meant, here) = (Vec::new(), host::identity(Path::new("/")));
        for proposal in proposals {
            let why = match proposal.changes.is_empty() {
                true => Some(proposal.unmade()),
                false => proposal.origin.refusal(&here, &proposal.changes),
            };
            lines.say(printable(&format!("{}: {}", proposal.id, proposal.title)));
            match why {
                Some(why) => lines.say(format_args!("  not tried: {why}")),
                None => {
                    proposal.changes.iter().for_each(|change| lines.say(format_args!("  {}", change.command())));
                    meant.push(proposal);
                }
            }
        }
        if meant.is_empty() {
            bail!("none of these changes can be tried on this host");
        }
        if !rustix::process::geteuid().is_root() {
            bail!("changing this host needs root; nothing was changed");
        }
        let tries = self.tries(seconds, budget, meant.len());
        let takes = 2 * seconds * meant.len() as u64;
        if !self.agreed(&format!("Try each of them, {takes} s in all?"))? {
            lines.say("nothing was changed");
            return lines.end().map(|()| Exit::NoAnswer);
        }
        let stop = interrupt.hold();
        let (exit, trial) = ablation::several(&meant, budget, &tries, || self.place.journal(), (&stop, &mut lines))?;
        lines.end()?;
        self.answered(exit, trial, interrupt)
    }

    /// Where lines go while something is tried.
    fn lines(&self) -> Lines {
        Lines::new(self.output.json() || self.output.page_is_printed())
    }

    /// Shows what a trial found, if it came to an end.
    fn answered(&self, exit: Exit, trial: Option<Trial>, interrupt: &Interrupt) -> anyhow::Result<Exit> {
        let Some(trial) = trial else { return Ok(exit) };
        let recording = Recording::of_nothing(concat!("kvmscope apply ", env!("CARGO_PKG_VERSION")));
        let case = Case::new(analysis::open(recording)?, Given::query(trial));
        let Answers { sections, problems, failed } = Answers::about(&case, &[About::Trial]);
        failed.into_iter().for_each(|error| complain(&error.into()));
        let answered = Answered::of(case.input().recording.clone(), sections, problems);
        let shown = self.output.end("apply", &[answered], interrupt)?;
        Ok(if matches!(exit, Exit::Answered) { shown } else { exit })
    }

    fn agreed(&self, question: &str) -> anyhow::Result<bool> {
        if self.yes {
            return Ok(true);
        }
        if !std::io::stdin().is_terminal() {
            bail!(WrongUse("no terminal to ask on; --yes makes the change without asking".to_owned()));
        }
        let mut stderr = std::io::stderr();
        write!(stderr, "{question} [y/N] ")?;
        stderr.flush()?;
        let mut answer = String::new();
        std::io::stdin().lock().read_line(&mut answer)?;
        Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
    }
}

/// The commands of changes that are not made here, and those that undo them.
fn print(changes: &[Change], lines: &mut Lines) {
    lines.say("  run as root:");
    changes.iter().for_each(|change| lines.say(format_args!("    {}", change.command())));
    lines.say("  to undo:");
    changes.iter().for_each(|change| lines.say(format_args!("    {}", change.undo_or_why())));
}

fn keep(work: &mut Work<'_>, stop: &AtomicBool) -> anyhow::Result<Exit> {
    let Some(entry) = work.make(stop)? else { return Ok(Exit::Interrupted) };
    work.lines.say(format_args!("  done and verified; `kvmscope undo {}` reverts it", entry.id));
    Ok(Exit::Answered)
}

/// Whom the steps concern; what the model expects of them is said.
fn expected(work: &mut Work<'_>) -> anyhow::Result<(Watched, Direction)> {
    let now = Now::of(Path::new(ROOT), SPAN)?;
    let watched = Watched::of(&work.altered, &work.host, &now.loads)?;
    let expected = crate::experiments::trial::expected(&watched, &now);
    lines(&expected).iter().for_each(|line| work.lines.say(format_args!("  modelled: {line}")));
    Ok((watched, expected.direction()))
}
