//! Threads: on which CPUs may one run, by which policy, and is it still the one that was meant?
//!
//! Thread ids are used again, so a thread is named by its id and its start time ([`Owner`]); one that has ended, or whose id
//! belongs to another thread by now, is never touched.
//! Sources: sched_setaffinity(2): the kernel intersects what is asked for with the thread's cpuset and says nothing of it
//! (kernel/sched/syscalls.c, Linux 6.12), so what was asked for is read back. sched_setscheduler(2) for policies.

use super::{Concern, Held, Host, Live, Located, list, read, same_cpus, set};
use crate::Error;
use crate::journal::Owner;
use base::setting::ThreadId;
use base::shell::printable;
use base::{CpuSet, Setting};
use rustix::process::Pid;
use rustix::thread::{CpuSet as Mask, sched_getaffinity, sched_setaffinity};

/// CPUs that glibc's `cpu_set_t`, which rustix takes over, has room for (CPU_SET(3)).
const MASKED_CPUS: u32 = Mask::MAX_CPU as u32;

/// Names of policies as `chrt` takes them, with their numbers (include/uapi/linux/sched.h).
const POLICIES: [(&str, i32); 5] = [("other", 0), ("fifo", 1), ("rr", 2), ("batch", 3), ("idle", 5)];

/// The CPUs on which a thread may run.
pub(super) struct Affinity<'a> {
    pub(super) thread: &'a ThreadId,
    pub(super) host: &'a Host,
}

pub(super) struct Policy<'a> {
    pub(super) thread: &'a ThreadId,
    pub(super) host: &'a Host,
}

impl Live for Affinity<'_> {
    fn located(&self, _setting: &Setting) -> Result<Located, Error> {
        located(self.thread, self.host, Setting::TaskAffinity)
    }

    fn read(&self) -> Result<Held, Error> {
        Ok(affinity(number(self.thread)?)?.to_string().into())
    }

    fn spelled(&self, value: &str) -> Result<String, Error> {
        list(value).map(|cpus| cpus.to_string())
    }

    /// The kernel lists CPUs that are offline in a thread's mask, and leaves them out where it is asked for it.
    fn same(&self, value: &str, now: &str) -> bool {
        let online = read(&self.host.sys.join("devices/system/cpu/online")).ok().and_then(|text| CpuSet::parse(&text));
        let left = |online: CpuSet| CpuSet::parse(value).map(|cpus| cpus.and(&online)).filter(|left| !left.is_empty());
        same_cpus(value, now) || online.and_then(left).is_some_and(|left| CpuSet::parse(now) == Some(left))
    }

    fn write(&self, value: &str) -> Result<(), Error> {
        set_affinity(same_thread(self.thread, self.host)?, &list(value)?)
    }

    fn gone(&self) -> Option<String> {
        ended(self.thread, self.host)
    }

    fn concerns(&self, _old: &str, new: &str) -> Result<Concern, Error> {
        Ok(Concern::Threads(vec![number(self.thread)?], Some(set(new)?)))
    }

    fn outlives_boot(&self) -> bool {
        false
    }
}

impl Live for Policy<'_> {
    fn located(&self, _setting: &Setting) -> Result<Located, Error> {
        located(self.thread, self.host, Setting::TaskPolicy)
    }

    fn read(&self) -> Result<Held, Error> {
        Ok(policy(number(self.thread)?)?.into())
    }

    fn spelled(&self, value: &str) -> Result<String, Error> {
        Ok(value.to_owned())
    }

    fn same(&self, value: &str, now: &str) -> bool {
        value == now
    }

    fn write(&self, value: &str) -> Result<(), Error> {
        set_policy(same_thread(self.thread, self.host)?, value)
    }

    fn gone(&self) -> Option<String> {
        ended(self.thread, self.host)
    }

    fn concerns(&self, _old: &str, _new: &str) -> Result<Concern, Error> {
        Ok(Concern::Threads(vec![number(self.thread)?], None))
    }

    fn outlives_boot(&self) -> bool {
        false
    }
}

/// The thread that is meant, as it is now.
///
/// A program that is replaced (execve(2)) keeps id and start time, so the name has to be the same as well.
fn located(meant: &ThreadId, host: &Host, setting: impl Fn(ThreadId) -> Setting) -> Result<Located, Error> {
    let tid = meant.tid;
    let id = number(meant)?;
    let Some(started) = meant.start_ticks else {
        return Err(Error::Malformed(format!(
            "the start time of thread {tid} is unknown, so this thread id may be another thread by now: it is not changed"
        )));
    };
    let Ok(thread) = Owner::of(&host.proc, id) else {
        return Ok(Located::Gone(format!("thread {tid} has ended; there is nothing to change")));
    };
    let name = read(&host.proc.join(id.to_string()).join("comm")).unwrap_or_default();
    let another =
        |how: String| Ok(Located::Gone(format!("thread {tid} {how}: it is another thread and was not changed")));
    if thread.start_ticks != started {
        return another("started at another time than the intended one".to_owned());
    }
    if let Some(meant) = meant.comm.as_ref().filter(|meant| **meant != name) {
        return another(format!("is called {}, and the intended one {}", printable(&name), printable(meant)));
    }
    Ok(Located::Here(vec![setting(ThreadId { comm: Some(name), ..meant.clone() })]))
}

/// Its id, as the kernel takes it.
fn number(thread: &ThreadId) -> Result<u32, Error> {
    u32::try_from(thread.tid).map_err(|_| Error::Malformed(format!("{} is not a thread id", thread.tid)))
}

/// Why there is nothing to put back, if it is not the thread that was meant, or has ended.
fn ended(thread: &ThreadId, host: &Host) -> Option<String> {
    let owner = number(thread).ok().zip(thread.start_ticks).map(|(pid, start_ticks)| Owner { pid, start_ticks });
    let is_alive = owner.is_some_and(|owner| owner.is_alive(&host.proc));
    (!is_alive).then(|| "the thread has ended since".to_owned())
}

/// Its id, if it is still the thread that is meant.
fn same_thread(thread: &ThreadId, host: &Host) -> Result<u32, Error> {
    match ended(thread, host) {
        Some(_) => Err(Error::OutOfDate(format!("{} has ended since", printable(&thread.to_string())))),
        None => number(thread),
    }
}

/// The id of the thread that asks.
pub fn own() -> u32 {
    rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs()
}

/// The CPUs on which a thread may run.
///
/// # Errors
/// If there is no such thread.
pub fn affinity(tid: u32) -> Result<CpuSet, Error> {
    let set = sched_getaffinity(Some(pid(tid)?)).map_err(|error| refused(tid, "its affinity cannot be read", error))?;
    Ok((0..MASKED_CPUS).filter(|cpu| set.is_set(*cpu as usize)).collect())
}

/// Lets a thread run on `cpus` only, and reads back whether the kernel took it.
///
/// # Errors
/// If the kernel refuses, or gives fewer CPUs than were asked for.
pub fn set_affinity(tid: u32, cpus: &CpuSet) -> Result<(), Error> {
    let mut set = Mask::new();
    if let Some(cpu) = cpus.iter().find(|cpu| *cpu >= MASKED_CPUS) {
        return Err(Error::Absent(format!("CPU {cpu} is beyond the {MASKED_CPUS} CPUs of an affinity mask")));
    }
    cpus.iter().for_each(|cpu| set.set(cpu as usize));
    sched_setaffinity(Some(pid(tid)?), &set)
        .map_err(|error| refused(tid, &format!("CPUs {cpus} were refused"), error))?;
    let got = affinity(tid)?;
    if got != *cpus {
        return Err(Error::refused(
            format_args!("thread {tid}"),
            format_args!(
                "CPUs {cpus} were requested, but the kernel set {got}: the cpuset has no others; widen it first"
            ),
        ));
    }
    Ok(())
}

/// The policy of a thread, as `chrt` names it: `other`, `fifo:1`.
///
/// # Errors
/// If there is no such thread, or if its policy is not one that can be set again.
pub fn policy(tid: u32) -> Result<String, Error> {
    let raw = pid(tid)?.as_raw_nonzero().get();
    let mut parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: the first call takes a number; the second writes one `sched_param`, which is ours.
    let (number, read) = unsafe { (libc::sched_getscheduler(raw), libc::sched_getparam(raw, &raw mut parameters)) };
    if number < 0 || read < 0 {
        return Err(refused(tid, "its policy cannot be read", std::io::Error::last_os_error()));
    }
    let number = number & !libc::SCHED_RESET_ON_FORK;
    let (name, _) = POLICIES.iter().find(|(_, known)| *known == number).ok_or_else(|| {
        Error::Absent(format!("thread {tid} has policy {number}, which cannot be restored; it is not changed"))
    })?;
    Ok(match parameters.sched_priority {
        0 => (*name).to_owned(),
        priority => format!("{name}:{priority}"),
    })
}

/// Gives a thread a policy, and reads it back.
///
/// # Errors
/// If there is no such policy or thread, or if the kernel refuses.
pub fn set_policy(tid: u32, wanted: &str) -> Result<(), Error> {
    let (name, priority) = wanted.split_once(':').unwrap_or((wanted, "0"));
    let number = POLICIES.iter().find(|(known, _)| *known == name).map(|(_, number)| *number);
    let (Some(number), Ok(sched_priority)) = (number, priority.parse()) else {
        return Err(Error::Malformed(format!("`{wanted}` is not a policy; use other, batch, idle, fifo:N or rr:N")));
    };
    let parameters = libc::sched_param { sched_priority };
    // SAFETY: the kernel reads one `sched_param`, which is ours and lives until the call returns.
    if unsafe { libc::sched_setscheduler(pid(tid)?.as_raw_nonzero().get(), number, &raw const parameters) } < 0 {
        return Err(refused(tid, &format!("policy {wanted} was refused"), std::io::Error::last_os_error()));
    }
    let got = policy(tid)?;
    let other = || Error::refused(format_args!("thread {tid}"), format_args!("its policy is {got}, not {wanted}"));
    (got == wanted).then_some(()).ok_or_else(other)
}

fn pid(tid: u32) -> Result<Pid, Error> {
    let pid = i32::try_from(tid).ok().and_then(Pid::from_raw);
    pid.ok_or_else(|| Error::Malformed(format!("{tid} is not a thread id")))
}

fn refused(tid: u32, what: &str, error: impl std::fmt::Display) -> Error {
    Error::refused(format_args!("thread {tid}: {what}"), error)
}
