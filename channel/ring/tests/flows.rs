//! A table that changes 10,000 times per second under full load: what is delivered is held against the log of all changes.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kvmscope_channel::{
    Access, Consumer, FlowView, Flows, FrameBuf, Header, Lengths, Open, Producer, Region, Ring, Shape, Ticks, Verdict,
};
use proptest::prelude::*;

fn view(flows: &Flows) -> FlowView {
    FlowView::of(Region::received(flows.region().file().try_clone_to_owned().unwrap(), Access::Read).unwrap()).unwrap()
}

#[test]
fn a_frame_is_late_from_its_revocation_on_and_dropped_after_the_grace_period() {
    let mut flows = Flows::new(64, 3).unwrap();
    let mut guest = view(&flows);
    let sent = flows.allow(7, 2).unwrap() as u32;
    guest.refresh().unwrap();
    assert_eq!((guest.route(7), guest.route(8)), (Some(2), None));
    assert_eq!(guest.judge(7, sent, 2), Verdict::Deliver);
    assert_eq!(guest.judge(7, sent, 1), Verdict::NotAllowed, "it was not for this one");
    assert_eq!(guest.judge(7, sent - 1, 2), Verdict::NotAllowed, "sent before there was a rule");
    flows.revoke(7);
    for others in 0..6 {
        guest.refresh().unwrap();
        let wanted = if others <= 3 { Verdict::DeliverLate } else { Verdict::Revoked };
        assert_eq!((guest.route(7), guest.judge(7, sent, 2)), (None, wanted), "{others} epochs later");
        flows.allow(100 + others, 1).unwrap();
    }
    // Allowed once more: what was sent before stays what it was.
    let again = flows.allow(7, 2).unwrap() as u32;
    guest.refresh().unwrap();
    assert_eq!((guest.judge(7, sent, 2), guest.judge(7, again, 2)), (Verdict::Revoked, Verdict::Deliver));
    assert_eq!(guest.judge(7, again - 1, 2), Verdict::NotAllowed, "sent between two rules");
}

#[test]
fn a_rule_that_moves_to_another_port_revokes_the_first() {
    let mut flows = Flows::new(64, 0).unwrap();
    let mut guest = view(&flows);
    let first = flows.allow(7, 1).unwrap() as u32;
    let second = flows.allow(7, 2).unwrap() as u32;
    assert_eq!(flows.allow(7, 2).unwrap() as u32, second, "nothing changes, no epoch begins");
    guest.refresh().unwrap();
    assert_eq!(guest.judge(7, first, 1), Verdict::DeliverLate);
    assert_eq!(guest.judge(7, first, 2), Verdict::NotAllowed);
    flows.allow(8, 1).unwrap();
    guest.refresh().unwrap();
    assert_eq!((guest.judge(7, first, 1), guest.judge(7, second, 2)), (Verdict::Revoked, Verdict::Deliver));
}

#[test]
fn a_full_table_refuses_and_forgets_only_what_nobody_may_send_any_more() {
    let mut flows = Flows::new(16, 2).unwrap();
    let (mut allowed, mut guest) = (0, view(&flows));
    while flows.allow(allowed, 1).is_ok() {
        allowed += 1;
    }
    assert_eq!(allowed, 12);
    assert_eq!(flows.allow(1000, 1).unwrap_err().to_string(), "the flow table is full: 16 places");
    for key in 0..6 {
        flows.revoke(key);
    }
    assert!(flows.allow(1000, 3).is_ok(), "keys make room, but for those that are late");
    guest.refresh().unwrap();
    let late: Vec<Verdict> = [2, 3, 4, 5].map(|key| guest.judge(key, key as u32 + 1, 1)).to_vec();
    let wanted = [Verdict::NotAllowed, Verdict::Revoked, Verdict::DeliverLate, Verdict::DeliverLate];
    assert_eq!(late, wanted, "the first is forgotten, the second was late until now");
    assert_eq!(guest.route(1000), Some(3));
    assert!((6..12).all(|key| guest.route(key) == Some(1)));
    assert!((0..6).all(|key| guest.route(key).is_none()));
}

#[test]
fn a_region_that_is_no_table_is_refused() {
    for bytes in [100, 4096, 8192] {
        let file = Region::shared("kvmscope-test", bytes).unwrap().file().try_clone_to_owned().unwrap();
        assert!(FlowView::of(Region::received(file, Access::Read).unwrap()).is_err());
    }
}

/// What a reader that knows all of history says.
#[derive(Default)]
struct Oracle {
    /// Of each key: from this epoch on it goes to this port, or nowhere.
    log: HashMap<u64, Vec<(u64, Option<u16>)>>,
}

impl Oracle {
    fn change(&mut self, key: u64, epoch: u64, port: Option<u16>) {
        let changes = self.log.entry(key).or_default();
        if changes.last().map(|&(_, last)| last) != Some(port) && (port.is_some() || !changes.is_empty()) {
            changes.push((epoch, port));
        }
    }

    /// Whether a frame that was sent by one epoch may be delivered in another.
    fn allows(&self, key: u64, sent: u64, here: u16, now: u64, grace: u64) -> bool {
        let Some(changes) = self.log.get(&key) else { return false };
        let by = changes.partition_point(|&(epoch, _)| epoch <= sent);
        if by == 0 || changes[by - 1].1 != Some(here) {
            return false;
        }
        // The next change took the rule away.
        changes.get(by).is_none_or(|&(epoch, _)| epoch > now || now - epoch <= grace)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn nothing_is_delivered_that_all_of_history_forbids(
        changes in prop::collection::vec((0u64..6, prop::option::of(1u16..3)), 1..200),
        grace in 0u64..5,
    ) {
        let mut flows = Flows::new(16, grace).unwrap();
        let (mut guest, mut oracle) = (view(&flows), Oracle::default());
        for (key, port) in changes {
            let epoch = match port {
                Some(port) => flows.allow(key, port).unwrap(),
                None => flows.revoke(key),
            };
            oracle.change(key, epoch, port);
            guest.refresh().unwrap();
            for sent in epoch.saturating_sub(12)..=epoch {
                for (key, here) in (0..6).flat_map(|key| [(key, 1), (key, 2)]) {
                    let verdict = guest.judge(key, sent as u32, here);
                    let allowed = oracle.allows(key, sent, here, epoch, grace);
                    prop_assert!(!verdict.delivers() || allowed, "{key} by {sent} at {here}, now {epoch}: {verdict:?}");
                    // And what the rule of now allows arrives.
                    let stands = oracle.allows(key, sent, here, u64::MAX, 0);
                    prop_assert!(!stands || verdict == Verdict::Deliver, "{key} by {sent} at {here}, now {epoch}");
                }
            }
        }
    }
}

const GRACE: u64 = 50;
const KEYS: u64 = 64;

/// What was delivered: the key, the epoch it was sent by, and when the receiver began to look at it.
struct Delivered {
    key: u64,
    sent: u32,
    looked: u64,
}

#[test]
fn under_ten_thousand_changes_per_second_nothing_is_misdelivered() {
    let seconds = if std::env::var_os("KVMSCOPE_TORTURE").is_some() { 60 } else { 2 };
    let ticks = Ticks::measured(Duration::from_millis(50));
    let mut flows = Flows::new(256, GRACE).unwrap();
    let (mut sending, mut receiving) = (view(&flows), view(&flows));
    let shape = Shape::for_frames(512, 64, Lengths::InSlot).unwrap();
    let ring = Ring::shared(Header { shape, generation: 1, producer: 0, consumer: 1 }).unwrap();
    let stop = AtomicBool::new(false);
    let (log, sent, delivered, dropped) = std::thread::scope(|scope| {
        let changing = scope.spawn(|| {
            let (mut log, mut state) = (Vec::new(), 0x2545_f491_4f6c_dd1du64);
            let every = ticks.of_ns(100_000);
            let (begun, mut due) = (Ticks::now(), Ticks::now());
            while ticks.ns(Ticks::now().wrapping_sub(begun)) < seconds * 1_000_000_000 {
                if Ticks::now() < due {
                    // There may be one CPU for all of them.
                    std::thread::yield_now();
                    continue;
                }
                due = due.wrapping_add(every);
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let (key, port) = ((state >> 33) % KEYS, (state >> 50) % 3);
                let (epoch, port) = match port {
                    0 => (flows.revoke(key), None),
                    port => (flows.allow(key, port as u16).unwrap(), Some(port as u16)),
                };
                // After it was published: a receiver that began to look before may not have seen it.
                log.push((key, epoch, port, Ticks::now()));
            }
            stop.store(true, Ordering::Release);
            log
        });
        let sender = scope.spawn(|| {
            let mut producer = Producer::new(&ring, Open::over(ring.halves()));
            let mut key = 0;
            while !stop.load(Ordering::Acquire) {
                let _ = sending.refresh();
                producer.decide_by(sending.epoch() as u32);
                key = (key + 1) % KEYS;
                // Only to port 1 there is a ring.
                if sending.route(key) == Some(1) {
                    producer.push_batch(&[&key.to_le_bytes()[..]; 8]).unwrap();
                } else if key == 0 {
                    std::thread::yield_now();
                }
            }
            producer.stats().packets
        });
        let receiver = scope.spawn(|| {
            let mut consumer = Consumer::new(&ring, Open::over(ring.halves()));
            let mut out = FrameBuf::new(32, shape.frame_bytes());
            let (mut delivered, mut dropped) = (Vec::new(), 0u64);
            while !stop.load(Ordering::Acquire) {
                if consumer.pop_batch(&mut out, 32).unwrap() == 0 {
                    std::thread::yield_now();
                    continue;
                }
                // A slow receiver, so that frames are late.
                if consumer.stats().batches.is_multiple_of(64) {
                    std::thread::sleep(Duration::from_micros(300));
                }
                let looked = Ticks::now();
                let fresh = receiving.refresh().is_ok();
                for (frame, &sent) in out.iter().zip(consumer.epochs()) {
                    let key = u64::from_le_bytes(frame.try_into().unwrap());
                    if fresh && receiving.judge(key, sent, 1).delivers() {
                        delivered.push(Delivered { key, sent, looked });
                    } else {
                        dropped += 1;
                    }
                }
            }
            (delivered, dropped)
        });
        let (delivered, dropped) = receiver.join().unwrap();
        (changing.join().unwrap(), sender.join().unwrap(), delivered, dropped)
    });

    let mut oracle = Oracle::default();
    for &(key, epoch, port, _) in &log {
        oracle.change(key, epoch, port);
    }
    let misdelivered = delivered.iter().filter(|frame| {
        // What had surely been published when the receiver looked.
        let known = log.partition_point(|&(.., published)| published < frame.looked);
        let now = log[..known].last().map_or(0, |&(_, epoch, ..)| epoch);
        let sent = u64::from(frame.sent);
        !oracle.allows(frame.key, sent, 1, now.max(sent), GRACE)
    });
    assert_eq!(misdelivered.count(), 0);
    println!("{} changes, {sent} sent, {} delivered, {dropped} dropped", log.len(), delivered.len());
    assert!(log.len() as u64 > seconds * 1_000 && !delivered.is_empty());
}
