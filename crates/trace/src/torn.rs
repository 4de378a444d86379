//! A mapped file that another program makes shorter: the pages behind its new end raise SIGBUS when they are touched.
//!
//! ```text
//! reader touches a page that is gone -> SIGBUS -> whose map is it? -> the rest of that map becomes zeros, and is known to be torn
//!                                                  `-- nobody's: what the program did about SIGBUS before
//! ```
//! The reader goes on over zeros, which no format takes for events, and whoever asked for the trace is told. A server thus loses one answer
//! and not its life. The list of maps is the program's, as the signal is.

use std::io;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Maps beyond that many are not guarded: SIGBUS ends the program, as it would without this module. A trace of 512 CPUs has 512.
const MOST: usize = 1 << 14;

/// No map.
const FREE: usize = 0;
/// Somebody's map whose end is being written.
const TAKEN: usize = 1;

/// One map: its first address, or [`FREE`] or [`TAKEN`], and the address behind its last.
struct Slot {
    from: AtomicUsize,
    to: AtomicUsize,
    is_torn: AtomicBool,
}

static SLOTS: [Slot; MOST] =
    [const { Slot { from: AtomicUsize::new(FREE), to: AtomicUsize::new(0), is_torn: AtomicBool::new(false) } }; MOST];

/// What the program did about SIGBUS before.
static BEFORE: OnceLock<libc::sigaction> = OnceLock::new();

/// Guards a map until it is dropped, which must be before the map is.
#[derive(Debug)]
pub(crate) struct Guard(Option<usize>);

impl Guard {
    /// Guards the map at these addresses.
    ///
    /// # Errors
    /// If the signal cannot be taken.
    pub(crate) fn of(map: Range<*const u8>) -> io::Result<Self> {
        take_signal()?;
        let is_free =
            |slot: &&Slot| slot.from.compare_exchange(FREE, TAKEN, Ordering::AcqRel, Ordering::Relaxed).is_ok();
        let place = SLOTS.iter().position(|slot| is_free(&slot));
        if let Some(slot) = place.map(|place| &SLOTS[place]) {
            slot.is_torn.store(false, Ordering::Relaxed);
            slot.to.store(map.end as usize, Ordering::Relaxed);
            slot.from.store(map.start as usize, Ordering::Release);
        }
        Ok(Self(place))
    }

    /// True once a page was touched that the file no longer has.
    pub(crate) fn is_torn(&self) -> bool {
        self.0.is_some_and(|place| SLOTS[place].is_torn.load(Ordering::Relaxed))
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(place) = self.0 {
            SLOTS[place].from.store(FREE, Ordering::Release);
        }
    }
}

/// Takes SIGBUS, once in a program.
fn take_signal() -> io::Result<()> {
    static TAKEN: OnceLock<Result<(), i32>> = OnceLock::new();
    let take = || {
        let mut before = MaybeUninit::<libc::sigaction>::uninit();
        // SAFETY: a zeroed `sigaction` is a valid one; the handler has the type that SA_SIGINFO asks for and calls nothing but system calls.
        // SA_ONSTACK: threads that have a stack for signals use it.
        let refused = unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = on_sigbus as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            libc::sigaction(libc::SIGBUS, &raw const action, before.as_mut_ptr())
        };
        if refused != 0 {
            return Err(io::Error::last_os_error().raw_os_error().unwrap_or(0));
        }
        // SAFETY: the call that succeeded has written it.
        let _ = BEFORE.set(unsafe { before.assume_init() });
        Ok(())
    };
    TAKEN.get_or_init(take).map_err(io::Error::from_raw_os_error)
}

extern "C" fn on_sigbus(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: with SA_SIGINFO the kernel hands over a valid `siginfo_t`, which for SIGBUS has an address.
    let at = unsafe { (*info).si_addr() } as usize;
    let holds = |slot: &&Slot| {
        let from = slot.from.load(Ordering::Acquire);
        from > TAKEN && from <= at && at < slot.to.load(Ordering::Relaxed)
    };
    let Some(slot) = SLOTS.iter().find(holds) else { return pass_on(signal, info, context) };
    // SAFETY: sysconf and mmap are system calls, or read what never changes. The pages are those of a map that its owner keeps, behind the
    // end of its file: nobody has read them.
    let is_replaced = unsafe {
        let page = libc::sysconf(libc::_SC_PAGESIZE) as usize;
        let from = at - at % page;
        let length = slot.to.load(Ordering::Relaxed) - from;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | libc::MAP_NORESERVE;
        libc::mmap(from as *mut libc::c_void, length, libc::PROT_READ, flags, -1, 0) != libc::MAP_FAILED
    };
    if !is_replaced {
        return pass_on(signal, info, context);
    }
    slot.is_torn.store(true, Ordering::Relaxed);
}

/// Does what the program did before: another handler gets it, and without one the access that is tried again ends the program.
fn pass_on(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let before = BEFORE.get().filter(|before| ![libc::SIG_DFL, libc::SIG_IGN].contains(&before.sa_sigaction));
    // SAFETY: what stands in a `sigaction` is a function of the type that its flags say; `signal` may be called in a handler (signal-safety(7)).
    unsafe {
        match before {
            Some(before) if before.sa_flags & libc::SA_SIGINFO != 0 => {
                let handler: extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void) =
                    std::mem::transmute(before.sa_sigaction);
                handler(signal, info, context);
            }
            Some(before) => {
                let handler: extern "C" fn(i32) = std::mem::transmute(before.sa_sigaction);
                handler(signal);
            }
            None => {
                libc::signal(signal, libc::SIG_DFL);
            }
        }
    }
}
