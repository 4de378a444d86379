//! `kvmscope apply`: make the changes that a finding proposes, so that `kvmscope undo` can undo them.
//!
//! ```text
//! check now, or --from a report or recording --> finding ID --> about this host? --> plan: what holds, what it becomes,
//!    no, or not root: the commands are printed                                       what the model expects
//!    --dry-run: ends here
//!    asked, or --yes           journal, change, read back            --> `kvmscope undo` puts it back
//!    --trial SECONDS           measured before and after             --> kept, or put back at once
//! ```

mod origin;
mod proposal;
mod trial;
mod work;

use crate::arguments::JournalPlace;
use crate::exit::{Exit, WrongUse};
use crate::experiments::trial::{Now, SPAN, Watched, lines};
use crate::interrupt::Interrupt;
use crate::lines::Lines;
use analysis::facts::shares::Direction;
use anyhow::bail;
use base::Change;
use base::shell::printable;
use clap::Args;
use lab::setting::Host;
use proposal::Proposal;
use std::io::{BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use work::Work;

/// Changes are made on the machine that this program runs on.
const ROOT: &str = "/";

/// Make the changes that a finding proposes; `kvmscope undo` reverts them
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    kvmscope check --json > report.json\n  \
    kvmscope apply PLC-OVERLAP@web --from report.json --dry-run\n  \
    kvmscope apply PLC-OVERLAP@web --from report.json\n  \
    kvmscope apply PLC-OVERLAP@web --trial\n  \
    kvmscope apply PLC-IRQ@irq24 --trial 300 --yes\n  \
    kvmscope undo --list\n\n\
    Exit status: 0 done, or undone because it did not help; 1 nothing was changed, or no verdict was possible;\n\
    2 wrong usage.")]
pub struct Apply {
    /// The finding, such as PLC-OVERLAP@web
    #[arg(value_name = "ID")]
    id: String,
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
    #[command(flatten)]
    place: JournalPlace,
}

impl Apply {
    /// Plans, asks, changes.
    pub fn run(&self) -> anyhow::Result<Exit> {
        let interrupt = Interrupt::watch()?;
        let proposal = Proposal::find(&self.id, self.from.as_deref(), &interrupt)?;
        let mut lines = Lines::default();
        let when = proposal.origin.created.as_ref().map_or_else(String::new, |when| format!(" (recorded {when})"));
        lines.say(printable(&format!("{}: {}{when}", self.id, proposal.title)));
        if proposal.changes.is_empty() {
            let commands = if proposal.fix.is_empty() { "none".to_owned() } else { proposal.fix.join("; ") };
            bail!("kvmscope cannot make the change of {}; run the commands yourself: {commands}", self.id);
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
        let mut work = Work::plan(Host::at(Path::new(ROOT)), self.place.journal(), &proposal.changes, lines)?;
        let exit = self.work(&mut work, &interrupt)?;
        work.lines.end()?;
        Ok(exit)
    }

    fn work(&self, work: &mut Work<'_>, interrupt: &Interrupt) -> anyhow::Result<Exit> {
        if work.altered.is_empty() {
            work.lines.say("  nothing to change");
            return Ok(Exit::Answered);
        }
        let (watched, direction) = match expected(work) {
            // What cannot be modelled can be done; only a trial needs to know whom it concerns.
            Err(error) if self.trial.is_none() => {
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
        if !self.agreed()? {
            work.lines.say("  nothing was changed");
            return Ok(Exit::NoAnswer);
        }
        // What is changed from here on is either whole, or put back by the trial.
        let stop = interrupt.hold();
        match self.trial {
            None => keep(work, &stop),
            Some(seconds) => trial::trial(work, &watched, Duration::from_secs(seconds), &stop),
        }
    }

    fn agreed(&self) -> anyhow::Result<bool> {
        if self.yes {
            return Ok(true);
        }
        if !std::io::stdin().is_terminal() {
            bail!(WrongUse("no terminal to ask on; --yes makes the change without asking".to_owned()));
        }
        let mut stderr = std::io::stderr();
        write!(stderr, "Make these changes? [y/N] ")?;
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
