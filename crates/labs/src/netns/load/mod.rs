//! What sends from one end to the other, and how much of it arrives.
//!
//! ```text
//! own      threads of ours, always at it             a run: the bytes that were read between its begin and its end
//! iperf3   a server, and a client for each run       a run: what its JSON says was received
//! ```
//! Our own load needs nothing installed and never stops between runs, so it is the default; iperf3 is what others measure
//! with, and counts as they are used to.

mod iperf3;
mod streams;

pub(super) use streams::Ends;

use super::inside::WorkerThreads;
use base::CpuSet;
use iperf3::Iperf3;
use lab::Error;
use std::time::{Duration, Instant};
use streams::Received;

/// Longer than anybody lets a load flow without counting.
const LONG: Duration = Duration::from_secs(3_600);

base::named! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum LoadKind {
        Own = "own",
        /// iperf3 of the host.
        Iperf3 = "iperf3",
    }
}

/// A load between the two ends.
#[derive(Debug)]
pub struct Load(Source);

#[derive(Debug)]
enum Source {
    Own(Received),
    Iperf3(Iperf3),
}

/// One run of a load; dropping it ends it.
#[derive(Debug)]
pub struct Run<'a> {
    span: Duration,
    since: Instant,
    counted: Counted<'a>,
}

#[derive(Debug)]
enum Counted<'a> {
    Own { received: &'a Received, begin: u64 },
    Iperf3(iperf3::Client),
}

impl Load {
    /// Starts what a run needs; our own load flows from here on.
    pub(super) fn start(
        kind: LoadKind,
        workers: &mut WorkerThreads,
        ends: &Ends<'_>,
        streams: usize,
        cpus: &CpuSet,
    ) -> Result<Self, Error> {
        Ok(Self(match kind {
            LoadKind::Own => Source::Own(streams::start(workers, ends, streams, cpus)?),
            LoadKind::Iperf3 => Source::Iperf3(Iperf3::start(ends, streams, cpus)?),
        }))
    }

    /// Lets the load flow until the run is dropped, for whoever wants it to and counts nothing.
    ///
    /// # Errors
    /// If its program does not start.
    pub fn flow(&self) -> Result<Run<'_>, Error> {
        self.begin(LONG)
    }

    /// Begins a run of that length.
    ///
    /// # Errors
    /// If its program does not start.
    pub fn begin(&self, span: Duration) -> Result<Run<'_>, Error> {
        let counted = match &self.0 {
            Source::Own(received) => Counted::Own { received, begin: received.bytes() },
            Source::Iperf3(iperf3) => Counted::Iperf3(iperf3.client(span)?),
        };
        Ok(Run { span, since: Instant::now(), counted })
    }
}

impl Run<'_> {
    /// True once it is over.
    ///
    /// # Errors
    /// If its program takes much longer than it was told to.
    pub fn is_over(&mut self) -> Result<bool, Error> {
        match &mut self.counted {
            Counted::Own { .. } => Ok(self.since.elapsed() >= self.span),
            Counted::Iperf3(client) => client.is_over(),
        }
    }

    /// Bits per second that arrived, once it is over.
    ///
    /// # Errors
    /// If its program failed.
    pub fn bits_per_second(self) -> Result<f64, Error> {
        match self.counted {
            Counted::Own { received, begin } => {
                let bits = received.bytes().saturating_sub(begin) as f64 * 8.0;
                Ok(bits / self.since.elapsed().as_secs_f64())
            }
            Counted::Iperf3(client) => client.bits_per_second(),
        }
    }
}
