//! Lines of commands that change a host: on stdout, or on stderr where stdout is for something that programs read.
//!
//! A reader that goes away, or a disk that is full, must not end such a command between two changes: the first error is
//! kept, nothing more is written, and the command says so when the host is as it should be.

use base::plain::plain_lines;
use std::fmt::Display;
use std::io::{self, Write};

/// What has been said, and whether it could be.
#[derive(Debug, Default)]
pub struct Lines {
    failed: Option<io::Error>,
    aside: bool,
}

impl Lines {
    /// Nothing yet; on stderr if `aside`.
    pub fn new(aside: bool) -> Self {
        Self { aside, ..Self::default() }
    }

    pub fn say(&mut self, line: impl Display) {
        if self.failed.is_none() {
            let line = line.to_string();
            let line = plain_lines(&line);
            let said = if self.aside { writeln!(io::stderr(), "{line}") } else { writeln!(io::stdout(), "{line}") };
            self.failed = said.err();
        }
    }

    /// Ends what is said.
    ///
    /// # Errors
    /// If something could not be written; a reader that went away has seen enough, which is no error.
    pub fn end(self) -> anyhow::Result<()> {
        match self.failed {
            Some(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                Err(anyhow::anyhow!("what was done could not be printed: {error}"))
            }
            _ => Ok(()),
        }
    }
}
