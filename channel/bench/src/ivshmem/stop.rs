//! Is this launch to end early? By Ctrl-C, or because the program that started it has gone.
//!
//! While guests run, the signals that end a program wait here until somebody looks: then the emulators are ended and their files removed,
//! and after that the launch ends. A launch has one thread when it begins, so that no other one takes them.

use libc::{SIGHUP, SIGINT, SIGTERM};
use std::os::unix::process::parent_id;

/// Holds signals up while it lives.
pub(super) struct Stop {
    signals: libc::sigset_t,
    before: libc::sigset_t,
    parent: u32,
}

impl Stop {
    pub(super) fn watch() -> Stop {
        // SAFETY: a set of signals is plain numbers, and the calls below write all of it.
        let (mut signals, mut before) = unsafe { std::mem::zeroed::<(libc::sigset_t, libc::sigset_t)>() };
        // SAFETY: both sets are ours; the mask is that of this thread and of those that it starts.
        unsafe {
            libc::sigemptyset(&mut signals);
            for signal in [SIGINT, SIGTERM, SIGHUP] {
                libc::sigaddset(&mut signals, signal);
            }
            libc::pthread_sigmask(libc::SIG_BLOCK, &signals, &mut before);
        }
        Stop { signals, before, parent: parent_id() }
    }

    pub(super) fn is_asked(&self) -> bool {
        let now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the set and the time are ours, and nothing is asked of the signal but its number.
        let taken = unsafe { libc::sigtimedwait(&self.signals, std::ptr::null_mut(), &now) };
        taken > 0 || parent_id() != self.parent
    }
}

impl Drop for Stop {
    fn drop(&mut self) {
        // SAFETY: the mask of this thread as it was.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.before, std::ptr::null_mut()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_to_this_thread_is_seen_once_and_ends_nothing() {
        let stop = Stop::watch();
        assert!(!stop.is_asked());
        // SAFETY: a signal to this thread, which holds it up.
        unsafe { libc::pthread_kill(libc::pthread_self(), SIGINT) };
        assert!(stop.is_asked());
        assert!(!stop.is_asked());
    }
}
