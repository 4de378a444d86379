//! The largest change in a sentence that a person would say aloud, before all that explains it.
//!
//! ```text
//! time is real        the state that gained or lost most of the vCPUs' time, else exits of L1 in a chain, else exits per second
//! time is emulated    counts first: exits of L1 in a chain; what has time in it is marked
//! ```
//! Only what is more than noise is said here: where nothing is, there is no headline, and the summary says how much was looked at.

use super::Changed;
use super::metrics::Metric;
use base::Level;
use base::number::{many, percent, plain};

/// A state that gained or lost less, a hundredth of the vCPUs' time, is no headline: our own limit.
const LEAST: f64 = 0.01;

/// The sentences: none, one, or of an emulated machine two.
pub(super) fn headline(changed: &[Changed], is_emulated: bool) -> Option<String> {
    let claims = || changed.iter().filter(|one| one.is_certain());
    let most = |wanted: &dyn Fn(&Metric) -> bool, size: &dyn Fn(&Changed) -> f64| {
        claims().filter(|one| wanted(&one.metric)).max_by(|a, b| size(a).total_cmp(&size(b)))
    };
    let points = |one: &Changed| (one.ratio.after - one.ratio.before).abs();
    // That less is unknown is no change of what happened.
    let is_known = |metric: &Metric| matches!(metric, Metric::State(state) if state != "unknown");
    let state = most(&is_known, &points).filter(|one| points(one) >= LEAST);
    // Of the reasons for chains that which saves or costs most exits of L1 in all, and not the rarest one.
    let in_all = |one: &Changed| {
        let Metric::ChainExits(reason) = &one.metric else { return 0.0 };
        let of_reason = |rate: &&Changed| matches!(&rate.metric, Metric::ExitRate(level, of) if *level == Level::At(2) && of == reason);
        let per_second = changed.iter().find(of_reason).map_or(0.0, |rate| rate.ratio.before.max(rate.ratio.after));
        points(one) * per_second
    };
    let by_size = |a: &&Changed, b: &&Changed| in_all(a).total_cmp(&in_all(b)).then(a.size().total_cmp(&b.size()));
    let chain = claims().filter(|one| matches!(one.metric, Metric::ChainExits(_))).max_by(by_size);
    let rate = most(&|metric| matches!(metric, Metric::ExitRate(..)), &points);
    if is_emulated {
        let emulated = state.or(rate.filter(|_| chain.is_none())).map(|one| format!("Of emulated time: {}", say(one)));
        let said: Vec<String> = chain.map(say).into_iter().chain(emulated).collect();
        return (!said.is_empty()).then(|| said.join(" "));
    }
    state.or(chain).or(rate).map(say)
}

fn say(one: &Changed) -> String {
    let (before, after) = (one.ratio.before, one.ratio.after);
    let from = |words: String| if after < before { format!("down from {words}") } else { format!("up from {words}") };
    match &one.metric {
        Metric::State(state) => {
            format!(
                "{} took {} of the vCPUs' time, {}.",
                subject(state, &one.metric),
                percent(after),
                from(percent(before))
            )
        }
        Metric::ChainExits(reason) => {
            let exits =
                if after.fract() == 0.0 { many(after as u64, "exit") } else { format!("{} exits", plain(after)) };
            format!("One exit of L2 for {reason} causes {exits} of L1, {}.", from(plain(before)))
        }
        Metric::ExitRate(level, reason) => {
            let often = |value: f64| if value == 0.0 { "none".to_owned() } else { plain(value.round()) };
            format!(
                "{level} had {} {reason} exits per second, {}.",
                often(after).replace("none", "no"),
                from(often(before))
            )
        }
        _ => format!("{}: {}, {}.", one.metric.label(), plain(after), from(plain(before))),
    }
}

/// What took the time: the state's title where that is a thing.
fn subject(state: &str, metric: &Metric) -> String {
    match state {
        "preempted" => "Preemption".to_owned(),
        "halted" | "blocked" => format!("Time {state}"),
        _ if state.starts_with("guest_") || state == "userspace" => format!("The {}", metric.label()),
        _ => {
            let label = metric.label();
            let mut letters = label.chars();
            letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::Ratio;

    fn of(metric: Metric, before: f64, after: f64) -> Changed {
        let values = |value: f64| [value * 0.99, value, value * 1.01];
        let (before, after) = (values(before), values(after));
        Changed::of(metric, Ratio::of(&before, &after).or_else(|| Ratio::with_none(&before, &after)).unwrap())
    }

    #[test]
    fn a_headline_is_what_a_person_would_say() {
        let state = |name: &str, before, after| of(Metric::State(name.into()), before, after);
        let chain = of(Metric::ChainExits("CPUID".into()), 15.0, 3.0);
        let gone = of(Metric::ExitRate(Level::At(1), "VMREAD".into()), 1_868.5, 0.0);
        let all = [state("preempted", 0.462, 0.018), state("guest_l1", 0.3, 0.4), chain.clone(), gone.clone()];
        let preempted = "Preemption took 1.8 % of the vCPUs' time, down from 46.2 %.";
        assert_eq!(headline(&all, false).unwrap(), preempted);
        let counts = "One exit of L2 for CPUID causes 3 exits of L1, down from 15.";
        assert_eq!(headline(&all, true).unwrap(), format!("{counts} Of emulated time: {preempted}"));
        assert_eq!(headline(&all[1..], false).unwrap(), "The L1 guest took 40.0 % of the vCPUs' time, up from 30.0 %.");
        let rare = of(Metric::ChainExits("CR".into()), 17.0, 1.0);
        let rate = |reason: &str, per_s| of(Metric::ExitRate(Level::At(2), reason.into()), per_s, per_s);
        let both = [rare.clone(), chain.clone(), rate("CR", 8.0), rate("CPUID", 400.0)];
        assert_eq!(headline(&both, false).unwrap(), counts, "one in fifty is not the news");
        assert_eq!(
            headline(&[rare, chain], false).unwrap(),
            "One exit of L2 for CR causes 1 exit of L1, down from 17."
        );
        assert_eq!(headline(&all[3..], false).unwrap(), "L1 had no VMREAD exits per second, down from 1,869.");
        assert_eq!(headline(&[state("unknown", 0.5, 0.1)], false), None);
        let hardly = [state("irq", 0.001, 0.002), of(Metric::TaskRuns("cc".into()), 0.1, 0.9)];
        assert_eq!(headline(&hardly, false), None, "a tenth of a point, and what a thread did");
        let handling = [state("handling_l1", 0.2, 0.1)];
        assert!(headline(&handling, false).unwrap().starts_with("Work on exits of L1 took 10.0 %"));
    }
}
