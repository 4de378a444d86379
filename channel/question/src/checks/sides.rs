//! Where did the sides run: on one core, or on different nodes?

use super::super::measured::{Channel, Measured};
use super::{MOST_SHOWN, by_machine, hit, seen, setup};
use base::channel::PAIRS;
use base::number::counted;
use base::{CpuSet, Severity};
use facts::rule::Hit;

/// Both sides on one core.
pub(crate) fn siblings(channel: &Channel<'_>) -> Vec<Hit> {
    related(channel, &[PAIRS[0], PAIRS[1]], Severity::Medium, "ran with both sides on one core")
}

/// The sides on different nodes.
pub(crate) fn nodes(channel: &Channel<'_>) -> Vec<Hit> {
    related(channel, &[PAIRS[4]], Severity::Medium, "ran with the two sides on different nodes")
}

/// Setups whose two sides were related in one of these ways.
fn related(channel: &Channel<'_>, pairs: &[&str], severity: Severity, what: &str) -> Vec<Hit> {
    let is = |one: &Measured<'_>| one.launches.iter().any(|(_, run)| pairs.contains(&run.pair.as_str()));
    let found = by_machine(channel, |_, one| is(one).then_some(1.0)).into_iter().map(|(host, own)| {
        let all = channel.measured().filter(|one| one.machine == host.machine).count() as u64;
        let title = format!("{} of {} {what}", own.len(), counted(all, "setup", "setups"));
        let first = hit(own[0].0, host.machine.clone(), severity, title);
        own.iter().take(MOST_SHOWN).fold(first, |hit, (one, _)| {
            let run = one.launches.iter().find(|(_, run)| pairs.contains(&run.pair.as_str())).map(|(_, run)| run);
            let cpus = run.map_or(String::new(), |run| {
                if !run.others.is_empty() {
                    let cpus: CpuSet = run.sides().map(|side| side.cpu).collect();
                    return format!("machines on CPUs {cpus}: {}", run.pair);
                }
                format!("CPU {} sent and CPU {} received: {}", run.producer.cpu, run.consumer.cpu, run.pair)
            });
            hit.with(seen(format!("{}: {cpus}", setup(one)), one))
        })
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use super::super::super::tests::Made;
    use super::super::tests::{found, ids};
    use base::channel::PAIRS;
    use std::slice::from_ref;

    #[test]
    fn both_sides_on_one_core_are_told_and_on_two_of_one_cache_are_not() {
        let made = Made { pair: PAIRS[1], ..Made::default() };
        let findings = found(from_ref(&made), |_| {});
        assert_eq!(findings[0].title, "1 of 1 setup ran with both sides on one core");
        assert!(findings[0].evidence[0].what.ends_with("CPU 0 sent and CPU 1 received: same core"), "{findings:?}");
        assert_eq!((ids(from_ref(&made)), ids(&[Made { pair: PAIRS[2], ..made }])), (vec!["CHN-SIBLINGS"], vec![]));
    }

    #[test]
    fn sides_on_two_nodes_are_told_and_on_one_are_not() {
        let made = Made { pair: PAIRS[4], ..Made::default() };
        assert_eq!((ids(from_ref(&made)), ids(&[Made { pair: PAIRS[3], ..made }])), (vec!["CHN-NODES"], vec![]));
    }
}
