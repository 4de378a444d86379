//! DPDK's telemetry: what ports have counted, and whether their link is up, asked over a socket in the program's directory.
//!
//! Sources: "Telemetry user guide" of DPDK 22.11 (sequenced packets, JSON, a greeting first); commands `/ethdev/stats` and
//! `/ethdev/link_status` of lib/ethdev/rte_ethdev.c.

use lab::Error;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType, connect, recv, send, socket_with,
};
use serde_json::Value;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

/// The socket, in the directory that DPDK has for a program's files.
pub(super) const SOCKET: &str = "dpdk_telemetry.v2";
/// A program whose threads poll on the CPU of the one that answers takes its time.
const ANSWERS_WITHIN: Duration = Duration::from_secs(10);
/// `MAX_OUTPUT_LEN` of lib/telemetry/telemetry.c.
const MOST_BYTES: usize = 16 << 10;

/// What a port has counted since it was made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub received: u64,
    pub sent: u64,
}

/// A connection to one program.
#[derive(Debug)]
pub(super) struct Telemetry(OwnedFd);

impl Telemetry {
    /// Connects to the program whose socket that is.
    ///
    /// # Errors
    /// If it does not listen, or does not greet.
    pub(super) fn connect(path: &Path) -> Result<Self, Error> {
        let refused = |error: rustix::io::Errno| Error::refused(path.display(), error);
        let socket =
            socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).map_err(refused)?;
        connect(&socket, &SocketAddrUnix::new(path).map_err(refused)?).map_err(refused)?;
        let telemetry = Self(socket);
        telemetry.answer()?;
        Ok(telemetry)
    }

    /// What its first port has counted.
    ///
    /// # Errors
    /// If it does not answer, or not that.
    pub(super) fn counts(&self) -> Result<Counts, Error> {
        self.ask("/ethdev/stats,0", counts)
    }

    /// Whether the link of its first port is up.
    ///
    /// # Errors
    /// If it does not answer, or not that.
    pub(crate) fn is_up(&self) -> Result<bool, Error> {
        self.ask("/ethdev/link_status,0", is_up)
    }

    fn ask<T>(&self, command: &str, read: impl FnOnce(&str) -> Option<T>) -> Result<T, Error> {
        let refused = |error: rustix::io::Errno| Error::refused("DPDK's telemetry", error);
        send(&self.0, command.as_bytes(), SendFlags::NOSIGNAL).map_err(refused)?;
        let text = self.answer()?;
        read(&text).ok_or_else(|| Error::Malformed(format!("DPDK's telemetry answers {command} with {text}")))
    }

    fn answer(&self) -> Result<String, Error> {
        let refused = |error: rustix::io::Errno| Error::refused("DPDK's telemetry", error);
        let mut files = [PollFd::new(&self.0, PollFlags::IN)];
        if poll(&mut files, Timespec::try_from(ANSWERS_WITHIN).ok().as_ref()).map_err(refused)? == 0 {
            return Err(Error::TimedOut(format!("DPDK's telemetry did not answer for {} s", ANSWERS_WITHIN.as_secs())));
        }
        let mut bytes = vec![0; MOST_BYTES];
        let (length, _) = recv(&self.0, &mut bytes[..], RecvFlags::empty()).map_err(refused)?;
        bytes.truncate(length);
        if bytes.is_empty() {
            return Err(Error::Died("a program of DPDK has ended while it was measured".to_owned()));
        }
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

fn counts(text: &str) -> Option<Counts> {
    let answer: Value = serde_json::from_str(text).ok()?;
    let stats = answer.get("/ethdev/stats")?;
    let number = |name: &str| stats.get(name)?.as_u64();
    Some(Counts { received: number("ipackets")?, sent: number("opackets")? })
}

fn is_up(text: &str) -> Option<bool> {
    let answer: Value = serde_json::from_str(text).ok()?;
    match answer.get("/ethdev/link_status")?.get("status")?.as_str()? {
        "UP" => Some(true),
        "DOWN" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    macro_rules! fixture {
        ($name:literal) => {
            include_str!(concat!("../../../../fixtures/dpdk-channel/", $name))
        };
    }

    #[test]
    fn answers_of_dpdk_are_read_and_others_are_not() {
        assert_eq!(counts(fixture!("ethdev-stats.json")), Some(Counts::default()));
        let some = fixture!("ethdev-stats.json").replacen("\"opackets\":0", "\"opackets\":404224", 1);
        assert_eq!(counts(&some), Some(Counts { received: 0, sent: 404_224 }));
        assert_eq!(is_up(fixture!("ethdev-link-status.json")), Some(false));
        assert_eq!(is_up(&fixture!("ethdev-link-status.json").replace("DOWN", "UP")), Some(true));
        for text in [fixture!("ethdev-stats-none.json"), "", "{", "{\"/ethdev/stats\":{\"ipackets\":-1}}"] {
            assert_eq!((counts(text), is_up(text)), (None, None), "{text}");
        }
    }
}
