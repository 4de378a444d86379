//! `kvmscope apply`: make the changes that a finding proposes, with a way back.
//!
//! ```text
//! check now, or --from a report or recording --> finding ID --> plan: what holds, what it becomes, what the model expects
//!    --dry-run: ends here      not root: the commands to type
//!    asked, or --yes           journal, change, read back            --> `kvmscope undo` puts it back
//!    --trial SECONDS           measured before and after             --> kept, or put back at once
//! ```

mod proposal;

use crate::arguments::JournalPlace;
use crate::exit::{Exit, WrongUse, complain};
use crate::interrupt::Interrupt;
use crate::plays::trial::{self, Outcome, Watched};
use analysis::contention::Direction;
use anyhow::{anyhow, bail};
use base::Change;
use base::number::many;
use clap::Args;
use lab::apply::{Host, Prepared, make};
use lab::journal::{Entry, Reverted, Step};
use proposal::Proposal;
use std::io::{BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Make the changes that a finding proposes, noted so that `kvmscope undo` puts them back
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    kvmscope check --json > report.json\n  \
    kvmscope apply PLC-OVERLAP@web --from report.json --dry-run\n  \
    kvmscope apply PLC-OVERLAP@web --from report.json\n  \
    kvmscope apply PLC-OVERLAP@web --trial\n  \
    kvmscope apply PLC-IRQ@irq24 --trial 300 --yes\n  \
    kvmscope undo --list\n\n\
    Exit status: 0 done, or put back because it did not help; 1 nothing was changed, or nothing can be said of it;\n\
    2 wrong use.")]
pub struct Apply {
    /// The finding, such as PLC-OVERLAP@web
    #[arg(value_name = "ID")]
    id: String,
    /// Where the finding stands: output of `check --json` or `report --json`, or a recording [default: this host, now]
    #[arg(long, value_name = "FILE|RECORDING")]
    from: Option<PathBuf>,
    /// Show the plan, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Do not ask
    #[arg(long)]
    yes: bool,
    /// Measure so long before and so long after, a minute if no number follows, and keep the change only if it helped
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
        println!("{}: {}", self.id, proposal.title);
        if proposal.changes.is_empty() {
            let commands = if proposal.fix.is_empty() { "nothing".to_owned() } else { proposal.fix.join("; ") };
            bail!("{} has no change that a program makes; what it names for you to do: {commands}", self.id);
        }
        if !rustix::process::geteuid().is_root() {
            println!("  type as root:");
            proposal.changes.iter().for_each(|change| println!("    {}", change.command()));
            println!("  and to undo it:");
            proposal.changes.iter().filter_map(Change::undo).for_each(|command| println!("    {command}"));
            if self.dry_run {
                return Ok(Exit::Answered);
            }
            bail!("changing this host needs root; type the commands above, or run this as root");
        }
        let host = Host::at(Path::new("/"));
        let mut steps = Vec::new();
        for change in &proposal.changes {
            match host.prepare(change)? {
                Prepared::Steps(more) => steps.extend(more),
                Prepared::PassedOver(why) => println!("  passed over: {why}"),
            }
        }
        if steps.is_empty() {
            println!("  nothing is left to change");
            return Ok(Exit::Answered);
        }
        steps.iter().for_each(|step| println!("  {step}"));
        let (watched, direction) = match expected(&steps, &host) {
            // What cannot be modelled can be done; only a trial needs to know whom it concerns.
            Err(error) if self.trial.is_none() => {
                println!("  modelled: nothing: {error:#}");
                (Watched::default(), Direction::Same)
            }
            expected => expected?,
        };
        if self.dry_run {
            return Ok(Exit::Answered);
        }
        if direction == Direction::Worse && self.trial.is_none() {
            bail!(
                "nothing was changed, because the model expects it to get worse; `--trial 60` measures it and keeps \
                 it only if it helps"
            );
        }
        if !self.agreed()? {
            println!("  nothing was changed");
            return Ok(Exit::NoAnswer);
        }
        // What is changed from here on is either whole, or put back by the trial.
        let stop = interrupt.hold();
        match self.trial {
            None => self.keep(&host.proc, &steps),
            Some(seconds) => self.trial(&host.proc, &steps, &watched, Duration::from_secs(seconds), &stop),
        }
    }

    fn agreed(&self) -> anyhow::Result<bool> {
        if self.yes {
            return Ok(true);
        }
        if !std::io::stdin().is_terminal() {
            bail!(WrongUse("there is no terminal to ask on; --yes makes the change without asking".to_owned()));
        }
        let mut stderr = std::io::stderr();
        write!(stderr, "Make these changes? [y/N] ")?;
        stderr.flush()?;
        let mut answer = String::new();
        std::io::stdin().lock().read_line(&mut answer)?;
        Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
    }

    fn keep(&self, proc: &Path, steps: &[Step]) -> anyhow::Result<Exit> {
        let (entry, passed_over) = self.change(proc, steps)?;
        passed_over.iter().for_each(|why| println!("  passed over: {why}"));
        println!("  done, and read back; `kvmscope undo {}` puts it back", entry.id);
        Ok(Exit::Answered)
    }

    fn trial(
        &self,
        proc: &Path,
        steps: &[Step],
        watched: &Watched,
        span: Duration,
        stop: &AtomicBool,
    ) -> anyhow::Result<Exit> {
        watched.something()?;
        println!("  watched: {watched}");
        waiting(span, "as it is; Ctrl-C ends it and changes nothing");
        let Some(before) = trial::measure(proc, watched, span, stop)? else {
            println!("  ended before it began; nothing was changed");
            return Ok(Exit::Interrupted);
        };
        let (entry, passed_over) = self.change(proc, steps)?;
        passed_over.iter().for_each(|why| println!("  passed over: {why}"));
        waiting(span, "with the change; Ctrl-C puts it back");
        let after = match trial::rest(trial::settle(span), stop) {
            true => Ok(None),
            false => trial::measure(proc, watched, span, stop),
        };
        let outcome = match after {
            Ok(Some(after)) => {
                let (before, after, ended) = trial::sums(&before, &after);
                if ended > 0 {
                    println!("  measured: {} ended meanwhile and did not count", many(ended as u64, "watched thread"));
                }
                trial::drift(&before).iter().for_each(|drift| println!("  measured: {drift}"));
                Outcome::of(&before, &after)
            }
            Ok(None) => Outcome::Interrupted,
            Err(error) => {
                put_back(entry, proc)?;
                return Err(error);
            }
        };
        println!("  measured: {}", outcome.told(watched.subject()));
        let others: Vec<&Step> = steps.iter().filter(|step| !step.holds(proc)).collect();
        others.iter().for_each(|step| println!("  changed by somebody else meanwhile: {step}"));
        match outcome {
            Outcome::Helped(_) | Outcome::DidNotHelp(_) if !others.is_empty() => {
                println!(
                    "  so this says nothing of the change; find who sets it too (irqbalance, tuned, libvirt, systemd)"
                );
                put_back(entry, proc).map(|()| Exit::NoAnswer)
            }
            Outcome::Helped(_) => {
                println!("  kept; `kvmscope undo {}` puts it back", entry.id);
                Ok(Exit::Answered)
            }
            Outcome::Interrupted => put_back(entry, proc).map(|()| Exit::Interrupted),
            Outcome::DidNotHelp(_) => put_back(entry, proc).map(|()| Exit::Answered),
        }
    }

    /// Makes all steps, or none.
    fn change(&self, proc: &Path, steps: &[Step]) -> anyhow::Result<(Entry, Vec<String>)> {
        let mut entry = self.place.journal().begin("apply")?;
        match make(&mut entry, steps, proc) {
            Ok(passed_over) => Ok((entry, passed_over)),
            Err(error) => {
                put_back(entry, proc)?;
                Err(error.into())
            }
        }
    }
}

/// Says on a terminal why nothing happens for a while.
fn waiting(span: Duration, how: &str) {
    let mut stderr = std::io::stderr();
    if stderr.is_terminal() {
        // If stderr is closed nobody wants to know.
        let _ = writeln!(stderr, "measuring for {} s {how}", span.as_secs());
    }
}

/// Whom the steps concern; what the model expects of them is said.
fn expected(steps: &[Step], host: &Host) -> anyhow::Result<(Watched, Direction)> {
    let (loads, usage) = trial::now(&host.proc, trial::SPAN)?;
    let watched = Watched::of(steps, host, &loads)?;
    let (lines, direction) = trial::expected(&watched, &loads, &usage);
    lines.iter().for_each(|line| println!("  modelled: {line}"));
    Ok((watched, direction))
}

/// Reverts all of an entry, and says so.
fn put_back(entry: Entry, proc: &Path) -> anyhow::Result<()> {
    let id = entry.id.clone();
    let mut whole = true;
    for (step, outcome) in entry.finish(proc)? {
        match outcome {
            Reverted::Done => println!("  put back: {step}"),
            Reverted::LeftAlone(why) => println!("  left alone: {step}: {why}"),
            Reverted::Failed(why) => {
                complain(&anyhow!("{step} could not be put back: {why}"));
                whole = false;
            }
        }
    }
    if whole { Ok(()) } else { Err(anyhow!("`kvmscope undo {id}` tries again")) }
}
