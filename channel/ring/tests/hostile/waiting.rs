//! Rules 7, 8 (a peer that dies) and 10.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use kvmscope_channel::{Bell, FrameBuf, Peer, PeerFault, Policy, Rest, Ticks, Waiting};

use super::peer::{CONSUMER_WANTS, pair, role, start};

const POLICIES: [Policy; 3] = [Policy::Poll, Policy::Kick, Policy::Adaptive { spin_ns: 20_000 }];

fn bell(file: &Bell) -> Bell {
    Bell::received(file.file().try_clone_to_owned().unwrap()).unwrap()
}

fn ticks() -> Ticks {
    Ticks::measured(Duration::from_millis(20))
}

#[test]
fn only_an_eventfd_is_a_bell() {
    let (pipe, _other) = std::io::pipe().unwrap();
    let refused = Bell::received(pipe.into()).unwrap_err();
    assert!(refused.to_string().contains("no eventfd"), "{refused}");
}

/// Both sides' waiting, each with the bell that the other rings.
fn both(policy: Policy) -> (Waiting, Waiting) {
    let (a, b) = (Bell::new().unwrap(), Bell::new().unwrap());
    let ticks = ticks();
    let sending = Waiting::new(policy, ticks, bell(&a), bell(&b), None);
    (sending, Waiting::new(policy, ticks, b, a, None))
}

#[test]
fn rule_7_nobody_waits_longer_than_asked_for_a_silent_peer() {
    let limit = Duration::from_millis(30);
    for policy in POLICIES {
        let (mut producer, mut consumer, _, _) = pair(2);
        let (mut sending, mut receiving) = both(policy);
        let mut out = FrameBuf::new(4, 120);
        let stalled = consumer.pop_some(&mut out, 4, &mut receiving, limit).unwrap_err();
        assert!(matches!(stalled, PeerFault::Stalled { ns } if ns >= 30_000_000), "{policy:?}: {stalled}");
        let stalled = producer.push_all(&[b"a", b"b", b"c"], &mut sending, limit).unwrap_err();
        assert!(matches!(stalled, PeerFault::Stalled { .. }), "{policy:?}: {stalled}");
        // What was sent until then has arrived, and a stalled channel is not a closed one.
        assert_eq!((producer.stats().packets, producer.stats().faults[3]), (2, 1));
        assert_eq!(consumer.pop_batch(&mut out, 4), Ok(2));
        assert_eq!(producer.push_batch(&[b"c"]).unwrap().rest, Rest::None);
    }
}

#[test]
fn rule_8_a_peer_that_is_killed_is_gone_and_not_waited_for() {
    for policy in POLICIES {
        let (mut producer, mut consumer, _, _) = pair(2);
        let (mut child, _) = start("waiting::a_peer_that_sleeps", "sleeper", None::<OwnedFd>);
        let (a, b) = (Bell::new().unwrap(), Bell::new().unwrap());
        let peer = || Some(Peer::process(child.id()).unwrap());
        let mut receiving = Waiting::new(policy, ticks(), bell(&a), bell(&b), peer());
        let mut sending = Waiting::new(policy, ticks(), a, b, peer());
        let pid = child.id();
        let killer = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(50));
            let pid = rustix::process::Pid::from_raw(pid as i32).unwrap();
            rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
        });
        let gone = consumer.pop_some(&mut FrameBuf::new(4, 120), 4, &mut receiving, Duration::from_secs(60));
        assert_eq!(gone, Err(PeerFault::Gone), "{policy:?}");
        killer.join().unwrap();
        let gone = producer.push_all(&[b"a", b"b", b"c"], &mut sending, Duration::from_secs(60));
        assert_eq!(gone, Err(PeerFault::Gone), "{policy:?}");
        child.wait().unwrap();
    }
}

/// Not a test of its own: the process that the one above kills.
#[test]
fn a_peer_that_sleeps() {
    if role().as_deref() == Some("sleeper") {
        loop {
            std::thread::park();
        }
    }
}

#[test]
fn rule_10_kicks_that_nobody_sent_and_kicks_that_got_lost_are_survived() {
    let (mut producer, mut consumer, _, _) = pair(8);
    let (rings, never) = (Bell::new().unwrap(), Bell::new().unwrap());
    let deaf = Bell::new().unwrap();
    // It is rung all the time, with nothing there.
    let ringer = {
        let rings = bell(&rings);
        std::thread::spawn(move || {
            for _ in 0..200 {
                rings.ring();
                std::thread::sleep(Duration::from_micros(100));
            }
        })
    };
    let mut receiving = Waiting::new(Policy::Kick, ticks(), rings, deaf, None);
    let mut out = FrameBuf::new(8, 120);
    let silent = consumer.pop_some(&mut out, 8, &mut receiving, Duration::from_millis(10));
    assert!(matches!(silent, Err(PeerFault::Stalled { .. })));
    ringer.join().unwrap();
    // It sleeps, and the producer rings a bell that it does not hear: it looks again after a nap.
    let mut receiving = Waiting::new(Policy::Kick, ticks(), never, Bell::new().unwrap(), None);
    let sender = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(20));
        producer.push_batch(&[b"heard"]).unwrap();
        producer
    });
    assert_eq!(consumer.pop_some(&mut out, 8, &mut receiving, Duration::from_secs(30)), Ok(1));
    sender.join().unwrap();
}

#[test]
fn rule_10_a_peer_that_always_wants_kicks_gets_one_in_a_while() {
    let sends = |least: Duration| {
        let (mut producer, mut consumer, peer, _) = pair(256);
        let mut sending = both(Policy::Poll).0.kicking_every(least);
        let mut out = FrameBuf::new(256, 120);
        for _ in 0..1_000 {
            peer.set(CONSUMER_WANTS, 1);
            producer.push_kicking(&[b"a"], &mut sending).unwrap();
            consumer.pop_batch(&mut out, 256).unwrap();
        }
        (producer.stats().kicks, producer.stats().kicks_held)
    };
    assert_eq!(sends(Duration::from_secs(3600)), (1, 999));
    assert_eq!(sends(Duration::ZERO), (1_000, 0));
    // One that was held is sent later, though nobody asks again.
    let (mut producer, _, peer, _) = pair(256);
    let mut sending = both(Policy::Poll).0.kicking_every(Duration::from_millis(20));
    peer.set(CONSUMER_WANTS, 1);
    producer.push_kicking(&[b"a"], &mut sending).unwrap();
    producer.push_kicking(&[b"b"], &mut sending).unwrap();
    peer.set(CONSUMER_WANTS, 0);
    std::thread::sleep(Duration::from_millis(25));
    producer.push_kicking(&[b"c"], &mut sending).unwrap();
    assert_eq!(producer.stats().kicks, 2);
}

#[test]
fn rule_7_a_peer_that_makes_the_bell_one_that_waits_holds_nobody_up() {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::fs::{OFlags, fcntl_setfl};
    let (empty, full) = (Bell::new().unwrap(), Bell::new().unwrap());
    // Flags belong to the open file, which both sides have.
    for file in [&empty, &full] {
        fcntl_setfl(bell(file).file(), OFlags::empty()).unwrap();
    }
    rustix::io::write(full.file(), &(u64::MAX - 1).to_ne_bytes()).unwrap();
    let done = std::thread::spawn(move || {
        empty.sleep(Duration::from_millis(5), None);
        full.ring();
        full.sleep(Duration::from_secs(600), None);
        full
    });
    let patience = Instant::now() + Duration::from_secs(60);
    while !done.is_finished() && Instant::now() < patience {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(done.is_finished(), "it waits for the peer without a bound");
    // It has heard all rings at once.
    let full = done.join().unwrap();
    let bell = full.file();
    let mut bell = [PollFd::new(&bell, PollFlags::IN)];
    assert_eq!(poll(&mut bell, Some(&Timespec::default())), Ok(0), "a bell that was heard still rings");
}

#[test]
fn only_who_sleeps_asks_to_be_kicked() {
    for (policy, asks) in [(Policy::Poll, false), (Policy::Kick, true), (Policy::Adaptive { spin_ns: 1_000_000 }, true)]
    {
        let (_, mut consumer, peer, _) = pair(8);
        let mut receiving = both(policy).1;
        let waiting = std::thread::spawn(move || {
            let _ = consumer.pop_some(&mut FrameBuf::new(8, 120), 8, &mut receiving, Duration::from_millis(60));
        });
        let mut asked = false;
        while !waiting.is_finished() {
            asked |= peer.get(CONSUMER_WANTS) == 1;
        }
        waiting.join().unwrap();
        assert_eq!((asked, peer.get(CONSUMER_WANTS)), (asks, 0), "{policy:?}");
    }
}

/// The last frame of a burst is not lost between arming and sleeping: one frame at a time, and naps that would show.
#[test]
fn one_frame_at_a_time_wakes_who_sleeps() {
    let rounds = if std::env::var_os("KVMSCOPE_TORTURE").is_some() { 10_000_000 } else { 20_000 };
    let (mut to, mut at, _, _) = pair(8);
    let (mut back, mut here, _, _) = pair(8);
    let (mut sending, mut receiving) = both(Policy::Kick);
    let echo = std::thread::spawn(move || {
        let mut out = FrameBuf::new(8, 120);
        let (mut answering, _) = both(Policy::Poll);
        for _ in 0..rounds {
            at.pop_some(&mut out, 8, &mut receiving, Duration::from_secs(60)).unwrap();
            back.push_all(&[out.iter().next().unwrap()], &mut answering, Duration::from_secs(60)).unwrap();
        }
        at.stats().packets
    });
    let (_, mut polling) = both(Policy::Poll);
    let mut out = FrameBuf::new(8, 120);
    for round in 0..rounds as u64 {
        to.push_all(&[&round.to_le_bytes()], &mut sending, Duration::from_secs(60)).unwrap();
        here.pop_some(&mut out, 8, &mut polling, Duration::from_secs(60)).unwrap();
        assert_eq!(out.iter().next().unwrap(), round.to_le_bytes());
    }
    assert_eq!(echo.join().unwrap(), rounds as u64);
}
