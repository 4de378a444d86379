//! The change itself: all steps or none, noted first, read back, and put back where that is wanted.

use anyhow::{anyhow, bail};
use base::Change;
use lab::apply::{Prepared, make};
use lab::journal::{Entry, Journal, Reverted};
use lab::setting::{Altered, Host};
use process::Lines;
use process::exit::complain;
use std::sync::atomic::AtomicBool;

/// A change that this host did not take; nothing of it is left.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct Refused(String);

/// How much of what is put back is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Told {
    All,
    /// What could not be put back.
    Trouble,
}

/// What is to be done on a host, and what is said of it.
pub(super) struct Work<'a> {
    pub host: Host,
    /// Where its changes are noted.
    pub journal: Journal,
    pub changes: &'a [Change],
    pub altered: Vec<Altered>,
    pub lines: Lines,
}

impl<'a> Work<'a> {
    /// Holds `changes` against the host as it is, and says what is passed over and what would be done.
    ///
    /// # Errors
    /// Why they cannot be made, with the lines.
    pub(super) fn plan(
        host: Host,
        journal: Journal,
        changes: &'a [Change],
        mut lines: Lines,
    ) -> Result<Self, (anyhow::Error, Lines)> {
        let (altered, passed_over) = match held(&host, changes) {
            Ok(held) => held,
            Err(error) => return Err((error, lines)),
        };
        passed_over.iter().for_each(|why| lines.say(format_args!("  skipped: {why}")));
        altered.iter().for_each(|one| lines.say(format_args!("  {one}")));
        Ok(Self { host, journal, changes, altered, lines })
    }

    /// Makes all steps, or none; `None` if `stop` was set while another program was changing the host.
    ///
    /// # Errors
    /// [`Refused`] if a step was refused, or if the host is no longer as it was when the plan was printed.
    pub(super) fn make(&mut self, stop: &AtomicBool) -> anyhow::Result<Option<Entry>> {
        let Some(_lock) = self.journal.lock(stop)? else { return Ok(None) };
        // What was planned may be old by now: somebody read it, a trial measured, another program changed the same thing.
        let (altered, _) = held(&self.host, self.changes)?;
        if let Some(new) = altered.iter().find(|one| !self.altered.contains(one)) {
            let why = format!(
                "nothing was changed: the host changed, and the plan would now be: {new}; run the command again"
            );
            bail!(Refused(why));
        }
        let mut entry = self.journal.begin("apply")?;
        match make(&mut entry, &altered, &self.host) {
            Ok(passed_over) => {
                passed_over.iter().for_each(|why| self.lines.say(format_args!("  skipped: {why}")));
                Ok(Some(entry))
            }
            Err(error) => {
                self.put_back(entry, Told::All)?;
                bail!(Refused(error.to_string()))
            }
        }
    }

    /// True if nobody else has set one of the values since they were set; else it is said.
    pub(super) fn holds(&mut self) -> bool {
        let others: Vec<_> = self.altered.iter().filter(|one| !one.holds(&self.host)).collect();
        for other in &others {
            self.lines.say(format_args!("  changed by another program during the measurement: {other}"));
        }
        if !others.is_empty() {
            let who = "irqbalance, tuned, libvirt, systemd";
            self.lines.say(format_args!("  so the trial is inconclusive; find what else sets it ({who})"));
        }
        others.is_empty()
    }

    pub(super) fn put_back(&mut self, entry: Entry, told: Told) -> anyhow::Result<()> {
        let id = entry.id.clone();
        let mut whole = true;
        for (step, outcome) in entry.finish(&self.host.proc)? {
            match outcome {
                Reverted::Done if told == Told::Trouble => {}
                Reverted::Done => self.lines.say(format_args!("  undone: {step}")),
                Reverted::LeftAlone(why) => self.lines.say(format_args!("  left alone: {step}: {why}")),
                Reverted::Failed(why) => {
                    complain(&anyhow!("{step} could not be undone: {why}"));
                    whole = false;
                }
            }
        }
        if whole { Ok(()) } else { Err(anyhow!("`kvmscope undo {id}` tries again")) }
    }
}

/// What has to be altered to make `changes`, and what is passed over.
fn held(host: &Host, changes: &[Change]) -> anyhow::Result<(Vec<Altered>, Vec<String>)> {
    let (mut altered, mut passed_over) = (Vec::new(), Vec::new());
    for change in changes {
        match host.prepare(change)? {
            Prepared::Altered(more) => altered.extend(more),
            Prepared::PassedOver(why) => passed_over.push(why),
        }
    }
    Ok((altered, passed_over))
}
