//! The answer in sentences: what each machine's path carries and what others took of it, what windows cost, what else was measured.

use super::costs::unfitted;
use super::measured::{Channel, MPROTECT, Measured, PKEY};
use super::setups::PathSetup;
use super::{delays, dpdk, faults, flows, windows};
use base::channel::{LEAST_CLEAN, Setup};
use base::number::{counted, duration, list, packets_per_s, percent};
use facts::ring::Refused;

/// Culprits that a sentence names.
const MOST_NAMED: usize = 3;

/// The answer as a person would say it.
pub(crate) fn of(channel: &Channel<'_>, main: &[&Measured<'_>], setups: &[PathSetup<'_>]) -> String {
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
    let Some(series) = channel.like(one, |_| {}) else { return String::new() };
    let Ok(model) = &series.model else { return String::new() };
    if let Some(residual_ns) = unfitted(channel, series) {
        return format!(
            "; the model does not fit here, and names no batch that carries as much: it leaves {} of a packet unexplained, more than it has for \
             any step",
            duration(residual_ns)
        );
    }
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

#[cfg(test)]
mod tests {
    use super::super::section::tests::{answered, unknowns};
    use super::super::tests::{Made, of_batches};

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
    fn a_model_that_leaves_more_than_it_explains_names_no_batch() {
        let jumps = |n: f64| if n < 64.0 { 60.0 + 14.0 * n } else { 10.0 * n };
        let summary = answered(&of_batches(&[1, 8, 32, 64], jumps, |made| made)).summary;
        assert!(summary.contains("by the model batch "), "{summary}");
        // 281 ns and 15.51 ns per frame; 20 ns of each frame in batches of 32 are in no step.
        let rates = |n: f64| {
            n * 1_000.0
                / [(1.0, 3.8123), (8.0, 15.92), (32.0, 22.388), (64.0, 60.7828)]
                    .iter()
                    .find(|rate| rate.0 == n)
                    .unwrap()
                    .1
        };
        let summary = answered(&of_batches(&[1, 8, 32, 64], rates, |made| made)).summary;
        assert!(summary.contains("the model does not fit here") && !summary.contains("by the model"), "{summary}");
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
    fn a_launch_in_which_no_frame_moved_is_no_rate_of_0_and_none_of_its_slices_is_clean() {
        let moved = Made { clean: 0.25, raw: 0.5, ..Made::default() };
        let idle = |launch| Made { launch, clean: 0.3, raw: 0.0, ..Made::default() };
        let section = answered(&[moved.clone(), idle(1), idle(2)]);
        assert!(section.summary.starts_with("Not measurable here: 8.3 % of the slices"), "{}", section.summary);
        assert_eq!(unknowns(&section), ["not_clean", "idle", "not_modelled"]);
        assert_eq!(section.unknown[1].amount, Some(2.0));
        let raw = section.tables[0].rows().next().unwrap().number("raw_mpps").unwrap();
        assert!((raw - 25.0).abs() < 0.01, "of the launch that ran: {raw}");
    }
}
