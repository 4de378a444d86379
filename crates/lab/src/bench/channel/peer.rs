//! The other side: a process of its own, forked, since what one process maps and protects the other must not feel.

use super::side::Span;
use crate::Error;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pipe::pipe;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs::File;
use std::io::{Read, Write};
use std::time::Duration;

/// A process that does not answer for so long has failed.
const ANSWERS_WITHIN: Duration = Duration::from_secs(30);

/// Its end of the two pipes.
pub struct Link {
    orders: File,
    answers: File,
}

impl Link {
    /// Ready; the time to measure.
    pub fn ready(&mut self) -> Option<Span> {
        self.answers.write_all(b"r").ok()?;
        let mut bytes = [0; 24];
        self.orders.read_exact(&mut bytes).ok()?;
        let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap_or_default());
        Some(Span { from: word(0), until: word(8), per_ns: f64::from_bits(word(16)) })
    }

    /// How many frames were sent in all, once the other side has said so.
    pub fn sent(&mut self) -> Option<u64> {
        let mut files = [PollFd::new(&self.orders, PollFlags::IN)];
        if !matches!(poll(&mut files, Some(&Timespec::default())), Ok(1)) {
            return None;
        }
        let mut bytes = [0; 8];
        self.orders.read_exact(&mut bytes).ok()?;
        Some(u64::from_le_bytes(bytes))
    }

    fn answer(&mut self, answer: &impl Serialize) -> Option<()> {
        let text = serde_json::to_vec(answer).ok()?;
        self.answers.write_all(&text).ok()
    }
}

/// A forked process, seen from this one.
pub struct Peer {
    pid: libc::pid_t,
    orders: File,
    answers: File,
}

impl Peer {
    /// Forks; the child does `work`, answers with what comes of it, and ends. Its failure is a text.
    ///
    /// # Errors
    /// If this process has other threads, which the child would lack, or the kernel refuses.
    pub fn start<T: Serialize>(work: impl FnOnce(&mut Link) -> Result<T, String>) -> Result<Peer, Error> {
        let threads = std::fs::read_dir("/proc/self/task").map_or(0, Iterator::count);
        if threads != 1 {
            return Err(Error::Denied(format!("a process with {threads} threads is not forked")));
        }
        let refused = |error: rustix::io::Errno| Error::refused("no pipe to the other side", error);
        let (orders_read, orders_write) = pipe().map_err(refused)?;
        let (answers_read, answers_write) = pipe().map_err(refused)?;
        // SAFETY: this process has one thread, so that no lock is held by a thread that the child lacks.
        match unsafe { libc::fork() } {
            -1 => Err(Error::refused("the other side's process", std::io::Error::last_os_error())),
            0 => {
                drop((orders_write, answers_read));
                let mut link = Link { orders: orders_read.into(), answers: answers_write.into() };
                let done = work(&mut link);
                let _ = link.answer(&done);
                // SAFETY: ends the child at once: what this program would do at its end is the parent's to do.
                unsafe { libc::_exit(0) }
            }
            pid => Ok(Peer { pid, orders: orders_write.into(), answers: answers_read.into() }),
        }
    }

    /// Waits until it is ready, and tells it when to measure.
    ///
    /// # Errors
    /// If it has ended, with its own words where it left any.
    pub fn begin(&mut self, span: impl FnOnce() -> Span) -> Result<Span, Error> {
        self.waits()?;
        let mut ready = [0];
        let begun = self.answers.read_exact(&mut ready);
        if begun.is_err() || ready != *b"r" {
            let mut rest = ready.to_vec();
            let _ = self.answers.read_to_end(&mut rest);
            return Err(failed(&rest));
        }
        let span = span();
        let words = [span.from, span.until, span.per_ns.to_bits()];
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.orders.write_all(&bytes).map_err(|error| Error::refused("the other side", error))?;
        Ok(span)
    }

    /// Tells it how many frames were sent, and takes its answer.
    ///
    /// # Errors
    /// As [`Peer::begin`].
    pub fn end<T: DeserializeOwned>(mut self, sent: u64) -> Result<T, Error> {
        self.orders.write_all(&sent.to_le_bytes()).map_err(|error| Error::refused("the other side", error))?;
        self.waits()?;
        let mut text = Vec::new();
        self.answers.read_to_end(&mut text).map_err(|error| Error::refused("the other side", error))?;
        let answer: Result<T, String> = serde_json::from_slice(&text).map_err(|_| failed(&text))?;
        answer.map_err(Error::Died)
    }

    fn waits(&self) -> Result<(), Error> {
        let mut files = [PollFd::new(&self.answers, PollFlags::IN)];
        let limit = Timespec::try_from(ANSWERS_WITHIN).ok();
        match poll(&mut files, limit.as_ref()) {
            Ok(0) => Err(Error::TimedOut("the other side of the channel does not answer".to_owned())),
            _ => Ok(()),
        }
    }
}

fn failed(said: &[u8]) -> Error {
    let text = String::from_utf8_lossy(said);
    let why = serde_json::from_slice::<Result<(), String>>(said).ok().and_then(Result::err);
    Error::Died(why.unwrap_or_else(|| format!("the other side of the channel has failed: {}", text.trim())))
}

impl Drop for Peer {
    /// It is not left behind, whatever happened.
    fn drop(&mut self) {
        // SAFETY: our own child, which was not waited for yet.
        unsafe {
            libc::kill(self.pid, libc::SIGKILL);
            libc::waitpid(self.pid, std::ptr::null_mut(), 0);
        }
    }
}
