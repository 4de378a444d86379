//! Makes the changes that a finding proposes, each journalled first so that it can be undone.
//!
//! ```text
//! Change --prepare--> what holds now is read --> Altered --journal--> made --> read back
//!                     |                                                        |
//!                     gone, or so already: passed over, and said               refused: all of them are undone
//!                     neither old nor new: out of date, nothing is changed
//! ```
//! In: typed changes, never strings that something executes. A thread is named by id, start time and name: one that differs
//! in any of them is another thread, and one whose start time nobody read is not changed.

use crate::Error;
use crate::journal::{Entry, Step};
use crate::setting::{Altered, Host, Located, live};
use base::shell::printable;
use base::{Change, Setting};

/// A change, held against the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Prepared {
    Altered(Vec<Altered>),
    /// Nothing is to be done, and why.
    PassedOver(String),
}

impl Host {
    /// Reads what holds now and says what has to be altered to make `change`.
    ///
    /// # Errors
    /// If the host has neither the value that the change starts from nor the one it sets, if what holds cannot be read, if
    /// a thread's start time is not in the change, or if the change is of a kind that is not made on a running host.
    pub fn prepare(&self, change: &Change) -> Result<Prepared, Error> {
        let meant = live(&change.setting, self);
        let to = meant.spelled(&change.to)?;
        let settings = match meant.located(&change.setting)? {
            Located::Here(settings) => settings,
            Located::Gone(why) => return Ok(Prepared::PassedOver(why)),
        };
        // Of a setting that is several here the proposal saw the first: what a domain's next start would have may differ.
        let mut from = change.from.as_deref();
        let mut altered = Vec::new();
        for setting in settings {
            altered.extend(self.altered(setting, &to, from.take())?);
        }
        Ok(match altered.is_empty() {
            true => Prepared::PassedOver(format!("{} has {to} already", printable(&change.setting.to_string()))),
            false => Prepared::Altered(altered),
        })
    }

    /// What has to be altered so that `setting` is `to`, which was `from` when the change was proposed; `None`: nothing.
    fn altered(&self, setting: Setting, to: &str, from: Option<&str>) -> Result<Option<Altered>, Error> {
        let live = live(&setting, self);
        let now = live.read()?;
        if live.holds_already(to, &now.value) {
            return Ok(None);
        }
        if let Some(from) = from.filter(|from| !live.same(from, &now.value)) {
            let what = setting.to_string();
            return Err(Error::OutOfDate(format!(
                "{} is {}, but was {from} when the proposal was made: the proposal is out of date; run `kvmscope check` \
                 again",
                printable(&what),
                printable(&now.value)
            )));
        }
        drop(live);
        Ok(Some(Altered { setting, old: now.value, new: to.to_owned(), was_unset: !now.is_set }))
    }
}

/// Makes `altered`, each noted in `entry` first; returns what was not reached: threads that ended meanwhile, and threads of
/// a domain that did not follow its pin.
///
/// # Errors
/// If one was refused: those before it are still made, and `entry` undoes them.
pub fn make(entry: &mut Entry, altered: &[Altered], host: &Host) -> Result<Vec<String>, Error> {
    let mut passed_over = Vec::new();
    for one in altered {
        entry.intend(Step::Setting(one.clone()))?;
        match one.make(host) {
            Err(error) if one.has_ended(host) => passed_over.push(error.to_string()),
            made => made?,
        }
        passed_over.extend(one.unmoved(host));
    }
    Ok(passed_over)
}

#[cfg(test)]
mod tests;
