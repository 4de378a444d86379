//! Rule 11: not the peer but our own process breaks it, which is what a window is there to stop.

use super::super::peer::{Outcome, Peer};
use super::honest::{buffer, ring};
use super::script::{HANGS_AFTER, Script};
use base::channel::Fault;
use channel::{Consumer, Mprotect, Open, PeerFault, Window};
use lab::Error;

/// Rule 11: our own process accesses a ring whose window has closed, and is ended for it.
pub(super) fn used_after_it_closed() -> Result<Fault, Error> {
    let mut script = Script::of(11, "access of our own after the window closed, and after it closed by an error");
    for fails in [false, true] {
        let (ring, _) = ring()?;
        let peer = Peer::start(|_| {
            no_core_file();
            let mut window = Mprotect::over(ring.halves()).map_err(|error| error.to_string())?;
            let went = window.with(|_| if fails { Err(PeerFault::Gone) } else { Ok(()) });
            let theirs = Open::over(ring.halves());
            let popped = Consumer::new(&ring, theirs).pop_batch(&mut buffer(), 1);
            Ok(format!("{went:?} {popped:?}"))
        })?;
        script.injected += 1;
        match peer.outcome::<String>(HANGS_AFTER) {
            Outcome::Crashed(libc::SIGSEGV) => script.seen += 1,
            other => script.why.push(format!("a closed window did not stop an access: {other:?}")),
        }
    }
    let mut fault = script.fault();
    if fault.survived == Some(true) {
        fault.why = "seen by the processor, which ends the process that breaks it".to_owned();
    }
    Ok(fault)
}

/// That it ends by a signal is wanted, and worth no file.
fn no_core_file() {
    let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the structure is ours, and the kernel reads it.
    unsafe { libc::setrlimit(libc::RLIMIT_CORE, &none) };
}
