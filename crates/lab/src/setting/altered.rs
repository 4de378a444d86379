//! A setting that was changed: what held, what we set, and how it is put back.

use super::{Concern, Host, live};
use crate::Error;
use crate::journal::Reverted;
use base::Setting;
use base::shell::printable;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::io::ErrorKind;

/// A setting with both of its values; the journal notes it before it is made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Altered {
    #[serde(flatten)]
    pub setting: Setting,
    pub old: String,
    pub new: String,
    /// True if `old` held only because nothing was set: then undoing takes away what we set.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub was_unset: bool,
}

impl Altered {
    /// Makes the change, and reads back whether it was taken.
    ///
    /// # Errors
    /// If it was refused, or taken in part.
    pub fn make(&self, host: &Host) -> Result<(), Error> {
        live(&self.setting, host).write(&self.new)
    }

    /// True if what was set still holds. A thread that has ended has nothing any more, and nobody took it away.
    pub fn holds(&self, host: &Host) -> bool {
        let live = live(&self.setting, host);
        self.has_ended(host) || live.read().is_ok_and(|now| live.same(&self.new, &now.value))
    }

    /// True if a thread was altered that has ended since.
    pub fn has_ended(&self, host: &Host) -> bool {
        self.setting.thread().is_some() && live(&self.setting, host).gone().is_some()
    }

    /// What did not follow although the change was taken, as sentences.
    pub(crate) fn unmoved(&self, host: &Host) -> Vec<String> {
        live(&self.setting, host).unmoved(&self.new)
    }

    /// Whom it concerns.
    ///
    /// # Errors
    /// If what would tell cannot be read.
    pub fn concerns(&self, host: &Host) -> Result<Concern, Error> {
        live(&self.setting, host).concerns(&self.old, &self.new)
    }

    /// True if a reboot leaves what was set.
    pub(crate) fn outlives_boot(&self, host: &Host) -> bool {
        live(&self.setting, host).outlives_boot()
    }

    /// Puts back what held, unless somebody else has changed it since.
    pub fn put_back(&self, host: &Host) -> Reverted {
        let live = live(&self.setting, host);
        if let Some(why) = live.gone() {
            return Reverted::LeftAlone(why);
        }
        let back = match live.read() {
            Ok(now) if live.same(&self.old, &now.value) && now.is_set != self.was_unset => return Reverted::Done,
            Ok(now) if !live.same(&self.new, &now.value) => {
                let now = printable(&now.value).into_owned();
                return Reverted::LeftAlone(format!("it is {now} now, and kvmscope had set {}", self.new));
            }
            Ok(_) if self.was_unset => live.unset(&self.old),
            Ok(_) => live.write(&self.old),
            Err(error) => Err(error),
        };
        match back {
            Ok(()) => Reverted::Done,
            // A file that is gone has nothing to put back.
            Err(Error::Io { source, .. }) if source.kind() == ErrorKind::NotFound => Reverted::Done,
            Err(error) => match live.gone() {
                Some(why) => Reverted::LeftAlone(why),
                None => Reverted::Failed(error.to_string()),
            },
        }
    }
}

impl fmt::Display for Altered {
    /// Control characters, which a thread may have in its name, are written out.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let setting = self.setting.to_string();
        let unit = if self.setting.takes_cpus() { "CPUs " } else { "" };
        write!(out, "{}: ", printable(&setting))?;
        match (self.old.as_str(), self.new.as_str()) {
            ("", new) => write!(out, "none -> {unit}{}", printable(new)),
            (old, "") => write!(out, "{unit}{} -> none", printable(old)),
            (old, new) => write!(out, "{unit}{} -> {}", printable(old), printable(new)),
        }
    }
}
