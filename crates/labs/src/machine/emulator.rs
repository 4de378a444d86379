//! How does an emulated machine run from its start to its end, seen from outside?
//!
//! In: the command of an emulator that writes the machine's console to a file. Its lines that begin with
//! `inside::SAYS` are passed on as they come. Out: the machine did its work; or a sentence that ends with the last lines
//! of the console. Whatever happens, the emulator is gone afterwards, also if this process is killed.

use super::inside;
use lab::Error;
use lab::program::tie;
use rustix::process::Signal;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How often the console is read.
const EVERY: Duration = Duration::from_millis(100);
/// How long a machine that is done may take to switch itself off.
const TO_SWITCH_OFF: Duration = Duration::from_secs(10);
/// A CPU of the machine that a kernel calls stuck for longer does not come back: a slow emulator is called so for 26 s.
const STUCK_S: u64 = 60;
/// What to do about a machine that hangs.
const AGAIN: &str = "an emulator with several CPUs sometimes hangs: run it again";
/// Lines of the console that an error shows.
const LAST_LINES: usize = 8;

pub struct Emulator<'a> {
    pub command: Command,
    /// The Debian package that brings it.
    pub package: &'static str,
    pub console: PathBuf,
    /// The file that takes what the emulator itself says.
    pub log: PathBuf,
    /// How long it may run.
    pub limit: Duration,
    /// How long its machine may say nothing.
    pub silence: Duration,
    /// Set from outside to end it early.
    pub stop: &'a AtomicBool,
}

/// A child that does not outlive us.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // Gone already is what we want.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Emulator<'_> {
    /// Runs the machine to its end.
    ///
    /// # Errors
    /// If the emulator does not start, if the machine says that it failed or ends without saying anything, if one of its
    /// CPUs is stuck, if it takes longer than the limit or is silent for too long, or if it was stopped.
    pub fn run(mut self, say: &mut dyn FnMut(&str)) -> Result<(), Error> {
        let log = std::fs::File::create(&self.log).map_err(|error| Error::io(&self.log, error))?;
        self.command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        tie(&mut self.command, Signal::KILL);
        let name = self.command.get_program().to_string_lossy().into_owned();
        let child = self.command.spawn().map_err(|error| Error::not_started(&name, self.package, &error))?;
        let mut running = Running(child);
        let began = Instant::now();
        let (mut heard, mut done_since) = (0, None);
        let (mut last, mut last_heard) = ("its start".to_owned(), began);
        loop {
            let ended = running.0.try_wait().map_err(|error| Error::io(&name, error))?;
            let console = Console::read(&self.console);
            for line in console.said().skip(heard) {
                heard += 1;
                (last, last_heard) = (format!("\"{line}\""), Instant::now());
                if let Some(why) = line.strip_prefix(inside::FAILED) {
                    return Err(Error::Died(format!("the lab's machine reported: {why}")));
                }
                if line == inside::DONE {
                    done_since = Some(Instant::now());
                } else {
                    say(line);
                }
            }
            match (ended, done_since) {
                (Some(_), Some(_)) => return Ok(()),
                (_, Some(since)) if since.elapsed() > TO_SWITCH_OFF => return Ok(()),
                (Some(status), None) => {
                    let said = std::fs::read(&self.log).unwrap_or_default();
                    let said = last_lines(&String::from_utf8_lossy(&said), 3);
                    let said = said.map_or(String::new(), |lines| format!(" and says\n  {lines}\n"));
                    let why = format!("{name} ended early ({status}){said}");
                    return Err(Error::Died(format!("{why}{}", console.end())));
                }
                (None, _) => {}
            }
            if self.stop.load(Ordering::Relaxed) {
                return Err(Error::Stopped);
            }
            if began.elapsed() > self.limit {
                let limit = self.limit.as_secs();
                return Err(Error::TimedOut(format!("{name} was not done after {limit} s{}", console.end())));
            }
            if let Some((cpu, stuck_s)) = console.stuck() {
                let why = format!("CPU {cpu} of {name}'s machine has been stuck for {stuck_s} s after {last}");
                return Err(Error::TimedOut(format!("{why}; {AGAIN}{}", console.end())));
            }
            if last_heard.elapsed() > self.silence {
                let silence = self.silence.as_secs();
                let why = format!("{name}'s machine printed nothing for {silence} s after {last}");
                return Err(Error::TimedOut(format!("{why}; {AGAIN}{}", console.end())));
            }
            std::thread::sleep(EVERY);
        }
    }
}

/// The last lines that hold anything, indented.
fn last_lines(text: &str, count: usize) -> Option<String> {
    let lines: Vec<_> = text.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    let last = &lines[lines.len().saturating_sub(count)..];
    (!last.is_empty()).then(|| last.join("\n  "))
}

/// What the machine wrote so far.
struct Console(String);

impl Console {
    fn read(path: &Path) -> Self {
        // There is none before the emulator has opened it.
        Self(std::fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default())
    }

    /// Whole lines that are meant for us.
    fn said(&self) -> impl Iterator<Item = &str> {
        let whole = self.0.rfind('\n').map_or("", |end| &self.0[..end]);
        whole.lines().filter_map(|line| Some(line.split_once(inside::SAYS)?.1.trim_end()))
    }

    /// A CPU that the machine's kernel calls stuck, and for how many seconds (watchdog_timer_fn in kernel/watchdog.c).
    fn stuck(&self) -> Option<(u64, u64)> {
        let said = self.0.lines().rev().find_map(|line| line.split_once("soft lockup - CPU#"))?.1;
        let mut numbers = said.split(|letter: char| !letter.is_ascii_digit()).filter_map(|word| word.parse().ok());
        let (cpu, stuck_s) = (numbers.next()?, numbers.next()?);
        (stuck_s >= STUCK_S).then_some((cpu, stuck_s))
    }

    fn end(&self) -> String {
        let last = last_lines(&self.0, LAST_LINES);
        last.map_or("; its console is empty".to_owned(), |lines| format!("; its console ends with\n  {lines}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A shell that plays a machine: `script` writes to the console, `$C`.
    fn played(script: &str, limit_ms: u64, silence_ms: u64, stop: bool) -> (Result<(), String>, Vec<String>) {
        let directory = tempfile::tempdir().unwrap();
        let console = directory.path().join("console");
        let mut command = Command::new("sh");
        command.args(["-c", script]).env("C", &console);
        let emulator = Emulator {
            command,
            package: "dash",
            console,
            log: directory.path().join("log"),
            limit: Duration::from_millis(limit_ms),
            silence: Duration::from_millis(silence_ms),
            stop: &AtomicBool::new(stop),
        };
        let mut said = Vec::new();
        let result = emulator.run(&mut |line| said.push(line.to_owned()));
        (result.map_err(|error| error.to_string()), said)
    }

    #[test]
    fn what_a_machine_says_is_passed_on_and_its_end_is_seen() {
        let (result, said) = played(
            "echo noise >$C; echo '[ 1.0] kvmscope lab: up\r' >>$C; echo 'kvmscope lab: done' >>$C",
            9000,
            9000,
            false,
        );
        assert_eq!((result, said), (Ok(()), vec!["up".to_owned()]));
    }

    #[test]
    fn every_other_end_is_a_sentence_with_the_last_lines() {
        let stuck = "echo 'kvmscope lab: up' >$C; echo '[ 9.1] watchdog: BUG: soft lockup - CPU#1 stuck for 79s! [x:2]' >>$C; \
                     sleep 60";
        let (early, silent) =
            ("echo Panic >$C; echo wrong option >&2; exit 3", "echo 'kvmscope lab: up' >$C; echo x >>$C; sleep 60");
        for (script, limit_ms, silence_ms, stop, words) in [
            ("echo 'kvmscope lab: failed: no kvm' >$C; sleep 60", 9000, 9000, false, &["reported: no kvm"][..]),
            (early, 9000, 9000, false, &["exit status: 3", "wrong option", "Panic"]),
            ("echo booting >$C; sleep 60", 300, 9000, false, &["was not done", "booting"]),
            ("sleep 60", 300, 9000, false, &["console is empty"]),
            (silent, 9000, 300, false, &["printed nothing for 0 s after \"up\"", "ends with", "x"]),
            ("sleep 60", 9000, 300, false, &["after its start"]),
            (stuck, 9000, 9000, false, &["CPU 1 of sh's machine has been stuck for 79 s after \"up\"", "run it again"]),
            (&stuck.replace("79s", "26s"), 9000, 300, false, &["printed nothing"]),
            ("sleep 60", 9000, 9000, true, &["stopped"]),
        ] {
            let (result, _) = played(script, limit_ms, silence_ms, stop);
            let error = result.unwrap_err();
            assert!(words.iter().all(|word| error.contains(word)), "{script}: {error}");
        }
    }
}
