//! Exit codes: 0 answered, 1 nothing could be answered, 2 wrong use, 3 a finding as bad as `--fail-on`;
//! `record -- CMD` ends as CMD does, `lab` with 130 on Ctrl-C.

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
        let no_such = matches!(error.downcast_ref::<lab::Error>(), Some(lab::Error::NoSuch(_)));
        if no_such || error.is::<WrongUse>() { Exit::WrongUse } else { Exit::NoAnswer }
    }
}

/// Prints a sentence for people on stderr; if even that is closed, nobody listens.
///
/// Our errors are whole sentences that contain what caused them, so causes are not printed again.
pub fn complain(error: &anyhow::Error) {
    let _ = writeln!(io::stderr(), "kvmscope: {error}");
}
