//! Did a change help? Measured before and after, by the CPU time that was lost to waiting, and to interrupts where they move.
//!
//! ```text
//! watched: whom the change concerns (watched.rs)
//! before:  windows, each with the CPUs' worth of waiting of all watched --\
//! change                                                                   >--> ratio with interval --> helped or not
//! after:   the same windows                                              --/
//! ```
//! A change that only moves the waiting from one thread to another has not helped, so the threads at the destination count.

mod gauge;
mod watched;

#[cfg(feature = "labs")]
pub(crate) use gauge::Look;
pub(crate) use gauge::{Lost, Now, SPAN, measure, sums};
pub(crate) use watched::Watched;

use super::{Comparison, Effect};
use analysis::compare::Ratio;
use analysis::facts::shares::{Direction, Expected, Prediction};
use base::number::{percent, plain};
use std::time::Duration;

/// After a change, before it is measured: pages and flows move too. Never more than a window.
const SETTLE: Duration = Duration::from_secs(2);

/// How long to wait after the change in a trial of that length.
pub(crate) fn settle(span: Duration) -> Duration {
    SETTLE.min(span / gauge::WINDOWS)
}

/// What the model expects of a change, on a machine as it was a moment ago.
pub(crate) fn expected(watched: &Watched, now: &Now) -> Expected {
    Expected::of(&now.cpus(), &now.contenders(), &now.usage, &watched.moves, &watched.interrupts)
}

pub(crate) fn lines(expected: &Expected) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(prediction) = &expected.threads {
        let Prediction { short: [now, after], weighted, shares } = prediction;
        for (tid, now, after) in shares {
            lines.push(format!(
                "thread {tid} gets {} of a CPU now, {} with the change",
                percent(*now),
                percent(*after)
            ));
        }
        lines.push(format!(
            "threads are {now:.2} CPUs short now and {after:.2} with the change; weighted by starvation, {:.2} and \
             {:.2}: {}",
            weighted[0],
            weighted[1],
            words(prediction.direction())
        ));
    }
    let interrupts = expected.interrupts.iter();
    lines.extend(interrupts.map(|interrupts| format!("{interrupts}: {}", words(interrupts.direction()))));
    if lines.is_empty() {
        lines.push(
            "no prediction: the model covers which threads want which CPU, not the effect of this value".to_owned(),
        );
    }
    lines
}

fn words(direction: Direction) -> &'static str {
    match direction {
        Direction::Better => "better",
        Direction::Worse => "worse, because the destination is busy",
        Direction::Same => "no difference at the current load",
    }
}

/// What a trial came to, with its numbers; `subject` is what was measured: "threads waited".
pub(crate) fn described(found: &Comparison, subject: &str) -> String {
    let verdict = match found.effect {
        Effect::Helped => "it helped",
        Effect::Harmed => "it got worse",
        Effect::NoDifference | Effect::Unknown => "no difference beyond noise",
    };
    let Some(Ratio { before, after, ratio, interval, chance: _ }) = &found.ratio else {
        return format!("no thread waited for a CPU before or after: {verdict}");
    };
    let interval =
        interval.map(|(low, high)| format!(" (95 % interval {} to {})", plain(low), plain(high))).unwrap_or_default();
    format!("{subject} {before:.2} CPUs before and {after:.2} after, x{}{interval}: {verdict}", plain(*ratio))
}

/// Says so if what was lost before the change drifted by itself by more than noise explains.
pub(crate) fn drift(before: &[f64]) -> Option<String> {
    let (first, second) = before.split_at(before.len() / 2);
    let ratio = Ratio::of(first, second)?;
    ratio.verdict().is_claim().then(|| {
        format!(
            "the load is not steady: x{} from the first to the second half before the change; use a longer trial",
            plain(ratio.ratio)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments::Better;

    #[test]
    fn less_waiting_has_helped_and_more_is_worse() {
        let (slow, fast) = ([0.9, 0.95, 0.92, 0.91], [0.1, 0.12, 0.11, 0.1]);
        let said =
            |before: &[f64], after: &[f64]| described(&Comparison::of(before, after, Better::Lower), "threads waited");
        assert!(said(&slow, &fast).ends_with("it helped") && said(&slow, &[0.0; 4]).ends_with("it helped"));
        assert!(said(&slow, &slow).ends_with("no difference beyond noise"));
        assert!(said(&[0.0; 4], &[0.0; 4]).starts_with("no thread waited for a CPU before or after"));
        let worse = said(&fast, &slow);
        assert!(worse.starts_with("threads waited 0.11 CPUs before") && worse.ends_with("it got worse"), "{worse}");
    }

    #[test]
    fn a_load_that_drifts_by_itself_is_said() {
        assert!(drift(&[0.1, 0.11, 0.1, 0.11, 0.9, 0.91, 0.9, 0.91]).unwrap().contains("not steady"));
        assert_eq!(drift(&[0.5, 0.52, 0.51, 0.5, 0.51, 0.5, 0.52, 0.51]), None);
    }
}
