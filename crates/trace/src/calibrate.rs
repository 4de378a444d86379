//! How long is a tick of a clock that the file gives no scale for?
//!
//! Some events carry the time of another clock in a field: `hrtimer_expire_entry.now` is CLOCK_MONOTONIC in ns when the
//! timer interrupt began (`__hrtimer_run_queues` in kernel/time/hrtimer.c, Linux 6.12). A line through a few hundred
//! such points gives ns per tick.
//!
//! The event comes a little after the time it carries, at different distances, so the line is fitted by the median of
//! slopes between points far apart (Theil, 1950; Sen, JASA 63, 1968): late stragglers do not move it.

use crate::batch::Batch;
use crate::lane::{Pieces, Reading, Scratch, Source, Trace};
use crate::request::{Request, Wanted};
use base::{Clock, ClockSource, parallel};

/// Events whose field is CLOCK_MONOTONIC in ns.
const WITNESSES: &[(&str, &str)] = &[("hrtimer_expire_entry", "now")];

/// Pieces looked at per lane, spread over its length: few, and more where those hold less than [`ENOUGH_POINTS`].
const PIECES: [usize; 2] = [4, 12];

/// So many points give a line whose slope more points would not change by a millionth.
const ENOUGH_POINTS: usize = 64;

/// Fewer points than this give no line.
const FEWEST_POINTS: usize = 8;

/// Binary digits behind the point of the fitted scale.
const SHIFT: u32 = 32;

/// The trace's clock, fitted, if the file gives it no scale and its events can tell it.
pub fn fit(trace: &dyn Trace) -> Option<Clock> {
    let facts = trace.facts();
    if facts.clock.source != ClockSource::None {
        return None;
    }
    let wanted = |(name, field): &(&str, &str)| Wanted {
        names: vec![(*name).to_owned()],
        fields: vec![vec![(*field).to_owned()]],
    };
    let request = Request { events: WITNESSES.iter().map(wanted).collect() };
    let reading = Reading { request: &request, fitted: None };
    let mut points = Vec::new();
    let mut pieces: Vec<Box<dyn Pieces + '_>> = Vec::new();
    for lane in trace.lanes(&reading) {
        match lane.source {
            Source::Pieces(lane) => pieces.push(lane),
            sequence => {
                let batches = sequence.batches(facts.event_types.len()).take(PIECES[1]);
                batches.for_each(|batch| collect(&batch, &mut points));
            }
        }
    }
    for most in PIECES {
        if points.len() < ENOUGH_POINTS {
            points.extend(of_pieces(&pieces, most, facts.event_types.len()));
        }
    }
    let ns_per_tick = slope(&mut points)?;
    let mult = (ns_per_tick * (1u64 << SHIFT) as f64).round();
    (mult >= 1.0 && mult < u64::MAX as f64).then(|| Clock {
        mult: mult as u64,
        shift: SHIFT,
        source: ClockSource::Fitted,
        ..facts.clock.clone()
    })
}

/// The points of up to `most` pieces of each lane, which all CPUs decode together: nothing else can begin before.
fn of_pieces(lanes: &[Box<dyn Pieces + '_>], most: usize, event_types: usize) -> Vec<(u64, u64)> {
    let all = lanes.iter().enumerate();
    let jobs: Vec<(usize, usize)> =
        all.flat_map(|(lane, pieces)| spread(pieces.count(), most).map(move |at| (lane, at))).collect();
    let points = |(batch, scratch): &mut (Batch, Scratch), job: usize| {
        let (lane, at) = jobs[job];
        let mut points = Vec::new();
        batch.clear(event_types);
        lanes[lane].decode(at, scratch, batch);
        collect(batch, &mut points);
        points
    };
    parallel::map_with(jobs.len(), Default::default, points).concat()
}

/// Up to `most` indices below `count`, the first and the last among them.
fn spread(count: usize, most: usize) -> impl Iterator<Item = usize> {
    let picked = count.min(most);
    (0..picked).map(move |n| if picked < 2 { 0 } else { n * (count - 1) / (picked - 1) })
}

fn collect(batch: &Batch, points: &mut Vec<(u64, u64)>) {
    let rows = batch.rows.iter().filter(|row| row.kind != crate::batch::LOST);
    points.extend(rows.filter_map(|row| Some((row.time_ns, batch.fields(row).get(0)?))));
}

/// Median slope between points half the list apart.
fn slope(points: &mut Vec<(u64, u64)>) -> Option<f64> {
    points.sort_unstable();
    points.dedup();
    let half = points.len() / 2;
    if half < FEWEST_POINTS / 2 {
        return None;
    }
    let mut slopes: Vec<f64> = points
        .iter()
        .zip(&points[half..])
        .filter(|(early, late)| late.0 > early.0 && late.1 > early.1)
        .map(|(early, late)| (late.1 - early.1) as f64 / (late.0 - early.0) as f64)
        .collect();
    slopes.sort_unstable_by(f64::total_cmp);
    slopes.get(slopes.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn late_stragglers_do_not_bend_the_line() {
        let mut points: Vec<(u64, u64)> = (0..200)
            .map(|n| {
                let now = 1_000_000 * n;
                let late = if n % 7 == 0 { 90_000 } else { 300 + n % 5 };
                ((now + late) * 9 / 4, now)
            })
            .collect();
        let ns_per_tick = slope(&mut points).unwrap();
        assert!((ns_per_tick * 2.25 - 1.0).abs() < 1e-4, "{ns_per_tick}");
    }

    #[test]
    fn few_points_give_no_line() {
        assert_eq!(slope(&mut vec![(1, 1), (2, 2), (3, 3)]), None);
    }
}
