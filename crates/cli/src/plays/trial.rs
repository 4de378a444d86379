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

pub use gauge::{Look, Now, SPAN, measure, rest, sums};
pub use watched::Watched;

use analysis::compare::{Ratio, Verdict};
use analysis::facts::shares::{Direction, Expected, Prediction};
use base::number::{percent, plain};
use std::time::Duration;

/// After a change, before it is measured: pages and flows move too. Never more than a window.
const SETTLE: Duration = Duration::from_secs(2);

/// How long to wait after the change in a trial of that length.
pub fn settle(span: Duration) -> Duration {
    SETTLE.min(span / gauge::WINDOWS)
}

/// What the model expects of a change, on a machine as it was a moment ago.
pub fn expected(watched: &Watched, now: &Now) -> Expected {
    Expected::of(&now.cpus(), &now.contenders(), &now.usage, &watched.moves, &watched.interrupts)
}

/// The same as lines for people.
pub fn lines(expected: &Expected) -> Vec<String> {
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

/// What a trial came to.
#[derive(Debug)]
pub enum Outcome {
    /// Less was lost, and noise does not explain it.
    Helped(Ratio),
    /// It was not.
    DidNotHelp(Option<Ratio>),
    /// The user ended it.
    Interrupted,
}

impl Outcome {
    /// What the measurements before and after say.
    pub fn of(before: &[f64], after: &[f64]) -> Self {
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
        match Ratio::of(before, after) {
            Some(ratio) if ratio.verdict() == Verdict::Lower => Outcome::Helped(ratio),
            // All that was lost is lost no more: a ratio to nothing cannot be told, and needs none.
            None if mean(before) > 0.0 && mean(after) == 0.0 => {
                Outcome::Helped(Ratio { before: mean(before), after: 0.0, ratio: 0.0, interval: None })
            }
            ratio => Outcome::DidNotHelp(ratio),
        }
    }

    /// The outcome with its numbers; `subject` is what was measured: "threads waited".
    pub fn told(&self, subject: &str) -> String {
        let (ratio, verdict) = match self {
            Outcome::Helped(ratio) => (Some(ratio), "it helped"),
            Outcome::DidNotHelp(Some(ratio)) if ratio.verdict() == Verdict::Higher => (Some(ratio), "it got worse"),
            Outcome::DidNotHelp(ratio) => (ratio.as_ref(), "no difference beyond noise"),
            Outcome::Interrupted => return "ended early".to_owned(),
        };
        let Some(Ratio { before, after, ratio, interval }) = ratio else {
            return format!("no thread waited for a CPU before or after: {verdict}");
        };
        let interval = interval
            .map(|(low, high)| format!(" (95 % interval {} to {})", plain(low), plain(high)))
            .unwrap_or_default();
        format!("{subject} {before:.2} CPUs before and {after:.2} after, x{}{interval}: {verdict}", plain(*ratio))
    }
}

/// Says so if what was lost before the change drifted by itself by more than noise explains.
pub fn drift(before: &[f64]) -> Option<String> {
    let (first, second) = before.split_at(before.len() / 2);
    let ratio = Ratio::of(first, second)?;
    matches!(ratio.verdict(), Verdict::Higher | Verdict::Lower).then(|| {
        format!(
            "the load is not steady: x{} from the first to the second half before the change; use a longer trial",
            plain(ratio.ratio)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_less_waiting_than_noise_explains_has_helped() {
        let before = [0.9, 0.95, 0.92, 0.91];
        assert!(matches!(Outcome::of(&before, &[0.1, 0.12, 0.11, 0.1]), Outcome::Helped(_)));
        assert!(matches!(Outcome::of(&before, &[0.0; 4]), Outcome::Helped(_)));
        assert!(matches!(Outcome::of(&before, &before), Outcome::DidNotHelp(_)));
        assert!(matches!(Outcome::of(&[0.0; 4], &[0.0; 4]), Outcome::DidNotHelp(None)));
        let worse = Outcome::of(&[0.1, 0.12, 0.11, 0.1], &before).told("threads waited");
        assert!(worse.starts_with("threads waited 0.11 CPUs before") && worse.ends_with("it got worse"), "{worse}");
    }

    #[test]
    fn a_load_that_drifts_by_itself_is_said() {
        assert!(drift(&[0.1, 0.11, 0.1, 0.11, 0.9, 0.91, 0.9, 0.91]).unwrap().contains("not steady"));
        assert_eq!(drift(&[0.5, 0.52, 0.51, 0.5, 0.51, 0.5, 0.52, 0.51]), None);
    }
}
