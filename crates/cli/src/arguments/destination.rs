//! Where a new recording goes: `-o DIR`, or a directory named after what made it and when.

use crate::exit::WrongUse;
use base::Utc;
use base::recording::Destination;
use clap::{Args, ValueHint};
use std::path::PathBuf;

/// Options of every command that makes a recording.
#[derive(Args)]
pub struct DestinationOptions {
    /// Directory of the new recording [default: ./kvmscope-WHAT-UTC/, where WHAT is the command]
    #[arg(short, long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    output: Option<PathBuf>,
    /// Replace the recording that is there already
    #[arg(long)]
    force: bool,
}

impl DestinationOptions {
    /// Where it goes, if it may: `what` names it where the user did not.
    pub fn of(&self, what: &str, now: Utc) -> anyhow::Result<Destination> {
        let destination = self.unchecked(what, now)?;
        destination.check()?;
        Ok(destination)
    }

    /// The same for a directory of several recordings, which are to be checked each.
    pub fn unchecked(&self, what: &str, now: Utc) -> anyhow::Result<Destination> {
        let path = self.output.clone().unwrap_or_else(|| format!("kvmscope-{what}-{}", now.name()).into());
        if super::is_dash(&path) {
            return Err(WrongUse(
                "a recording is a directory, which stdout does not take; name one: -o DIR".to_owned(),
            )
            .into());
        }
        Ok(Destination { path, replace: self.force })
    }

    /// Whether the user named a directory.
    pub fn is_named(&self) -> bool {
        self.output.is_some()
    }
}
