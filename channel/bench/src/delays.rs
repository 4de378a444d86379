//! How long is a frame on its way at a rate that the path carries, and which rate is that?
//!
//! ```text
//! frame i is due at begin + i / rate    by the clock, whatever became of those before it; that time stands in the frame
//! producer   sends a batch when all of it is due, and kicks who sleeps; what finds no room is dropped and counted
//! consumer   polls or sleeps, as its policy is; looks at the counter once for each batch: its time less that of each frame is the delay
//! ```
//! So a frame that a full ring or a lost CPU held up counts from when it was due (no coordinated omission), and the delay of a batch has
//! the time in that the batch takes to fill. Rates: shares of the clean rate of just before, or given ones; then two searches by RFC 2544,
//! 26.1, for the highest rate that loses nothing and the highest that loses no more than 10 frames of a million, with the delays at both.

use super::frames::{Arrived, Batch, number_of};
use super::peer::{Cues, Link, Peer};
use super::rings::{Bells, Ends, NEVER_SAID, SAYS_WITHIN, ends, policy, pop_until_idle, settle};
use super::side::{Span, now};
use super::{Plan, rings};
use base::Histogram;
use base::channel::{Delays, GIVEN, LOSS_10_PPM, NO_LOSS, RECEIVER, SENDER, Search, Setup};
use channel::{Consumer, FrameBuf, Open, Policy, Producer, Ticks, Waiting};
use lab::Error;
use labs::bench::launch::ns_per_tick;
use labs::search::{Ended, Found, Goal, Range, Trial, binary};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Shares of the clean rate, in percent.
const SHARES: [u32; 3] = [10, 50, 90];
/// What is searched for: bounds 5 % apart, which is closer than two launches are.
const GOALS: [Goal; 2] = [
    Goal { name: NO_LOSS, loss_ratio: 0.0, width: 0.05, ..Goal::NDR },
    Goal { name: LOSS_10_PPM, loss_ratio: 1e-5, width: 0.05, ..Goal::NDR },
];
/// Trials of both searches together.
const MOST_TRIALS: u32 = 24;
/// Rates that are searched, as shares of the clean rate: from one that any path holds to one that none does.
const LEAST: f64 = 0.01;
const MOST: f64 = 1.25;
/// Frames are sent for so long before those that count, so that the first pages and branches are behind them.
const WARM_UP: Duration = Duration::from_millis(2);
/// Between the last word to the consumer and the first frame.
const HEAD_START: Duration = Duration::from_millis(2);
/// The last frames have so long to arrive.
const DRAINS_WITHIN: Duration = Duration::from_secs(2);
/// A producer that is behind by a larger share of its time at the end did not hold the rate; what disturbed it for less made frames late.
const BEHIND: f64 = 0.02;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Offered {
    /// Millions of frames per second; none: shares of the clean rate, and searches.
    pub mpps: Vec<f64>,
    /// How long each rate is offered.
    pub length: Duration,
    /// And how long in a search.
    pub trial: Duration,
}

impl Offered {
    pub fn results(&self) -> usize {
        if self.mpps.is_empty() { SHARES.len() + GOALS.len() } else { self.mpps.len() }
    }
}

/// What the consumer answers.
#[derive(Default, Serialize, Deserialize)]
struct Received {
    lost: u64,
    wrong: u64,
    hdr: Vec<(u64, u64)>,
}

/// Frames at one rate.
struct Offer {
    due: u64,
    dropped: u64,
    /// The sender was done so much later than it should have been, if that is more than a disturbance.
    behind_ns: u64,
    received: Received,
}

/// Delays of a path at each rate, with the delays as a distribution in ns.
///
/// # Errors
/// As `rings::carry`.
pub fn run(
    plan: &Plan,
    offered: &Offered,
    setup: &Setup,
    tell: &mut dyn FnMut(Delays, Option<Histogram>) -> Result<(), Error>,
) -> Result<(), Error> {
    let ticks = Ticks::new(1.0 / ns_per_tick());
    let at_rate = |load: String, clean_mpps: Option<f64>, mpps: f64| {
        let offer = offer(plan, setup, ticks, offered.length, mpps)?;
        Ok::<_, Error>(delays(setup, offered.length, load, clean_mpps, mpps, offer))
    };
    if !offered.mpps.is_empty() {
        for &mpps in &offered.mpps {
            let (delays, all) = at_rate(GIVEN.to_owned(), None, mpps)?;
            tell(delays, Some(all))?;
        }
        return Ok(());
    }
    let calibration = rings::carry(&Plan { length: offered.length, ..plan.clone() }, setup)?;
    let clean_mpps = calibration.clean_mpps().filter(|mpps| *mpps > 0.0);
    // Of a path that is disturbed all the time there is no other rate than the one with all disturbance in it.
    let clean = clean_mpps.unwrap_or(calibration.raw_mpps());
    // No frame arrived at all: there are no shares of that, and nothing to search.
    if clean <= 0.0 {
        for load in SHARES.map(|share| format!("{share} %")).into_iter().chain(GOALS.map(|goal| goal.name.to_owned())) {
            tell(nothing(setup, load), None)?;
        }
        return Ok(());
    }
    for share in SHARES {
        let mpps = clean * f64::from(share) / 100.0;
        let (delays, all) = at_rate(format!("{share} %"), clean_mpps, mpps)?;
        tell(delays, Some(all))?;
    }
    let pps = |share: f64| (clean * share * 1e6) as u64;
    let outcome = binary(&GOALS, &Range::new(pps(LEAST), pps(MOST), MOST_TRIALS), |pps| {
        let offer = offer(plan, setup, ticks, offered.trial, pps as f64 / 1e6)?;
        // What was due by the clock took exactly this.
        let by_clock_ns = (offer.due as f64 * 1e9 / pps as f64) as u64;
        Ok::<Trial, Error>(Trial {
            intended_pps: pps,
            sent: offer.due,
            received: offer.due.saturating_sub(offer.dropped + offer.received.lost),
            took_ns: by_clock_ns + offer.behind_ns,
            // The kernel counts it in ticks as long as a trial.
            steal_share: 0.0,
        })
    })?;
    for found in &outcome.found {
        let search = Some(searched(found, outcome.trials.len()));
        let load = found.goal.name.to_owned();
        match found.lower_pps {
            Some(pps) => {
                let (delays, all) = at_rate(load, clean_mpps, pps as f64 / 1e6)?;
                tell(Delays { search, ..delays }, Some(all))?;
            }
            None => tell(Delays { search, clean_mpps, ..nothing(setup, load) }, None)?,
        }
    }
    Ok(())
}

fn searched(found: &Found, trials: usize) -> Search {
    let mpps = |pps: Option<u64>| pps.map(|pps| pps as f64 / 1e6);
    let ended = match found.ended {
        Ended::Narrow => "both bounds were found".to_owned(),
        Ended::CarriesAll => "the highest rate that was offered is carried".to_owned(),
        Ended::CarriesLess => "even 1 % of the clean rate lost too many frames".to_owned(),
        Ended::SenderMissed { pps } => format!("the sender did not hold {pps} frames per second"),
        Ended::Stolen => "too much time was stolen".to_owned(),
        Ended::Trials => format!("the bounds were not closed within {MOST_TRIALS} trials"),
    };
    Search { lower_mpps: mpps(found.lower_pps), upper_mpps: mpps(found.upper_pps), ended, trials: trials as u32 }
}

fn nothing(setup: &Setup, load: String) -> Delays {
    Delays {
        setup: setup.clone(),
        load,
        rate_mpps: None,
        clean_mpps: None,
        ns: 0,
        behind_ns: 0,
        due: 0,
        dropped: 0,
        lost: 0,
        wrong: 0,
        max_ns: 0,
        search: None,
    }
}

fn delays(
    setup: &Setup,
    length: Duration,
    load: String,
    clean_mpps: Option<f64>,
    mpps: f64,
    offer: Offer,
) -> (Delays, Histogram) {
    let Offer { due, dropped, behind_ns, received } = offer;
    let mut all = Histogram::new();
    received.hdr.iter().for_each(|(ns, count)| all.record_many(*ns, *count));
    let delays = Delays {
        rate_mpps: Some(mpps),
        clean_mpps,
        ns: length.as_nanos() as u64,
        behind_ns,
        due,
        dropped,
        lost: received.lost,
        wrong: received.wrong,
        max_ns: all.max(),
        ..nothing(setup, load)
    };
    (delays, all)
}

/// Offers one rate for a while.
fn offer(plan: &Plan, setup: &Setup, ticks: Ticks, length: Duration, mpps: f64) -> Result<Offer, Error> {
    let Ends { ours, theirs, shape } = ends(plan, setup)?;
    let policy = policy(setup)?;
    let sleeps = policy != Policy::Poll;
    let Bells { of_sender, of_receiver } = Bells::new(policy, ticks)?;
    let mut peer = Peer::start(|link| {
        settle(plan, plan.cpus.1, RECEIVER).map_err(|error| error.to_string())?;
        // The producer waits for the clock alone, and never for room.
        let consumer = Consumer::new(&theirs, Open::over(theirs.halves())).polled();
        let frames = FrameBuf::new(setup.batch as usize, shape.frame_bytes());
        receive(setup, consumer, sleeps.then_some(of_receiver), frames, link)
    })?;
    settle(plan, plan.cpus.0, SENDER)?;
    let producer = Producer::new(&ours, Open::over(ours.halves()));
    let mut producer = if sleeps { producer } else { producer.polled() };
    let span = peer.begin(|| {
        let from = now() + ticks.of_ns((HEAD_START + WARM_UP).as_nanos() as u64);
        Span { from, until: from + ticks.of_ns(length.as_nanos() as u64), per_ns: ticks.per_ns() }
    })?;
    let schedule = Schedule::of(span, mpps);
    let (dropped, ended) = send(setup, &mut producer, of_sender, &schedule)?;
    let received: Received = peer.end(producer.stats().packets)?;
    let length_ns = length.as_nanos() as u64;
    let behind_ns = ticks.ns(ended.saturating_sub(span.until));
    let is_held = behind_ns as f64 <= BEHIND * length_ns as f64 + 1e6;
    Ok(Offer { due: schedule.counted(), dropped, behind_ns: if is_held { 0 } else { behind_ns }, received })
}

/// When each frame is due.
struct Schedule {
    begin: u64,
    span: Span,
    period: f64,
}

impl Schedule {
    /// At one rate until the end of `span`, from a little before it: only frames that are due inside of it count.
    fn of(span: Span, mpps: f64) -> Schedule {
        let warm_up = (WARM_UP.as_nanos() as f64 * span.per_ns) as u64;
        // Times are the frames' numbers, so no two frames have the same one.
        let period = (span.per_ns * 1e3 / mpps).max(1.0);
        Schedule { begin: span.from.saturating_sub(warm_up), span, period }
    }

    fn due(&self, frame: u64) -> u64 {
        self.begin + (frame as f64 * self.period) as u64
    }

    /// The first frame that is due no earlier.
    fn first_at(&self, at: u64) -> u64 {
        let about = (at.saturating_sub(self.begin) as f64 / self.period) as u64;
        (about.saturating_sub(1)..).find(|frame| self.due(*frame) >= at).unwrap_or(about)
    }

    fn counted(&self) -> u64 {
        self.first_at(self.span.until) - self.first_at(self.span.from)
    }
}

/// Sends all that is due: how many frames that count found no room, and when the last was gone.
fn send(
    setup: &Setup,
    producer: &mut Producer<Open>,
    mut waiting: Waiting,
    schedule: &Schedule,
) -> Result<(u64, u64), Error> {
    let most = u64::from(setup.batch);
    let mut batch = Batch::new(setup.batch as usize, setup.size_bytes as usize);
    let (counts_from, all) = (schedule.first_at(schedule.span.from), schedule.first_at(schedule.span.until));
    let (mut next, mut dropped) = (0, 0);
    let give_up = schedule.span.until + (DRAINS_WITHIN.as_nanos() as f64 * schedule.span.per_ns) as u64;
    while next < all {
        if now() > give_up {
            dropped += (next..all).filter(|frame| *frame >= counts_from).count() as u64;
            break;
        }
        // The last batch may be a short one.
        let frames = most.min(all - next);
        if now() < schedule.due(next + frames - 1) {
            std::hint::spin_loop();
            continue;
        }
        let numbered = batch.number_by((next..next + frames).map(|frame| schedule.due(frame)));
        let pushed = producer.push_kicking(&batch.frames()[..numbered], &mut waiting);
        let pushed = pushed.map_err(|fault| Error::Died(format!("the other side broke its rules: {fault}")))?.frames;
        dropped += (next + pushed as u64..next + frames).filter(|frame| *frame >= counts_from).count() as u64;
        next += frames;
    }
    Ok((dropped, now()))
}

fn receive(
    setup: &Setup,
    mut consumer: Consumer<Open>,
    mut waiting: Option<Waiting>,
    mut frames: FrameBuf,
    link: &mut Link,
) -> Result<Received, String> {
    let batch = setup.batch as usize;
    let span = link.ready().ok_or("the producer has ended")?;
    let give_up = span.until + (DRAINS_WITHIN.as_nanos() as f64 * span.per_ns) as u64;
    let (mut arrived, mut delays) = (Arrived::default(), Histogram::new());
    let (mut sent, mut at) = (None, now());
    loop {
        let popped = match &mut waiting {
            Some(waiting) if sent.is_none() => pop_until_idle(&mut consumer, &mut frames, batch, waiting),
            _ => consumer.pop_batch(&mut frames, batch),
        };
        let popped = popped.map_err(|fault| fault.to_string())?;
        at = if popped == 0 { at } else { now() };
        for frame in frames.iter() {
            let due = number_of(frame);
            arrived.take_numbered(due);
            if let Some(due) = due.filter(|due| (span.from..span.until).contains(due)) {
                delays.record((at.saturating_sub(due) as f64 / span.per_ns) as u64);
            }
        }
        if popped > 0 {
            continue;
        }
        at = now();
        if at >= span.until && sent.is_none() {
            sent = link.sent();
        }
        let is_over = sent.is_some_and(|sent| at > give_up || arrived.frames >= sent);
        if is_over || at > give_up + (SAYS_WITHIN.as_nanos() as f64 * span.per_ns) as u64 {
            break;
        }
    }
    let lost = arrived.lost(sent.ok_or(NEVER_SAID)?);
    let wrong = arrived.duplicated + arrived.reordered + arrived.torn;
    Ok(Received { lost, wrong, hdr: delays.buckets() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedule(mpps: f64) -> Schedule {
        // A tick is a nanosecond; one millisecond counts.
        Schedule::of(Span { from: 10_000_000, until: 11_000_000, per_ns: 1.0 }, mpps)
    }

    #[test]
    fn frames_are_due_by_the_clock_and_those_before_the_time_do_not_count() {
        for (mpps, frames) in [(1.0, 1_000), (0.5, 500), (3.0, 3_000), (40.0, 40_000)] {
            let schedule = schedule(mpps);
            assert!(schedule.counted().abs_diff(frames) <= 1, "{mpps}: {}", schedule.counted());
            assert_eq!(schedule.due(0), 8_000_000);
            let first = schedule.first_at(10_000_000);
            assert!(schedule.due(first) >= 10_000_000 && schedule.due(first - 1) < 10_000_000, "{mpps}");
            assert!((0..5_000).all(|frame| schedule.due(frame) < schedule.due(frame + 1)), "{mpps}: times are numbers");
        }
    }

    #[test]
    fn what_a_search_found_says_why_it_ended() {
        let found = |ended| Found { goal: GOALS[0], lower_pps: Some(2_000_000), upper_pps: None, ended };
        let search = searched(&found(Ended::SenderMissed { pps: 2_500_000 }), 7);
        assert_eq!((search.lower_mpps, search.upper_mpps, search.trials), (Some(2.0), None, 7));
        assert_eq!(search.ended, "the sender did not hold 2500000 frames per second");
        assert_eq!(searched(&found(Ended::Narrow), 1).ended, "both bounds were found");
    }
}
