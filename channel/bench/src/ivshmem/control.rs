//! How do two guests, whose clocks nobody set, agree on when to measure?
//!
//! By words in the last page of the memory that they share. Each word has one writer, and only grows: the number of the setup, which
//! counts from 1, and in `ping` and `pong` the number of the try as well.
//!
//! ```text
//! sends:     lay the ring, laid                    begin = now, ping .. pong came: took long? again : go   frames  sent   wait
//! receives:  wait          take the ring, ready    each ping: begin = now, pong                     go     frames  ..     finished
//! ```
//! Both begin when they saw the last ping: the side that receives later than the other, by no more than the ping took until its pong
//! came. Whoever fails says so, and the other one does not wait for it.

use channel::Ticks;
use lab::Error;
use labs::machine::words::{self, Words};
use std::fmt;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// What a side says whose other side failed; that one says why.
pub(super) const OTHER_FAILED: &str = "the other guest failed";
/// A round trip that takes no longer ends the tries: clocks then agree to a part of a slice.
const SOON_NS: u64 = 20_000;
/// Tries until the last one is taken as it is.
const TRIES: u64 = 64;
/// A side that waits longer than it takes to see a running peer's answer lets others run, in general.
const SPINS_FOR: Duration = Duration::from_micros(200);
const NAP: Duration = Duration::from_micros(200);

/// Which side a guest is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Sends,
    Receives,
}

impl Role {
    pub(crate) const BOTH: [Role; 2] = [Role::Sends, Role::Receives];

    /// The guest's role stands in what its kernel was told, behind this.
    pub(crate) const ARGUMENT: &'static str = "kvmscope.side=";

    pub(crate) fn of_arguments(arguments: &str) -> Option<Role> {
        let name = arguments.split_whitespace().find_map(|word| word.strip_prefix(Role::ARGUMENT))?;
        Role::BOTH.into_iter().find(|role| role.to_string() == name)
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Role::Sends => "sends",
            Role::Receives => "receives",
        })
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Word {
    Laid,
    Ready,
    Ping,
    Pong,
    Go,
    /// Frames, written before `Sent`.
    Frames,
    Sent,
    Finished,
    SenderFailed,
    ReceiverFailed,
}

/// One side's view of the words during one setup.
pub(super) struct Control {
    words: Words,
    role: Role,
    number: u64,
    patience: Duration,
}

impl Control {
    /// In the last page of a device's memory of so many bytes, for setup `number`.
    pub(super) fn of(
        memory: &Path,
        bytes: usize,
        role: Role,
        number: u64,
        patience: Duration,
    ) -> Result<Control, Error> {
        let at = (bytes as u64)
            .checked_sub(words::BYTES as u64)
            .ok_or_else(|| Error::Malformed(format!("{}: {bytes} bytes are no memory to share", memory.display())))?;
        Ok(Control { words: Words::of(memory, at)?, role, number, patience })
    }

    /// This side is so far.
    pub(super) fn reach(&self, word: Word) {
        self.store(word, self.number);
    }

    /// This side has failed, and will do nothing more for this setup.
    pub(super) fn fail(&self) {
        self.reach(match self.role {
            Role::Sends => Word::SenderFailed,
            Role::Receives => Word::ReceiverFailed,
        });
    }

    /// Waits until the other side is so far.
    pub(crate) fn await_word(&self, word: Word) -> Result<(), Error> {
        self.until(|| self.load(word) >= self.number)
    }

    /// Waits until the side that receives will not look at the ring any more, one way or the other.
    pub(crate) fn await_end(&self) -> Result<(), Error> {
        match self.until(|| self.load(Word::Finished) >= self.number) {
            Err(_) if self.load(Word::ReceiverFailed) >= self.number => Ok(()),
            other => other,
        }
    }

    /// The side that sends: when both begin, by our own counter, and how many ticks later the other one may do.
    pub(super) fn begin(&self, ticks: Ticks) -> Result<(u64, u64), Error> {
        for number in 1..=TRIES {
            let ping = self.number << 8 | number;
            let at = Ticks::now();
            self.store(Word::Ping, ping);
            self.until(|| self.load(Word::Pong) >= ping)?;
            let apart = Ticks::after_loads().saturating_sub(at);
            if ticks.ns(apart) <= SOON_NS || number == TRIES {
                self.reach(Word::Go);
                return Ok((at, apart));
            }
        }
        Err(Error::TimedOut("the guests agree on no begin".to_owned()))
    }

    /// The side that receives: when both begin, by our own counter.
    pub(super) fn begun(&self) -> Result<u64, Error> {
        let (mut last, mut at) = (0, Ticks::now());
        self.until(|| self.load(Word::Ping) >> 8 == self.number)?;
        // Pings now come one behind the other, and a nap would be part of the round trip that they measure.
        self.until_spinning(self.patience, || {
            let ping = self.load(Word::Ping);
            if ping >> 8 == self.number && ping != last {
                (last, at) = (ping, Ticks::after_loads());
                self.store(Word::Pong, ping);
            }
            self.load(Word::Go) >= self.number
        })?;
        Ok(at)
    }

    /// The side that sends: so many frames in all.
    pub(super) fn sent(&self, frames: u64) {
        self.store(Word::Frames, frames);
        self.reach(Word::Sent);
    }

    /// The side that receives: how many that were, once it was said.
    pub(super) fn frames(&self) -> Option<u64> {
        (self.load(Word::Sent) >= self.number).then(|| self.load(Word::Frames))
    }

    fn until(&self, there: impl FnMut() -> bool) -> Result<(), Error> {
        self.until_spinning(SPINS_FOR, there)
    }

    /// As above; this side keeps its CPU for so long, and then lets others run between two looks.
    fn until_spinning(&self, spins_for: Duration, mut there: impl FnMut() -> bool) -> Result<(), Error> {
        let since = Instant::now();
        let failed = match self.role {
            Role::Sends => Word::ReceiverFailed,
            Role::Receives => Word::SenderFailed,
        };
        loop {
            if there() {
                return Ok(());
            }
            if self.load(failed) >= self.number {
                return Err(Error::Died(OTHER_FAILED.to_owned()));
            }
            let waited = since.elapsed();
            if waited > self.patience {
                let seconds = self.patience.as_secs();
                return Err(Error::TimedOut(format!("the other guest has not answered for {seconds} s")));
            }
            if waited < spins_for {
                std::hint::spin_loop();
            } else {
                std::thread::sleep(NAP);
            }
        }
    }

    fn load(&self, word: Word) -> u64 {
        self.words.word(word as usize).load(Ordering::Acquire)
    }

    fn store(&self, word: Word, value: u64) {
        self.words.word(word as usize).store(value, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: usize = 8192;

    fn sides(number: u64) -> (tempfile::NamedTempFile, [Control; 2]) {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(BYTES as u64).unwrap();
        let patience = Duration::from_millis(300);
        let sides = Role::BOTH.map(|role| Control::of(file.path(), BYTES, role, number, patience).unwrap());
        (file, sides)
    }

    #[test]
    fn both_begin_within_the_time_that_the_side_that_sends_names() {
        let (_file, [sends, receives]) = sides(3);
        let ticks = Ticks::measured(Duration::from_millis(5));
        let (theirs, (ours, apart)) = std::thread::scope(|scope| {
            let theirs = scope.spawn(|| receives.begun().unwrap());
            let ours = sends.begin(ticks).unwrap();
            (theirs.join().unwrap(), ours)
        });
        assert!(ours <= theirs && theirs - ours <= apart, "{ours}, {theirs}, {apart}");
        assert_eq!(receives.frames(), None);
        sends.sent(77);
        assert_eq!(receives.frames(), Some(77));
    }

    #[test]
    fn nobody_waits_for_a_side_that_failed_or_for_ever() {
        let (file, [sends, receives]) = sides(2);
        let why = sends.await_word(Word::Ready).unwrap_err().to_string();
        assert!(why.contains("has not answered"), "{why}");
        receives.fail();
        let why = sends.await_word(Word::Ready).unwrap_err().to_string();
        assert_eq!(why, OTHER_FAILED);
        sends.await_end().unwrap();
        // The next setup begins anew.
        let next = Control::of(file.path(), BYTES, Role::Sends, 3, Duration::from_millis(20)).unwrap();
        assert!(next.await_end().is_err());
        assert!(Control::of(file.path(), 4000, Role::Sends, 3, Duration::ZERO).is_err());
    }

    #[test]
    fn a_guest_knows_its_role_by_what_its_kernel_was_told() {
        let of = |text: &str| Role::of_arguments(text);
        assert_eq!(of("quiet kvmscope.side=receives rdinit=/kvmscope"), Some(Role::Receives));
        assert_eq!(
            (of("kvmscope.side=sends"), of("kvmscope.side=looks"), of("quiet")),
            (Some(Role::Sends), None, None)
        );
    }
}
