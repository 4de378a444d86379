//! iperf3 as the load: a server that stays, and a client for each run.
//!
//! In: addresses and streams. Out: `end.sum_received.bits_per_second` of the client's JSON (iperf3(1), `-J`): what the
//! server's side read, over the time of the test. A run is in whole seconds, because that is what iperf3 takes.

use super::Ends;
use crate::child::ChildProcess;
use base::CpuSet;
use lab::Error;
use serde_json::Value;
use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant};

/// iperf3 refuses more (`MAX_STREAMS`, src/iperf.h of iperf 3.12).
const MOST_STREAMS: usize = 128;
/// How long a client may take beyond its run: behind a starved forwarder it shakes hands and says goodbye slowly.
const SLACK: Duration = Duration::from_secs(60);
/// How long a server may take to listen, at first and after a client that was ended early.
const LISTENS: Duration = Duration::from_secs(30);
const LISTENING: &str = "Server listening";
/// How often we look for it.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A server, and what its clients need.
#[derive(Debug)]
pub(super) struct Iperf3 {
    server: RefCell<ChildProcess>,
    /// Clients that were started; the server listens once more than that.
    clients: Cell<usize>,
    namespace: String,
    address: String,
    streams: usize,
    cpus: CpuSet,
}

#[derive(Debug)]
pub(super) struct Client {
    program: ChildProcess,
    until: Instant,
}

impl Iperf3 {
    pub(super) fn start(ends: &Ends<'_>, streams: usize, cpus: &CpuSet) -> Result<Self, Error> {
        if streams > MOST_STREAMS {
            return Err(Error::WrongUse(format!(
                "iperf3 supports at most {MOST_STREAMS} streams; use --streams {MOST_STREAMS} or --load own"
            )));
        }
        ChildProcess::is_installed("iperf3", "iperf3")?;
        let words = ["iperf3", "--server", "--forceflush", "--bind", ends.server_address];
        Ok(Self {
            server: RefCell::new(ChildProcess::start(Some(ends.server), &words, cpus)?),
            clients: Cell::new(0),
            namespace: ends.client.to_owned(),
            address: ends.server_address.to_owned(),
            streams: streams.max(1),
            cpus: cpus.clone(),
        })
    }

    /// Waits until the server takes a client; while it is busy with one it refuses all others.
    fn listens(&self) -> Result<(), Error> {
        let (mut server, since) = (self.server.borrow_mut(), Instant::now());
        while server.said().matches(LISTENING).count() <= self.clients.get() {
            if server.has_ended() || since.elapsed() > LISTENS {
                return Err(Error::refused("iperf3's server does not listen", server.complaint()));
            }
            std::thread::sleep(LOOK_EVERY);
        }
        self.clients.set(self.clients.get() + 1);
        Ok(())
    }

    pub(super) fn client(&self, span: Duration) -> Result<Client, Error> {
        self.listens()?;
        let (streams, seconds) = (self.streams.to_string(), span.as_secs().max(1));
        let time = seconds.to_string();
        let words = ["iperf3", "--client", &self.address, "--parallel", &streams, "--time", &time, "--json"];
        let program = ChildProcess::start(Some(&self.namespace), &words, &self.cpus)?;
        Ok(Client { program, until: Instant::now() + Duration::from_secs(seconds) + SLACK })
    }
}

impl Client {
    pub(super) fn is_over(&mut self) -> Result<bool, Error> {
        if !self.program.has_ended() && Instant::now() > self.until {
            let slack = SLACK.as_secs();
            return Err(Error::TimedOut(format!(
                "iperf3 did not end within {slack} s after its time: no traffic gets through"
            )));
        }
        Ok(self.program.has_ended())
    }

    pub(super) fn bits_per_second(mut self) -> Result<f64, Error> {
        self.program.wait();
        received(&self.program.said())
            .map_err(|why| Error::refused("iperf3's client", format_args!("{why} {}", self.program.complaint())))
    }
}

/// What arrived, out of a client's JSON.
fn received(json: &str) -> Result<f64, String> {
    let told: Value = serde_json::from_str(json).map_err(|error| format!("its output is not JSON ({error})"))?;
    if let Some(why) = told["error"].as_str() {
        return Err(why.to_owned());
    }
    let bits = told["end"]["sum_received"]["bits_per_second"].as_f64();
    bits.ok_or_else(|| "its output does not show what was received".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_arrived_is_taken_and_what_was_sent_is_not() {
        // The members that count, as iperf 3.12 writes them.
        let told = r#"{"start":{},"intervals":[],"end":{"sum_sent":{"bytes":400,"bits_per_second":3200.5},
            "sum_received":{"start":0,"end":1.005799,"bytes":366,"bits_per_second":2912.25,"sender":true}}}"#;
        assert_eq!(received(told), Ok(2912.25));
        let refused = r#"{"start":{"connected":[]},"intervals":[],"end":{},
            "error":"unable to connect to server: Connection refused"}"#;
        assert_eq!(received(refused), Err("unable to connect to server: Connection refused".to_owned()));
        assert!(received("").is_err_and(|why| why.contains("is not JSON")));
        assert!(received("{}").is_err_and(|why| why.contains("received")));
    }
}
