//! The kernel's programs do what the interpreter does: event by event, and on this machine as it is.

mod load;
mod streams;

use kvmscope_fold::{Fold, Options, RECORD_WORDS, Session, State, ThreadReading, Word};
use std::path::Path;
use testing::{Hogs, machine, wait_for};

/// Events kept of each CPU: more than any test makes.
const RING: u32 = 1 << 16;

/// A session, or why this host has none.
fn session(options: Options) -> Option<Session> {
    match Session::start(Path::new("/"), options) {
        Ok(session) => Some(session),
        Err(error) => {
            println!("skipped: the fold in the kernel: {error}");
            None
        }
    }
}

/// Why nothing can be folded here, said.
fn cannot() -> bool {
    let why = testing::cannot_record();
    why.into_iter().for_each(|why| println!("skipped: the fold in the kernel: {why}"));
    let no_guest = !Path::new("/dev/kvm").exists();
    if no_guest {
        println!("skipped: the fold in the kernel: there is no /dev/kvm");
    }
    why.is_some() || no_guest
}

/// Words that a replay does not have: those of concurrency, of a process that the ring does not name, and of its other vCPUs.
const ASIDE: [Word; 10] = [
    Word::Seq,
    Word::Busy,
    Word::Tgid,
    Word::Vm,
    Word::BusyFrom,
    Word::BusyWoken,
    Word::TornNs,
    Word::QueueHead,
    Word::QueueTail,
    Word::QueueLost,
];

/// The words of a record that are compared: the places of the queue hold what was in it.
fn compared(record: &[u64; RECORD_WORDS]) -> Vec<(usize, u64)> {
    let queue = RECORD_WORDS - 32;
    let aside = |at: &usize| ASIDE.iter().all(|word| *word as usize != *at) && *at != Word::QueueSeen as usize;
    (0..queue).filter(aside).map(|at| (at, record[at])).collect()
}

fn sorted<const N: usize>(rows: impl Iterator<Item = [u64; N]>) -> Vec<[u64; N]> {
    let mut rows: Vec<_> = rows.collect();
    rows.sort_unstable();
    rows
}

/// What the ring holds, replayed, is what the kernel folded.
fn equals_its_ring(session: &Session) -> Fold {
    let (events, more) = session.events();
    assert_eq!(more, 0, "the ring holds everything");
    let mut fold = Fold::default();
    events.into_iter().for_each(|event| fold.take(event));
    let reading = session.read();
    assert!(!reading.threads.is_empty());
    for thread in &reading.threads {
        let (record, rows) = session.raw(thread.index).unwrap();
        assert_eq!(
            compared(&record),
            compared(&fold.record(thread.index)),
            "record {} of thread {}",
            thread.index,
            thread.tid
        );
        let own = fold.rows().iter().filter(|row| row[0] == u64::from(thread.index)).copied();
        assert_eq!(sorted(rows.into_iter()), sorted(own), "rows of {}", thread.index);
        assert_eq!(record[Word::QueueLost as usize], 0);
        // Another CPU may look at a wait in the moment in which it ends.
        let own = fold.takers().iter().filter(|((index, _), _)| *index == thread.index);
        let ours: u64 = own.map(|(_, taken)| taken.total_ns).sum();
        let theirs: u64 = thread.totals.takers.iter().map(|taker| taker.total_ns).sum();
        let waits_ns = thread.totals.ns(State::Preempted);
        let open_ns = thread.totals.at_ns - record[Word::Since as usize];
        assert!(ours.abs_diff(theirs) <= open_ns + 1_000 * thread.totals.events, "{ours} and {theirs} ns: {thread:?}");
        if thread.totals.missed == 0 {
            assert!(theirs <= waits_ns && waits_ns - theirs <= open_ns + 5_000 * thread.totals.events, "{thread:?}");
        }
    }
    fold
}

#[test]
fn what_is_folded_equals_the_replay_of_its_ring_to_the_nanosecond() {
    if cannot() {
        return;
    }
    let _machine = machine();
    for interrupts in [false, true] {
        let Some(mut session) = session(Options { ring: Some(RING), interrupts }) else { return };
        let hogs = Hogs::on(0, 1);
        load::guests();
        load::sleeps();
        drop(hogs);
        session.detach();
        let reading = session.read();
        let sum = |state: State| reading.threads.iter().map(|thread| thread.totals.ns(state)).sum::<u64>();
        assert!(sum(State::Userspace) > 0 && sum(State::Blocked) > 0, "{reading:?}");
        assert_eq!(sum(State::Irq) + sum(State::Softirq) > 0, interrupts, "{reading:?}");
        for thread in &reading.threads {
            assert_eq!(thread.totals.wall_ns(), thread.totals.at_ns - thread.totals.from_ns, "{thread:?}");
        }
        equals_its_ring(&session);
    }
}

#[test]
fn ready_is_what_the_scheduler_says() {
    if cannot() {
        return;
    }
    let _machine = machine();
    let Some(session) = session(Options::default()) else { return };
    let hogs = Hogs::on(0, 1);
    // The kernel may hide a switch of somebody else's from every tracer: then time is unknown, and said to be.
    wait_for("a run without a hole in which both say the same", || {
        let looked = load::measured(0, |tid, waited_ns| {
            (session.read().threads.into_iter().find(|thread| thread.tid == tid), waited_ns)
        });
        let Some((Some(thread), waited_ns)) = looked else { return false };
        // On a busy machine others may have been the only ones to take its CPU.
        let rival = thread.totals.takers.iter().any(|taker| taker.comm == "hogger" && taker.total_ns > 0);
        if thread.totals.missed > 0 || !rival {
            return false;
        }
        let ready_ns = thread.totals.ns(State::Preempted) + thread.totals.ns(State::WakeDelay);
        let error_ns = ready_ns.abs_diff(waited_ns);
        // The scheduler reads its own clock, in another place of each switch.
        let waits = thread.totals.wakeups.count() + thread.totals.takers.iter().map(|taker| taker.count).sum::<u64>();
        println!("{ready_ns} ns, and {waited_ns} by schedstat");
        // Where this machine is a guest itself, its host may take it between both readings.
        error_ns <= waited_ns / 10_000 + 1_000 * waits
    });
    drop(hogs);
}

#[test]
fn a_thread_that_sleeps_is_known_before_its_first_event() {
    if cannot() {
        return;
    }
    let _machine = machine();
    let Some(session) = session(Options::default()) else { return };
    let sleeper = load::Sleeper::new();
    session.expect(sleeper.tid, std::process::id(), || true).unwrap();
    let thread = |session: &Session| {
        session.read().threads.into_iter().find(|thread: &ThreadReading| thread.tid == sleeper.tid).unwrap()
    };
    wait_for("some sleep", || thread(&session).totals.ns(State::Blocked) > 1_000_000);
    let seen = thread(&session).totals;
    assert_eq!((seen.ns(State::Blocked), seen.events), (seen.wall_ns(), 0));
    session.forget(sleeper.tid).unwrap();
    session.forget(sleeper.tid).unwrap();
}

#[test]
fn nothing_stays_in_the_kernel_when_it_ends() {
    if cannot() {
        return;
    }
    let _machine = machine();
    let Some(session) = session(Options { ring: None, interrupts: true }) else { return };
    assert!(kvmscope_fold::loaded_programs().unwrap() >= 6);
    assert!(session.hears("sched/sched_switch") && session.since_ns() > 0 && session.instructions() > 1000);
    drop(session);
    wait_for("the kernel to let go", || kvmscope_fold::loaded_programs().unwrap() == 0);
}
