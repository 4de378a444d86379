//! All of it as one Section: what was measured, who starved, and what a move changed.

use super::tables::{CHANGE, threads};
use crate::compare::{self, Changed, Metric, Ratio};
use base::number::{many, plain};
use base::{Finding, Section};
use facts::{Answer, Case, Error};
use host::sched::Load;
use std::path::PathBuf;

/// The question this folder answers.
pub const QUESTION: &str = "Which threads compete for which CPU, and did the move help?";

/// What an experiment measured: who ran and waited, and how much arrived before and after starved threads were moved.
#[derive(Debug, Clone)]
pub struct Trial {
    /// What goes through what, in a line.
    pub what: String,
    /// Length of each run.
    pub seconds: u64,
    /// Where both states were recorded.
    pub place: PathBuf,
    /// Why the recordings have no kernel events, if they have none.
    pub without_events: Option<String>,
    /// What each thread did in the first run.
    pub loads: Vec<Load>,
    /// The threads that starved, with the move that the model prefers.
    pub found: Option<Finding>,
    /// Bits per second of each run before the move.
    pub before: Vec<f64>,
    /// The same of each run after it.
    pub after: Vec<f64>,
    /// What the move did; `None` if no thread was moved.
    pub moved: Option<Moved>,
}

#[derive(Debug, Clone)]
pub struct Moved {
    /// Bits per second after it over those before; `None` if nothing arrived in one of the states.
    pub ratio: Option<Ratio>,
    /// Whether it helped, in words.
    pub effect: &'static str,
}

/// Answers it; `None` if no experiment was made.
pub fn answer(case: &Case) -> Result<Option<Answer>, Error> {
    let trial = case.given().queries.get();
    Ok(trial.map(|trial| Answer { section: section(trial), problems: Vec::new() }))
}

fn section(trial: &Trial) -> Section {
    let mut section = Section::new(super::ID, QUESTION);
    let place = trial.place.display();
    section.about = vec![
        trial.what.clone(),
        format!(
            "{} of {} s before and {} after the move, alternating; recorded in {place}",
            many(trial.before.len() as u64, "run"),
            trial.seconds,
            trial.after.len(),
        ),
    ];
    section.about.extend(trial.without_events.iter().map(|why| format!("the recordings have no kernel events: {why}")));
    section.summary = match (&trial.found, &trial.moved) {
        (None, _) => format!("No packet thread is starved; throughput is {}.", throughput(trial.before.first())),
        (Some(found), None) => format!("{}. No CPU of this machine is better, so no thread was moved.", found.title),
        (Some(found), Some(moved)) => format!("{}. {}", found.title, moved.sentence()),
    };
    section.findings.extend(trial.found.clone());
    section.tables.push(threads(&trial.loads));
    if let Some(ratio) = trial.moved.as_ref().and_then(|moved| moved.ratio) {
        let ratio = Ratio { before: ratio.before / 1e9, after: ratio.after / 1e9, ..ratio };
        let changed = vec![Changed::of(Metric::Named("throughput, Gbit/s".to_owned()), ratio)];
        section.tables.push(compare::table(&CHANGE, changed));
        section.next.push(format!("kvmscope compare {place}/before {place}/after"));
    }
    section
}

impl Moved {
    fn sentence(&self) -> String {
        let says = self.effect;
        let Some(Ratio { before, after, ratio, interval, chance: _ }) = &self.ratio else {
            return format!("Moved: nothing arrived before or after the move: {says}.");
        };
        let [before, after] = [before, after].map(|bits| throughput(Some(bits)));
        let interval = interval
            .map(|(low, high)| format!(" (95 % interval {} to {})", plain(low), plain(high)))
            .unwrap_or_default();
        format!("Moved: throughput from {before} to {after}, x{}{interval}: {says}.", plain(*ratio))
    }
}

/// `2.70 Gbit/s`, or `-` where nothing was measured.
pub fn throughput(bits_per_second: Option<&f64>) -> String {
    bits_per_second.map_or_else(|| "-".to_owned(), |bits| format!("{:.2} Gbit/s", bits / 1e9))
}

#[cfg(test)]
mod tests {
    use super::super::tests::load;
    use super::super::{Starved, finding, starved};
    use super::*;

    fn trial() -> Trial {
        let loads = vec![load(1, "CPU 0/KVM", 0, 0.6, 0.4), load(2, "vhost-1", 0, 0.3, 0.6)];
        let all = starved(&loads);
        let vhost: Vec<&Starved<'_>> = all.iter().filter(|one| one.thread.id.tid == 2).collect();
        let found = finding(&vhost, &loads, "vhost-1", None);
        Trial {
            what: "16 TCP streams".into(),
            seconds: 3,
            place: "bench".into(),
            without_events: None,
            found,
            loads,
            before: vec![1e9, 1.1e9],
            after: vec![2e9, 2.2e9],
            moved: Some(Moved { ratio: Ratio::of(&[1e9, 1.1e9], &[2e9, 2.2e9]), effect: "the move helped" }),
        }
    }

    #[test]
    fn an_experiment_is_answered_with_who_starved_and_what_the_move_changed() {
        let answered = section(&trial());
        assert_eq!(answered.findings.len(), 1);
        assert!(answered.summary.contains("from 1.05 Gbit/s to 2.10 Gbit/s, x2"), "{}", answered.summary);
        assert!(answered.summary.ends_with(": the move helped."), "{}", answered.summary);
        let tables: Vec<&str> = answered.tables.iter().map(|table| table.spec.name).collect();
        assert_eq!(
            (tables, answered.next),
            (vec!["threads", "change"], vec!["kvmscope compare bench/before bench/after".to_owned()])
        );
    }

    #[test]
    fn without_a_move_nothing_is_said_to_have_changed() {
        let unmoved = section(&Trial { moved: None, after: Vec::new(), ..trial() });
        assert!(unmoved.summary.ends_with("so no thread was moved."), "{}", unmoved.summary);
        assert!(unmoved.tables.len() == 1 && unmoved.next.is_empty());
        let healthy = section(&Trial { found: None, moved: None, ..trial() });
        assert_eq!(healthy.summary, "No packet thread is starved; throughput is 1.00 Gbit/s.");
    }
}
