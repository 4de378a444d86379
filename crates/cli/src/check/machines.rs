//! Which machines are looked at, and what placements of their threads are for: the same for all who ask about setup.

use super::places::{self, Root};
use super::wishes::WishOptions;
use crate::arguments::{BudgetOption, Stdin, brought, is_dash, span};
use analysis::{Given, Listing};
use base::recording::Recording;
use base::shell::quoted;
use clap::{Args, ValueHint};
use process::exit::WrongUse;
use process::interrupt::Interrupt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Machines as the user names them.
#[derive(Args)]
pub(crate) struct MachineOptions {
    /// A recording, a directory that has proc and sys, an archive, or pasted text, - for stdin [default: this host, now]
    #[arg(value_name = "PATH", conflicts_with = "root", value_hint = ValueHint::AnyPath)]
    path: Option<PathBuf>,
    /// A directory with a machine's proc and sys, or an archive of one, and its level; repeatable, to compare levels
    #[arg(long, value_name = "[LEVEL=]DIR", value_parser = places::root, value_hint = ValueHint::DirPath)]
    root: Vec<Root>,
    /// Pasted text, such as the output of top, lscpu and virsh, in any mix, - for stdin; files are assumed to be
    /// in chronological order
    #[arg(long, value_name = "FILE", num_args = 1.., conflicts_with_all = ["path", "root"], value_hint = ValueHint::FilePath)]
    paste: Vec<PathBuf>,
    #[command(flatten)]
    wishes: WishOptions,
    /// Also compare settings with what real-time guests need; implied by vCPUs on isolated CPUs or with a real-time policy, and by a
    /// PREEMPT_RT kernel
    #[arg(long)]
    realtime: bool,
    #[command(flatten)]
    budget: BudgetOption,
    /// Seconds between two samples of this host, from which CPU shares and waiting are computed; 0: a single sample
    #[arg(long, value_name = "SECONDS", default_value = "2", value_parser = seconds, conflicts_with_all = ["path", "paste"], help_heading = None::<&'static str>)]
    span: Duration,
    #[arg(skip)]
    stdin: Stdin,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let span = Duration::from_nanos(span(text)?);
    let sensible = span.is_zero() || (0.6..=600.0).contains(&span.as_secs_f64());
    if sensible { Ok(span) } else { Err("write 0.6 to 600 seconds, or 0 for a single sample".to_owned()) }
}

impl MachineOptions {
    /// Whether the user named any; else it is this host.
    pub(crate) fn are_named(&self) -> bool {
        self.path.is_some() || !self.root.is_empty() || !self.paste.is_empty()
    }

    /// Whether they are known by pasted text.
    fn are_pasted(&self) -> bool {
        !self.paste.is_empty()
    }

    /// Whether any of it comes from stdin.
    pub(crate) fn are_piped(&self) -> bool {
        self.path.iter().chain(&self.paste).any(|path| is_dash(path)) || self.root.iter().any(Root::is_stdin)
    }

    /// Refuses what does not go together.
    pub(crate) fn check(&self) -> Result<(), WrongUse> {
        if self.root.iter().any(|root| !root.is_this_host()) && self.span != places::SPAN {
            return Err(WrongUse("--span works only for this host: files of another host do not change".to_owned()));
        }
        Ok(())
    }

    /// The machines, and the runs that were brought with them; snapshots of this host go to `live`, which must stay until all is
    /// read.
    pub(crate) fn recordings(&self, live: &Path, interrupt: &Interrupt) -> anyhow::Result<Vec<Recording>> {
        Ok(vec![match (&self.path, self.root.as_slice()) {
            _ if self.are_pasted() => return places::pasted(&self.paste, &self.stdin, interrupt),
            (Some(path), _) => {
                let brought = brought(path, &self.stdin, interrupt)?;
                return Ok(brought.into_iter().map(places::with_notes).collect());
            }
            (None, []) => places::this_host(live, None, self.span)?,
            (None, [root]) if root.is_this_host() => places::this_host(live, Some(root), self.span)?,
            (None, roots) => {
                let tree = |root| places::unpacked(root, &self.stdin, interrupt);
                places::trees(&roots.iter().map(tree).collect::<Result<Vec<_>, _>>()?)?
            }
        }])
    }

    /// What is asked of them.
    ///
    /// # Errors
    /// If the budget cannot be read.
    pub(crate) fn given(&self, interrupt: &Interrupt) -> anyhow::Result<Given> {
        let listing = Listing { all_features: true, ..Listing::default() };
        let (placement, budget) = (self.wishes.wishes(interrupt)?, self.budget.read()?);
        Ok(Given { listing, realtime: self.realtime, budget, ..Given::query(placement) })
    }

    /// The same machines in the words of a command line.
    pub(crate) fn words(&self) -> String {
        let word = |path: &Path| quoted(&path.to_string_lossy()).into_owned();
        let mut words: Vec<String> = self.path.iter().map(|path| word(path)).collect();
        words.extend(self.root.iter().map(|root| format!("--root {}", quoted(&root.to_string()))));
        words.extend(self.wishes.words());
        words.extend(self.realtime.then(|| "--realtime".to_owned()));
        words.extend(self.budget.name().map(|name| format!("--budget {}", word(name))));
        if self.span != places::SPAN {
            words.push(format!("--span {}", self.span.as_secs_f64()));
        }
        // It takes all that follows.
        words.extend(self.are_pasted().then(|| "--paste".to_owned()));
        words.extend(self.paste.iter().map(|path| word(path)));
        words.iter().map(|word| format!(" {word}")).collect()
    }
}
