//! Threads: on which CPUs may one run, by which policy, and is it still the one that was meant?
//!
//! Thread ids are used again, so a thread is named by its id and its start time ([`Owner`]); one that has ended, or whose id
//! belongs to another thread by now, is never touched.
//! Sources: sched_setaffinity(2): the kernel intersects what is asked for with the thread's cpuset and says nothing of it
//! (kernel/sched/syscalls.c, Linux 6.12), so what was asked for is read back. sched_setscheduler(2) for policies.

use super::owner::Owner;
use super::revert::Reverted;
use crate::Error;
use base::CpuSet;
use rustix::process::Pid;
use rustix::thread::{CpuSet as Mask, sched_getaffinity, sched_setaffinity};
use std::path::Path;

/// CPUs that glibc's `cpu_set_t`, which rustix takes over, has room for (CPU_SET(3)).
const MASKED_CPUS: u32 = Mask::MAX_CPU as u32;

/// Names of policies as `chrt` takes them, with their numbers (include/uapi/linux/sched.h).
const POLICIES: [(&str, i32); 5] = [("other", 0), ("fifo", 1), ("rr", 2), ("batch", 3), ("idle", 5)];

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
        return Err(Error::Unable(format!("CPU {cpu} is beyond the {MASKED_CPUS} CPUs of an affinity mask")));
    }
    cpus.iter().for_each(|cpu| set.set(cpu as usize));
    sched_setaffinity(Some(pid(tid)?), &set)
        .map_err(|error| refused(tid, &format!("CPUs {cpus} were refused"), error))?;
    let got = affinity(tid)?;
    if got != *cpus {
        return Err(Error::Unable(format!(
            "thread {tid}: CPUs {cpus} were asked for and the kernel gave {got}: its cpuset has no others; widen that first"
        )));
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
        Error::Unable(format!("thread {tid} has policy {number}, which cannot be restored; it is not changed"))
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
        return Err(Error::Unable(format!("`{wanted}` is not a policy; use other, batch, idle, fifo:N or rr:N")));
    };
    let parameters = libc::sched_param { sched_priority };
    // SAFETY: the kernel reads one `sched_param`, which is ours and lives until the call returns.
    if unsafe { libc::sched_setscheduler(pid(tid)?.as_raw_nonzero().get(), number, &raw const parameters) } < 0 {
        return Err(refused(tid, &format!("policy {wanted} was refused"), std::io::Error::last_os_error()));
    }
    let got = policy(tid)?;
    if got == wanted { Ok(()) } else { Err(Error::Unable(format!("thread {tid} has policy {got}, not {wanted}"))) }
}

/// Puts back the value of a thread with `get` and `set`, if it is still the thread that was changed and still has what we
/// set.
pub(super) fn put_back<T: PartialEq + ToString>(
    thread: Owner,
    proc: &Path,
    (old, new): (T, T),
    get: impl Fn(u32) -> Result<T, Error>,
    set: impl Fn(u32, &T) -> Result<(), Error>,
) -> Reverted {
    if !thread.is_alive(proc) {
        return Reverted::LeftAlone("the thread has ended since".to_owned());
    }
    match get(thread.pid) {
        Ok(now) if now == old => Reverted::Done,
        Ok(now) if now != new => {
            Reverted::LeftAlone(format!("it has {} now, and kvmscope had set {}", now.to_string(), new.to_string()))
        }
        Ok(_) => match set(thread.pid, &old) {
            Ok(()) => Reverted::Done,
            Err(_) if !thread.is_alive(proc) => Reverted::LeftAlone("the thread has ended since".to_owned()),
            Err(error) => Reverted::Failed(error.to_string()),
        },
        Err(error) => Reverted::Failed(error.to_string()),
    }
}

fn pid(tid: u32) -> Result<Pid, Error> {
    let pid = i32::try_from(tid).ok().and_then(Pid::from_raw);
    pid.ok_or_else(|| Error::Unable(format!("{tid} is not a thread id")))
}

fn refused(tid: u32, what: &str, error: impl std::fmt::Display) -> Error {
    Error::Unable(format!("thread {tid}: {what}: {error}"))
}
