//! What the benches cannot tell, as amounts: setups without a clean rate or a model, gaps without a culprit, results that were left out.

use super::costs::notify_ns;
use super::measured::{Channel, POLL};
use super::{delays, flows, tables};
use base::Unknown;
use base::channel::LEAST_CLEAN;
use base::number::{counted, duration, percent};

pub(crate) fn of(channel: &Channel<'_>, listed: u64) -> Vec<Unknown> {
    let one = |what: &str, amount: u64, unit: &str, text: String| {
        (amount > 0).then(|| Unknown { what: what.into(), amount: Some(amount as f64), unit: unit.into(), text })
    };
    let unclean = channel.measured().filter(|one| one.clean_mpps().is_none()).count() as u64;
    let unclean = one(
        "not_clean",
        unclean,
        "setups",
        format!(
            "{} no clean rate: fewer than {} of the slices were without a gap. Free the two CPUs of other work and measure again.",
            counted(unclean, "setup has", "setups have"),
            percent(LEAST_CLEAN)
        ),
    );
    let idle = channel.measured().map(|one| one.idle_launches()).sum();
    let idle = one(
        "idle",
        idle,
        "launches",
        format!(
            "In {} no frame moved: a side never had its CPU. None of their slices counts as clean.",
            counted(idle, "launch", "launches")
        ),
    );
    let refused: Vec<_> = channel.series.iter().filter_map(|series| series.model.as_ref().err()).collect();
    let unmodelled = one(
        "not_modelled",
        refused.len() as u64,
        "series",
        refused.first().map_or_else(String::new, |why| {
            let count = counted(refused.len() as u64, "sweep of batches has", "sweeps of batches have");
            format!("{count} no cost by step: {why}.")
        }),
    );
    let kicked = channel.series.iter().filter(|series| {
        let has_kicks = series.measured.iter().any(|one| one.sum(|run| run.kicks) > 0);
        has_kicks && series.first().setup.policy != POLL && notify_ns(channel, series).is_none()
    });
    let kicked = kicked.count() as u64;
    let kicked = one(
        "kicks",
        kicked,
        "series",
        format!(
            "{} kicks whose cost cannot be separated from the index: measure the same with --policy poll as well.",
            counted(kicked, "path has", "paths have")
        ),
    );
    let swapped = tables::swapped(channel).next().is_some();
    let without_rate = channel.hosts.iter().filter(|host| host.ns_per_tick.is_none()).count() as u64;
    let cycles = one(
        "published_in_cycles",
        if swapped { without_rate } else { 0 },
        "machines",
        format!(
            "{} how fast its time-stamp counter runs, so windows that were published in cycles have no row.",
            counted(without_rate, "machine does not tell", "machines do not tell")
        ),
    );
    let published = swapped.then(|| {
        let of_host = |host: &'_ super::machines::Host| {
            let own = host.modelled().into_iter();
            own.map(|(.., said)| said).collect::<Vec<_>>()
        };
        let mut said: Vec<String> = channel.hosts.iter().flat_map(of_host).collect();
        said.dedup();
        let text = format!("Rows of kind modelled use prices that were not measured here: {}.", said.join("; "));
        Unknown { what: "published_windows".into(), amount: None, unit: String::new(), text }
    });
    let seen = channel
        .measured()
        .map(|one| one.sum(|run| run.sides().fold(0, |sum, side| sum.saturating_add(side.gap_count))));
    let seen = seen.fold(0, u64::saturating_add);
    let all = seen.max(listed);
    let gaps = counted(all, "gap was", "gaps were");
    let culprits = if channel.culprits.is_empty() {
        let text = format!("{gaps} seen, and {listed} of them listed; who had the CPU then was not recorded.");
        one("gaps", all, "gaps", text)
    } else {
        let unnamed = channel.culprits.unnamed_ns();
        let text = format!(
            "{gaps} seen, and {listed} of them listed; the trace does not show who had the CPU for {} of those that are kept.",
            duration(unnamed as f64)
        );
        one("gaps", unnamed, "ns", text)
    };
    let lost = one(
        "lost_events",
        channel.culprits.lost_events,
        "events",
        format!(
            "The trace next to the bench has lost {}: no culprit is named for what happened there.",
            counted(channel.culprits.lost_events, "event", "events")
        ),
    );
    let damaged = one(
        "damaged",
        channel.damaged,
        "results",
        format!(
            "{} left out: a batch of nothing, or a time below 0, cannot be.",
            counted(channel.damaged, "result was", "results were")
        ),
    );
    let known = [unclean, idle, unmodelled, kicked, cycles, published, culprits, lost, damaged];
    let parts = delays::unknown(&channel.delays).chain(flows::unknown(&channel.flows));
    known.into_iter().flatten().chain(parts).chain(skipped(channel)).collect()
}

/// What was not measured, once for each reason.
fn skipped(channel: &Channel<'_>) -> Vec<Unknown> {
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for (name, why) in &channel.skipped {
        match reasons.iter_mut().find(|(known, _)| known == why) {
            Some((_, names)) => names.push(name),
            None => reasons.push((why, vec![name])),
        }
    }
    let one = |(why, names): (&str, Vec<&str>)| {
        let others = names.len() as u64 - 1;
        let subject = match others {
            0 => format!("{} was", names[0]),
            _ => format!("{} and {} were", names[0], counted(others, "other setup", "other setups")),
        };
        Unknown {
            what: "skipped".into(),
            amount: Some(names.len() as f64),
            unit: "setups".into(),
            text: format!("{subject} not measured: {}.", why.trim_end_matches('.')),
        }
    };
    reasons.into_iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::super::measured::Channel;
    use super::super::section::section;
    use super::super::section::tests::unknowns;
    use super::super::tests::{Made, benches};
    use facts::machines::Machines;

    #[test]
    fn damage_and_what_was_left_out_are_told() {
        let mut benches = benches(&[Made::default(), Made { batch: 0, ..Made::default() }]);
        let results = &mut benches.runs[0].bench.results;
        let mut skipped = results[0].clone();
        skipped.channel = None;
        skipped.skipped = Some("this processor has no protection keys.".into());
        let other = base::Measured { name: "ring, window pkey, 64 B, batch 8".into(), ..skipped.clone() };
        results.extend([skipped.clone(), skipped, other]);
        let section = section(&Channel::of(&benches, &Machines::default()), &benches.runs);
        assert_eq!(unknowns(&section), ["not_modelled", "damaged", "skipped"]);
        assert!(section.unknown[1].text.starts_with("1 result was left out"), "{:?}", section.unknown);
        let text = &section.unknown[2].text;
        assert!(
            text.ends_with("and 1 other setup were not measured: this processor has no protection keys."),
            "{text}"
        );
    }
}
