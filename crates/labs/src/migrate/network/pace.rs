//! How often does a packet go to the guest: as asked, or as often as this machine carries it?

use super::train::Train;
use base::network::Network;
use lab::Error;
use lab::watch::Watch;
use std::time::Duration;

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Pace {
    Every(Duration),
    /// Four fifths of what the guest answers before it is moved.
    Most,
}

/// The first that is tried; who cannot answer it is asked for it all the same.
const FIRST: Duration = Duration::from_millis(1);
/// How often a pace is doubled at most: 128,000 packets a second, more than a thread that sends them one by one gets out.
const DOUBLINGS: u32 = 7;
/// So much of what is sent has to be answered.
const ANSWERED: f64 = 0.99;
/// A sender that falls behind its pace by more than this is what limits.
const SENT: f64 = 0.7;
/// Of what was answered, what is asked for while the guest is moved: the machine has more to do then.
const SPARE: f64 = 0.8;
/// A pace is tried for so long.
const TRIED: Duration = Duration::from_millis(300);

#[derive(Debug, Clone, Copy)]
struct Tried {
    sent_per_s: f64,
    answered: f64,
}

impl Tried {
    fn of(network: &Network) -> Option<Self> {
        let sent = &network.sent_ns;
        let length_ns = sent.last()?.checked_sub(*sent.first()?).filter(|length_ns| *length_ns > 0)?;
        let packets = sent.len() as f64;
        Some(Self {
            sent_per_s: (packets - 1.0) / (length_ns as f64 / 1e9),
            answered: network.replies.len() as f64 / packets,
        })
    }
}

/// The pace that the guest answers, found by trains of packets to where it is now.
pub(super) fn most(train: impl Fn(Duration) -> Result<Train, Error>, watch: &mut Watch<'_>) -> Result<Duration, Error> {
    let found = search(|interval| {
        let train = train(interval)?;
        watch.rest(TRIED)?;
        Ok(train.end(None, None).as_ref().and_then(Tried::of))
    })?;
    (watch.say)(&format!(
        "the guest is sent {:.0} packets a second: it answers a quarter more",
        found.as_secs_f64().recip()
    ));
    Ok(found)
}

/// Doubles the pace as long as the guest answers and the sender keeps up.
fn search(mut try_it: impl FnMut(Duration) -> Result<Option<Tried>, Error>) -> Result<Duration, Error> {
    let mut best_per_s: f64 = 0.0;
    for doubling in 0..=DOUBLINGS {
        let interval = FIRST / 2_u32.pow(doubling);
        let Some(tried) = try_it(interval)? else { break };
        if tried.answered < ANSWERED {
            break;
        }
        best_per_s = best_per_s.max(tried.sent_per_s);
        if tried.sent_per_s < SENT / interval.as_secs_f64() {
            break;
        }
    }
    Ok(if best_per_s > 0.0 { Duration::from_secs_f64(1.0 / (SPARE * best_per_s)) } else { FIRST })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A guest that answers so many a second, and a sender that gets so many out.
    fn found(answers_per_s: f64, sends_per_s: f64) -> f64 {
        let tried = |interval: Duration| {
            let sent_per_s = sends_per_s.min(1.0 / interval.as_secs_f64());
            Ok(Some(Tried { sent_per_s, answered: (answers_per_s / sent_per_s).min(1.0) }))
        };
        1.0 / search(tried).unwrap().as_secs_f64()
    }

    #[test]
    fn the_last_pace_that_was_answered_counts_and_a_part_of_it_is_spare() {
        assert!((found(9_000.0, 1e6) - 0.8 * 8_000.0).abs() < 1.0, "16,000 were too many");
        assert!((found(1e6, 9_000.0) - 0.8 * 9_000.0).abs() < 1.0, "the sender is at its end");
        // A whole number of ns: 7,812 instead of 7,812.5.
        assert!((found(1e9, 1e9) / (0.8 * 128_000.0) - 1.0).abs() < 1e-4);
        assert!((found(10.0, 1e6) - 1_000.0).abs() < 1.0, "asked for all the same");
        assert_eq!(search(|_| Ok(None)).unwrap(), FIRST);
    }
}
