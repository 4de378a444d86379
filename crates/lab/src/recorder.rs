//! Something that records until it is told to stop.

use crate::Error;
use base::recording::Part;

/// A recorder at work. Dropping it without [`Recorder::stop`] leaves on disk what it has recorded so far, and leaves to the
/// journal what it has changed.
pub trait Recorder {
    /// What it is, for messages: `tracefs`, `perf`, `lttng`.
    fn name(&self) -> &str;

    /// Does the work that has piled up; called several times a second from the recording loop.
    ///
    /// # Errors
    /// If recording cannot go on; what was recorded stays.
    fn poll(&mut self) -> Result<(), Error> {
        Ok(())
    }

    /// Ends recording, undoes what was changed on the host, and names the parts that were made.
    ///
    /// # Errors
    /// If the recording could not be completed; parts that are readable in part are on disk all the same.
    fn stop(self: Box<Self>) -> Result<Vec<Part>, Error>;
}
