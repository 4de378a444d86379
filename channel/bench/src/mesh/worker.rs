//! What a machine and the switch have in common: they work by the clock of the host, then empty their rings, and watch their own time meanwhile.

use super::super::Plan;
use super::super::gauges::Gauges;
use super::super::machines::Turns;
use super::super::peer::{Cues, Link};
use super::super::side::{Counted, Look, Seen, Span, Watch, now};
use super::takes_turns;
use base::channel::Setup;
use channel::ChannelStats;

/// Frames on their way have so long to arrive after the last was sent.
const DRAINS_WITHIN_NS: u64 = 3_000_000_000;

/// What works in the time that is measured: a machine, or the switch.
pub(super) trait Worker {
    /// Its time is over: what it has to say before it hears how many frames were sent.
    fn over(&mut self, _: &mut Link) -> Result<(), String> {
        Ok(())
    }
    /// Of all frames that are sent and concern it, those that it has dealt with.
    fn done(&self) -> u64;
    /// Moves what there is to move, and nothing new when its time is over; whether something moved.
    fn turn(&mut self, is_over: bool, span: Span, watch: &mut Watch) -> Result<bool, String>;
}

/// Lets one work from the go of the host until its time is over, and then until all that was sent has arrived or is late: what it saw.
pub(super) fn work(
    plan: &Plan,
    setup: &Setup,
    cpu: u32,
    link: &mut Link,
    worker: &mut impl Worker,
) -> Result<Seen, String> {
    let (mut turns, nothing) = (Turns::new(takes_turns(plan, setup)), ChannelStats::default());
    let span = link.ready().ok_or("the host has ended")?;
    let mut watch = Watch::new(span).showing(Gauges::of(plan));
    let (mut since, mut until) = (Counted::now(&nothing), None);
    let give_up = span.until + (DRAINS_WITHIN_NS as f64 * span.per_ns) as u64;
    let mut sent = None;
    loop {
        let at = now();
        let look = watch.look(at);
        if look == Look::Begins {
            since = Counted::now(&nothing);
            watch.rested(now());
        }
        let is_over = look == Look::Ends;
        if is_over && until.is_none() {
            until = Some(Counted::now(&nothing));
            worker.over(link)?;
        }
        if is_over && sent.is_none() {
            sent = link.sent();
        }
        if at > give_up || sent.is_some_and(|sent| worker.done() >= sent) {
            break;
        }
        let moved = worker.turn(is_over, span, &mut watch)?;
        if moved {
            watch.moved();
        }
        turns.after(moved);
    }
    Ok(watch.seen(cpu, &since, &until.unwrap_or_else(|| Counted::now(&nothing))))
}
