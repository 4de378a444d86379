//! Exit codes: 0 answered, 1 nothing could be answered, 2 wrong use, 3 a finding as bad as `--fail-on`, or
//! a breach that `record --stop-on` saw;
//! `record -- CMD` ends as CMD does, `lab` with 130 on Ctrl-C.

use base::plain::{plain_lines, without_os_numbers};
use base::recording::Shown;
use std::borrow::Cow;
use std::io::{self, Write};
use std::process::ExitCode;

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    Answered,
    NoAnswer,
    WrongUse,
    FailOn,
    Interrupted,
    /// What a command that ran under `record` ended with.
    Of(u8),
}

/// The user asked for something that cannot be; the sentence says what to do instead.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct WrongUse(pub String);

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(match exit {
            Exit::Answered => 0,
            Exit::NoAnswer => 1,
            Exit::WrongUse => 2,
            Exit::FailOn => 3,
            Exit::Interrupted => 130,
            Exit::Of(status) => status,
        })
    }
}

impl Exit {
    /// Says on stderr why there is no answer. A reader that went away (`| head`) has seen enough: that is no error.
    pub fn from_error(error: anyhow::Error) -> Self {
        let broken_pipe = |cause: &(dyn std::error::Error + 'static)| {
            let of_io = cause.downcast_ref::<io::Error>().map(io::Error::kind);
            of_io == Some(io::ErrorKind::BrokenPipe)
        };
        if error.chain().any(broken_pipe) {
            return Exit::Answered;
        }
        complain(&error);
        match error.downcast_ref() {
            Some(error) => of_lab(error),
            None if is_wrong_use(&error) => Exit::WrongUse,
            None => Exit::NoAnswer,
        }
    }
}

/// True if the user named something that is not there, or a place that is taken, or used an option wrongly.
pub fn is_wrong_use(error: &anyhow::Error) -> bool {
    error.is::<WrongUse>()
        || error.downcast_ref().is_some_and(|error| of_lab(error) == Exit::WrongUse)
        || matches!(error.downcast_ref(), Some(analysis::Error::NoSuch(_)))
        || error.downcast_ref().is_some_and(is_wrong_place)
}

/// How a command ends that the live side failed.
fn of_lab(error: &lab::Error) -> Exit {
    use lab::Error as Cause;
    match error {
        Cause::WrongUse(_) => Exit::WrongUse,
        Cause::Recording(error) if is_wrong_place(error) => Exit::WrongUse,
        Cause::Stopped => Exit::Interrupted,
        Cause::Io { .. }
        | Cause::NoSpace { .. }
        | Cause::Missing { .. }
        | Cause::Failed { .. }
        | Cause::Refused { .. }
        | Cause::Denied(_)
        | Cause::Busy(_)
        | Cause::Absent(_)
        | Cause::OutOfDate(_)
        | Cause::Malformed(_)
        | Cause::Died(_)
        | Cause::TimedOut(_)
        | Cause::LeftBehind(_)
        | Cause::Recording(_)
        | Cause::Bench(_)
        | Cause::Trace(_)
        | Cause::Host(_) => Exit::NoAnswer,
    }
}

/// True if the user named a place that is taken, or is no recording.
fn is_wrong_place(error: &base::recording::Error) -> bool {
    use base::recording::Error::{Foreign, Taken};
    matches!(error, Taken { .. } | Foreign { .. })
}

/// The same error in the names that the user gave: where a private copy of what was named lies means nothing to anybody.
pub fn as_named(error: anyhow::Error, shown: &[Shown]) -> anyhow::Error {
    match Shown::rename(shown, &error.to_string()) {
        Cow::Owned(named) => error.context(named),
        Cow::Borrowed(_) => error,
    }
}

/// Prints a sentence for people on stderr; if even that is closed, nobody listens.
///
/// Our errors are whole sentences that contain what caused them, so causes are not printed again. What the operating system said stands
/// behind an error that is no more than the name of a file.
pub fn complain(error: &anyhow::Error) {
    let mut said = error.to_string();
    let refused = error.chain().skip(1).filter_map(|cause| cause.downcast_ref::<io::Error>()).map(io::Error::to_string);
    for refused in refused {
        if !said.contains(&refused) {
            said = format!("{said}: {refused}");
        }
    }
    // A name may have a line's end in it: what follows must not look like a line of our own.
    note(&format!("kvmscope: {}", without_os_numbers(&said).replace('\n', "\n  ")));
}

/// Prints a sentence for people on stderr, whatever names of others are in it.
pub fn note(text: &str) {
    let _ = writeln!(io::stderr(), "{}", plain_lines(text));
}

/// Prints a line on stdout, whatever names of others are in it.
///
/// # Errors
/// If it cannot be written.
pub fn print(text: &str) -> io::Result<()> {
    writeln!(io::stdout(), "{}", plain_lines(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_there_by_name_is_wrong_use() {
        let taken = base::recording::Error::Taken { path: "x".into() };
        let outside = analysis::Error::Outside("x".into());
        assert!(is_wrong_use(&taken.into()) && is_wrong_use(&lab::Error::WrongUse("x".into()).into()));
        assert!(is_wrong_use(&anyhow::Error::new(analysis::Error::NoSuch("x".into())).context("y")));
        assert!(!is_wrong_use(&outside.into()));
    }

    #[test]
    fn each_cause_of_the_live_side_has_its_exit() {
        let exit = |error: lab::Error| Exit::from_error(error.into());
        assert_eq!(exit(lab::Error::Stopped), Exit::Interrupted);
        assert_eq!(exit(base::recording::Error::Taken { path: "x".into() }.into()), Exit::WrongUse);
        assert_eq!(exit(lab::Error::WrongUse("x".into())), Exit::WrongUse);
        let missing = lab::Error::Missing { program: "perf".into(), package: "linux-perf".into() };
        assert_eq!(missing.to_string(), "perf is not installed; it is in the Debian package linux-perf");
        assert_eq!(exit(missing), Exit::NoAnswer);
    }
}
