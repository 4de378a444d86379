//! The other side: a process of its own, forked, since what one process maps and protects the other must not feel.

use super::side::Span;
use lab::Error;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pipe::pipe;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs::File;
use std::io::{Read, Write};
use std::time::{Duration, Instant};

/// A process that does not answer for so long has failed.
const ANSWERS_WITHIN: Duration = Duration::from_secs(30);

/// Its end of the two pipes.
pub(crate) struct Link {
    orders: File,
    answers: File,
}

/// What tells the side that receives when to measure, and when all was sent.
pub(crate) trait Cues {
    /// Ready; the time to measure.
    fn ready(&mut self) -> Option<Span>;

    /// How many frames were sent in all, once the other side has said so.
    fn sent(&mut self) -> Option<u64>;
}

impl Link {
    /// Here the other side is met: it does something between two steps of ours.
    pub(crate) fn meet(&mut self) -> Option<()> {
        self.answers.write_all(b"m").ok()?;
        self.orders.read_exact(&mut [0]).ok()
    }

    /// Says something before the end.
    pub(crate) fn say(&mut self, what: &impl Serialize) -> Option<()> {
        let mut line = serde_json::to_vec(what).ok()?;
        line.push(b'\n');
        self.answers.write_all(&line).ok()
    }

    /// What the other side says, once it does.
    pub(crate) fn told<T: DeserializeOwned>(&mut self) -> Option<T> {
        let mut length = [0; 8];
        self.orders.read_exact(&mut length).ok()?;
        // What comes behind it is for another reader.
        let mut text = Vec::new();
        (&self.orders).take(u64::from_le_bytes(length)).read_to_end(&mut text).ok()?;
        serde_json::from_slice(&text).ok()
    }
}

impl Cues for Link {
    fn ready(&mut self) -> Option<Span> {
        self.answers.write_all(b"r").ok()?;
        let mut bytes = [0; 24];
        self.orders.read_exact(&mut bytes).ok()?;
        let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap_or_default());
        Some(Span { from: word(0), until: word(8), per_ns: f64::from_bits(word(16)) })
    }

    fn sent(&mut self) -> Option<u64> {
        let mut files = [PollFd::new(&self.orders, PollFlags::IN)];
        if !matches!(poll(&mut files, Some(&Timespec::default())), Ok(1)) {
            return None;
        }
        let mut bytes = [0; 8];
        self.orders.read_exact(&mut bytes).ok()?;
        Some(u64::from_le_bytes(bytes))
    }
}

impl Link {
    fn answer(&mut self, answer: &impl Serialize) -> Option<()> {
        let text = serde_json::to_vec(answer).ok()?;
        self.answers.write_all(&text).ok()
    }
}

/// A forked process, seen from this one.
pub(crate) struct Peer {
    pid: libc::pid_t,
    orders: File,
    answers: File,
}

impl Peer {
    /// Forks; the child does `work`, answers with what comes of it, and ends. Its failure is a text.
    ///
    /// # Errors
    /// If this process has other threads, which the child would lack, or the kernel refuses.
    pub(crate) fn start<T: Serialize>(work: impl FnOnce(&mut Link) -> Result<T, String>) -> Result<Peer, Error> {
        let threads = std::fs::read_dir("/proc/self/task").map_or(0, Iterator::count);
        if threads != 1 {
            return Err(Error::Denied(format!("a process with {threads} threads is not forked")));
        }
        let refused = |error: rustix::io::Errno| Error::refused("no pipe to the other side", error);
        let (orders_read, orders_write) = pipe().map_err(refused)?;
        let (answers_read, answers_write) = pipe().map_err(refused)?;
        // SAFETY: asks for a number.
        let parent = unsafe { libc::getpid() };
        // SAFETY: this process has one thread, so that no lock is held by a thread that the child lacks.
        match unsafe { libc::fork() } {
            -1 => Err(Error::refused("the other side's process", std::io::Error::last_os_error())),
            0 => {
                // SAFETY: two calls without memory of ours: this process ends with the one that started it, however that ends.
                let is_alone = unsafe {
                    libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                    libc::getppid() != parent
                };
                if is_alone {
                    // SAFETY: as below.
                    unsafe { libc::_exit(1) }
                }
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
    pub(crate) fn begin(&mut self, span: impl FnOnce() -> Span) -> Result<Span, Error> {
        self.ready()?;
        let span = span();
        self.go(span)?;
        Ok(span)
    }

    /// Waits until it is ready: of several, all are before the first one is told when to measure.
    ///
    /// # Errors
    /// As [`Peer::begin`].
    pub(crate) fn ready(&mut self) -> Result<(), Error> {
        self.waits()?;
        let mut ready = [0];
        let begun = self.answers.read_exact(&mut ready);
        if begun.is_err() || ready != *b"r" {
            let mut rest = ready.to_vec();
            let _ = self.answers.read_to_end(&mut rest);
            return Err(failed(&rest));
        }
        Ok(())
    }

    /// Tells one that is ready when to measure.
    ///
    /// # Errors
    /// If it has ended.
    pub(crate) fn go(&mut self, span: Span) -> Result<(), Error> {
        let words = [span.from, span.until, span.per_ns.to_bits()];
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.order(&bytes)
    }

    /// What it says before the end.
    ///
    /// # Errors
    /// As [`Peer::begin`].
    pub(crate) fn hear<T: DeserializeOwned>(&mut self) -> Result<T, Error> {
        self.waits()?;
        let said = line(&mut self.answers).map_err(|error| Error::refused("the other side", error))?;
        serde_json::from_slice(&said).map_err(|_| failed(&said))
    }

    /// Tells it something that [`Link::told`] takes.
    ///
    /// # Errors
    /// If it has ended.
    pub(crate) fn tell(&mut self, what: &impl Serialize) -> Result<(), Error> {
        let refused = |error: serde_json::Error| Error::refused("the other side", error);
        let text = serde_json::to_vec(what).map_err(refused)?;
        self.order(&(text.len() as u64).to_le_bytes())?;
        self.order(&text)
    }

    /// Tells it something; what it said instead of waiting for that is the error.
    fn order(&mut self, bytes: &[u8]) -> Result<(), Error> {
        if self.orders.write_all(bytes).is_ok() {
            return Ok(());
        }
        let mut said = Vec::new();
        let _ = self.answers.read_to_end(&mut said);
        Err(failed(&said))
    }

    /// Does something at the next place where it waits for that; false if it does not get there.
    pub(crate) fn meet(&mut self, act: impl FnOnce()) -> bool {
        let mut met = [0];
        if self.waits().is_err() || self.answers.read_exact(&mut met).is_err() || met != *b"m" {
            return false;
        }
        act();
        self.orders.write_all(b"g").is_ok()
    }

    /// Whether it has something to say, or has ended.
    pub(crate) fn is_heard(&self) -> bool {
        let mut files = [PollFd::new(&self.answers, PollFlags::IN)];
        matches!(poll(&mut files, Some(&Timespec::default())), Ok(1))
    }

    /// How it ended, at the latest after so long.
    pub(crate) fn outcome<T: DeserializeOwned>(mut self, within: Duration) -> Outcome<T> {
        let (since, mut text) = (Instant::now(), Vec::new());
        loop {
            let left = Timespec::try_from(within.saturating_sub(since.elapsed())).ok();
            if !matches!(poll(&mut [PollFd::new(&self.answers, PollFlags::IN)], left.as_ref()), Ok(1)) {
                return Outcome::Hung;
            }
            let mut more = [0; 4096];
            match self.answers.read(&mut more) {
                Ok(0) | Err(_) => break,
                Ok(count) => text.extend_from_slice(&more[..count]),
            }
        }
        let mut status = 0;
        // SAFETY: our own child, which was not waited for yet; its number is not used again afterwards.
        unsafe { libc::waitpid(self.pid, &mut status, 0) };
        self.pid = NOBODY;
        if libc::WIFSIGNALED(status) {
            return Outcome::Crashed(libc::WTERMSIG(status));
        }
        match serde_json::from_slice::<Result<T, String>>(&text) {
            Ok(Ok(answer)) => Outcome::Answered(answer),
            Ok(Err(why)) => Outcome::Failed(why),
            Err(_) => Outcome::Failed(String::from_utf8_lossy(&text).into_owned()),
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.pid.unsigned_abs()
    }

    /// Tells it how many frames were sent, and takes its answer.
    ///
    /// # Errors
    /// As [`Peer::begin`].
    pub(crate) fn end<T: DeserializeOwned>(mut self, sent: u64) -> Result<T, Error> {
        // One that has ended has answered already, or says why it does not.
        let _ = self.orders.write_all(&sent.to_le_bytes());
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

/// The process was waited for, and its number may be another's.
const NOBODY: libc::pid_t = 0;

/// How a process ended that was watched.
#[derive(Debug)]
pub(crate) enum Outcome<T> {
    Answered(T),
    Failed(String),
    Crashed(i32),
    /// Not at all; it was killed.
    Hung,
}

/// The next line; nothing comes behind it before it was answered.
fn line(from: &mut File) -> std::io::Result<Vec<u8>> {
    let (mut line, mut more) = (Vec::new(), [0; 4096]);
    while line.last() != Some(&b'\n') {
        match from.read(&mut more)? {
            0 => break,
            count => line.extend_from_slice(&more[..count]),
        }
    }
    Ok(line)
}

fn failed(said: &[u8]) -> Error {
    let text = String::from_utf8_lossy(said);
    let why = serde_json::from_slice::<Result<(), String>>(said).ok().and_then(Result::err);
    Error::Died(why.unwrap_or_else(|| format!("the other side of the channel has failed: {}", text.trim())))
}

impl Drop for Peer {
    /// It is not left behind, whatever happened.
    fn drop(&mut self) {
        if self.pid == NOBODY {
            return;
        }
        // SAFETY: our own child, which was not waited for yet.
        unsafe {
            libc::kill(self.pid, libc::SIGKILL);
            libc::waitpid(self.pid, std::ptr::null_mut(), 0);
        }
    }
}
