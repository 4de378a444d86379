//! All of it as one Section.

use super::costs::notify_ns;
use super::culprits::Culprits;
use super::measured::{Channel, MPROTECT, Measured, NONE, PKEY, POLL};
use super::model::Refused;
use super::setups::PathSetup;
use super::{delays, dpdk, faults, figures, flows, rules, setups, tables, windows};
use crate::facts::benches::BenchRun;
use crate::{Answer, Case, Error};
use base::channel::{BENCH, LEAST_CLEAN, Setup};
use base::number::{bytes, counted, duration, list, packets_per_s, percent, thousands};
use base::{Section, Unknown};

/// The question this folder answers.
pub const QUESTION: &str = "How many packets does a path between two machines carry, and what does each step cost?";

/// The frame and the batch that sentences are about, where they were measured: those of the talk of 2015.
pub(super) const FRAME_BYTES: u32 = 64;
/// See there.
pub(super) const BATCH: u32 = 32;

/// Answers it; `None` if the recording has no such bench.
///
/// # Errors
/// None today.
pub fn answer(case: &Case) -> Result<Option<Answer>, Error> {
    let benches = case.benches().those(|bench| bench.bench == BENCH);
    if benches.is_empty() {
        return Ok(None);
    }
    let mut channel = Channel::of(&benches, case.machines());
    channel.culprits = Culprits::of(case, &channel);
    Ok(Some(Answer { section: section(&channel, &benches.runs), problems: Vec::new() }))
}

/// The Section of what was measured.
pub(super) fn section(channel: &Channel<'_>, runs: &[BenchRun]) -> Section {
    let mut section = Section::new(super::ID, QUESTION);
    section.about = runs.iter().map(BenchRun::about).collect();
    if channel.is_emulated {
        section.about.push("EMULATED: times are the emulator's and not comparable to hardware.".to_owned());
    }
    section.about.extend(emulated(channel));
    let main: Vec<&Measured<'_>> = channel.hosts.iter().filter_map(|host| main(channel, &host.machine)).collect();
    for one in &main {
        section.about.extend(ring(one));
    }
    section.about.extend(protection(channel));
    section.about.extend(dpdk::about(channel));
    section.about.extend(runs.iter().flat_map(|run| run.bench.notes.clone()));
    let setups = setups::of(channel);
    section.summary = summary(channel, &main, &setups);
    section.findings = rules::findings(channel);
    for one in &main {
        let mut drawn = figures::figures(channel, one);
        if main.len() > 1 {
            drawn.iter_mut().for_each(|figure| figure.id = format!("{}_{}", figure.id, one.machine));
        }
        section.figures.append(&mut drawn);
    }
    for host in &channel.hosts {
        section.figures.extend(figures::delays(channel, &host.machine));
    }
    let gaps = tables::gaps(channel);
    section.unknown = unknown(channel, gaps.rows.len() as u64);
    let parts = [
        tables::rates(channel),
        gaps,
        setups::table(&setups),
        delays::table(&channel.delays),
        flows::table(&channel.flows),
        faults::table(&channel.faults),
    ];
    section.tables = parts.into_iter().filter(|table| !table.rows.is_empty()).collect();
    section
}

/// Which paths ran in emulated guests, beside others that did not.
fn emulated(channel: &Channel<'_>) -> Option<String> {
    let mut paths: Vec<String> =
        channel.measured().filter(|one| one.is_emulated()).map(|one| one.setup.path.clone()).collect();
    paths.dedup();
    (!paths.is_empty()).then(|| {
        format!(
            "EMULATED: {} ran between guests that QEMU emulated (TCG). Whether each frame arrived is real; times there are the emulator's and \
             not comparable to hardware.",
            list(&paths)
        )
    })
}

/// The setup of a machine that sentences are about: a real one before emulated ones, one with a clean rate before others, then a path of
/// ours, that nearest to what is asked for, and the fastest of these.
fn main<'c, 'b>(channel: &'c Channel<'b>, machine: &str) -> Option<&'c Measured<'b>> {
    let far = |one: &Measured<'_>| {
        let Setup { window, size_bytes, batch, vms, .. } = one.setup;
        let other = (dpdk::is_of(one), size_bytes.abs_diff(FRAME_BYTES), batch.abs_diff(BATCH), window != NONE, *vms);
        (one.is_emulated(), one.clean_mpps().is_none(), other)
    };
    let rate = |one: &Measured<'_>| one.clean_mpps().unwrap_or(0.0);
    let own = channel.measured().filter(|one| one.machine == machine);
    own.min_by(|a, b| far(a).cmp(&far(b)).then(rate(b).total_cmp(&rate(a))))
}

/// What a frame moves, and over what.
fn ring(one: &Measured<'_>) -> Option<String> {
    let (_, run) = one.launches.first()?;
    let moved =
        |mpps: f64| format!(", {}/s at {}", bytes(mpps * 1e6 * f64::from(run.moved_bytes)), packets_per_s(mpps * 1e6));
    if !run.others.is_empty() {
        let cpus: base::CpuSet = run.sides().map(|side| side.cpu).collect();
        return Some(format!(
            "{}: {} on CPUs {cpus} ({}) have rings of {} slots, {} each; a frame of {} B moves {} B between CPUs{}.",
            one.machine,
            one.name(),
            run.pair,
            thousands(run.slots.into()),
            bytes(run.ring_bytes as f64),
            one.setup.size_bytes,
            run.moved_bytes,
            one.clean_mpps().map_or_else(String::new, moved)
        ));
    }
    let who = format!(
        "{}: CPU {} sends and CPU {} receives ({}), over a ring of {} slots",
        one.machine,
        run.producer.cpu,
        run.consumer.cpu,
        run.pair,
        thousands(run.slots.into())
    );
    // Of rings of others nobody knows which lines travel.
    if run.moved_bytes == 0 {
        return Some(format!("{who}, by {}.", one.setup.path));
    }
    Some(format!(
        "{who} in {}; a frame of {} B moves {} B between them{}.",
        bytes(run.ring_bytes as f64),
        one.setup.size_bytes,
        run.moved_bytes,
        one.clean_mpps().map_or_else(String::new, moved)
    ))
}

/// What windows that were measured do not do.
fn protection(channel: &Channel<'_>) -> Option<String> {
    let was = |window: &&str| channel.measured().any(|one| one.setup.window == *window);
    let names: Vec<String> =
        [PKEY, MPROTECT].iter().filter(|window| was(window)).map(|name| (*name).to_owned()).collect();
    let (guards, it) = match names.len() {
        0 => return None,
        1 => ("guards", "It is"),
        _ => ("guard", "They are"),
    };
    Some(format!(
        "{} {guards} against our own wild reads and writes. {it} not isolation between VMs: that comes from what each side can map.",
        list(&names)
    ))
}

/// The answer as a person would say it.
fn summary(channel: &Channel<'_>, main: &[&Measured<'_>], setups: &[PathSetup<'_>]) -> String {
    let mut sentences: Vec<String> = Vec::new();
    for one in main {
        let of = if main.len() > 1 { format!("{}: ", one.machine) } else { String::new() };
        sentences.push(format!("{of}{}", standing(one)));
        sentences.extend(disturbed(channel, one.machine));
        if one.clean_mpps().is_some() {
            sentences.extend(protecting(channel, one));
        }
        sentences.extend(dpdk::beside(channel, one));
    }
    if let Some(one) = main.iter().find(|one| one.clean_mpps().is_some() && !one.is_emulated()) {
        sentences.push(format!("{}{}.", windows::SEED, as_much(channel, one)));
    }
    sentences.extend(setups.iter().filter_map(PathSetup::sentence));
    sentences.extend(beside(channel));
    if sentences.is_empty() {
        return "Nothing was measured.".to_owned();
    }
    sentences.join(" ")
}

/// What else was measured on each machine: delays, flow tables, a hostile peer.
fn beside(channel: &Channel<'_>) -> Vec<String> {
    let mut sentences = Vec::new();
    for host in &channel.hosts {
        let of = if channel.hosts.len() > 1 { format!("{}: ", host.machine) } else { String::new() };
        let delayed = delays::said(&delays::main(&channel.delays, &host.machine));
        let changed = channel.flows.iter().filter(|one| one.machine == host.machine).map(flows::said);
        let own: Vec<_> = channel.faults.iter().filter(|one| one.machine == host.machine).collect();
        let all = delayed.into_iter().chain(changed).chain(faults::said(&own));
        sentences.extend(all.map(|text| format!("{of}{text}")));
    }
    sentences
}

/// What one setup carried, and what others took of it.
fn standing(one: &Measured<'_>) -> String {
    let Setup { size_bytes, batch, .. } = one.setup;
    let whose = format!("{size_bytes} B and batch {batch} over {}", one.name());
    let Some(clean) = one.clean_mpps() else {
        return format!(
            "Not measurable here: {} of the slices were clean at {whose}, and a rate needs {}.",
            percent(one.clean_share()),
            percent(LEAST_CLEAN)
        );
    };
    let range = match one.range_mpps() {
        Some((low, high)) => format!(
            " ({} to {} in {})",
            base::number::decimals(low, 2),
            base::number::decimals(high, 2),
            counted(one.launches.len() as u64, "launch", "launches")
        ),
        None => String::new(),
    };
    let lost = match (one.raw_mpps(), one.lost_share()) {
        (Some(raw), Some(share)) if share >= 5e-4 => {
            format!("; interference took {} of it, which left {}", percent(share), packets_per_s(raw * 1e6))
        }
        _ => String::new(),
    };
    let unverified = if one.is_verified() { "" } else { ", unverified" };
    format!("{} at {whose}{range}{unverified}{lost}.", packets_per_s(clean * 1e6))
}

/// Culprits that a sentence names.
const MOST_NAMED: usize = 3;

/// Who had the CPUs in the gaps of all setups of a machine, and for how much of the lost time.
fn disturbed(channel: &Channel<'_>, machine: &str) -> Option<String> {
    let sum = channel.culprits.sum(|(of, ..)| *of == machine)?;
    let named = sum.groups.iter().take(MOST_NAMED);
    let named: Vec<String> = named.map(|group| format!("{} {}", group.name, percent(sum.share(group.ns)))).collect();
    let rest = sum.groups.len().saturating_sub(MOST_NAMED) as u64;
    let rest = if rest > 0 { format!(", and {} the rest", counted(rest, "other", "others")) } else { String::new() };
    Some(format!("Of {} in gaps of all setups, by the trace: {}{rest}.", duration(sum.gap_ns as f64), named.join(", ")))
}

/// What each window costs a packet there.
fn protecting(channel: &Channel<'_>, one: &Measured<'_>) -> Option<String> {
    let batch = one.setup.batch;
    let price = |window: &&str| {
        let series = channel.like(one, |setup| setup.window = (*window).to_owned())?;
        let ns = series.at(batch)?.window_ns()? / f64::from(batch);
        Some(format!("{} with {window}", duration(ns)))
    };
    let prices: Vec<String> = [PKEY, MPROTECT].iter().filter_map(price).collect();
    (!prices.is_empty()).then(|| format!("Opening and closing a window there costs {} per packet.", list(&prices)))
}

/// Which batch would reach the published rate, by the model, in words that go on.
fn as_much(channel: &Channel<'_>, one: &Measured<'_>) -> String {
    let Some(Ok(model)) = channel.like(one, |_| {}).map(|series| &series.model) else { return String::new() };
    let (least, most) = (model.least, model.most);
    match model.smallest_batch(windows::SEED_MPPS) {
        Ok(batch) => format!("; by the model batch {batch} is the smallest that carries as much here"),
        Err(Refused::OutsideSwept { batch, .. }) if batch < u64::from(least) => {
            format!("; by the model batch {least} carries as much here, and smaller ones were not measured")
        }
        Err(Refused::OutsideSwept { .. }) => {
            format!("; by the model no batch from {least} to {most} carries as much here")
        }
        Err(Refused::Unreachable { copy_ns, .. }) => {
            format!(
                "; by the model no batch carries as much here, because copying alone takes {} per packet",
                duration(copy_ns)
            )
        }
        Err(Refused::TooFewBatches { .. }) => String::new(),
    }
}

/// What cannot be told.
fn unknown(channel: &Channel<'_>, listed: u64) -> Vec<Unknown> {
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
            let own = windows::modelled(&host.given, host.ns_per_tick).into_iter();
            own.map(|(.., said)| said).collect::<Vec<_>>()
        };
        let mut said: Vec<String> = channel.hosts.iter().flat_map(of_host).collect();
        said.dedup();
        let text = format!("Rows of kind modelled stand on prices that were not measured here: {}.", said.join("; "));
        Unknown { what: "published_windows".into(), amount: None, unit: String::new(), text }
    });
    let seen = channel
        .measured()
        .map(|one| one.sum(|run| run.sides().fold(0, |sum, side| sum.saturating_add(side.gap_count))));
    let seen = seen.fold(0, u64::saturating_add);
    let all = seen.max(listed);
    let gaps = counted(all, "gap was", "gaps were");
    let culprits = if channel.culprits.is_empty() {
        let text = format!("{gaps} seen, and {listed} of them listed; who had the CPU meanwhile was not recorded.");
        one("gaps", all, "gaps", text)
    } else {
        let unnamed = channel.culprits.unnamed_ns();
        let text = format!(
            "{gaps} seen, and {listed} of them listed; the trace does not tell who had the CPU for {} of those that are kept.",
            duration(unnamed as f64)
        );
        one("gaps", unnamed, "ns", text)
    };
    let lost = one(
        "lost_events",
        channel.culprits.lost_events,
        "events",
        format!(
            "The trace beside the bench has lost {}: no culprit is named for what happened there.",
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
    let skipped = channel.skipped.iter().map(|(name, why)| Unknown {
        what: "skipped".into(),
        amount: None,
        unit: String::new(),
        text: format!("{name} was not measured: {}.", why.trim_end_matches('.')),
    });
    let known = [unclean, unmodelled, kicked, cycles, published, culprits, lost, damaged];
    let parts = delays::unknown(&channel.delays).chain(flows::unknown(&channel.flows));
    known.into_iter().flatten().chain(parts).chain(skipped).collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Made, benches, of_batches};
    use super::*;
    use crate::facts::machines::Machines;

    fn answered(made: &[Made]) -> Section {
        let benches = benches(made);
        section(&Channel::of(&benches, &Machines::default()), &benches.runs)
    }

    fn unknowns(section: &Section) -> Vec<&str> {
        section.unknown.iter().map(|one| one.what.as_str()).collect()
    }

    #[test]
    fn the_rate_of_64_bytes_and_32_frames_comes_first_with_what_took_it() {
        let line = |window: &'static str, window_ns: f64, launch| {
            let change = |made| Made { window, window_ns, launch, raw: 0.8, ..made };
            of_batches(&[1, 8, 32, 64], |n| window_ns + 60.0 + 14.0 * n, change)
        };
        let made =
            [line("none", 0.0, 0), line("none", 0.0, 1), line("pkey", 28.8, 0), line("mprotect", 7_795.0, 0)].concat();
        let section = answered(&made);
        let summary = "62.99 Mpps at 64 B and batch 32 over ring without a window (62.99 to 62.99 in 2 launches); interference \
                       took 20.0 % of it, which left 50.39 Mpps. Opening and closing a window there costs 0.9 ns with pkey and 243.6 ns with \
                       mprotect per packet. Published for context: 65 Mpps at batch 32, variant not stated (J. Nakajima, 2015); by the model \
                       batch 44 is the smallest that carries as much here.";
        assert_eq!(section.summary, summary);
        let said = "pkey and mprotect guard against our own wild reads and writes. They are not isolation between VMs: that comes from what \
                    each side can map.";
        assert!(section.about.iter().any(|line| line == said), "{:?}", section.about);
        assert!(
            section
                .about
                .iter()
                .any(|line| line.contains("a frame of 64 B moves 128 B between them, 8.1 GB/s at 62.99 Mpps"))
        );
        assert_eq!((unknowns(&section), section.tables.len()), (vec!["published_windows"], 1));
    }

    #[test]
    fn too_few_clean_slices_give_no_number() {
        let section = answered(&[Made { clean: 0.19, window: "pkey", ..Made::default() }]);
        let summary = "Not measurable here: 19.0 % of the slices were clean at 64 B and batch 32 over ring with pkey, and a rate needs 20.0 %.";
        assert_eq!(section.summary, summary);
        assert_eq!(unknowns(&section), ["not_clean", "not_modelled"]);
        let text = "1 sweep of batches has no cost by step: a model needs clean rates of 3 batches, and there are 0.";
        assert_eq!(section.unknown[1].text, text);
        let said = "pkey guards against our own wild reads and writes. It is not isolation between VMs: that comes from what each side can map.";
        assert!(section.about.iter().any(|line| line == said), "{:?}", section.about);
    }

    #[test]
    fn what_was_measured_stands_for_what_was_asked_for_if_that_is_not_there() {
        let section = answered(&[Made { size: 512, batch: 8, verified: false, ..Made::default() }]);
        assert!(
            section.summary.starts_with("12.50 Mpps at 512 B and batch 8 over ring without a window, unverified."),
            "{}",
            section.summary
        );
        assert!(!section.about.iter().any(|line| line.contains("isolation")));
    }

    #[test]
    fn emulated_paths_are_named_and_stand_beside_no_real_number() {
        let emulated = Made { path: "ivshmem-plain", emulated: true, batch_ns: 64.0, ..Made::default() };
        let section = answered(&[emulated.clone(), Made::default()]);
        assert!(
            section.about.iter().any(|line| line.starts_with("EMULATED: ivshmem-plain ran between")),
            "{:?}",
            section.about
        );
        let said = "50.00 Mpps at 64 B and batch 32 over ring without a window.";
        assert!(section.summary.starts_with(said) && !section.summary.contains("ivshmem"), "{}", section.summary);
        let alone = answered(&[emulated]).summary;
        assert_eq!(alone, "500.00 Mpps at 64 B and batch 32 over ivshmem-plain without a window, emulated.");
        assert!(!answered(&[Made::default()]).about.iter().any(|line| line.contains("EMULATED")));
    }

    #[test]
    fn damage_and_what_was_left_out_are_told() {
        let mut benches = benches(&[Made::default(), Made { batch: 0, ..Made::default() }]);
        let results = &mut benches.runs[0].bench.results;
        let mut skipped = results[0].clone();
        skipped.channel = None;
        skipped.skipped = Some("this processor has no protection keys.".into());
        results.extend([skipped.clone(), skipped]);
        let section = section(&Channel::of(&benches, &Machines::default()), &benches.runs);
        assert_eq!(unknowns(&section), ["not_modelled", "damaged", "skipped"]);
        assert!(section.unknown[1].text.starts_with("1 result was left out"), "{:?}", section.unknown);
        assert!(section.unknown[2].text.ends_with("was not measured: this processor has no protection keys."));
    }
}
