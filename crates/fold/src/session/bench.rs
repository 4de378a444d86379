//! The programs run by hand, on what a test says instead of what happens.

use super::hooks::argument;
use super::{Error, Options, Session, last_lines};
use crate::emit::Hears;
use crate::sys::{self, ProgramType};
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::atomic::Ordering::Release;

/// Which program of a session that is not attached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hook {
    Switch,
    Waking,
    UserspaceExit,
    Fpu,
    Entry,
    Exit,
}

/// Programs that are run by hand.
#[doc(hidden)]
pub struct Bench {
    session: Session,
    programs: Vec<(Hook, OwnedFd)>,
}

impl Bench {
    /// The programs of all hooks, with arguments for fields, and time, thread and CPU as they are told.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn new() -> Result<Self, Error> {
        let mut session = Session::made(Path::new("/"), Options::default(), true)?;
        let all = [
            (Hook::Switch, Hears::Switch { prev: argument(0), state: argument(1), comm: None, next: argument(2) }),
            (Hook::Waking, Hears::Waking(argument(0))),
            (Hook::UserspaceExit, Hears::UserspaceExit(argument(0), Some(argument(1)))),
            (Hook::Fpu, Hears::Fpu(argument(0))),
            (Hook::Entry, Hears::Entry(Some(argument(0)))),
            (Hook::Exit, Hears::Exit(argument(0), Some(argument(1)))),
        ];
        let mut programs = Vec::new();
        for (hook, hears) in all {
            match session.loaded(ProgramType::RawTracepoint, hears) {
                Ok(program) => programs.push((hook, program)),
                Err((error, log)) => {
                    return Err(Error::Lacks { event: "a program", why: format!("{error}\n{}", last_lines(&log)) });
                }
            }
        }
        Ok(Self { session, programs })
    }

    /// Something happens at `time_ns` while the thread `tid` of process `tgid` has `cpu`.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn run(
        &self,
        hook: Hook,
        arguments: &[u64],
        (time_ns, tid, tgid, cpu): (u64, u32, u32, u32),
    ) -> io::Result<()> {
        let given = self.session.words.given.as_ref().ok_or(io::ErrorKind::NotFound)?;
        for (at, value) in [time_ns, u64::from(tgid) << 32 | u64::from(tid), u64::from(cpu)].into_iter().enumerate() {
            given.at(at).store(value, Release);
        }
        let (_, program) = self.programs.iter().find(|(known, _)| *known == hook).ok_or(io::ErrorKind::NotFound)?;
        sys::run_once(program, arguments)
    }

    pub fn session(&self) -> &Session {
        &self.session
    }
}
