//! Rule 10: a peer that wants to be kicked all the time, one that kicks for nothing, and one whose kick gets lost.

use super::super::peer::Link;
use super::super::rings::refused;
use super::honest::{Honest, PATIENCE, buffer, consumer, met, producer, ring, said, waiting};
use super::script::{HANGS_AFTER, Script};
use base::channel::Fault;
use channel::hostile::CONSUMER_WANTS;
use channel::{Bell, Policy, Ticks, Waiting};
use lab::Error;
use std::time::Duration;

/// Wishes for kicks, and kicks that nobody sent.
const WISHES: u64 = 1_000;
const SPURIOUS: u64 = 50;

/// Rule 10.
pub(super) fn too_many_and_lost(ticks: Ticks) -> Result<Fault, Error> {
    let mut script = Script::of(10, "1,000 wishes for a kick, 50 kicks for nothing, a kick that gets lost");
    let (ring, bytes) = ring()?;
    let wishes = |_: &mut Link| {
        let (mut producer, mut consumer, mut out) = (producer(&ring), consumer(&ring), buffer());
        let mut sending = waiting(Policy::Poll, ticks, None)?.kicking_every(Duration::from_secs(3_600));
        for _ in 0..WISHES {
            bytes.set(CONSUMER_WANTS, 1);
            producer.push_kicking(&[b"a"], &mut sending).map_err(said)?;
            consumer.pop_batch(&mut out, 32).map_err(said)?;
        }
        Ok(Honest::of(producer.stats().kicks_held, producer.stats().kicks > 1))
    };
    script.inject(WISHES, wishes, |_| {})?;

    let (bell, rung) = (Bell::new().map_err(refused)?, Bell::new().map_err(refused)?);
    let file = bell.file().try_clone_to_owned().map_err(|error| Error::refused("an eventfd", error))?;
    let theirs = Bell::received(file).map_err(refused)?;
    let (heard, _) = self::ring()?;
    let work = |link: &mut Link| {
        let (mut producer, mut consumer, mut out) = (producer(&heard), consumer(&heard), buffer());
        let mut receiving = Waiting::new(Policy::Kick, ticks, theirs, rung, None);
        met(link)?;
        let silent = consumer.pop_some(&mut out, 8, &mut receiving, PATIENCE);
        // It arrives though nobody kicks.
        producer.push_batch(&[b"a"]).map_err(said)?;
        let arrived = consumer.pop_some(&mut out, 8, &mut receiving, HANGS_AFTER / 2);
        Ok(Honest::of(0, silent.is_ok() || arrived != Ok(1)))
    };
    script.inject(SPURIOUS + 1, work, |peer| {
        peer.meet(|| bell.ring());
        for _ in 1..SPURIOUS {
            bell.ring();
            std::thread::sleep(PATIENCE / SPURIOUS as u32);
        }
    })?;
    let mut fault = script.fault();
    if fault.survived == Some(true) {
        fault.why = "wishes that came too soon are counted, kicks for nothing and lost ones cost a look".to_owned();
    }
    Ok(fault)
}
