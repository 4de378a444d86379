//! Rule 11, and what a window keeps out: a child process that accesses the memory while its window is closed ends by SIGSEGV.

use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;
use std::time::Duration;

use kvmscope_channel::protocol::{Shared, Word};
use kvmscope_channel::{Error, Mprotect, Open, Pkey, Producer, Ring, Ticks, Window, WindowKind};

use super::peer::{again, header, role, said, start};

/// The same mapping by a door that has no window, for the handler of a signal.
static DOOR: OnceLock<Ring> = OnceLock::new();

fn look() -> u64 {
    Open::over(DOOR.get().unwrap().halves()).with(|raw| raw.peek(Word::Head))
}

extern "C" fn looks(_: libc::c_int) {
    look();
}

/// Not a test of its own: what the children of those below do.
#[test]
fn access_in_a_child() {
    let Some(role) = role() else { return };
    let (kind, way) = role.split_once(' ').unwrap();
    let ring = again(&Ring::shared(header(8)).unwrap());
    DOOR.set(ring.clone()).unwrap();
    match kind {
        "pkey" => access(Pkey::over(ring.halves()).unwrap(), way),
        "mprotect" => access(Mprotect::over(ring.halves()).unwrap(), way),
        _ => access(Open::over(ring.halves()), way),
    }
}

fn access(mut window: impl Window, way: &str) {
    window.with(|raw| raw.release(Word::Head, 3));
    println!("used inside");
    match way {
        "after it closed" => {}
        "after a panic" => {
            let panicked = catch_unwind(AssertUnwindSafe(|| window.with(|_| panic!("inside of the window"))));
            assert!(panicked.is_err());
        }
        "in a signal handler" => {
            // SAFETY: the handler reads shared memory and nothing else.
            unsafe { libc::signal(libc::SIGUSR1, looks as *const () as libc::sighandler_t) };
            // SAFETY: its handler is the one above.
            window.with(|_| unsafe { libc::raise(libc::SIGUSR1) });
            println!("accessible");
            return;
        }
        "in another thread" => {
            // Started before: a thread that is started inside inherits the rights of the one that starts it.
            let (go, going) = std::sync::mpsc::channel();
            let other = std::thread::spawn(move || going.recv().map(|()| look()));
            window.with(|_| {
                go.send(()).unwrap();
                other.join().unwrap().unwrap();
            });
            println!("accessible");
            return;
        }
        other => panic!("{other}"),
    }
    look();
    println!("accessible");
}

/// How a child ended.
fn accessible(kind: &str, way: &str) -> bool {
    let (mut child, _) = start("window::access_in_a_child", &format!("{kind} {way}"), None::<OwnedFd>);
    let status = child.wait().unwrap();
    let said = said(&mut child);
    assert!(said.contains("used inside"), "{kind} {way}: {status}\n{said}");
    match (status.success(), status.signal()) {
        (true, _) => {
            assert!(said.contains("accessible"), "{kind} {way}: {said}");
            true
        }
        (_, Some(libc::SIGSEGV)) => false,
        _ => panic!("{kind} {way}: {status}\n{said}"),
    }
}

fn has_keys() -> bool {
    let ring = Ring::shared(header(8)).unwrap();
    match Pkey::over(ring.halves()) {
        Ok(_) => true,
        Err(Error::Kernel { source, .. }) => {
            eprintln!("skipped: no memory protection key here: {source}");
            false
        }
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn rule_11_a_window_of_a_protection_key_is_closed_on_every_way_out() {
    if !has_keys() {
        return;
    }
    for way in ["after it closed", "after a panic", "in a signal handler", "in another thread"] {
        assert!(!accessible("pkey", way), "{way}");
    }
}

#[test]
fn rule_11_a_window_of_mprotect_is_closed_after_its_batch_and_open_to_all_threads_meanwhile() {
    assert!(!accessible("mprotect", "after it closed"));
    assert!(!accessible("mprotect", "after a panic"));
    assert!(accessible("mprotect", "in another thread"), "docs/labs/channel.md says so");
}

#[test]
fn without_a_window_all_is_accessible_all_the_time() {
    for way in ["after it closed", "in a signal handler"] {
        assert!(accessible("none", way), "{way}");
    }
}

#[test]
fn a_thread_that_never_opened_a_window_has_it_closed() {
    if !has_keys() {
        return;
    }
    // Opened by one thread that ends inside: the next one that runs begins with rights of its own.
    let ring = again(&Ring::shared(header(8)).unwrap());
    let mut producer = Producer::new(&ring, Pkey::over(ring.halves()).unwrap());
    let sent = std::thread::spawn(move || {
        producer.push_batch(&[b"from another thread"]).unwrap();
        (producer.window().kind(), producer)
    });
    let (kind, mut producer) = sent.join().unwrap();
    producer.push_batch(&[b"from this one"]).unwrap();
    assert_eq!((kind, producer.stats().packets), (WindowKind::Pkey, 2));
}

#[test]
fn windows_are_timed_and_what_came_after_a_moment_can_be_told_from_what_came_before() {
    let ring = again(&Ring::shared(header(8)).unwrap());
    let mut producer =
        Producer::new(&ring, Mprotect::over(ring.halves()).unwrap()).timed(Ticks::measured(Duration::from_millis(20)));
    producer.push_batch(&[b"a", b"b"]).unwrap();
    let before = producer.stats().clone();
    for _ in 0..3 {
        producer.push_batch(&[b"c"]).unwrap();
    }
    let after = producer.stats().since(&before);
    assert_eq!((before.packets, after.packets, after.batches, after.bytes), (2, 3, 3, 3));
    assert_eq!((before.window_open_ns.len(), after.window_open_ns.len()), (1, 3));
    let all = producer.stats().window_open_sum_ns;
    assert!(after.window_open_sum_ns > 0 && before.window_open_sum_ns + after.window_open_sum_ns == all);
}

#[test]
fn keys_are_given_back_and_a_sixteenth_is_refused_aloud() {
    if !has_keys() {
        return;
    }
    let rings: Vec<Ring> = (0..20).map(|_| again(&Ring::shared(header(8)).unwrap())).collect();
    for _ in 0..3 {
        let windows: Vec<_> = rings.iter().map_while(|ring| Pkey::over(ring.halves()).ok()).collect();
        // Other tests of this process may hold one.
        assert!((1..=15).contains(&windows.len()), "{}", windows.len());
        let beside = windows[0].beside(rings[19].halves());
        assert!(beside.is_ok(), "channels that are trusted alike share a key");
    }
}
