//! A run over two connected testpmd: what arrived in each slice of the time, whether both pollers ran meanwhile, and what was lost.
//!
//! ```text
//! counts of the receiver   |--------|--------|--------|     a slice lies between two looks: about SLICE
//! waits of both pollers    0        0     1.9 ms      0     clean, dirty, clean
//! at the end the sender stops, what is on its way arrives, and both ends have counted the same, unless something was lost
//! ```
//! A slice is clean if neither poller waited for its CPU for more than [`WAITED`] of it, and if it is known well enough when it began and ended:
//! the program that answers takes turns with the one that polls where there is no spare CPU.

use super::super::Plan;
use super::bed::Bed;
use super::ends::{End, Ends, Path};
use base::channel::{Run, Setup};
use lab::Error;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// How long a slice is, about: a question takes a few tenths of a millisecond.
const SLICE: Duration = Duration::from_millis(20);
/// More of a slice than answering a question takes from a poller that shares its CPU: some hundred microseconds.
const WAITED: f64 = 0.02;
/// A slice whose ends are known less well than that says little of a rate.
const BLURRED: f64 = 0.05;
/// Frames on their way have so long to arrive after the last was sent.
const DRAINS_WITHIN: Duration = Duration::from_secs(2);
/// Nothing has arrived for so long: nothing is on its way.
const RESTS_FOR: Duration = Duration::from_millis(20);

/// Measures one setup.
///
/// # Errors
/// If a program does not start, or ends too early.
pub(super) fn carry(plan: &Plan, setup: &Setup, bed: &Bed, path: Path) -> Result<Run, Error> {
    let mut ends = Ends::start(plan, setup, bed, path)?;
    std::thread::sleep(plan.warm_up);
    let since = [ends.sender.poller.usage()?, ends.receiver.poller.usage()?];
    let mut looks = vec![look(&ends)?];
    let (begun, length) = (looks[0].at(), plan.length);
    while looks.last().is_some_and(|last| last.at() - begun < length) {
        let next = SLICE.saturating_mul(looks.len() as u32).min(length);
        std::thread::sleep((begun + next).saturating_duration_since(Instant::now()));
        looks.push(look(&ends)?);
    }
    let until = [ends.sender.poller.usage()?, ends.receiver.poller.usage()?];
    let lost = rest(&mut ends)?;

    let Slices { slices, clean, packets, slice_ns } = Slices::of(&looks);
    let last = &looks[looks.len() - 1];
    let took = last.at() - begun;
    Ok(Run {
        setup: setup.clone(),
        slots: plan.slots,
        // Nobody has looked which lines travel.
        moved_bytes: 0,
        ring_bytes: 0,
        ns: took.as_nanos() as u64,
        packets: last.received.saturating_sub(looks[0].received),
        slices,
        slice_ns,
        clean_slices: clean,
        clean_packets: packets,
        verified: false,
        counted: true,
        lost,
        duplicated: 0,
        reordered: 0,
        torn: 0,
        dropped: 0,
        others: Vec::new(),
        emulated: false,
        window_ns: 0.0,
        kicks: 0,
        setup_ns: Some(ends.setup_ns),
        setup_parts: ends.parts,
        pair: plan.pair.clone(),
        producer: ends.sender.poller.side(took, since[0], until[0]),
        consumer: ends.receiver.poller.side(took, since[1], until[1]),
    })
}

#[derive(Debug, Clone, Copy)]
struct Look {
    /// Between these two the receiver was asked, and answered.
    asked: Instant,
    answered: Instant,
    received: u64,
    /// How long each poller had waited for its CPU.
    waited_ns: [u64; 2],
}

impl Look {
    /// The moment, as well as it is known.
    fn at(&self) -> Instant {
        self.asked + (self.answered - self.asked) / 2
    }
}

fn look(ends: &Ends) -> Result<Look, Error> {
    let asked = Instant::now();
    let received = ends.receiver.telemetry.counts()?.received;
    let answered = Instant::now();
    let waited_ns = [ends.sender.poller.waited_ns()?, ends.receiver.poller.waited_ns()?];
    Ok(Look { asked, answered, received, waited_ns })
}

/// Has the sender stop, waits until nothing arrives any more, and says how many frames have not.
fn rest(ends: &mut Ends) -> Result<u64, Error> {
    let End { console, telemetry, .. } = &mut ends.sender;
    let before = console.said().len();
    console.command("stop")?;
    let stopped = |said: &str| said.get(before..).is_some_and(|said| said.contains("Done."));
    console.until("testpmd stops", &AtomicBool::new(false), |console| Ok(stopped(&console.said())))?;
    let sent = telemetry.counts()?.sent;
    let begun = Instant::now();
    let mut last = ends.receiver.telemetry.counts()?.received;
    while last < sent && begun.elapsed() < DRAINS_WITHIN {
        std::thread::sleep(RESTS_FOR);
        let now = ends.receiver.telemetry.counts()?.received;
        if now == last {
            break;
        }
        last = now;
    }
    Ok(sent.saturating_sub(last))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Slices {
    slices: u64,
    clean: u64,
    /// What arrived in clean ones.
    packets: u64,
    /// The mean of clean ones, or of all if none is.
    slice_ns: u64,
}

impl Slices {
    fn of(looks: &[Look]) -> Self {
        let (mut all_ns, mut clean_ns) = (0, 0);
        let mut found = Self { slices: 0, clean: 0, packets: 0, slice_ns: 0 };
        for pair in looks.windows(2) {
            let [from, until] = pair else { continue };
            let ns = (until.at() - from.at()).as_nanos() as u64;
            let share = |ns_of_it: u64| ns_of_it as f64 / ns.max(1) as f64;
            let waited = |side: usize| share(until.waited_ns[side].saturating_sub(from.waited_ns[side]));
            let blurred = [from, until].map(|look| (look.answered - look.asked).as_nanos() as u64 / 2);
            found.slices += 1;
            all_ns += ns;
            if waited(0).max(waited(1)) <= WAITED && share(blurred[0] + blurred[1]) <= BLURRED {
                found.clean += 1;
                clean_ns += ns;
                found.packets += until.received.saturating_sub(from.received);
            }
        }
        let (sum_ns, count) = if found.clean > 0 { (clean_ns, found.clean) } else { (all_ns, found.slices) };
        Self { slice_ns: sum_ns / count.max(1), ..found }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Looks of no length, at these milliseconds, with what had arrived and how many microseconds each poller had waited.
    fn looks(seen: &[(u64, u64, [u64; 2])]) -> Vec<Look> {
        let begun = Instant::now();
        let one = |&(ms, received, waited_us): &(u64, u64, [u64; 2])| {
            let at = begun + Duration::from_millis(ms);
            Look { asked: at, answered: at, received, waited_ns: waited_us.map(|us| us * 1_000) }
        };
        seen.iter().map(one).collect()
    }

    #[test]
    fn a_slice_in_which_a_poller_waited_counts_for_nothing_but_the_raw_rate() {
        let seen = [(0, 100, [0, 50]), (20, 300, [400, 50]), (40, 350, [400, 500]), (70, 650, [900, 500])];
        let slices = Slices::of(&looks(&seen));
        // 450 us of 20 ms are too much; the other two last 20 and 30 ms.
        assert_eq!(slices, Slices { slices: 3, clean: 2, packets: 500, slice_ns: 25_000_000 });
    }

    #[test]
    fn a_slice_whose_ends_are_not_known_is_not_clean() {
        let mut seen = looks(&[(0, 0, [0, 0]), (20, 10, [0, 0]), (40, 20, [0, 0]), (60, 30, [0, 0])]);
        seen[2].answered += Duration::from_millis(4);
        assert_eq!(Slices::of(&seen), Slices { slices: 3, clean: 1, packets: 10, slice_ns: 20_000_000 });
    }

    #[test]
    fn slices_without_a_clean_one_still_have_a_length() {
        let slices = Slices::of(&looks(&[(0, 0, [0, 0]), (10, 5, [9_000, 0])]));
        assert_eq!(slices, Slices { slices: 1, clean: 0, packets: 0, slice_ns: 10_000_000 });
        assert_eq!(Slices::of(&looks(&[(0, 0, [0, 0])])).slices, 0);
    }
}
