//! The results of a stretch of the recording's axis.
//!
//! Samples with times that a clock leads to the axis are those that ended in it. Others are of the whole run of their program: a
//! file without times cannot be narrowed.

use super::clocks::OwnClock;
use crate::Input;
use crate::ledger::line::TimeLine;
use crate::ledger::model::Flow;
use crate::samples::{ResultFiles, SampleFile};
use base::Span;

/// Those of `results` that are of `window`.
pub fn narrowed(input: &Input, flow: &Flow, results: &ResultFiles, window: Span) -> ResultFiles {
    let line = TimeLine::new(input, &flow.parts);
    let of_file = |file: &SampleFile| {
        let place = flow.parts.iter().position(|part| part.machine == file.machine && part.twin_of.is_none());
        let samples = file.samples.iter().map(|samples| {
            let clock = place.and_then(|place| Some((place, OwnClock::new(input, flow, place, samples.clock)?)));
            let at_axis = |end_ns: u64| {
                let (place, clock) = clock.as_ref()?;
                line.outermost(*place, clock.at(end_ns)?.at_ns).map(|(_, at_ns)| at_ns)
            };
            let is_placed = samples.timed.first().is_some_and(|first| at_axis(first.end_ns).is_some());
            let inside =
                |end_ns: u64| at_axis(end_ns).is_some_and(|at_ns| (window.from_ns..window.to_ns).contains(&at_ns));
            samples.ended(inside).filter(|_| is_placed).unwrap_or_else(|| samples.clone())
        });
        SampleFile { samples: samples.collect(), ..file.clone() }
    };
    ResultFiles { list: results.list.iter().map(of_file).collect(), unread: results.unread }
}
